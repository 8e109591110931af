"""Means of far more pixels than are computed one by one.

Along an axis, what several taps have in common is computed once, as a plane that is longer than the
image by as much as later taps reach over its edges: so every border rule holds.

- Gaussian weights are put together of tents, `step` wide on each side: first the image is weighed
  by one tent, then the result at every `step`-th place. Between two such places the weights go
  in a line. What that changes is known beforehand, and the step chosen so that it is little.
- Boxes are blocks of equal length, and a rest that is added one by one. That is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.ir.nodes import Border
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.images import flat, reader
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

STEPS = (47, 31, 23, 15, 11, 9, 7, 5, 3)
"""How far tents may be apart: odd, so that rows so far apart are not all cached in one place."""
MOST_CHANGED = 0.2
"""Levels by which tents may change an image along an axis, at most."""
FITTINGS = 8
MOST_TENTS = 40
"""Tents on one side that are written out."""
MOST_BOX = 512
"""The radius up to which boxes are added up by blocks."""
MOST_WEIGHTS = 32
"""Sets of weights that are remembered, the latest ones."""


def wide_means(
    image: Buffer, output: Buffer, border: Border, radius: int, sigma: float, white: int
) -> Iterator[Stage]:
    """Stages that weigh pixels down, then across: by tents where they do, else one by one."""
    step, tents = _tents(radius, sigma, white, current_device())
    halo = step * (tents.shape[0] - 1)
    if not step or not has_room(image, halo):
        yield from _looped_means(image, output, border, radius, sigma)
        return
    height, width, *channels = image.shape
    is_gray = not channels
    taller = scratch((height + 2 * halo, spread_width(flat(image).shape[1])), F32)
    between = scratch(image.shape, F32)
    wider = scratch((height, width + 2 * halo, *channels), F32)
    given = {"step": step, "halo": halo}
    yield Stage(_tent_down_kernel(border), [flat(image)], taller, given)
    yield Stage(_tents_down, [taller, tents], flat(between), given)
    yield Stage(_tent_across_kernel(border, is_gray), [between], wider, given)
    yield Stage(_tents_across_kernel(is_gray), [wider, tents], output, given)


def wide_boxes(image: Buffer, output: Buffer, border: Border, radius: int) -> Iterator[Stage]:
    """Stages that take means of blocks of pixels, down and then across."""
    if radius > MOST_BOX or not has_room(image, radius):
        yield from _looped_means(image, output, border, radius, None)
        return
    length = block_length(2 * radius + 1)
    count = (2 * radius + 1) // length
    longer = length * (count - 1)
    height, width, *channels = image.shape
    is_gray = not channels
    taller = scratch((height + longer, spread_width(flat(image).shape[1])), F32)
    between = scratch(image.shape, F32)
    wider = scratch((height, width + longer, *channels), F32)
    given = {"radius": radius, "length": length}
    yield Stage(_block_down_kernel(border), [flat(image)], taller, given)
    yield Stage(_blocks_down_kernel(border), [taller, flat(image)], flat(between), given)
    yield Stage(_block_across_kernel(border, is_gray), [between], wider, given)
    yield Stage(_blocks_across_kernel(border, is_gray), [wider, between], output, given)


def has_room(image: Buffer, halo: int) -> bool:
    """Whether planes that are longer by what lies beyond the edges are not much larger."""
    return halo <= max(64, 2 * min(image.shape[:2]))


def spread_width(width: int) -> int:
    """A width in an odd number of cache lines: rows that are then cached in different places."""
    return (-(-width // 16) | 1) * 16


def _looped_means(
    image: Buffer, output: Buffer, border: Border, radius: int, sigma: float | None
) -> Iterator[Stage]:
    """Stages that weigh pixels one by one, in loops."""
    # Neighbors that a loop counts are read as vectors only where they lie below each other.
    height, width, *channels = image.shape
    weights = _weights(radius, sigma, current_device())
    between = scratch(image.shape, F32)
    turned, weighed = (scratch((width, height, *channels), F32) for _ in range(2))
    down = _loop_down_kernel(border)
    yield Stage(down, [flat(image), weights], flat(between))
    yield Stage(_turn, [between], turned)
    yield Stage(down, [flat(turned), weights], flat(weighed))
    yield Stage(_turn, [weighed], output)


# -- weights ---------------------------------------------------------------------------------------


def _curve(radius: int, sigma: float | None) -> np.ndarray:
    """The weights of the pixel itself and of those 1 to radius away; all alike without a sigma."""
    weights = np.ones(radius + 1)
    if sigma is not None:
        weights = np.exp(-((np.arange(radius + 1) / sigma) ** 2) / 2)
    weights /= weights[0] + 2 * weights[1:].sum()
    return weights


@lru_cache(MOST_WEIGHTS)
def _weights(radius: int, sigma: float | None, device: Device) -> Buffer:
    with using(device):
        return from_numpy(_curve(radius, sigma).astype(np.float32))


@lru_cache(MOST_WEIGHTS)
def _tents(radius: int, sigma: float, white: int, device: Device) -> tuple[int, Buffer]:
    """How far apart tents can be, and the weights of those on one side; 0 where none will do."""
    for step in STEPS:
        if radius // step <= MOST_TENTS and 4 * step < sigma:
            weights, changed = _fitted(_curve(radius, sigma), radius, step)
            if changed * white <= MOST_CHANGED:
                break
    else:
        step, weights = 0, np.ones(1)
    with using(device):
        return step, from_numpy(weights.astype(np.float32))


def _fitted(curve: np.ndarray, radius: int, step: int) -> tuple[np.ndarray, float]:
    """The weights of tents that come nearest to a curve, and what they change, where white is 1.

    An image changes most where it is white under all weights that are too large and else black.
    """
    count = radius // step
    places = np.arange((count + 1) * step)
    apart = np.abs(places[:, None] - step * np.arange(count + 1))
    tents = np.maximum(1 - apart / step, 0) / step
    wanted = np.zeros(len(places))
    wanted[: radius + 1] = curve[: len(places)]
    # Both sides are alike; the middle is there once.
    sides = np.where(places == 0, 1.0, 2.0)
    root = np.sqrt(sides)
    # Squares that are divided by what they were the last time come to differences.
    for _ in range(FITTINGS):
        weights = np.linalg.lstsq(tents * root[:, None], wanted * root, rcond=None)[0]
        missed = np.abs(tents @ weights - wanted)
        root = np.sqrt(sides / (missed + 1e-3 * missed.max()))
    weights /= weights[0] + 2 * weights[1:].sum()
    cut = 2 * curve[len(places) :].sum()
    return weights, float((np.abs(tents @ weights - wanted) * sides).sum() + cut) / 2


def block_length(total: int) -> int:
    """The length of blocks that takes the fewest additions: in one, of all, and of the rest."""
    return min(range(1, total + 1), key=lambda length: length + total // length + total % length)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _tent_down_kernel(border: Border) -> Kernel:
    def weigh_down(image: dala.Image, step: dala.const, halo: dala.const) -> Any:
        y, x = dala.position(2)
        total = image[y - halo, x].r * (1 / step)
        for k in range(1, step):
            both = image[y - halo - k, x].r + image[y - halo + k, x].r
            total += both * ((step - k) / (step * step))
        return total

    return helper(weigh_down, border)


@helper
def _tents_down(x: Any, weights: Any, step: dala.const, halo: dala.const) -> Any:
    y, j = dala.position(2)
    total = x[y + halo, j] * weights[0]
    for k in range(1, halo // step + 1):
        total += (x[y + halo - k * step, j] + x[y + halo + k * step, j]) * weights[k]
    return total


@cache
def _tent_across_kernel(border: Border, is_gray: bool) -> Kernel:
    at = reader(is_gray)

    def weigh_across(image: dala.Image, step: dala.const, halo: dala.const) -> Any:
        y, x = dala.position(2)
        total = at(image, y, x - halo) * (1 / step)
        for k in range(1, step):
            both = at(image, y, x - halo - k) + at(image, y, x - halo + k)
            total += both * ((step - k) / (step * step))
        return total

    return helper(weigh_across, border)


@cache
def _tents_across_kernel(is_gray: bool) -> Kernel:
    at = reader(is_gray)

    def weigh_across(x: dala.Image, weights: Any, step: dala.const, halo: dala.const) -> Any:
        i, j = dala.position(2)
        total = at(x, i, j + halo) * weights[0]
        for k in range(1, halo // step + 1):
            both = at(x, i, j + halo - k * step) + at(x, i, j + halo + k * step)
            total += both * weights[k]
        return total

    return helper(weigh_across)


@cache
def _block_down_kernel(border: Border) -> Kernel:
    def add_down(image: dala.Image, radius: dala.const, length: dala.const) -> Any:
        y, x = dala.position(2)
        total = image[y - radius, x].r
        for k in range(1, length):
            total += image[y - radius + k, x].r
        return total

    return helper(add_down, border)


@cache
def _blocks_down_kernel(border: Border) -> Kernel:
    def add_down(sums: Any, image: dala.Image, radius: dala.const, length: dala.const) -> Any:
        y, x = dala.position(2)
        total = sums[y, x]
        count = (2 * radius + 1) // length
        for k in range(1, count):
            total += sums[y + k * length, x]
        for k in range(count * length, 2 * radius + 1):
            total += image[y - radius + k, x].r
        return total * (1 / (2 * radius + 1))

    return helper(add_down, border)


@cache
def _block_across_kernel(border: Border, is_gray: bool) -> Kernel:
    at = reader(is_gray)

    def add_across(image: dala.Image, radius: dala.const, length: dala.const) -> Any:
        y, x = dala.position(2)
        total = at(image, y, x - radius)
        for k in range(1, length):
            total += at(image, y, x - radius + k)
        return total

    return helper(add_across, border)


@cache
def _blocks_across_kernel(border: Border, is_gray: bool) -> Kernel:
    at = reader(is_gray)

    def add_across(
        sums: dala.Image, image: dala.Image, radius: dala.const, length: dala.const
    ) -> Any:
        y, x = dala.position(2)
        total = at(sums, y, x)
        count = (2 * radius + 1) // length
        for k in range(1, count):
            total += at(sums, y, x + k * length)
        for k in range(count * length, 2 * radius + 1):
            total += at(image, y, x - radius + k)
        return total * (1 / (2 * radius + 1))

    return helper(add_across, border)


@cache
def _loop_down_kernel(border: Border) -> Kernel:
    def weigh_down(image: dala.Image, weights: Any) -> Any:
        y, x = dala.position(2)
        total = image[y, x].r * weights[0]
        for k in range(1, weights.shape[0]):
            total += (image[y - k, x].r + image[y + k, x].r) * weights[k]
        return total

    return helper(weigh_down, border)


@helper
def _turn(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[x, y]
