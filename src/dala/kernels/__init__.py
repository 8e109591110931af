"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import (  # noqa: F401
    convolution,
    elementwise,
    fourier,
    gathering,
    image,
    matrices,
    normalisation,
    pooling,
    ranking,
    reductions,
    scans,
)
