"""Running sums.

Elements are summed in chunks, the sums of all chunks before each are found in the same way, and
every element adds to those what stands before it in its own chunk: more additions than one after
another would take, but all of them side by side.
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
from dala.kernels.tensor.reductions import accumulator
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

CHUNK = 16
"""Elements of a row that are summed together: a vector of them."""
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
    chunks = -(-n // CHUNK)
    before = scratch((rows, chunks), scalar)
    to = SCALARS[scalar.name]
    if chunks == 1:
        yield Stage(fill, [], before, {"value": 0})
    else:
        sums = scratch((rows, chunks), scalar)
        yield Stage(_sum_chunks(to), [x], reshaped(sums, (rows, chunks, 1)))
        yield from _along_rows(sums, before, scalar, exclusive=True)
    kernel = _scan_rows(to, exclusive)
    if n % CHUNK == 0:
        yield Stage(kernel, [x, before], reshaped(output, (rows, chunks, CHUNK)))
    else:
        whole = scratch((rows, chunks, CHUNK), output.scalar)
        yield Stage(kernel, [x, before], whole)
        yield Stage(_crop, [reshaped(whole, (rows, chunks * CHUNK))], output)


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
def _sum_chunks(to: Any) -> Kernel:
    # The last chunk may reach beyond the row: nobody adds its sum to anything.
    def sum_chunks(x: Any) -> Any:
        i, chunk, _ = dala.position(3)
        total = to(x[i, chunk * CHUNK])
        for k in range(1, CHUNK):
            total += to(x[i, chunk * CHUNK + k])
        return total

    return helper(sum_chunks)


@cache
def _scan_rows(to: Any, exclusive: bool) -> Kernel:
    def scan_rows(x: Any, before: Any) -> Any:
        i, chunk, j = dala.position(3)
        total = to(before[i, chunk])
        for k in range(CHUNK):
            total += to(x[i, chunk * CHUNK + k]) if k + exclusive <= j else to(0)
        return total

    return helper(scan_rows)


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
