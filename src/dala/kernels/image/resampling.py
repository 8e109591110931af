"""One axis of an image made longer or shorter: weights from the host, applied down or across.

Each new place is a weighted mean of old ones that follow one another: a table has the first of them
and the weight of each. It depends on sizes and method alone, and is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np

from dala.base.record import record, value
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
MOST_WRITTEN, MOST_ROWS_WRITTEN = 16, 32
"""Taps up to which a mean across, or down, is written out; more are a loop."""
BLOCK = 4
"""Taps that such a loop goes through at a time."""
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


class Weights(Hashable, Protocol):
    """How the weights of a table are stored."""

    def laid(self, weights: np.ndarray) -> np.ndarray:
        """Weights (new, taps) that add up to 1, as they are stored."""
        ...


@value
class FloatWeights:
    """Weights of f32 that add up to a total."""

    total: float = 1.0

    def laid(self, weights: np.ndarray) -> np.ndarray:
        return (weights * self.total).astype(np.float32)


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
    most_written: int = MOST_WRITTEN

    @property
    def tables(self) -> list[Buffer]:
        """What a kernel is given."""
        return [self.weights] if self.ratio is not None else [self.first, self.weights]

    @property
    def written(self) -> int:
        """The taps that a kernel writes out; 0 where it loops over them."""
        return self.taps if self.taps <= self.most_written else 0


def rows(kernel: str, old: int, new: int, method: str, weights_of: Weights) -> Axis:
    """The table that makes `old` rows `new` ones."""
    _require_room(kernel, old, new, method)
    return _table(old, new, method, weights_of, True, current_device())


def columns(kernel: str, old: int, new: int, method: str, weights_of: Weights) -> Axis:
    """The table that makes `old` columns `new` ones."""
    _require_room(kernel, old, new, method)
    return _table(old, new, method, weights_of, False, current_device())


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
def _table(
    old: int, new: int, method: str, weights_of: Weights, is_down: bool, device: Device
) -> Axis:
    ratio = None if is_down else small_ratio(old, new)
    most = MOST_ROWS_WRITTEN if is_down else MOST_WRITTEN
    first, weights = weigh(old, new, method, cut=ratio is None)
    if ratio is None:
        block = 1 if is_down or weights.shape[1] <= most else BLOCK
        first, weights = _whole_blocks(first, weights, old, block)
    laid = weights_of.laid(weights)
    with using(device):
        stored = from_numpy(np.ascontiguousarray(laid if is_down else laid.T))
        found = None if ratio is None else _started(first, *ratio)
        return Axis(from_numpy(first.astype(np.int32)), stored, weights.shape[1], found, most)


def _whole_blocks(
    first: np.ndarray, weights: np.ndarray, old: int, block: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same table with whole blocks of taps, none of them beyond the end.

    Those that are added weigh nothing. An axis that is shorter than the taps is left behind.
    """
    count, taps = weights.shape
    wanted = -(-taps // block) * block
    back = np.clip(first + wanted - old, 0, first)
    laid = np.zeros((count, wanted + int(back.max())))
    np.put_along_axis(laid, np.arange(taps) + back[:, None], weights, 1)
    return first - back, laid[:, :wanted]


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
def counter(taps: int, axis: int, more: int = 0) -> Any:
    """What says how often to go round: the taps, or all weights along an axis but some more."""
    is_written = taps > 0

    @function
    def count(weights: Any) -> Any:
        if is_written:
            return taps
        return weights.shape[axis] - more

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


@function
def _product(level: Any, weight: Any) -> Any:
    return level * weight


@function
def _total(total: Any, weights: Any, x: Any) -> Any:
    return total


@cache
def across_kernel(
    taps: int,
    ratio: Ratio | None,
    is_gray: bool,
    product: Any = _product,
    stored: Any = _total,
    more: int = 0,
) -> Kernel:
    """Columns of pixels, each a weighted mean of old ones, which begin where a ratio or table says.

    `product` weighs a level, `stored` makes of the sum what is stored; there are some more weights
    than taps for it.
    """
    mean = _mean(taps, is_gray, product, more)

    def weigh_across(image: dala.Image, first: Any, weights: Any) -> Any:
        y, x = dala.position(2)
        return stored(mean(image.levels, weights, y, first[x], x), weights, x)

    if ratio is None:
        return helper(weigh_across)
    by, over, start = ratio.by, ratio.over, ratio.start

    def weigh_across_by_ratio(image: dala.Image, weights: Any) -> Any:
        y, x = dala.position(2)
        return stored(mean(image.levels, weights, y, (by * x + start) // over, x), weights, x)

    return helper(weigh_across_by_ratio)


@cache
def _mean(taps: int, is_gray: bool, product: Any, more: int) -> Any:
    """What weighs pixels of a row: all taps written out, or a loop over blocks of them."""
    level_at, block, is_loop = reader(is_gray), taps or BLOCK, taps == 0

    @function
    def part(levels: Any, weights: Any, y: Any, start: Any, x: Any, k: Any) -> Any:
        total = product(level_at(levels, y, start + k), weights[k, x])
        for i in range(1, block):
            total += product(level_at(levels, y, start + k + i), weights[k + i, x])
        return total

    @function
    def mean(levels: Any, weights: Any, y: Any, start: Any, x: Any) -> Any:
        total = part(levels, weights, y, start, x, 0)
        if is_loop:
            for k in range(block, weights.shape[0] - more, block):
                total += part(levels, weights, y, start, x, k)
        return total

    return mean
