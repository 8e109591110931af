"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import (  # noqa: F401
    blurs,
    colours,
    convolution,
    elementwise,
    fourier,
    gathering,
    matrices,
    neighbourhoods,
    normalisation,
    pooling,
    preprocess,
    ranking,
    reductions,
    scans,
)
