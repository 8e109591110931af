"""Colors looked up in a table: a curve for each channel, or a cube of colors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import Device, current_device, using
from dala.devices.device import forget_oldest
from dala.errors import ArgumentError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, dispatch, helper
from dala.kernels.base.parameters import choice, other
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.cube import LARGEST_CUBE, LARGEST_CURVE, Cube, read_cube, stamp_of
from dala.kernels.image.images import require_image
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

INTERPOLATIONS = ("tetrahedral", "trilinear")
MOST_TABLES = 8
"""Tables that are remembered, the latest ones."""


@dispatch(
    "image",
    group="color",
    table=other("table", "the colors: a .cube file, or an array of (n, n, n, 3) or (n, 3)"),
    interpolation=choice(
        "how colors between the entries of a cube are found",
        *INTERPOLATIONS,
        default="tetrahedral",
    ),
)
def lut(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The color that a table has for each color; alpha stays as it was

    The table is the path of a `.cube` file, or an array over 0..1: (n, n, n, 3), indexed by blue,
    green and red, or (n, 3), a curve for each channel. A color outside of what the table spans is
    the nearest inside. With x at (n - 1) · (x - least) / (most - least) a curve is linear between
    its entries. In a cube, "tetrahedral" weighs four corners of the cell: the fractions in falling
    order f₁ ≥ f₂ ≥ f₃, it starts at the cell's first corner with 1 - f₁ and goes one step along the
    axis of f₁, f₂, f₃ in turn, with f₁ - f₂, f₂ - f₃ and f₃. "trilinear" weighs all eight.
    """
    (image,) = inputs
    require_image("lut", "the image", image)
    require_image("lut", "the output", output)
    require_alike("lut", image, output)
    table = _table(params["table"], current_device())
    kernel = _cube_kernel(params["interpolation"]) if table.is_cube else _map_curves
    yield Stage(kernel, [image, table.entries], output, table.params)


# -- tables on a device ----------------------------------------------------------------------------


@record
class Table:
    """A table that is on a device, and where in it a color lies."""

    entries: Buffer
    """A row of pixels with a fourth channel that nobody reads: an entry is one aligned load."""
    params: dict[str, float]
    is_cube: bool


_tables: dict[tuple[object, ...], tuple[object, Table]] = {}


def _table(given: Any, device: Device) -> Table:
    """The table on the device: a file as long as it does not change, an array as long as it is."""
    if isinstance(given, str | os.PathLike):
        key: tuple[object, ...] = (Path(given).absolute(), *stamp_of(given), device)
        known = _tables.get(key)
        return known[1] if known else _remembered(key, None, _uploaded(read_cube(given), device))
    array = _array(given)
    # An array may be written to, or make room for another: the same name must hold the same values.
    key = (id(given), device)
    known = _tables.get(key)
    if known and isinstance(known[0], np.ndarray) and np.array_equal(known[0], array):
        return known[1]
    return _remembered(key, array.copy(), _uploaded(_checked(array), device))


def _remembered(key: tuple[object, ...], values: object, table: Table) -> Table:
    _tables.pop(key, None)
    _tables[key] = (values, table)
    forget_oldest(_tables, MOST_TABLES)
    return table


def _array(given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except ValueError:  # rows of several lengths
        array = np.empty(0)
    if array.dtype.kind in "fiu" and array.shape[-1:] == (3,):
        size = array.shape[0]
        if array.ndim == 2 and 2 <= size <= LARGEST_CURVE:
            return array
        if array.shape == (size, size, size, 3) and 2 <= size <= LARGEST_CUBE:
            return array
    said = f"an array {array.shape}" if array.size else f"{type(given).__name__} {given!r:.60}"
    raise ArgumentError(
        f"lut: table is the path of a .cube file, or an array of numbers: (n, n, n, 3) with n from "
        f"2 to {LARGEST_CUBE}, or (n, 3) with n from 2 to {LARGEST_CURVE}; not {said}."
    )


def _checked(array: np.ndarray) -> Cube:
    with np.errstate(over="ignore"):
        table = array.astype(np.float32)
    if np.isfinite(table).all():
        return Cube(table)
    raise ArgumentError("lut: table has an entry that is no finite number: replace it.")


def _uploaded(cube: Cube, device: Device) -> Table:
    size = cube.table.shape[0]
    entries = np.zeros((1, cube.table.size // 3, 4), np.float32)
    entries[0, :, :3] = cube.table.reshape(-1, 3)
    params: dict[str, float] = {"size": size}
    for channel, least, most in zip("rgb", cube.least, cube.most, strict=True):
        params[f"scale_{channel}"] = (size - 1) / (most - least)
        params[f"least_{channel}"] = least
    with using(device):
        return Table(from_numpy(entries), params, cube.table.ndim == 4)


# -- kernels ---------------------------------------------------------------------------------------


@function
def _place(x: Any, least: Any, scale: Any, size: Any) -> Any:
    """The entry before x, and how far behind it x lies: not at all at the last one.

    So what is read beyond the last has no weight.
    """
    place = dala.clamp((x - least) * scale, 0.0, dala.f32(size - 1))
    before = dala.floor(place)
    return int(before), place - before


@helper
def _map_curves(
    image: dala.Image,
    table: dala.Image,
    size: dala.s32,
    scale_r: dala.f32,
    scale_g: dala.f32,
    scale_b: dala.f32,
    least_r: dala.f32,
    least_g: dala.f32,
    least_b: dala.f32,
) -> Any:
    p = image.pixel
    r, red = _place(p.r, least_r, scale_r, size)
    g, green = _place(p.g, least_g, scale_g, size)
    b, blue = _place(p.b, least_b, scale_b, size)
    return dala.rgba(
        dala.mix(table[0, r].r, table[0, r + 1].r, red),
        dala.mix(table[0, g].g, table[0, g + 1].g, green),
        dala.mix(table[0, b].b, table[0, b + 1].b, blue),
        p.a,
    )


@function
def _between_four(table: Any, first: Any, size: Any, red: Any, green: Any, blue: Any) -> Any:
    """A color of a cell, by its way along the axes from the first corner to the last."""
    most = max(red, green, blue)
    least = min(red, green, blue)
    middle = max(min(red, green), min(max(red, green), blue))
    plane = size * size
    # Where fractions are alike, the corner that the order decides on has no weight.
    along_most = 1 if red >= most else size if green >= most else plane
    along_least = plane if blue <= least else size if green <= least else 1
    last = first + plane + size + 1
    near = table[0, first] * (1.0 - most) + table[0, first + along_most] * (most - middle)
    return near + table[0, last - along_least] * (middle - least) + table[0, last] * least


@function
def _between_eight(table: Any, first: Any, size: Any, red: Any, green: Any, blue: Any) -> Any:
    """A color of a cell, linear along each axis."""
    plane = size * size
    front = _between_edges(table, first, size, red, green)
    return dala.mix(front, _between_edges(table, first + plane, size, red, green), blue)


@function
def _between_edges(table: Any, first: Any, size: Any, red: Any, green: Any) -> Any:
    low = dala.mix(table[0, first], table[0, first + 1], red)
    high = dala.mix(table[0, first + size], table[0, first + size + 1], red)
    return dala.mix(low, high, green)


@cache
def _cube_kernel(interpolation: str) -> Kernel:
    between = _between_four if interpolation == "tetrahedral" else _between_eight

    def map_colors(
        image: dala.Image,
        table: dala.Image,
        size: dala.s32,
        scale_r: dala.f32,
        scale_g: dala.f32,
        scale_b: dala.f32,
        least_r: dala.f32,
        least_g: dala.f32,
        least_b: dala.f32,
    ) -> Any:
        p = image.pixel
        r, red = _place(p.r, least_r, scale_r, size)
        g, green = _place(p.g, least_g, scale_g, size)
        b, blue = _place(p.b, least_b, scale_b, size)
        color = between(table, r + size * (g + size * b), size, red, green, blue)
        return dala.rgba(color.r, color.g, color.b, p.a)

    return helper(map_colors)
