"""The Fourier transform.

Where NumPy cannot compute it, kernels do, by Stockham's passes: one for each factor of n. Real and
imaginary parts lie in planes of their own, so that neighbors are computed side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import flag, integer
from dala.kernels.base.results import float_dtype
from dala.kernels.base.shapes import Shape, around, axis_of
from dala.kernels.tensor.host_fourier import transform
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

NARROW = 16
"""A last axis shorter than this is walked together with those before it."""
MOST_TABLES = 16


@composite(
    "x",
    axis=integer("the axis that is transformed, the pairs not counted", -1),
    inverse=flag("the inverse transform, divided by n"),
)
def fft(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The Fourier transform along an axis; complex numbers are pairs along a last axis of 2

    The output is (…, n, 2) of f32 or f64, the input the same, or (…, n) where it is real; `axis`
    does not count the pairs. `inverse=True` undoes it, and divides by n. It is computed in the
    output's precision for every n: by NumPy on the CPU, elsewhere by kernels, which take a time
    that grows with n times its prime factors. A large prime n is slow there.
    """
    (x,) = inputs
    inverse = params["inverse"]
    if inverse not in (True, False):
        raise ArgumentError(f"fft: inverse is True or False, not {inverse!r}.")
    if output.shape[-1:] != (2,) or x.shape not in (output.shape, output.shape[:-1]):
        raise ShapeError(
            f"fft: the output is {output.shape} and the input {x.shape}: the output is (…, n, 2), "
            f"the input the same, or (…, n) where it is real."
        )
    if not output.scalar.is_float:
        raise DtypeError(f"fft: the output is {output.dtype}, but it holds floats: give f32.")
    axis = axis_of("fft", params["axis"], len(output.shape) - 1)
    if 0 in output.shape:
        return
    if output.is_host:
        yield Stage(transform, inputs, output, {"axis": axis, "inverse": bool(inverse)})
    else:
        yield from _passes(x, output, axis, bool(inverse))


fft.typed(float_dtype)


@fft.sized
def _pairs_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    """What has a last axis of 2 is taken for pairs."""
    return shapes[0] if shapes[0][-1:] == (2,) else (*shapes[0], 2)


# -- by kernels ------------------------------------------------------------------------------------


def _passes(x: Buffer, output: Buffer, axis: int, inverse: bool) -> Iterator[Stage]:
    outer, n, inner = around(output.shape[:-1], axis, axis)
    count = outer * n * inner
    scalar = output.scalar.computed
    here, there = (scratch((2, count), scalar) for _ in range(2))
    if x.shape == output.shape:
        yield Stage(_part_pairs, [reshaped(x, (count, 2))], here)
    else:
        yield Stage(_part_real, [reshaped(x, (count,))], here)
    sign, together = 1.0 if inverse else -1.0, 1
    for radix in _radices(n):
        rest, width = n // (radix * together), together * inner
        given = [
            reshaped(here, (2, outer, radix, rest, width)),
            _turns(n, scalar, current_device()),
        ]
        narrow = width < NARROW
        shape = (2, outer, rest * radix * width) if narrow else (2, outer, rest, radix, width)
        yield Stage(_pass_kernel(narrow), given, reshaped(there, shape), {"sign": sign})
        here, there, together = there, here, together * radix
    scale = 1 / n if inverse else 1.0
    yield Stage(_pair, [here], reshaped(output, (2 * count,)), {"scale": scale})


def _radices(n: int) -> list[int]:
    """Factors of n: fours as long as there are any, else primes."""
    found = []
    for factor in (4, 2, *range(3, math.isqrt(n) + 1, 2)):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    return [*found, n] if n > 1 else found


@lru_cache(MOST_TABLES)
def _turns(n: int, scalar: Scalar, device: Device) -> Buffer:
    """The cosine and sine of each n-th part of a turn, (n, 2), on a device."""
    angles = np.arange(n) * (2 * np.pi / n)
    with using(device):
        return from_numpy(np.stack([np.cos(angles), np.sin(angles)], 1).astype(scalar.numpy))


@helper
def _part_pairs(x: Any) -> Any:
    part, i = dala.position(2)
    return x[i, part]


@helper
def _part_real(x: Any) -> Any:
    part, i = dala.position(2)
    return x[i] if part == 0 else 0


@helper
def _pair(parts: Any, scale: dala.number) -> Any:
    (i,) = dala.position(1)
    return parts[i % 2, i // 2] * scale


@cache
def _pass_kernel(narrow: bool) -> Kernel:
    """A kernel that transforms `radix` elements that lie far apart, and writes them together."""

    def transform_parts(x: Any, turns: Any, sign: dala.number) -> Any:
        radix, rest, width = x.shape[2], x.shape[3], x.shape[4]
        if narrow:
            part, i, place = dala.position(3)
            j = place % width
            k = place // width % radix
            p = place // (width * radix)
        else:
            part, i, p, k, j = dala.position(5)
        n = turns.shape[0]
        turn, step = n // (radix * rest) * p * k, n // radix * k
        along = x[part, i, 0, p, j] * turns[turn, 0]
        across = x[1 - part, i, 0, p, j] * turns[turn, 1]
        for t in range(1, radix):
            turn += step
            turn = turn - n if turn >= n else turn
            along += x[part, i, t, p, j] * turns[turn, 0]
            across += x[1 - part, i, t, p, j] * turns[turn, 1]
        return along + across * sign if part == 1 else along - across * sign

    return helper(transform_parts)
