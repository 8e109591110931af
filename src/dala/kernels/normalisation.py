"""Softmax and layer normalisation.

A row that is long enough to share between threads is computed in stages, as are columns; all other
rows in one kernel, which takes what is the same along a row from loops over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.ir.types import Scalar
from dala.kernels import language as dala
from dala.kernels.builtin import Given, Inputs, helper, recipe
from dala.kernels.elementwise import fill
from dala.kernels.reductions import FEW_ROWS, accumulator, averaging, reduced
from dala.kernels.shapes import axes_of, axis_of, around, require_alike, runs_of
from dala.runtime.buffer import Buffer
from dala.runtime.recipe import Stage, reshaped, scratch

SHARED_ROW = 1 << 13
"""Elements from which on a row is worth cutting where there are few of them."""


def _in_one_kernel(outer: int, n: int, inner: int) -> bool:
    return inner == 1 and not (outer < FEW_ROWS and n >= SHARED_ROW)


# -- softmax ---------------------------------------------------------------------------------------


@recipe("x", axis=-1)
def softmax(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """exp(x) along an axis, scaled so that it adds up to 1"""
    (x,) = inputs
    require_alike("softmax", x, output)
    axis = axis_of("softmax", params["axis"], len(x.shape))
    outer, n, inner = around(x.shape, axis, axis)
    if 0 in x.shape:
        return
    if _in_one_kernel(outer, n, inner):
        rows = (outer, n)
        yield Stage(_softmax_rows, [reshaped(x, rows)], reshaped(output, rows))
        return
    # One long row is a column of width 1, and a column's parts are its elements: (…, n, 1).
    shape, part = ((outer, n, inner), (outer, 1, inner)) if inner > 1 else ((outer, n), (outer, 1))
    scalar = (
        accumulator(output.scalar, x.scalar)
        if output.scalar.is_float
        else averaging(output.scalar, x.scalar)
    )
    largest, total = scratch(part, x.scalar), scratch(part, scalar)
    powers = scratch(shape, scalar)
    over = _OVER[len(shape)]
    yield from reduced(max, x.scalar, x, largest, (outer, n, inner))
    yield Stage(over["exp"], [reshaped(x, shape), largest], powers)
    yield from reduced(sum, scalar, powers, total, (outer, n, inner))
    yield Stage(over["div"], [powers, total], reshaped(output, shape))
