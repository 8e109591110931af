"""The CPU device: LLVM, worker threads, host memory."""
