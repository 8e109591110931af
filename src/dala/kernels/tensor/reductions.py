"""Sums, means and extremes along axes.

An input is seen as (outer, n, inner), where n counts what is reduced. Rows, where inner is 1, are
walked by loops that LLVM turns into vectors; else neighbors along inner are the vector. What would
leave threads idle, few rows that are very long, is first reduced in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.errors import ShapeError
from dala.ir.types import F32, F64, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import DeclaredKernel, Given, Inputs, composite, helper
from dala.kernels.base.parameters import other
from dala.kernels.base.results import float_dtype, sum_dtype
from dala.kernels.base.shapes import Shape, around, axes_of, require_shape, runs_of
from dala.kernels.tensor.elementwise import cast, fill
from dala.lang.language_names import SCALARS
from dala.lang.reductions import summed_type
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import beginning, reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

BLOCK = 2048
"""Elements of a long row that are reduced at a time."""
RUN = 64
"""Elements of a long column that are reduced at a time: more would touch too many pages."""
FEW_ROWS, LONG_ROW = 64, 1 << 16
MOST_COUNTED = 1 << 31
"""Positions are counted in 32 bits."""

Parts = tuple[int, int, int]

AXIS = other("axes", "the axes that are reduced, one or several; all unless given", None)


@composite("x", axis=AXIS)
def reduce_sum(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The sum along one axis or several, or of all elements

    Integers wrap in the output's dtype. The output has the input's shape without the axes, or with
    1 in their place.
    """
    yield from _planned("reduce_sum", sum, inputs[0], output, params["axis"])


@composite("x", axis=AXIS)
def reduce_mean(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The mean along one axis or several, or of all elements

    It is computed in floats. The mean of nothing is NaN, or 0 in an integer output.
    """
    yield from _planned("reduce_mean", sum, inputs[0], output, params["axis"], mean=True)


@composite("x", axis=AXIS)
def reduce_max(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The largest element along one axis or several, or of all; NaN where one is"""
    yield from _planned("reduce_max", max, inputs[0], output, params["axis"])


@composite("x", axis=AXIS)
def reduce_min(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The smallest element along one axis or several, or of all; NaN where one is"""
    yield from _planned("reduce_min", min, inputs[0], output, params["axis"])


reduce_sum.typed(sum_dtype)
reduce_mean.typed(float_dtype)


def _declare_shape(kernel: DeclaredKernel) -> None:
    @kernel.sized
    def reduced_shape(shapes: Sequence[Shape], params: Given) -> Shape:
        axes = axes_of(kernel.name, params["axis"], len(shapes[0]))
        return reduced_shapes(shapes[0], axes)[0]


for _kernel in (reduce_sum, reduce_mean, reduce_max, reduce_min):
    _declare_shape(_kernel)


def accumulator(output: Scalar, *inputs: Scalar) -> Scalar:
    """The type to sum and multiply in: a float if any is one, else one that wraps as the output."""
    scalars = (output, *inputs)
    if any(item.is_float for item in scalars):
        return F64 if any(item.bits == 64 for item in scalars) else F32
    return summed_type(output)


def averaging(output: Scalar, given: Scalar) -> Scalar:
    """The float type of a mean: one that holds each element exactly."""
    exact = given == F32 or given.bits <= 16
    return F32 if exact and output != F64 else F64


def reduced_shapes(shape: Shape, axes: Shape) -> tuple[Shape, ...]:
    """The shapes that the output may have: without the axes, or with 1 in their place."""
    without = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    ones = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return (without, ones) if without or len(shape) == 1 else ((), (1,), ones)


def _planned(
    kernel: str, fold: Any, x: Buffer, output: Buffer, axis: Any, *, mean: bool = False
) -> Iterator[Stage]:
    axes = axes_of(kernel, axis, len(x.shape))
    require_shape(kernel, output, f"{x.shape} over axis {axis}", *reduced_shapes(x.shape, axes))
    if 0 in output.shape:
        return
    if 0 in x.shape:
        if fold is not sum:
            raise ShapeError(
                f"{kernel}: the input is {x.shape}: over axis {axis} there are no elements of "
                f"which one could be the {'largest' if fold is max else 'smallest'}."
            )
        yield Stage(fill, [], output, {"value": math.nan if mean else 0})
        return
    scalar = x.scalar
    if fold is sum:
        scalar = averaging(output.scalar, scalar) if mean else accumulator(output.scalar, scalar)
    shape, elements = x.shape, math.prod(x.shape)
    runs = [run for run in runs_of(axes) if math.prod(shape[run[0] : run[1] + 1]) > 1]
    for run in reversed(runs):
        parts = around(shape, *run)
        shape = shape[: run[0]] + shape[run[1] + 1 :]
        last = run == runs[0]
        count = elements // math.prod(shape) if mean and last else None
        target = output if last else scratch(shape, scalar)
        yield from reduced(fold, scalar, x, target, parts, count)
        x = target
    if not runs:
        yield Stage(cast, [reshaped(x, output.shape)], output)


def reduced(
    fold: Any,
    scalar: Scalar,
    x: Buffer,
    output: Buffer,
    parts: Parts,
    count: int | None = None,
) -> Iterator[Stage]:
    """Stages that fold an input of (outer, n, inner) elements along n, computing in a type.

    With a `count`, what they come to is divided by it.
    """
    outer, n, inner = parts
    to, mean = SCALARS[scalar.name], count is not None
    params = {} if count is None else {"count": count}
    if inner > 1:
        while n > 2 * RUN:
            size = next((size for size in range(2 * RUN, RUN // 2, -1) if n % size == 0), RUN)
            runs = -(-n // size)
            target = scratch((outer, runs, inner), scalar)
            if n % size == 0:
                columns = reshaped(x, (outer * runs, size, inner))
                target = reshaped(target, (outer * runs, inner))
                yield Stage(_column_kernel(fold, to, False), [columns], target)
            else:
                yield Stage(_run_kernel(fold, to), [reshaped(x, (outer, n, inner))], target)
            x, n = target, runs
        by_column = reshaped(x, (outer, n, inner))
        yield Stage(_column_kernel(fold, to, mean), [by_column], _rows(output, outer), params)
    elif outer < FEW_ROWS and n >= LONG_ROW and outer * n < MOST_COUNTED:
        count = outer * n // BLOCK
        blocks = scratch((count, 1), scalar)
        yield Stage(row_kernel(fold, to, False), [beginning(x, (count, BLOCK))], blocks)
        inputs = [reshaped(x, (outer, n)), reshaped(blocks, (count,))]
        yield Stage(_block_kernel(fold, to, mean), inputs, _rows(output, outer), params)
    else:
        by_row = reshaped(x, (outer, n))
        yield Stage(row_kernel(fold, to, mean), [by_row], _rows(output, outer), params)


def _rows(buffer: Buffer, rows: int) -> Buffer:
    return reshaped(buffer, (rows, math.prod(buffer.shape) // rows))


# -- kernels: `fold` is Python's sum, max or min, `to` the type to fold in -----------------------


@cache
def row_kernel(fold: Any, to: Any, mean: bool) -> Kernel:
    def reduce_rows(x: Any, count: dala.u32 = 1) -> Any:
        i, _ = dala.position(2)
        folded = fold(to(x[i, k]) for k in range(x.shape[1]))
        if mean:
            return folded / to(count)
        return folded

    return helper(reduce_rows)


@cache
def _column_kernel(fold: Any, to: Any, mean: bool) -> Kernel:
    def reduce_columns(x: Any, count: dala.u32 = 1) -> Any:
        i, j = dala.position(2)
        folded = fold(to(x[i, k, j]) for k in range(x.shape[1]))
        if mean:
            return folded / to(count)
        return folded

    return helper(reduce_columns)


@cache
def _run_kernel(fold: Any, to: Any) -> Kernel:
    def reduce_runs(x: Any) -> Any:
        i, run, j = dala.position(3)
        first, n = run * RUN, x.shape[1]
        return fold(to(x[i, first + k, j]) for k in range(RUN) if first + k < n)

    return helper(reduce_runs)


@cache
def _block_kernel(fold: Any, to: Any, mean: bool) -> Kernel:
    def reduce_blocks(x: Any, blocks: Any, count: dala.u32 = 1) -> Any:
        i, _ = dala.position(2)
        n = x.shape[1]
        # Blocks are counted through all rows: those that lie in this one, then both its ends.
        start, stop = i * n, (i + 1) * n
        first, last = (start + (BLOCK - 1)) // BLOCK, stop // BLOCK
        whole = fold(blocks[k] for k in range(blocks.shape[0]) if first <= k < last)
        head = fold(to(x[i, k]) for k in range(BLOCK) if start + k < first * BLOCK)
        rest = last * BLOCK - start
        tail = fold(to(x[i, rest + k]) for k in range(BLOCK) if rest + k < n)
        folded = fold((whole, head, tail)[k] for k in range(3))
        if mean:
            return folded / to(count)
        return folded

    return helper(reduce_blocks)
