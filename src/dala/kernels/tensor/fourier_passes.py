"""The passes of a Fourier transform: one for each factor of n."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.ir.types import Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.tensor.fourier_kernels import Axes, Reads, pass_kernel
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.buffers.views import beginning, reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_RADIX = 16
"""The most numbers that a pass transforms line by line; larger primes are summed up in loops."""
NARROW = 16
"""A last axis shorter than this is walked together with those before it."""
MOST_TABLES = 32

Sizes = tuple[int, int, int]
"""How many numbers there are before an axis, along it, and after it."""


def passes(x: Buffer, output: Buffer, sizes: Sizes, inverse: bool) -> Iterator[Stage]:
    """Returns the stages of a transform."""
    outer, n, inner = sizes
    scalar, radices = output.scalar.computed, radices_of(n)
    # Every other pass writes to the output, the last one as well, if it holds what they compute.
    made = [output, *(scratch((2, *sizes), scalar) for _ in radices[1:2])]
    if output.scalar != scalar and len(radices) > 2:
        made[0] = scratch((2, *sizes), scalar)
    here, width = x, inner
    reads: Reads = "pairs" if x.shape == output.shape else "real"
    for left, radix in zip(reversed(range(len(radices))), radices, strict=True):
        rest = n * inner // (radix * width)
        there = made[left % 2] if left else output
        if radix > MOST_RADIX:
            yield _prime_pass(here, there, (outer, radix, rest, width), scalar)
        else:
            yield _pass(here, there, reads, (outer, radix, rest, width), 1 / n if inverse else 0)
        here, reads, width = there, "planes", width * radix


def _pass(x: Buffer, out: Buffer, reads: Reads, sizes: Sequence[int], scale: float) -> Stage:
    """Returns a pass over (outer, radix, rest, width) numbers; an inverse one has a scale."""
    outer, radix, *more = sizes
    scalar, along = out.scalar.computed, tuple(size for size in more if size > 1)
    rest, width = more
    axes: Axes = ("pj" if width > 1 else "p") if rest > 1 else "j" if width > 1 else ""
    parts, pairs = (2,) if reads == "planes" else (), 2 if reads == "pairs" else 1
    *before, last = (*parts, outer, radix, *along) if axes else (outer * radix,)
    given = [beginning(x, (outer, *along)), reshaped(x, (*before, pairs * last))]
    if rest > 1:
        given.append(_turns(radix, rest, scalar, current_device()))
    shapes: dict[Axes, tuple[int, ...]] = {
        "": (2 * outer * radix,),
        "j": (outer, radix, 2 * width),
        "p": (2, outer, radix * rest),
        "pj": (2, outer, rest, radix, width),
    }
    kernel = pass_kernel(radix, axes, reads, scale != 0, scalar)
    params = {"scale": scale} if scale and rest == 1 else {}
    return Stage(kernel, given, reshaped(out, shapes[axes]), params)


# -- factors ---------------------------------------------------------------------------------------


@cache
def radices_of(n: int) -> tuple[int, ...]:
    """Returns the factors of n that are passes; large primes are neither the first nor the last."""
    small, large = n, []
    for prime in _primes(n):
        if prime > MOST_RADIX:
            small //= prime
            large.append(prime)
    first, *others = _factors(small) or (1,)
    return (first, *large, *(others or [1] * bool(large)))


def _primes(n: int) -> list[int]:
    found = []
    for factor in (2, *range(3, math.isqrt(n) + 1, 2)):
        while n % factor == 0:
            found.append(factor)
            n //= factor
    return [*found, n] if n > 1 else found


@cache
def _factors(n: int) -> tuple[int, ...]:
    """Returns as few factors as there can be, of those as even ones as there are, from large on."""
    if n == 1:
        return ()
    sizes = [size for size in range(2, MOST_RADIX + 1) if n % size == 0]
    found = [(size, *_factors(n // size)) for size in sizes]
    best = min(found, key=lambda factors: (len(factors), -min(factors)))
    return tuple(sorted(best, reverse=True))


@lru_cache(MOST_TABLES)
def _turns(radix: int, rest: int, scalar: Scalar, device: Device) -> Buffer:
    """The cosines and sines of what a pass turns its numbers by, (radix, 2, rest), on a device."""
    angles = np.outer(np.arange(radix), np.arange(rest)) * (2 * np.pi / (radix * rest))
    with using(device):
        return from_numpy(np.stack([np.cos(angles), np.sin(angles)], 1).astype(scalar.numpy))


# -- large primes ----------------------------------------------------------------------------------


def _prime_pass(x: Buffer, out: Buffer, sizes: Sequence[int], scalar: Scalar) -> Stage:
    outer, radix, rest, width = sizes
    narrow = width < NARROW
    shape = (2, outer, rest * radix * width) if narrow else (2, outer, rest, radix, width)
    given = [reshaped(x, (2, *sizes)), _circle(radix * rest, scalar, current_device())]
    return Stage(_prime_kernel(narrow), given, reshaped(out, shape))


@lru_cache(MOST_TABLES)
def _circle(n: int, scalar: Scalar, device: Device) -> Buffer:
    """The cosine and sine of each n-th part of a turn, (n, 2), on a device."""
    angles = np.arange(n) * (2 * np.pi / n)
    with using(device):
        return from_numpy(np.stack([np.cos(angles), np.sin(angles)], 1).astype(scalar.numpy))


@cache
def _prime_kernel(narrow: bool) -> Kernel:
    """A kernel that sums up `radix` turned elements that lie far apart."""

    def transform_parts(x: Any, turns: Any) -> Any:
        radix, rest, width = x.shape[2], x.shape[3], x.shape[4]
        if narrow:
            part, i, place = dala.position(3)
            j = place % width
            k = place // width % radix
            p = place // (width * radix)
        else:
            part, i, p, k, j = dala.position(5)
        n, turn, step = radix * rest, p * k, rest * k
        along = x[part, i, 0, p, j] * turns[turn, 0]
        across = x[1 - part, i, 0, p, j] * turns[turn, 1]
        for t in range(1, radix):
            turn += step
            turn = turn - n if turn >= n else turn
            along += x[part, i, t, p, j] * turns[turn, 0]
            across += x[1 - part, i, t, p, j] * turns[turn, 1]
        return along - across if part == 1 else along + across

    return helper(transform_parts)
