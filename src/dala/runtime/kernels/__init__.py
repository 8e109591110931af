"""Kernels as users hold them: made, registered, specialized, launched."""
