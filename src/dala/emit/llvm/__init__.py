"""Code generation for the CPU: emits LLVM IR."""
