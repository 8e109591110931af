"""Models as users hold them: loaded, called, run as kernels."""
