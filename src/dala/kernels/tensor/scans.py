"""Running sums.

Long rows are summed in parts, the sums of all parts before each are found in the same way, and
every element adds to those what stands before it in its own part: threads share the parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.devices import current_device
from dala.errors import ArgumentError
from dala.ir.types import Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import flag, integer
from dala.kernels.base.results import sum_dtype
from dala.kernels.base.shapes import around, axis_of, require_alike
from dala.kernels.tensor import shared_scans
from dala.kernels.tensor.elementwise import fill
from dala.kernels.tensor.matmul import transposed
from dala.kernels.tensor.reductions import accumulator, row_kernel
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

PART, MANY_ROWS = 4096, 32
"""Elements of a row that one thread sums, unless there are as many rows as this."""
COLUMN_CHUNK = 8
SHARED_ROW = 64
"""Elements of a row from which on a workgroup of a GPU shares it."""
NARROW = 16
"""Columns fewer than this are turned into rows."""


@composite(
    "x",
    axis=integer("the axis that is summed along", -1),
    exclusive=flag("leave the element itself out of its sum"),
)
def prefix_sum(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The sum of each element and all before it along an axis

    `exclusive=True` leaves the element itself out. Integers wrap in the output's dtype.
    """
    (x,) = inputs
    exclusive = params["exclusive"]
    if exclusive not in (True, False):
        raise ArgumentError(f"prefix_sum: exclusive is True or False, not {exclusive!r}.")
    require_alike("prefix_sum", x, output)
    axis = axis_of("prefix_sum", params["axis"], len(x.shape))
    if 0 in x.shape:
        return
    scalar = accumulator(output.scalar, x.scalar)
    outer, n, inner = around(x.shape, axis, axis)
    if inner == 1:
        rows = reshaped(x, (outer, n)), reshaped(output, (outer, n))
        yield from _along_rows(*rows, scalar, bool(exclusive))
    elif inner >= NARROW:
        columns = reshaped(x, (outer, n, inner)), reshaped(output, (outer, n, inner))
        yield from _along_columns(*columns, scalar, bool(exclusive))
    else:
        turned, sums = scratch((outer, inner, n), x.scalar), scratch((outer, inner, n), scalar)
        rows = reshaped(turned, (outer * inner, n)), reshaped(sums, (outer * inner, n))
        yield from transposed(reshaped(x, (outer, n, inner)), turned, (0, 2, 1))
        yield from _along_rows(*rows, scalar, bool(exclusive))
        yield from transposed(sums, reshaped(output, (outer, n, inner)), (0, 2, 1))


prefix_sum.typed(sum_dtype)


def _along_rows(x: Buffer, output: Buffer, scalar: Scalar, exclusive: bool) -> Iterator[Stage]:
    rows, n = x.shape
    if n >= SHARED_ROW and current_device().supports("wgsl"):
        yield from shared_scans.along_rows(x, output, scalar, exclusive)
        return
    to = SCALARS[scalar.name]
    if rows >= MANY_ROWS or n <= PART:
        yield Stage(_scan_rows(to, exclusive), [x], output)
        return
    size = next((size for size in range(PART, PART // 4, -1) if n % size == 0), PART)
    parts = -(-n // size)
    sums, before = (scratch((rows, parts), scalar) for _ in range(2))
    cut = n % size == 0
    whole = x if cut else scratch((rows, parts * size), x.scalar)
    found = output if cut else scratch((rows, parts * size), output.scalar)
    if not cut:
        yield Stage(_crop, [x], whole)
    whole = reshaped(whole, (rows * parts, size))
    yield Stage(row_kernel(sum, to, False), [whole], reshaped(sums, (rows * parts, 1)))
    yield from _along_rows(sums, before, scalar, exclusive=True)
    inputs = [whole, reshaped(before, (rows * parts,))]
    yield Stage(_scan_parts(to, exclusive), inputs, reshaped(found, (rows * parts, size)))
    if not cut:
        yield Stage(_crop, [found], output)


def _along_columns(x: Buffer, output: Buffer, scalar: Scalar, exclusive: bool) -> Iterator[Stage]:
    outer, n, inner = x.shape
    chunks = -(-n // COLUMN_CHUNK)
    before = scratch((outer, chunks, inner), scalar)
    to = SCALARS[scalar.name]
    if chunks == 1:
        yield Stage(fill, [], before, {"value": 0})
    else:
        sums = scratch((outer, chunks, inner), scalar)
        yield Stage(_sum_column_chunks(to), [x], sums)
        yield from _along_columns(sums, before, scalar, exclusive=True)
    yield Stage(_scan_columns(to, exclusive), [x, before], output)


# -- kernels: `to` is the type to sum in -----------------------------------------------------------


@cache
def _scan_rows(to: Any, exclusive: bool) -> Kernel:
    def scan_rows(x: Any) -> Any:
        i, j = dala.position(2)
        return sum(to(x[i, k]) for k in range(j if exclusive else j + 1))

    return helper(scan_rows)


@cache
def _scan_parts(to: Any, exclusive: bool) -> Kernel:
    def scan_parts(x: Any, before: Any) -> Any:
        i, j = dala.position(2)
        return before[i] + sum(to(x[i, k]) for k in range(j if exclusive else j + 1))

    return helper(scan_parts)


@helper
def _crop(x: Any) -> Any:
    i, j = dala.position(2)
    return x[i, j]


@cache
def _sum_column_chunks(to: Any) -> Kernel:
    def sum_column_chunks(x: Any) -> Any:
        i, chunk, j = dala.position(3)
        total = to(x[i, chunk * COLUMN_CHUNK, j])
        for k in range(1, COLUMN_CHUNK):
            total += to(x[i, chunk * COLUMN_CHUNK + k, j])
        return total

    return helper(sum_column_chunks)


@cache
def _scan_columns(to: Any, exclusive: bool) -> Kernel:
    def scan_columns(x: Any, before: Any) -> Any:
        i, place, j = dala.position(3)
        chunk = place // COLUMN_CHUNK
        first = chunk * COLUMN_CHUNK
        total = to(before[i, chunk, j])
        for k in range(COLUMN_CHUNK):
            total += to(x[i, first + k, j]) if first + k + exclusive <= place else to(0)
        return total

    return helper(scan_columns)
