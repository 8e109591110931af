"""Boxes of u8 in 16 bits: blocks of levels are added up, down and then across.

Along the first axis sums are exact. Between the axes they are stored in as many steps for a level
as leave room for the sum of all of them, 256 / n for n taps. A step is lost there at most, half of
which is given back: that is at most n / 512 of a level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.ir.nodes import Border
from dala.ir.types import N16, U8
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.images import flat, reader
from dala.kernels.image.narrow_blurs import narrow, share
from dala.kernels.image.wide_blurs import block_length, has_room, spread_width
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_NARROW_BOX = 50
"""The radius up to which few enough bits are lost."""
ONE = 1 << 16


def is_narrow_box(image: Buffer, output: Buffer, radius: int) -> bool:
    """Whether a box may be added up in 16 bits."""
    is_level = image.scalar == output.scalar == U8 and output.is_host
    return is_level and radius <= MOST_NARROW_BOX and has_room(image, radius)


def narrow_boxes(image: Buffer, output: Buffer, border: Border, radius: int) -> Iterator[Stage]:
    """Stages that take means of blocks of levels, down and then across."""
    taps = 2 * radius + 1
    length = block_length(taps)
    longer = length * (taps // length - 1)
    height, width, *channels = image.shape
    is_gray = not channels
    taller = scratch((height + longer, spread_width(flat(image).shape[1])), N16)
    between = scratch(image.shape, N16)
    wider = scratch((height, width + longer, *channels), N16)
    given = {"radius": radius, "length": length}
    shift, first, last = _shares(taps)
    down, across = {**given, "shift": shift, "share_of": first}, {**given, "share_of": last}
    yield Stage(_block_down_kernel(border), [flat(image)], taller, given)
    yield Stage(_blocks_down_kernel(border), [taller, flat(image)], flat(between), down)
    yield Stage(_block_across_kernel(border, is_gray), [between], wider, given)
    yield Stage(_blocks_across_kernel(border, is_gray), [wider, between], output, across)


def _shares(taps: int) -> tuple[int, int, int]:
    """How far sums down are shifted, and which share of them, in 65536ths, is stored.

    And that of the sums across which is the mean level, with 8 bits of fraction.
    """
    shift = ((ONE - 1) // (U8.white * taps)).bit_length() - 1
    exact = 256 * ONE / (taps * taps << shift)
    first = math.ceil(exact)
    return shift, first, min(int(exact / first * ONE), ONE - 1)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _block_down_kernel(border: Border) -> Kernel:
    def add_down(x: Any, radius: dala.const, length: dala.const) -> Any:
        y, j = dala.position(2)
        total = narrow(x[y - radius, j])
        for k in range(1, length):
            total += narrow(x[y - radius + k, j])
        return total

    return helper(add_down, border)


@cache
def _blocks_down_kernel(border: Border) -> Kernel:
    def add_down(
        sums: Any,
        x: Any,
        radius: dala.const,
        length: dala.const,
        shift: dala.const,
        share_of: dala.const,
    ) -> Any:
        y, j = dala.position(2)
        total = sums[y, j]
        whole = (2 * radius + 1) // length
        for k in range(1, whole):
            total += sums[y + k * length, j]
        for k in range(whole * length, 2 * radius + 1):
            total += narrow(x[y - radius + k, j])
        return share(total << shift, share_of)

    return helper(add_down, border)


@cache
def _block_across_kernel(border: Border, is_gray: bool) -> Kernel:
    level_at = reader(is_gray)

    def add_across(image: dala.Image, radius: dala.const, length: dala.const) -> Any:
        y, x = dala.position(2)
        levels = image.levels
        total = level_at(levels, y, x - radius)
        for k in range(1, length):
            total += level_at(levels, y, x - radius + k)
        return total

    return helper(add_across, border)


@cache
def _blocks_across_kernel(border: Border, is_gray: bool) -> Kernel:
    level_at = reader(is_gray)

    def add_across(
        sums: dala.Image,
        image: dala.Image,
        radius: dala.const,
        length: dala.const,
        share_of: dala.const,
    ) -> Any:
        y, x = dala.position(2)
        parts = sums.levels
        levels = image.levels
        total = level_at(parts, y, x) + narrow(radius)
        whole = (2 * radius + 1) // length
        for k in range(1, whole):
            total += level_at(parts, y, x + k * length)
        for k in range(whole * length, 2 * radius + 1):
            total += level_at(levels, y, x - radius + k)
        return (share(total, share_of) + narrow(128)) >> 8

    return helper(add_across, border)
