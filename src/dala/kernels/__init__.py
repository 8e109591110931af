"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import (  # noqa: F401
    convolution,
    elementwise,
    fourier,
    gathering,
    matrices,
    normalisation,
    pooling,
    preprocess,
    ranking,
    reductions,
    scans,
)
