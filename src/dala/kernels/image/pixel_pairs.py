"""Pixels as video has them, made and read two at a time: on the CPU, of images of even size.

Two neighbors in a row share their chroma. As numbers of 16 bits they are read and written in whole
vectors: two levels of luma or of chroma are one such number, a pair of colors is three or four.
All is computed in 16 bits, with 6 to 8 of them for fractions of a level.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.ir.types import N16, U8
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.video_levels import Levels
from dala.lang.language_names import ScalarMarker
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import view
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

_narrow = ScalarMarker(N16)
"""Converts to 16 bits in a kernel."""
SPARE = 18560
"""What is added to 64ths of a level, so that colors below black do not wrap."""


def expand_pairs(
    image: Buffer, output: Buffer, levels: Levels, *, nv12: bool, swapped: bool
) -> Iterator[Stage]:
    """A stage that makes pixels of u8 from planes; `swapped` ones have blue first."""
    channels = output.shape[2] if len(output.shape) == 3 else 1
    height, width = output.shape[:2]
    rows, planes = _pairs(image, height, width), _planes(image, height, width)
    made = view(output, N16, (height, width // 2, *output.shape[2:]))
    yield Stage(
        _expanding_kernel(channels, nv12, swapped), [rows, planes], made, _color_weights(levels)
    )


@cache
def _color_weights(levels: Levels) -> dict[str, int]:
    """The weights as parameters of the kernel, in 64ths of a level for a level times 256."""
    weights = levels.colors()
    given = {name: round(weight * 64 * 256) for name, weight in weights.items()}
    # Each product loses half a 64th on average, and half a level is for rounding.
    start = SPARE + 32
    given |= {
        "black": levels.black * 256,
        "r": round(start - 128 * 64 * weights["rv"] + 1) & 65535,
        "g": round(start + 128 * 64 * (weights["gu"] + weights["gv"]) - 0.5),
        "b": round(start - 128 * 64 * weights["bu"] + 1) & 65535,
    }
    return given


def reduce_pairs(
    image: Buffer, output: Buffer, levels: Levels, *, nv12: bool, swapped: bool
) -> Iterator[Stage]:
    """Stages that make planes from pixels of u8; `swapped` ones have blue first."""
    channels = image.shape[2] if len(image.shape) == 3 else 1
    height, width = image.shape[:2]
    pairs = view(image, N16, (height, width // 2, *image.shape[2:]))
    chroma = scratch((height // 2, width // 2), N16)
    weights = {name: round(value * 32768) for name, value in levels.chroma().items()}
    yield Stage(_chroma_kernel(channels, swapped), [pairs], chroma, weights)
    if not nv12:
        parted = scratch((height, width // 2), U8)
        yield Stage(_part_chroma, [chroma], parted)
        chroma = view(parted, N16, (height // 2, width // 2))
    weights = {name: round(value * 65536) for name, value in levels.luma().items()}
    weights["base"] = round(levels.black * 256 + 128 + 1.5)
    made = _pairs(output, height, width)
    yield Stage(_luma_kernel(channels, swapped), [pairs, chroma], made, weights)


def rearrange_pairs(
    image: Buffer, output: Buffer, height: int, width: int, *, nv12: bool
) -> Iterator[Stage]:
    """A stage that makes one kind of planes from the other, `nv12` or not."""
    rows, planes = _pairs(image, height, width), _planes(image, height, width)
    if nv12:
        yield Stage(_weave, [rows, planes], _pairs(output, height, width))
    else:
        yield Stage(_unweave, [rows, planes], _planes(output, height, width))


def repack_pairs(image: Buffer, output: Buffer, *, swapped: bool) -> Iterator[Stage]:
    """A stage that makes colors of u8 from others, `swapped` where one of them has blue first."""
    height, width = image.shape[:2]
    given, made = (
        view(item, N16, (height, width // 2, *item.shape[2:])) for item in (image, output)
    )
    old, new = (item.shape[2] if len(item.shape) == 3 else 1 for item in (image, output))
    kernel = _swap_words if old == new == 4 else _repacking_kernel(old, new, swapped)
    yield Stage(kernel, [given], made)


def _pairs(image: Buffer, height: int, width: int) -> Buffer:
    """Planes as rows of pairs: first those of luma, then those of chroma."""
    return view(image, N16, (height // 2 * 3, width // 2))


def _planes(image: Buffer, height: int, width: int) -> Buffer:
    """Planes as rows as wide as those of chroma: two for each of luma, then U, then V."""
    return view(image, U8, (height * 3, width // 2))


# -- from planes -----------------------------------------------------------------------------------


@function
def _share(value: Any, weight: Any) -> Any:
    """The value times a weight of so many 65536ths: one instruction on vectors of 16 bits."""
    return _narrow((dala.u32(value) * dala.u32(_narrow(weight))) >> 16)


@function
def _level(total: Any) -> Any:
    """A level from 64ths of it and what was spare."""
    return min((max(total, _narrow(SPARE)) - _narrow(SPARE)) >> 6, _narrow(255))


@function
def _above(value: Any, black: Any) -> Any:
    return max(value, black) - black


@cache
def _packing(channels: int, swapped: bool) -> Any:
    """What makes the numbers of a pair of its six levels."""

    @function
    def pack(r: Any, g: Any, b: Any, red: Any, green: Any, blue: Any) -> Any:
        if channels == 1:
            return g | (green << 8)
        if swapped:
            r, b, red, blue = b, r, blue, red
        if channels == 3:
            last = green | (blue << 8)
            return dala.rgba(r | (g << 8), b | (red << 8), last, last)
        return dala.rgba(r | (g << 8), b | 65280, red | (green << 8), blue | 65280)

    return pack


@cache
def _expanding_kernel(channels: int, nv12: bool, swapped: bool) -> Kernel:
    pack, gray = _packing(channels, swapped), channels == 1

    def expand(
        rows: Any,
        planes: Any,
        black: dala.u32,
        y: dala.u32,
        rv: dala.u32,
        gu: dala.u32,
        gv: dala.u32,
        bu: dala.u32,
        r: dala.u32,
        g: dala.u32,
        b: dala.u32,
    ) -> Any:
        i, j = dala.position(2)
        height = dala.shape(2)[0]
        both = rows[i, j]
        first = _share(_above(both << 8, _narrow(black)), y)
        second = _share(_above(both & 65280, _narrow(black)), y)
        if gray:
            light = _narrow(SPARE + 32)
            one, other = _level(first + light), _level(second + light)
            return pack(one, one, one, other, other, other)
        if nv12:
            chroma = rows[height + i // 2, j]
            u, v = chroma << 8, chroma & 65280
        else:
            u = _narrow(planes[2 * height + i // 2, j]) << 8
            v = _narrow(planes[2 * height + height // 2 + i // 2, j]) << 8
        red = _narrow(r) + _share(v, rv)
        green = _narrow(g) - _share(u, gu) - _share(v, gv)
        blue = _narrow(b) + _share(u, bu)
        return pack(
            _level(first + red),
            _level(first + green),
            _level(first + blue),
            _level(second + red),
            _level(second + green),
            _level(second + blue),
        )

    return helper(expand)


# -- to planes -------------------------------------------------------------------------------------


@cache
def _splitting(channels: int, swapped: bool) -> Any:
    """What gives the six levels of a pair, each in the upper half of 16 bits."""

    @function
    def split(p: Any) -> Any:
        if channels == 1:
            low, high = p.r << 8, p.r & 65280
            return low, low, low, high, high, high
        r, g, b = p.r << 8, p.r & 65280, p.g << 8
        if channels == 3:
            red, green, blue = p.g & 65280, p.b << 8, p.b & 65280
        else:
            red, green, blue = p.b << 8, p.b & 65280, p.a << 8
        if swapped:
            return b, g, r, blue, green, red
        return r, g, b, red, green, blue

    return split


@function
def _mean(a: Any, b: Any, c: Any, d: Any) -> Any:
    return (a >> 2) + (b >> 2) + (c >> 2) + (d >> 2)


@cache
def _chroma_kernel(channels: int, swapped: bool) -> Kernel:
    split = _splitting(channels, swapped)

    def take_chroma(
        image: dala.Image,
        ur: dala.u32,
        ug: dala.u32,
        ub: dala.u32,
        vr: dala.u32,
        vg: dala.u32,
        vb: dala.u32,
    ) -> Any:
        i, j = dala.position(2)
        above, below = split(image.levels[2 * i, j]), split(image.levels[2 * i + 1, j])
        red = _mean(above[0], above[3], below[0], below[3])
        green = _mean(above[1], above[4], below[1], below[4])
        blue = _mean(above[2], above[5], below[2], below[5])
        # 128 levels and half a one for rounding, in 128ths.
        middle = _narrow(128 * 128 + 64)
        u = middle + _share(blue, ub) - _share(red, ur) - _share(green, ug)
        v = middle + _share(red, vr) - _share(green, vg) - _share(blue, vb)
        return min(u >> 7, _narrow(255)) | (min(v >> 7, _narrow(255)) << 8)

    return helper(take_chroma)


@helper
def _part_chroma(chroma: Any) -> Any:
    i, j = dala.position(2)
    height = chroma.shape[0]
    both = chroma[i if i < height else i - height, j]
    return both & 255 if i < height else both >> 8


@cache
def _luma_kernel(channels: int, swapped: bool) -> Kernel:
    split = _splitting(channels, swapped)

    def add_luma(
        image: dala.Image, chroma: Any, yr: dala.u32, yg: dala.u32, yb: dala.u32, base: dala.u32
    ) -> Any:
        i, j = dala.position(2)
        height = image.shape[0]
        r, g, b, red, green, blue = split(image.levels[i, j])
        first = _share(r, yr) + _share(g, yg) + _share(b, yb) + _narrow(base)
        second = _share(red, yr) + _share(green, yg) + _share(blue, yb) + _narrow(base)
        return (first >> 8) | (second & 65280) if i < height else chroma[i - height, j]

    return helper(add_luma)


# -- between planes --------------------------------------------------------------------------------


@helper
def _weave(rows: Any, planes: Any) -> Any:
    i, j = dala.position(2)
    height = rows.shape[0] // 3 * 2
    u = planes[height + i, j]
    v = planes[height + height // 2 + i, j]
    return rows[i, j] if i < height else _narrow(u) | (_narrow(v) << 8)


@helper
def _unweave(rows: Any, planes: Any) -> Any:
    i, j = dala.position(2)
    height = rows.shape[0] // 3 * 2
    half = height // 2
    of_u = i < 2 * height + half
    chroma = rows[i - height if of_u else i - height - half, j]
    return _narrow(planes[i, j]) if i < 2 * height else (chroma & 255 if of_u else chroma >> 8)


# -- between colors -------------------------------------------------------------------------------


@helper
def _swap_words(image: dala.Image) -> Any:
    p = image.levels.pixel
    return dala.rgba(
        (p.g & 255) | (p.r & 65280),
        (p.r & 255) | (p.g & 65280),
        (p.a & 255) | (p.b & 65280),
        (p.b & 255) | (p.a & 65280),
    )


@cache
def _repacking_kernel(old: int, new: int, swapped: bool) -> Kernel:
    split, pack = _splitting(old, swapped=False), _packing(new, swapped)

    def repack(image: dala.Image) -> Any:
        r, g, b, red, green, blue = split(image.levels.pixel)
        return pack(r >> 8, g >> 8, b >> 8, red >> 8, green >> 8, blue >> 8)

    return helper(repack)
