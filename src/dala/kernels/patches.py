"""Convolution as products of matrices, which BLAS computes."""

from __future__ import annotations

import numpy as np

from dala.kernels.builtin import library

PATCH_BYTES = 1 << 20
"""Patches for one product: few enough to stay in a core's cache."""
LEAST_COLUMNS = 16


@library("planes", "weight")
def multiply_patches(
    planes: np.ndarray, weight: np.ndarray, *, out: np.ndarray, taps: list[tuple[int, int]]
) -> None:
    """The windows' elements as columns of matrices, which BLAS multiplies with the weights."""
    batch, groups, channels = planes.shape[:3]
    length, depth = out.shape[3], channels * len(taps)
    most = max(LEAST_COLUMNS, PATCH_BYTES // (depth * out.itemsize))
    room = np.empty(depth * min(most, length), out.dtype)
    for image in range(batch):
        for group in range(groups):
            for start in range(0, length, most):
                stop = min(length, start + most)
                patches = room[: depth * (stop - start)].reshape(channels, len(taps), -1)
                for tap, (phase, offset) in enumerate(taps):
                    source = planes[image, group, :, phase, start + offset : stop + offset]
                    patches[:, tap] = source
                columns = patches.reshape(depth, -1)
                with np.errstate(all="ignore"):
                    np.matmul(weight[group], columns, out=out[image, group, :, start:stop])
