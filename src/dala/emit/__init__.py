"""From a program to code: LLVM IR for this CPU."""
