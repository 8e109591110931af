"""Kernels on tensors."""

from dala.kernels.tensor import (  # noqa: F401
    convolution,
    elementwise,
    fourier,
    gathering,
    matmul,
    normalization,
    pooling,
    random_numbers,
    ranking,
    reductions,
    scans,
)
