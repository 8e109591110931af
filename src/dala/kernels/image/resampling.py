"""One axis of an image made longer or shorter: weights from the host, applied down or across.

Each new place is a weighted mean of old ones that follow one another: a table has the first of them
and the weight of each. It depends on sizes and method alone, and is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import Device, current_device, using
from dala.errors import LimitError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.images import reader
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.kernels.kernel import Kernel, function

Filter = Callable[[np.ndarray], np.ndarray]

MOST_STEP = 4
"""The largest numbers of a ratio by which rows are still read as vectors."""
MOST_WRITTEN = 16
"""Taps up to which a mean is written out; more are a loop."""
MOST_WEIGHTS = 1 << 24
"""Weights that one table may have."""
MOST_TABLES = 32
"""Tables that are remembered, the latest ones."""


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 1, 1 - np.abs(x), 0)


def _cubic(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


FILTERS: dict[str, tuple[Filter, int]] = {
    "bilinear": (_triangle, 1),
    "blend": (_triangle, 1),
    "bicubic": (_cubic, 2),
    "lanczos": (_lanczos, 3),
}
"""What a pixel so far away weighs, and how far that is above 0, by the name of the method."""


@record
class Ratio:
    """The first old place of new place i: (by · i + start) // over."""

    by: int
    over: int
    start: int


@record
class Axis:
    """A table on a device: the first old place of each new one, and weights.

    They are (new, taps) for rows, which weigh all of a row alike, and (taps, new) for columns.
    """

    first: Buffer
    weights: Buffer
    taps: int
    ratio: Ratio | None = None
    """Where the first old place follows from the new one; then it may lie outside."""

    @property
    def written(self) -> int:
        """The taps that a kernel writes out; 0 where it loops over them."""
        return self.taps if self.taps <= MOST_WRITTEN else 0


def rows(kernel: str, old: int, new: int, method: str, total: float = 1.0) -> Axis:
    """The table that makes `old` rows `new` ones; the weights of each add up to `total`."""
    _require_room(kernel, old, new, method)
    return _table(old, new, method, total, 0, current_device())


def columns(
    kernel: str, old: int, new: int, method: str, total: float = 1.0, spread: int = 1
) -> Axis:
    """The table that makes `old` columns `new` ones; the weights of each add up to `total`.

    Each new column is in it `spread` times, side by side.
    """
    _require_room(kernel, old, new, method)
    return _table(old, new, method, total, spread, current_device())


def most_taps(old: int, new: int, method: str) -> int:
    """A bound of how many old places a new one is made of."""
    if method == "nearest":
        return 1
    if method == "area":
        return -(-old // new) + 1
    wider = 1.0 if method == "blend" else max(old / new, 1.0)
    return min(math.ceil(2 * FILTERS[method][1] * wider) + 1, old)


def _require_room(kernel: str, old: int, new: int, method: str) -> None:
    needed = new * most_taps(old, new, method)
    if needed > MOST_WEIGHTS:
        raise LimitError(
            f"{kernel}: {old} to {new} pixels along an axis takes {needed} weights, but there are "
            f"at most {MOST_WEIGHTS}: resize in two steps, or work on parts."
        )


@lru_cache(MOST_TABLES)
def _table(old: int, new: int, method: str, total: float, spread: int, device: Device) -> Axis:
    ratio = small_ratio(old, new) if spread == 1 else None
    first, weights = weigh(old, new, method, cut=ratio is None)
    laid = np.repeat(weights.T, spread, 1) if spread else weights
    starts = np.repeat(first, max(spread, 1)).astype(np.int32)
    with using(device):
        stored = from_numpy(np.ascontiguousarray(laid * total, np.float32))
        found = None if ratio is None else _started(first, *ratio)
        return Axis(from_numpy(starts), stored, weights.shape[1], found)


def small_ratio(old: int, new: int) -> tuple[int, int] | None:
    """How many old places there are to how many new ones, if both are a few."""
    shared = math.gcd(old, new)
    ratio = (old // shared, new // shared)
    return ratio if max(ratio) <= MOST_STEP else None


def _started(first: np.ndarray, by: int, over: int) -> Ratio:
    # (by · i + start) // over is the first place wherever start is within these bounds.
    least = over * first - by * np.arange(len(first))
    start = int(least.max())
    assert start <= least.min() + over - 1
    return Ratio(by, over, start)


def weigh(old: int, new: int, method: str, *, cut: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The first old place of each new one, and the weights (new, taps), which add up to 1.

    Places outside weigh nothing; they are among the places unless these are to be cut.
    """
    number = np.arange(new)
    if method == "nearest":
        return (2 * number + 1) * old // (2 * new), np.ones((new, 1))
    if method == "area":
        # Counted in integers, of which the old axis has old · new.
        first, last = number * old // new, -(-(number + 1) * old // new)
        place = first[:, None] + np.arange((last - first).max())
        ends = np.minimum((number[:, None] + 1) * old, (place + 1) * new)
        shared = ends - np.maximum(number[:, None] * old, place * new)
        return first, np.maximum(shared, 0) / old
    curve, reach = FILTERS[method]
    wider = 1.0 if method == "blend" else max(old / new, 1.0)
    center = (number + 0.5) * (old / new)
    first = np.floor(center - reach * wider + 0.5).astype(np.int64)
    last = np.floor(center + reach * wider + 0.5).astype(np.int64)
    if cut:
        first, last = first.clip(0, old - 1), last.clip(1, old)
    place = first[:, None] + np.arange((last - first).max())
    weights = curve((place + 0.5 - center[:, None]) / wider)
    weights[(place < 0) | (place >= np.minimum(last, old)[:, None])] = 0
    return first, weights / weights.sum(1, keepdims=True)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def counter(taps: int, axis: int) -> Any:
    """What says how often to go round: the taps, or without any the weights along an axis."""
    is_written = taps > 0

    @function
    def count(weights: Any) -> Any:
        if is_written:
            return taps
        return weights.shape[axis]

    return count


@cache
def down_kernel(taps: int) -> Kernel:
    """Rows of plain numbers, each a weighted mean of old ones."""
    count = counter(taps, 1)

    def weigh_down(x: Any, first: Any, weights: Any) -> Any:
        i, j = dala.position(2)
        start = first[i]
        total = dala.f32(0)
        for k in range(count(weights)):
            total += dala.f32(x[start + k, j]) * weights[i, k]
        return total

    return helper(weigh_down)


@cache
def across_by_ratio_kernel(taps: int, ratio: Ratio, is_gray: bool) -> Kernel:
    """Columns of pixels, each a weighted mean of old ones that begin where a ratio says."""
    level_at, count = reader(is_gray), counter(taps, 0)
    by, over, start = ratio.by, ratio.over, ratio.start

    def weigh_across(image: dala.Image, weights: Any) -> Any:
        y, x = dala.position(2)
        first = (by * x + start) // over
        levels = image.levels
        total = level_at(levels, y, first) * weights[0, x]
        for k in range(1, count(weights)):
            total += level_at(levels, y, first + k) * weights[k, x]
        return total

    return helper(weigh_across)


@cache
def across_kernel(taps: int, is_gray: bool) -> Kernel:
    """Columns of pixels, each a weighted mean of old ones."""
    level_at, count = reader(is_gray), counter(taps, 0)

    def weigh_across(image: dala.Image, first: Any, weights: Any) -> Any:
        y, x = dala.position(2)
        start = first[x]
        levels = image.levels
        total = level_at(levels, y, start) * weights[0, x]
        for k in range(1, count(weights)):
            total += level_at(levels, y, start + k) * weights[k, x]
        return total

    return helper(weigh_across)


@cache
def across_words_kernel(taps: int) -> Kernel:
    """Columns of RGBA pixels in words, of which the CPU gathers all four channels at once."""
    count = counter(taps, 0)

    def weigh_across(words: Any, first: Any, weights: Any) -> Any:
        y, x = dala.position(2)
        start = first[x]
        red, green, blue, alpha = dala.f32(0), dala.f32(0), dala.f32(0), dala.f32(0)
        for k in range(count(weights)):
            word, weight = words[y, start + k], weights[k, x]
            red += _channel(word, 0) * weight
            green += _channel(word, 8) * weight
            blue += _channel(word, 16) * weight
            alpha += _channel(word, 24) * weight
        return dala.rgba(red, green, blue, alpha)

    return helper(weigh_across)


@function
def _channel(word: Any, shift: Any) -> Any:
    # Vectors of s32 are converted in one instruction, those of u32 in several.
    return dala.f32(dala.s32((word >> shift) & 255))
