"""Softmax and layer normalization.

Rows are normalized by kernels that take what is the same along a row from loops over it. Few rows
that are long, and columns, are normalized in stages that threads can share.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import FROM_0
from dala.kernels.base.parameters import integer, number, other
from dala.kernels.base.results import float_dtype
from dala.kernels.base.shapes import around, axes_of, axis_of, require_alike, runs_of
from dala.kernels.tensor.elementwise import fill
from dala.kernels.tensor.reductions import FEW_ROWS, RUN, Parts, averaging, reduced
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

SHARED_ROW = 1 << 13
"""Elements from which on a row is worth sharing, where there are few rows."""


def _is_by_row(parts: Parts) -> bool:
    outer, n, inner = parts
    return inner == 1 and (outer >= FEW_ROWS or n < SHARED_ROW)


# -- softmax ---------------------------------------------------------------------------------------


@composite("x", axis=integer("the axis along which elements add up to 1", -1))
def softmax(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """exp(x) along an axis, divided by its sum"""
    (x,) = inputs
    require_alike("softmax", x, output)
    axis = axis_of("softmax", params["axis"], len(x.shape))
    if 0 in x.shape:
        return
    scalar = averaging(output.scalar, x.scalar)
    outer, n, inner = parts = around(x.shape, axis, axis)
    if _is_by_row(parts):
        kernel = _softmax_kernel(SCALARS[scalar.name])
        yield Stage(kernel, [reshaped(x, (outer, n))], reshaped(output, (outer, n)))
        return
    largest, total = (scratch((outer, 1, inner), scalar) for _ in range(2))
    yield from reduced(max, x.scalar, x, largest, parts)
    if inner == 1:
        rows, powers = reshaped(x, (outer, 1, n)), scratch((outer, 1, n), scalar)
        yield Stage(_powers, [rows, largest], powers)
        yield from reduced(sum, scalar, powers, total, parts)
        yield Stage(_quotients, [powers, total], reshaped(output, (outer, 1, n)))
    else:
        columns, runs = reshaped(x, parts), -(-n // RUN)
        sums = scratch((outer, runs, inner), scalar)
        yield Stage(_sums_of_powers, [columns, largest], sums, {"size": -(-n // runs)})
        yield from reduced(sum, scalar, sums, total, (outer, runs, inner))
        yield Stage(_shares, [columns, largest, total], reshaped(output, parts))


softmax.typed(float_dtype)


@cache
def _softmax_kernel(to: Any) -> Kernel:
    # To compute the powers twice takes less time than to store them in between.
    def softmax_rows(x: Any) -> Any:
        i, _ = dala.position(2)
        n = x.shape[1]
        largest = max(to(x[i, k]) for k in range(n))
        share = 1.0 / sum(dala.exp(to(x[i, k]) - largest) for k in range(n))
        return dala.exp(to(x) - largest) * share

    return helper(softmax_rows)


@helper
def _powers(x: Any, largest: Any) -> Any:
    i, _, _ = dala.position(3)
    return dala.exp(x - largest[i, 0, 0])


@helper
def _quotients(x: Any, total: Any) -> Any:
    i, _, _ = dala.position(3)
    return x / total[i, 0, 0]


@helper
def _sums_of_powers(x: Any, largest: Any, size: dala.s32) -> Any:
    i, run, j = dala.position(3)
    first, n = run * size, x.shape[1]
    top = largest[i, 0, j]
    return sum(dala.exp(x[i, first + k, j] - top) for k in range(size) if first + k < n)


@helper
def _shares(x: Any, largest: Any, total: Any) -> Any:
    i, _, j = dala.position(3)
    return dala.exp(x - largest[i, 0, j]) / total[i, 0, j]


# -- layer normalization ---------------------------------------------------------------------------


@composite(
    "*x_weight_bias",
    axis=other("axes", "the axes that are normalized, which are neighbors", -1),
    epsilon=number("what is added to the variance", 1e-5, limit=FROM_0),
)
def layer_norm(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """(x - mean) / √(variance + epsilon) along an axis, or several that are neighbors

    Inputs are x, or x, weight and bias, which have the shape of those axes: the normalized elements
    are multiplied by the one, and the other is added.
    """
    if len(inputs) not in (1, 3):
        raise ArgumentError(
            f"layer_norm takes x, or x, weight and bias; {len(inputs)} inputs were given."
        )
    x = inputs[0]
    require_alike("layer_norm", x, output)
    parts = _normalized(x, params["axis"], inputs[1:])
    if 0 in x.shape:
        return
    outer, n, inner = parts
    scalar = averaging(output.scalar, x.scalar)
    params = {"epsilon": params["epsilon"]}
    weight, bias = (reshaped(item, (n,)) for item in inputs[1:]) if inputs[1:] else (None, None)
    if weight is None or bias is None:
        weight, bias = scratch((n,), scalar), scratch((n,), scalar)
        yield Stage(fill, [], weight, {"value": 1})
        yield Stage(fill, [], bias, {"value": 0})
    if _is_by_row(parts):
        kernel = _layer_norm_kernel(SCALARS[scalar.name])
        inputs = [reshaped(x, (outer, n)), weight, bias]
        yield Stage(kernel, inputs, reshaped(output, (outer, n)), params)
        return
    # Elements are walked along inner, or along n where there is none.
    shape = parts if inner > 1 else (outer, 1, n)
    spread = reshaped(x, shape)
    mean, variance = (scratch((outer, 1, inner), scalar) for _ in range(2))
    squares = scratch(shape, scalar)
    across = {"across": int(inner > 1)}
    yield from reduced(sum, scalar, x, mean, parts, n)
    yield Stage(_squares, [spread, mean], squares, across)
    yield from reduced(sum, scalar, squares, variance, parts, n)
    inputs = [spread, mean, variance, weight, bias]
    yield Stage(_normalize, inputs, reshaped(output, shape), {**params, **across})


layer_norm.typed(float_dtype)


def _normalized(x: Buffer, axis: Any, affine: Inputs) -> Parts:
    """The input around its axes; an error where they, or weight and bias, do not fit."""
    axes = axes_of("layer_norm", axis, len(x.shape))
    runs = runs_of(axes)
    if len(runs) != 1:
        raise ArgumentError(
            f"layer_norm: axis {axis!r} of an input of {len(x.shape)} axes: give one axis, or "
            f"several that are neighbors."
        )
    wanted = tuple(x.shape[axis] for axis in axes)
    for name, item in zip(("weight", "bias"), affine, strict=False):
        if item.shape != wanted:
            raise ShapeError(
                f"layer_norm: {name} is {item.shape}, but {x.shape} along axis {axis} has "
                f"{wanted}: it has one element for each."
            )
    return around(x.shape, *runs[0])


@cache
def _layer_norm_kernel(to: Any) -> Kernel:
    def layer_norm_rows(x: Any, weight: Any, bias: Any, epsilon: dala.number) -> Any:
        i, j = dala.position(2)
        n = x.shape[1]
        mean = sum(to(x[i, k]) for k in range(n)) / n
        variance = sum((to(x[i, k]) - mean) ** 2 for k in range(n)) / n
        return (to(x) - mean) / dala.sqrt(variance + epsilon) * weight[j] + bias[j]

    return helper(layer_norm_rows)


# `across` is 1 where there is one value for each column, and 0 where there is one for each row.


@helper
def _squares(x: Any, mean: Any, across: dala.const) -> Any:
    i, _, j = dala.position(3)
    return (x - mean[i, 0, j * across]) ** 2


@helper
def _normalize(
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any,
    bias: Any,
    epsilon: dala.number,
    across: dala.const,
) -> Any:
    i, k, j = dala.position(3)
    deviation = dala.sqrt(variance[i, 0, j * across] + epsilon)
    place = k * across + j * (1 - across)
    return (x - mean[i, 0, j * across]) / deviation * weight[place] + bias[place]
