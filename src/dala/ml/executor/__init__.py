"""Models as stages of dala's own kernels: what a device computes without leaving it."""
