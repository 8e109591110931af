"""Levels of u8 resampled in 16 bits, which is twice as fast as f32 in the host's vectors.

Weights are whole 32768ths; levels have 7 bits of fraction, products with a weight 6. Each loses up
to 1/64 of a level, half of which is given back: with n taps, that is at most n / 128 of a level.
Between two axes, levels are stored with those bits and an offset, as they may be negative. Rows
that are made of these are weighed with 5 bits left, columns in f32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.base.record import value
from dala.ir.types import N16, U8
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image import resampling
from dala.kernels.image.images import flat
from dala.kernels.image.resampling import FloatWeights, Ratio
from dala.lang.language_names import ScalarMarker
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

narrow = ScalarMarker(N16)
"""Converts to 16 bits in a kernel."""
MOST_NARROW = 64
"""Taps up to which products may lose as much as they do."""
ONE = 1 << 15
"""A weight of 1."""
LEVEL_BITS, STORED_BITS, LAST_BITS = 7, 6, 5
"""Bits of fraction: of levels that are weighed, of those between two axes, and of the last sums."""
BELOW = 128
"""Levels that are added to those between two axes."""
SHARE_BELOW = BELOW / U8.white


@value
class WholeWeights:
    """Weights in whole 32768ths, and then what their sum begins with and what products lose."""

    begin: int

    def laid(self, weights: np.ndarray) -> np.ndarray:
        units = np.rint(weights * ONE)
        units[np.arange(len(units)), units.argmax(1)] += ONE - units.sum(1)
        lost = np.count_nonzero(units, 1) // 2
        return np.column_stack([units.clip(-ONE, ONE - 1), lost + self.begin]).astype(np.int16)


FIRST = WholeWeights(BELOW << STORED_BITS)
ALONE = WholeWeights(1 << (STORED_BITS - 1))
LAST = WholeWeights((1 << (LAST_BITS - 1)) - (BELOW << LAST_BITS))


def is_narrow(image: Buffer, output: Buffer, method: str) -> bool:
    """Whether an image may be resampled in 16 bits."""
    return (
        image.scalar == output.scalar == U8
        and output.is_host
        and all(
            resampling.most_taps(old, new, method) <= MOST_NARROW and _fits(old, new, method)
            for old, new in zip(image.shape[:2], output.shape[:2], strict=True)
        )
    )


@lru_cache(resampling.MOST_TABLES)
def _fits(old: int, new: int, method: str) -> bool:
    """Whether no weight is above 1, as some are at the edges of what grows."""
    return old == new or bool(resampling.weigh(old, new, method)[1].max() <= 1)


def narrow_stages(
    kernel: str, image: Buffer, output: Buffer, method: str, *, across_first: bool
) -> Iterator[Stage]:
    """Stages that resample the axes of an image which change."""
    (height, width), (tall, wide) = image.shape[:2], output.shape[:2]
    if width == wide:
        yield _down(kernel, image, output, method, ALONE)
    elif height == tall:
        yield _across(kernel, image, output, method, ALONE)
    elif across_first:
        between = scratch((height, wide, *image.shape[2:]), N16)
        yield _across(kernel, image, between, method, FIRST)
        yield _down(kernel, between, output, method, LAST)
    else:
        between = scratch((tall, width, *image.shape[2:]), N16)
        yield _down(kernel, image, between, method, FIRST)
        weights = FloatWeights(1 / (U8.white << STORED_BITS))
        axis = resampling.columns(kernel, width, wide, method, weights)
        is_gray = len(image.shape) == 2
        last = resampling.across_kernel(axis.written, axis.ratio, is_gray, stored=_above)
        yield Stage(last, [between, *axis.tables], output)


def _down(kernel: str, image: Buffer, output: Buffer, method: str, weights: WholeWeights) -> Stage:
    axis = resampling.rows(kernel, image.shape[0], output.shape[0], method, weights)
    down = _down_kernel(axis.written, weights)
    return Stage(down, [flat(image), axis.first, axis.weights], flat(output))


def _across(
    kernel: str, image: Buffer, output: Buffer, method: str, weights: WholeWeights
) -> Stage:
    axis = resampling.columns(kernel, image.shape[1], output.shape[1], method, weights)
    across = _across_kernel(axis.written, axis.ratio, len(image.shape) == 2, weights)
    return Stage(across, [image, *axis.tables], output)


# -- kernels ---------------------------------------------------------------------------------------


@function
def _share(value: Any, weight: Any) -> Any:
    """A value times a weight, without the 16 lowest bits: one instruction on vectors."""
    return dala.s16((dala.s32(value) * dala.s32(weight)) >> 16)


@function
def _share_of_level(level: Any, weight: Any) -> Any:
    return _share(dala.s16(level) << LEVEL_BITS, weight)


@cache
def _down_kernel(taps: int, kind: WholeWeights) -> Kernel:
    """Rows of plain numbers, each a weighted mean of old ones: of levels, or of what is stored."""
    count = resampling.counter(taps, 1, 1)
    is_first, is_last = kind == FIRST, kind == LAST
    bits = LAST_BITS if is_last else STORED_BITS

    @function
    def part(value: Any, weight: Any) -> Any:
        if is_last:
            return _share(dala.s16(value), weight)
        return _share_of_level(value, weight)

    def weigh_down(x: Any, first: Any, weights: Any) -> Any:
        i, j = dala.position(2)
        start, total = first[i], weights[i, count(weights)]
        for k in range(count(weights)):
            total += part(x[start + k, j], weights[i, k])
        if is_first:
            return narrow(total)
        return dala.u8(dala.clamp(total >> bits, 0, 255))

    return helper(weigh_down)


@cache
def _across_kernel(taps: int, ratio: Ratio | None, is_gray: bool, kind: WholeWeights) -> Kernel:
    """Columns of pixels, each a weighted mean of old ones."""
    count, is_first = resampling.counter(taps, 0, 1), kind == FIRST

    @function
    def stored(total: Any, weights: Any, x: Any) -> Any:
        whole = total + weights[count(weights), x]
        if is_first:
            return narrow(whole)
        return dala.clamp(whole >> STORED_BITS, 0, 255)

    return resampling.across_kernel(taps, ratio, is_gray, _share_of_level, stored, 1)


@function
def _above(total: Any, weights: Any, x: Any) -> Any:
    return total - SHARE_BELOW
