"""Shapes over an image, many in one run: each pixel goes through the shapes of its tile, in order.

A shape is a row of a table: a rectangle with rounded corners and any direction, which is also what
a circle, a line and a polyline's part are, less a hole of the same kind, or less what letters leave
free. How far it covers a pixel follows from the distance of the pixel's center to its edge; where
the corners are not rounded it is the area itself. Colors are mixed in f32 and stored once, after
the last shape.

A pixel of image column j has its center at j + 0.5, so a rectangle from 2 to 5 is three pixels.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import accumulating, helper
from dala.runtime.kernels.kernel import Kernel, function

LETTERS, LETTERS_STEP = 18, 4096
"""The table has these numbers of a shape, all f32, in its columns:

0 to 3 its center x, y and its direction x, y; 4 to 6 half its length, half its width and the radius
of its corners; 7 to 9 the same of its hole, 0 for none; 10 to 13 red, green, blue and alpha; 14 to
17 the left, top, right and bottom edge of the clip. From LETTERS on: where its letters begin among
all letters, in whole steps (-1 for no letters) and what is left; and how wide they are.
"""
TILE = (16, 32)
"""Rows and columns of a tile: a row of it is a few vectors."""


@function
def overlap(at: Any, start: Any, end: Any) -> Any:
    """The part of a pixel's width that lies between two edges."""
    return dala.clamp(min(at + 0.5, end) - max(at - 0.5, start), 0.0, 1.0)


@function
def _covered(x: Any, y: Any, length: Any, width: Any, radius: Any) -> Any:
    """The part of a pixel that lies within a rectangle around the origin."""
    area = overlap(x, -length, length) * overlap(y, -width, width)
    across, down = abs(x) - length + radius, abs(y) - width + radius
    outside = max(across, 0.0) * max(across, 0.0) + max(down, 0.0) * max(down, 0.0)
    distance = dala.sqrt(outside) + min(max(across, down), 0.0) - radius
    rounded = min(area, dala.clamp(0.5 - distance, 0.0, 1.0))
    return rounded if radius > 0.0 else area


@function
def _coverage(table: Any, letters: Any, shape: Any, x: Any, y: Any) -> Any:
    """How far a shape covers the pixel with its center at x, y."""
    over, down = x - table[shape, 0], y - table[shape, 1]
    along = over * table[shape, 2] + down * table[shape, 3]
    beside = down * table[shape, 2] - over * table[shape, 3]
    covered = _covered(along, beside, table[shape, 4], table[shape, 5], table[shape, 6])
    # Loops of no turn or one: on the CPU they are jumped over, where both sides of an `if` are
    # computed.
    for _ in range(1 if table[shape, 7] > 0.0 else 0):
        hole = _covered(along, beside, table[shape, 7], table[shape, 8], table[shape, 9])
        covered = max(covered - hole, 0.0)
    for _ in range(1 if table[shape, 18] >= 0.0 else 0):
        first = dala.s32(table[shape, 18]) * LETTERS_STEP + dala.s32(table[shape, 19])
        row = dala.s32(down + table[shape, 5] - 0.5)
        column = dala.s32(over + table[shape, 4] - 0.5)
        letter = letters[first + row * dala.s32(table[shape, 20]) + column]
        covered = covered * dala.f32(letter) * (1.0 / 255.0)
    clip = overlap(x, table[shape, 14], table[shape, 16])
    return covered * clip * overlap(y, table[shape, 15], table[shape, 17])


@cache
def mixing(channels: int) -> Any:
    """What moves the channels of a pixel towards a color by the share that a shape has of it."""

    @function
    def mix(r: Any, g: Any, b: Any, a: Any, share: Any, red: Any, green: Any, blue: Any) -> Any:
        if channels == 4:
            a = share + a * (1.0 - share)
            share = share / a if share > 0.0 else 0.0
        r = r + share * (red - r)
        if channels > 1:
            g = g + share * (green - g)
            b = b + share * (blue - b)
        return r, g, b, a

    return mix


@cache
def _painting(channels: int) -> Any:
    """What a pixel becomes under the shapes of its tile."""
    mix = mixing(channels)

    @function
    def paint(
        old: Any, order: Any, table: Any, letters: Any, first: Any, end: Any, x: Any, y: Any
    ) -> Any:
        r, g, b, a = old.r, old.g, old.b, old.a
        joined = 0.0
        # Never longer than the list: a device need not count the turns then, nor be asked for them.
        for n in range(max(min(end - first, order.shape[0]), 0)):
            k = first + n
            shape = order[k] >> 1
            joined = max(joined, _coverage(table, letters, shape, x, y))
            # Parts of one shape are painted together, with the last of them.
            is_last = (order[k] & 1) == 1
            share = joined * table[shape, 13] if is_last else 0.0
            joined = 0.0 if is_last else joined
            red, green, blue = table[shape, 10], table[shape, 11], table[shape, 12]
            r, g, b, a = mix(r, g, b, a, share, red, green, blue)
        if channels == 1:
            return dala.rgba(r, r, r)
        return dala.rgba(r, g, b, a)

    return paint


@cache
def tiles_kernel(channels: int) -> Kernel:
    """Paints tiles that lie below one another; `tiles` has x, y and a part of `order` for each."""
    paint = _painting(channels)

    def draw_tiles(
        image: dala.Image, tiles: Any, order: Any, table: Any, letters: Any, rows: dala.s32
    ) -> Any:
        i, j = dala.position(2)
        tile = i // rows
        x = dala.f32(tiles[tile, 0] + j) + 0.5
        y = dala.f32(tiles[tile, 1] + i % rows) + 0.5
        return paint(image.pixel, order, table, letters, tiles[tile, 2], tiles[tile, 3], x, y)

    return helper(draw_tiles)


@cache
def image_kernel(channels: int) -> Kernel:
    """Paints a whole image; `tiles` has a part of `order` for each tile, row by row."""
    paint = _painting(channels)
    rows, columns = TILE

    def draw_image(image: dala.Image, tiles: Any, order: Any, table: Any, letters: Any) -> Any:
        i, j = dala.position(2)
        across = (dala.shape(2)[1] + columns - 1) // columns
        tile = i // rows * across + j // columns
        x, y = dala.f32(j) + 0.5, dala.f32(i) + 0.5
        return paint(image.pixel, order, table, letters, tiles[tile, 2], tiles[tile, 3], x, y)

    return helper(draw_image)


@helper
def take_out(image: Any, tiles: Any, rows: dala.s32, channels: dala.s32) -> Any:
    """Tiles of an image, one below another."""
    i, j = dala.position(2)
    tile = i // rows
    return image[tiles[tile, 1] + i % rows, tiles[tile, 0] * channels + j]


@accumulating
def put_back(made: Any, tiles: Any, out: dala.Out, rows: dala.s32, channels: dala.s32) -> Any:
    """Writes tiles that lie one below another to where they belong in an image."""
    i, j = dala.position(2)
    tile = i // rows
    out[tiles[tile, 1] + i % rows, tiles[tile, 0] * channels + j] = made
