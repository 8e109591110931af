"""An image fitted into a tensor: which parts of its axes are resized, and the tables for that.

Of an image that is cropped only the middle is wanted, of one that is letterboxed all, with room
around it. Rows and columns that are not wanted are not computed.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import Device, using
from dala.errors import LimitError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image import resampling
from dala.kernels.image.fitting import fitted
from dala.kernels.image.resampling import MOST_TABLES, MOST_WEIGHTS, Axis
from dala.runtime.buffers.buffer import from_numpy
from dala.runtime.kernels.kernel import Kernel

LEAST_SKIPPED = 32
"""Columns at the left that it pays to leave out."""
Shape = tuple[int, int]


@record
class Plan:
    """How an image is fitted into a tensor: first its rows are resized, then its columns."""

    down: Axis | None
    """The table for the rows that are seen; None where they stay as they are."""
    between: Shape
    """How many rows there are then, and how many numbers in each."""
    skipped: int
    """How many numbers at the left of each row are left out."""
    across: Axis
    """The table for all columns of the tensor; those outside of the image weigh nothing.

    Where they start is counted in numbers, not in pixels.
    """
    first_row: int
    """Which row of what is there then the tensor's first row is."""
    frame: dict[str, int]
    """The sides of the image in the tensor; those of columns count what is side by side there."""


@lru_cache(MOST_TABLES)
def planned(
    kernel: str,
    image: Shape,
    tensor: Shape,
    fit: str,
    channels: int,
    spread: int,
    device: Device,
    resize: int = 0,
) -> Plan:
    """The plan for an image of a size; in a row of the tensor each column is `spread` numbers.

    A LimitError where it takes too large a table.
    """
    (height, width), (tall, wide) = image, tensor
    place = fitted(image, tensor, fit, resize)
    top, left = max(0, place.top), max(0, place.left)
    bottom, right = min(tall, place.top + place.height), min(wide, place.left + place.width)
    first, weights = _weighed(kernel, width, place.width, left - place.left, right - left)
    skipped, down, first_row = 0, None, -place.top
    if place.height != height:
        skipped = _skipped(int(first.min()))
        firsts, heights = _weighed(kernel, height, place.height, top - place.top, bottom - top)
        down, first_row = _stored(firsts, heights, heights.shape[1], device), -top
    seen = min(width, int(first.max()) + weights.shape[1]) - skipped
    around = (left, wide - right)
    starts = np.repeat(np.pad(first - skipped, around), spread) * channels
    laid = np.repeat(np.pad(weights, (around, (0, 0))).T, spread, 1)
    across = _stored(starts, laid, weights.shape[1], device)
    frame = {"top": top, "bottom": bottom, "left": left * spread, "right": right * spread}
    between = (bottom - top, seen * channels)
    return Plan(down, between, skipped * channels, across, first_row, frame)


def _weighed(
    kernel: str, old: int, new: int, begin: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first old place, and the weights, of `count` of the new places of an axis."""
    method = "area" if old >= 2 * new else "nearest" if old == new else "blend"
    needed = new * resampling.most_taps(old, new, method)
    if needed > MOST_WEIGHTS:
        raise LimitError(
            f"{kernel}: {old} to {new} pixels along an axis takes {needed} weights, but there are "
            f"at most {MOST_WEIGHTS}: resize in two steps, or work on parts."
        )
    first, weights = resampling.weigh(old, new, method)
    return first[begin : begin + count], weights[begin : begin + count]


def _skipped(unseen: int) -> int:
    """How many columns to leave out: a power of two, as each such number is compiled anew."""
    return 0 if unseen < LEAST_SKIPPED else 1 << (unseen.bit_length() - 1)


def _stored(first: np.ndarray, weights: np.ndarray, taps: int, device: Device) -> Axis:
    with using(device):
        stored = from_numpy(np.ascontiguousarray(weights, np.float32))
        return Axis(from_numpy(first.astype(np.int32)), stored, taps)


@cache
def down_kernel(taps: int, skipped: int) -> Kernel:
    """Rows of plain numbers, each a weighted mean of old ones without the `skipped` first."""
    count = resampling.counter(taps, 1)

    def weigh_down(x: Any, first: Any, weights: Any) -> Any:
        i, j = dala.position(2)
        start = first[i]
        total = dala.f32(0)
        for k in range(count(weights)):
            total += dala.f32(x[start + k, j + skipped]) * weights[i, k]
        return total

    return helper(weigh_down)
