"""The built-in kernels, written in the kernel language itself."""

from dala.kernels import (  # noqa: F401
    convolution,
    detection,
    elementwise,
    fourier,
    gathering,
    image,
    masks,
    matrices,
    normalisation,
    pooling,
    poses,
    ranking,
    reductions,
    scans,
    suppression,
)
