"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import (  # noqa: F401
    elementwise,
    gathering,
    matrices,
    normalisation,
    ranking,
    reductions,
    scans,
)
