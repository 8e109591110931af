"""Convolution as products of matrices, which BLAS computes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.kernels.base.builtin import host_call
from dala.kernels.tensor.windows import Windows, padded
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

PATCH_BYTES = 2 << 20
"""Patches for one product: few enough to stay in cache, enough to keep all threads busy."""


def convolved(
    x: Buffer, weight: Buffer, output: Buffer, down: Windows, across: Windows, groups: int
) -> Iterator[Stage]:
    """Stages that convolve floats of one dtype."""
    made, channels, height, width = weight.shape
    batch = x.shape[0]
    reach = down.reach, across.reach
    planes = x
    if down.before or across.before or reach[0] > x.shape[2] or reach[1] > x.shape[3]:
        yield (stage := padded(x, down, across, *reach))
        planes = stage.output
    given = {"steps": (down.step, across.step), "apart": (down.apart, across.apart)}
    inputs = [
        reshaped(planes, (batch, groups, channels, *planes.shape[-2:])),
        reshaped(weight, (groups, made // groups, channels, height, width)),
    ]
    target = reshaped(output, (batch, groups, made // groups, down.count, across.count))
    yield Stage(multiply_patches, inputs, target, given)


@host_call("planes", "weight")
def multiply_patches(
    planes: np.ndarray,
    weight: np.ndarray,
    *,
    out: np.ndarray,
    steps: tuple[int, int],
    apart: tuple[int, int],
) -> None:
    """The elements of each window as a column of a matrix that the weights are multiplied with."""
    batch, groups, made, rows, columns = out.shape
    channels, height, width = weight.shape[2:]
    depth = channels * height * width
    flat_weight, flat_out = (
        weight.reshape(groups, made, depth),
        out.reshape(batch, groups, made, -1),
    )
    most = min(rows, max(1, PATCH_BYTES // (depth * columns * out.itemsize)))
    room = np.empty(depth * most * columns, out.dtype)
    for image, group in np.ndindex(batch, groups):
        for first in range(0, rows, most):
            count = min(most, rows - first)
            patches = room[: depth * count * columns]
            patches = patches.reshape(channels, height, width, count, columns)
            for y, z in np.ndindex(height, width):
                top, left = first * steps[0] + y * apart[0], z * apart[1]
                lines = slice(top, top + (count - 1) * steps[0] + 1, steps[0])
                places = slice(left, left + (columns - 1) * steps[1] + 1, steps[1])
                patches[:, y, z] = planes[image, group, :, lines, places]
            part = flat_out[image, group, :, first * columns : (first + count) * columns]
            with np.errstate(all="ignore"):
                np.matmul(flat_weight[group], patches.reshape(depth, -1), out=part)
