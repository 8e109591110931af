"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import elementwise, matrices, ranking, reductions  # noqa: F401
