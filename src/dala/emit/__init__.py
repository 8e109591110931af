"""Code generation: emits LLVM IR or WGSL for a program."""
