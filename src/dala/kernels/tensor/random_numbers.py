"""Random numbers by position: the same on every device, in every shape of as many elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import F32, F64, S64, U32, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, dispatch, helper
from dala.kernels.base.limits import FROM_0, Limit
from dala.kernels.base.parameters import integer, number
from dala.kernels.base.results import position_dtype
from dala.kernels.tensor.sorting import sort, sorted_positions
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

_SEED = integer("which numbers are drawn", 0, limit=Limit(0, U32.highest))


def _flat(output: Buffer) -> Buffer:
    return reshaped(output, (math.prod(output.shape),))


def _require_float(kernel: str, output: Buffer) -> None:
    if not output.scalar.is_float:
        raise DtypeError(
            f"{kernel}: the output is {output.scalar}, but the numbers are floats: give f32 or "
            f"f64, or run random_integers."
        )


# -- floats ----------------------------------------------------------------------------------------


@dispatch(
    low=number("the least that is drawn", 0.0),
    high=number("what is drawn is below this; it may be reached by rounding", 1.0),
    seed=_SEED,
)
def random_uniform(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Random floats from low up to high, each as likely"""
    _require_float("random_uniform", output)
    if not params["low"] <= params["high"]:
        raise ArgumentError(
            f"random_uniform: low is {params['low']:g} and high {params['high']:g}: give low the "
            f"smaller one."
        )
    drawn = _uniform_f64 if output.scalar == F64 else _uniform_f32
    yield Stage(drawn, [], _flat(output), params)


@helper
def _uniform_f32(low: dala.f32, high: dala.f32, seed: dala.u32) -> Any:
    (i,) = dala.position(1)
    return low + (high - low) * dala.random(seed, i)


@helper
def _uniform_f64(low: dala.f64, high: dala.f64, seed: dala.u32) -> Any:
    (i,) = dala.position(1)
    a, b, _, _ = dala.random_bits(seed, i)
    share = (dala.f64(a >> 5) * 67108864.0 + dala.f64(b >> 6)) * 1.1102230246251565e-16
    return low + (high - low) * share


@dispatch(
    mean=number("the center", 0.0),
    std=number("the standard deviation", 1.0, limit=FROM_0),
    seed=_SEED,
)
def random_normal(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Random floats of the normal distribution"""
    _require_float("random_normal", output)
    yield Stage(_normal, [], _flat(output), params)


@helper
def _normal(mean: dala.number, std: dala.number, seed: dala.u32) -> Any:
    (i,) = dala.position(1)
    return mean + std * dala.random_normal(seed, i)


# -- integers --------------------------------------------------------------------------------------


@dispatch(
    low=integer("the least that is drawn"),
    high=integer("what is drawn is below this"),
    seed=_SEED,
)
def random_integers(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Random integers from low up to, not including, high, each as likely"""
    low, high, scalar = params["low"], params["high"], output.scalar
    if not scalar.is_integer:
        raise DtypeError(
            f"random_integers: the output is {scalar}, but the numbers are integers: give s32, or "
            f"run random_uniform."
        )
    if not 0 < high - low <= U32.highest:
        raise ArgumentError(
            f"random_integers: low is {low} and high {high}: high is above low, by at most "
            f"{U32.highest}."
        )
    if low < scalar.lowest or high - 1 > scalar.highest:
        raise ArgumentError(
            f"random_integers: {low} to {high - 1} do not fit the output, {scalar}, which holds "
            f"{scalar.lowest} to {scalar.highest}: give another dtype, or other ends."
        )
    given = {"low": low, "span": high - low, "seed": params["seed"]}
    yield Stage(_integer_kernel(scalar), [], _flat(output), given)


@cache
def _integer_kernel(scalar: Scalar) -> Kernel:
    to = SCALARS[scalar.name]

    def integers(low: dala.number, span: dala.u32, seed: dala.u32) -> Any:
        (i,) = dala.position(1)
        # Sums wrap, so that what is drawn reaches below 0 from a low that is there.
        return to(low) + to(dala.random_int(dala.u32(0), span, seed, i))

    return helper(integers)


@composite(seed=_SEED)
def permutation(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The integers below n in random order, n being the output's last size; one order to a row"""
    scalar, shape = output.scalar, output.shape
    if not shape:
        raise ShapeError("permutation: the output is a single number: give it at least one axis.")
    if not scalar.is_integer or shape[-1] - 1 > scalar.highest:
        holds = f"numbers up to {scalar.highest}" if scalar.is_integer else "no integers"
        raise DtypeError(
            f"permutation: the output is {scalar}, which holds {holds}, but the integers go up to "
            f"{shape[-1] - 1}: give s32 or s64."
        )
    if 0 in shape:
        return
    rows, n = math.prod(shape[:-1]), shape[-1]
    keys = scratch((rows, n), U32)
    yield Stage(_keys, [], keys, params)
    if output.is_host:
        positions = scratch((rows, n), S64)
        yield Stage(sort, [keys], positions, {"largest": False})
    else:
        positions = yield from sorted_positions(keys, largest=False)
    yield Stage(_ordered, [positions], reshaped(output, (rows, n)))


@helper
def _keys(seed: dala.u32) -> Any:
    i, j = dala.position(2)
    word, _, _, _ = dala.random_bits(seed, j, i)
    return word


@helper
def _ordered(where: Any) -> Any:
    i, j = dala.position(2)
    return where[i, j]


random_uniform.typed(lambda scalars, params: F32)
random_normal.typed(lambda scalars, params: F32)
random_integers.typed(position_dtype)
permutation.typed(position_dtype)
