"""The typed intermediate representation of kernels, and the passes over it."""
