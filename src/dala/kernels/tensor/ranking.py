"""Where the largest elements are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import S32, S64, U8, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import flag, other
from dala.kernels.base.results import position_dtype, require_size
from dala.kernels.base.shapes import Shape, around, axis_of, require_shape
from dala.kernels.tensor.matmul import transposed
from dala.kernels.tensor.reductions import BLOCK, LONG_ROW, MOST_COUNTED, reduced_shapes, row_kernel
from dala.kernels.tensor.sorting import MANY, key_type, rank_function, sort, sorted_positions
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import beginning, reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_RANKED = 128
"""More than so many elements of a row are found by sorting all of it."""
FEW_RANKED = 4
"""The same of long rows, of which only a part is sorted."""
SHORT_SEARCH = 1 << 12
"""Comparisons that one invocation of a GPU makes alone; more are better shared."""


# -- the largest -----------------------------------------------------------------------------------


@composite("x", axis=other("axes", "the axis that is searched; all of them unless given", None))
def argmax(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The position of the largest element along an axis, or among all; the first of equals

    NaN counts as larger than any number, as in NumPy.
    """
    x, axis = inputs[0], params["axis"]
    axes = _searched(x.shape, axis)
    require_shape("argmax", output, f"{x.shape} over axis {axis}", *reduced_shapes(x.shape, axes))
    if 0 in output.shape:
        return
    outer, n, inner = around(x.shape, axes[0], axes[-1]) if axes else (1, 1, 1)
    if n == 0:
        raise ShapeError(
            f"argmax: the input is {x.shape}: over axis {axis} there are no elements of which one "
            f"could be the largest."
        )
    _require_positions("argmax", output, n)
    if inner > 1 and n > SHORT_SEARCH and not output.is_host:
        turned = scratch((outer, inner, n), x.scalar)
        yield from transposed(reshaped(x, (outer, n, inner)), turned, (0, 2, 1))
        x, outer, inner = turned, outer * inner, 1
    if inner > 1:
        columns = reshaped(output, (outer, inner))
        yield Stage(_largest_of_columns, [reshaped(x, (outer, n, inner))], columns)
    elif outer == 1 and LONG_ROW <= n < MOST_COUNTED:
        count = n // BLOCK
        blocks = scratch((count, 1), x.scalar)
        to = SCALARS[x.dtype]
        yield Stage(row_kernel(max, to, False), [beginning(x, (count, BLOCK))], blocks)
        flat = [reshaped(x, (n,)), reshaped(blocks, (count,))]
        yield Stage(_largest_of_blocks, flat, reshaped(output, (1, 1)))
    else:
        yield Stage(_largest_of_rows, [reshaped(x, (outer, n))], reshaped(output, (outer, 1)))


argmax.typed(position_dtype)


@argmax.sized
def _searched_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return reduced_shapes(shapes[0], _searched(shapes[0], params["axis"]))[0]


def _searched(shape: Shape, axis: Any) -> Shape:
    """The axes that are searched."""
    rank = len(shape)
    return tuple(range(rank)) if axis is None else (axis_of("argmax", axis, rank),)


def _require_positions(kernel: str, output: Buffer, count: int) -> None:
    """A DtypeError unless the output can hold every position below `count`."""
    scalar = output.scalar
    if not scalar.is_integer:
        raise DtypeError(
            f"{kernel}: the output is {scalar}, but positions are integers: give s32, or s64."
        )
    if count - 1 > scalar.highest:
        raise DtypeError(
            f"{kernel}: the output is {scalar}, which holds numbers up to {scalar.highest}, but "
            f"positions go up to {count - 1}: give s32 or s64."
        )


@helper
def _largest_of_rows(x: Any) -> Any:
    i, _ = dala.position(2)
    n = x.shape[1]
    largest = max(x[i, k] for k in range(n))
    return min(k if x[i, k] == largest or x[i, k] != x[i, k] else n for k in range(n))


@helper
def _largest_of_columns(x: Any) -> Any:
    i, j = dala.position(2)
    largest, where = x[i, 0, j], 0
    for k in range(1, x.shape[1]):
        value = x[i, k, j]
        larger = value > largest or (value != value and largest == largest)
        largest = value if larger else largest
        where = k if larger else where
    return where


@helper
def _largest_of_blocks(x: Any, blocks: Any) -> Any:
    n, count = x.shape[0], blocks.shape[0]
    rest = count * BLOCK
    in_blocks = max(blocks[k] for k in range(count))
    in_rest = max(x[rest + k] for k in range(BLOCK) if rest + k < n)
    largest = max(in_blocks, in_rest)
    block = min(
        k if blocks[k] == largest or blocks[k] != blocks[k] else count for k in range(count)
    )
    start = block * BLOCK
    return min(
        start + k
        for k in range(BLOCK)
        if start + k < n and (x[start + k] == largest or x[start + k] != x[start + k])
    )


# -- the k largest ---------------------------------------------------------------------------------


@composite(
    "x",
    largest=flag("the largest, in descending order; else the smallest, in ascending order", True),
    indices=flag("give positions in place of values"),
)
def top_k(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The k largest elements of each row in descending order, k being the output's last size

    `largest=False` gives the smallest, in ascending order; `indices=True` gives positions in place
    of elements. Of equal elements the first comes first. NaN counts as larger than any number.
    """
    (x,) = inputs
    for name in ("largest", "indices"):
        if params[name] not in (True, False):
            raise ArgumentError(f"top_k: {name} is True or False, not {params[name]!r}.")
    if not x.shape or not output.shape or output.shape[:-1] != x.shape[:-1]:
        raise ShapeError(
            f"top_k: the output is {output.shape}, but the input {x.shape}: all but the last axis "
            f"are the same, and the last is how many to find."
        )
    n, k = x.shape[-1], output.shape[-1]
    if k > n:
        raise ShapeError(f"top_k: {k} of each row are asked for, but a row of {x.shape} has {n}.")
    if params["indices"]:
        _require_positions("top_k", output, n)
    if 0 in output.shape:
        return
    rows = math.prod(x.shape[:-1])
    x, output = reshaped(x, (rows, n)), reshaped(output, (rows, k))
    largest = bool(params["largest"])
    most = FEW_RANKED if output.is_host and n >= MANY else MOST_RANKED
    if k <= most and (output.is_host or n * k <= SHORT_SEARCH):
        positions = scratch((rows, k), S32)
        yield Stage(_ranking_kernel(x.scalar, largest), [scratch((rows,), U8), x], positions)
    elif output.is_host:
        positions = scratch((rows, k), S64)
        yield Stage(sort, [x], positions, {"largest": largest})
    else:
        positions = yield from sorted_positions(x, largest)
    if params["indices"]:
        yield Stage(_first, [positions], output)
    else:
        yield Stage(_pick, [x, positions], output)


require_size(top_k, "the output's last axis is as long as there are elements to find")


@top_k.typed
def _found_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    return S32 if params["indices"] else scalars[0]


@helper
def _first(where: Any) -> Any:
    i, j = dala.position(2)
    return where[i, j]


@helper
def _pick(x: Any, where: Any) -> Any:
    i, j = dala.position(2)
    return x[i, where[i, j]]


@cache
def _ranking_kernel(scalar: Scalar, largest: bool) -> Kernel:
    rank = rank_function(scalar, largest)
    whole = key_type(scalar)
    to, highest = SCALARS[whole.name], whole.highest

    # `rows` is there to be walked over: one position for each row, which writes k elements.
    def rank_rows(rows: Any, x: Any, out: dala.Out) -> Any:
        (i,) = dala.position(1)
        n = x.shape[1]
        last, where = to(highest), -1
        for place in range(out.shape[1]):
            # The next is the largest of those that come after the one found before.
            best = max(
                rank(x[i, k])
                for k in range(n)
                if rank(x[i, k]) < last or (rank(x[i, k]) == last and k > where)
            )
            where = min(k for k in range(n) if rank(x[i, k]) == best and (best < last or k > where))
            last = best
            out[i, place] = where

    return helper(rank_rows)
