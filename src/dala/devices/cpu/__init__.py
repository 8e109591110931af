"""The CPU: LLVM, worker threads, host memory."""
