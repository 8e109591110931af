"""Pooling of planes: the last two axes are (height, width)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import DeclaredKernel, Given, Inputs, composite, helper, zero_outside
from dala.kernels.base.shapes import Shape, pair_of, require_shape
from dala.kernels.tensor.reductions import averaging
from dala.kernels.tensor.windows import WINDOW, Windows, windows_of
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


@composite("x", group="", **WINDOW)
def max_pool(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The largest element of each window of x (…, h, w); NaN where one is

    Size, stride and padding are one number or (vertical, horizontal); the stride is the size unless
    given. What is padded counts as smaller than any element.
    """
    yield from _pooled("max_pool", _max_pool, inputs[0], output, params)


@composite("x", group="", **WINDOW)
def avg_pool(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The mean of each window of x (…, h, w), of those elements that lie inside x

    Size, stride and padding are one number or (vertical, horizontal); the stride is the size unless
    given. Integers are averaged in floats and rounded.
    """
    to = SCALARS[averaging(output.scalar, inputs[0].scalar).name]
    yield from _pooled("avg_pool", _avg_pool(to), inputs[0], output, params)


def _declare_shape(kernel: DeclaredKernel) -> None:
    @kernel.sized
    def pooled_shape(shapes: Sequence[Shape], params: Given) -> Shape:
        down, across = _windows(kernel.name, shapes[0], params)
        return (*shapes[0][:-2], down.count, across.count)


_declare_shape(max_pool)
_declare_shape(avg_pool)


def _windows(kernel: str, shape: Shape, params: Given) -> tuple[Windows, Windows]:
    """The windows down and across the planes of an input; an error where there are none."""
    if len(shape) < 2:
        raise ShapeError(f"{kernel}: x is {shape}, but its last two axes are (height, width).")
    size = pair_of(kernel, "size", params["size"], 1)
    stride = size if params["stride"] is None else params["stride"]
    plane = shape[-2], shape[-1]
    down, across = windows_of(kernel, plane, size, stride, params["padding"])
    if down.before >= down.size or across.before >= across.size:
        raise ArgumentError(
            f"{kernel}: padding = {params['padding']!r} with windows of {size}: some would lie "
            f"outside the input altogether. Pad by less than the size."
        )
    return down, across


def _pooled(kernel: str, pool: Kernel, x: Buffer, output: Buffer, params: Given) -> Iterator[Stage]:
    down, across = _windows(kernel, x.shape, params)
    size = down.size, across.size
    wanted = (*x.shape[:-2], down.count, across.count)
    require_shape(kernel, output, f"x {x.shape} in windows of {size}", wanted)
    if 0 in output.shape:
        return
    planes = math.prod(x.shape[:-2])
    given = {
        "height": down.size,
        "width": across.size,
        "down": down.step,
        "across": across.step,
        "top": down.before,
        "left": across.before,
    }
    target = reshaped(output, (planes, down.count, across.count))
    yield Stage(pool, [reshaped(x, (planes, *x.shape[-2:]))], target, given)


@helper
def _max_pool(
    x: Any,
    height: dala.const,
    width: dala.const,
    down: dala.const,
    across: dala.const,
    top: dala.const,
    left: dala.const,
) -> Any:
    # Outside the edge repeats, which belongs to every window that reaches beyond it.
    i, y, z = dala.position(3)
    largest = x[i, y * down - top, z * across - left]
    for a in range(height):
        for b in range(width):
            largest = max(largest, x[i, y * down - top + a, z * across - left + b])
    return largest


@cache
def _avg_pool(to: Any) -> Kernel:
    def avg_pool(
        x: Any,
        height: dala.const,
        width: dala.const,
        down: dala.const,
        across: dala.const,
        top: dala.const,
        left: dala.const,
    ) -> Any:
        i, y, z = dala.position(3)
        first_row, first_column = y * down - top, z * across - left
        total = to(0)
        for a in range(height):
            for b in range(width):
                total += to(x[i, first_row + a, first_column + b])
        rows = min(first_row + height, x.shape[1]) - max(first_row, 0)
        columns = min(first_column + width, x.shape[2]) - max(first_column, 0)
        return total / to(rows * columns)

    return zero_outside(avg_pool)
