"""Renders drawings over images, on the image's device.

Only the tiles with visible shapes are drawn, one below another, and then put back: the rest of the
image is not touched, and all pixels of a tile's row go through the same shapes. Where these are
most of the tiles, a GPU draws on all of the image instead. A kernel is planned again when its
buffers change size, so tables grow in large steps, and tiles are drawn in batches of a few sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import current_device, using
from dala.errors import ArgumentError
from dala.images.coordinates import Box
from dala.images.drawing import Drawing, Layer, Shapes
from dala.images.drawing_tiles import Grid
from dala.images.frames import destination, frame_of, new_buffer
from dala.ir.types import U32
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.drawing import (
    LETTERS,
    LETTERS_STEP,
    TILE,
    image_kernel,
    put_back,
    take_out,
    tiles_kernel,
)
from dala.kernels.image.drawing_layers import layer_image_kernel, layer_tiles_kernel
from dala.kernels.image.images import require_image
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.buffers.views import view
from dala.runtime.kernels.kernel import Kernel

BATCHES = (16, 64, 256)
"""How many tiles are drawn at a time."""
LEAST_SHAPES, LEAST_ENTRIES, LEAST_LETTERS = 1 << 9, 1 << 12, 1 << 16
"""The sizes of the smallest tables."""
GROWTH = 8
_LUMA = (0.299, 0.587, 0.114)


def draw(image: Buffer, drawing: Drawing, output: Buffer | None = None) -> None:
    """Draws over the image itself, or writes the result to an output of its shape."""
    if not isinstance(drawing, Drawing):
        raise ArgumentError(f"draw: a Drawing is needed, not {type(drawing).__name__}.")
    target = image if output is None else output
    require_image("draw", "the image", image)
    require_image("draw", "the output", target)
    require_alike("draw", image, target)
    if image.scalar != target.scalar or image.memory.device is not target.memory.device:
        raise ArgumentError(
            f"draw: the image is {image!r}, but the output is {target!r}: give one of the same "
            f"dtype on the same device."
        )
    with using(image.memory.device) as device:
        if target is not image:
            device.copy(image.memory, target.memory)
        if 0 in target.shape:
            return
        for part in drawing.parts:
            if isinstance(part, Shapes):
                _draw_shapes(target, part)
            else:
                _draw_layer(target, part)


def drawn(image: Any, drawing: Drawing) -> Any:
    """Returns a new image of the given kind (array, Pillow image, Buffer) with the drawing."""
    frame = frame_of("draw", image)
    source = frame.buffer()
    with using(source.memory.device):
        made = new_buffer(source.shape, source.dtype)
    draw(source, drawing, made)
    return frame.give_back(made)


def _draw_shapes(image: Buffer, shapes: Shapes) -> None:
    channels = _channels(image)
    table = np.array(shapes.rows, np.float64)
    letters = _place_letters(table, shapes)
    if channels == 1:
        table[:, 10] = table[:, 10:13] @ _LUMA
    shared = from_numpy(_padded(table.astype(np.float32), LEAST_SHAPES)), from_numpy(letters)
    grid = _grid(image)
    for listing in grid.listings(table, np.array(shapes.groups)):
        order = from_numpy(_padded(listing.order, LEAST_ENTRIES))
        if _are_few(image, grid, len(listing.numbers)):
            tiles = np.concatenate([listing.corners, listing.parts], 1)
            _draw_tiles(image, grid, tiles, tiles_kernel(channels), (order, *shared))
        else:
            tiles = np.zeros((grid.rows * grid.columns, 4), np.int32)
            tiles[listing.numbers, 2:] = listing.parts
            inputs = [image, from_numpy(tiles), order, *shared]
            image_kernel(channels).run(inputs, image)


def _place_letters(table: np.ndarray, shapes: Shapes) -> np.ndarray:
    """Returns the coverage of all texts, concatenated, and writes their offsets to the table."""
    starts: dict[int, int] = {}
    pieces: list[np.ndarray] = []
    total = 0
    for row, text in shapes.texts.items():
        coverage = text.coverage
        if id(text) not in starts:
            starts[id(text)] = total
            pieces.append(coverage.reshape(-1))
            total += coverage.size
        start = starts[id(text)]
        table[row, LETTERS:] = start // LETTERS_STEP, start % LETTERS_STEP, coverage.shape[1]
    return _padded(np.concatenate([np.zeros(0, np.uint8), *pieces]), LEAST_LETTERS)


def _draw_layer(image: Buffer, layer: Layer) -> None:
    height, width = image.shape[:2]
    box = layer.box or (0.0, 0.0, float(width), float(height))
    if box[0] >= box[2] or box[1] >= box[3]:
        return
    pixels = _shrunk(layer, box)
    channels, grid = _channels(image), _grid(image)
    place = from_numpy(np.array([*box, *layer.clip], np.float32))
    shared = pixels, place, from_numpy(layer.colors)
    left, top = (max(box[axis], layer.clip[axis]) for axis in (0, 1))
    right, bottom = (min(box[axis], layer.clip[axis]) for axis in (2, 3))
    tiles = grid.corners(grid.within(left, top, right, bottom))
    if _are_few(image, grid, len(tiles)):
        _draw_tiles(image, grid, tiles, layer_tiles_kernel(channels, layer.kind), shared)
    else:
        layer_image_kernel(channels, layer.kind).run([image, *shared], image)


def _shrunk(layer: Layer, box: Box) -> Buffer:
    """Returns the layer on the current device, downscaled to the rectangle that it is shown in."""
    pixels = layer.frame.buffer().to(current_device())
    height, width = pixels.shape[:2]
    shown = min(height, math.ceil(box[3] - box[1])), min(width, math.ceil(box[2] - box[0]))
    if shown == (height, width) or layer.kind == "labels":
        return pixels
    made = new_buffer((*shown, *pixels.shape[2:]), pixels.dtype)
    premultiply = len(pixels.shape) == 3 and pixels.shape[2] == 4
    Kernel.lookup("resize").run([pixels], made, {"method": "area", "premultiply": premultiply})
    return made


def _are_few(image: Buffer, grid: Grid, count: int) -> bool:
    """Whether tiles are drawn by themselves, as the CPU always does, and not all of the image."""
    return image.is_host or 4 * count < grid.rows * grid.columns


def _draw_tiles(
    image: Buffer, grid: Grid, tiles: np.ndarray, kernel: Kernel, shared: Sequence[Buffer]
) -> None:
    """Runs a kernel over tiles of an image; each row of `tiles` begins with x and y."""
    # Tiles at the edges overlap others: all are taken out before any is put back.
    most = BATCHES[-1]
    batches = [_taken_out(image, grid, tiles[i : i + most]) for i in range(0, len(tiles), most)]
    for batch in batches:
        made = new_buffer(batch.pixels.shape, image.dtype)
        given = [batch.pixels, batch.tiles, *shared]
        kernel.run(given, made, {"rows": grid.tile[0]})
        _put_back(image, grid, batch, made)


@record
class _Batch:
    """Tiles of an image, one below another, and where they were: x, y and what else is known.

    There may be more than `count`, which are the first of them again.
    """

    count: int
    pixels: Buffer
    tiles: Buffer


def _taken_out(image: Buffer, grid: Grid, tiles: np.ndarray) -> _Batch:
    count = next(size for size in BATCHES if size >= len(tiles))
    where = np.concatenate([tiles, np.repeat(tiles[:1], count - len(tiles), 0)]).astype(np.int32)
    shape = (count * grid.tile[0], grid.tile[1], *image.shape[2:])
    places = from_numpy(where)
    if image.is_host:
        given = _windows(image, grid)[where[:, 1], where[:, 0]].reshape(shape)
        return _Batch(len(tiles), destination(given, shape, image.dtype), places)
    pixels = new_buffer(shape, image.dtype)
    (source, target), params = _flat(image, grid, image, pixels)
    take_out.run([source, places], target, params)
    return _Batch(len(tiles), pixels, places)


def _put_back(image: Buffer, grid: Grid, batch: _Batch, made: Buffer) -> None:
    if image.is_host:
        where = np.asarray(batch.tiles)[: batch.count]
        pixels = np.asarray(made).reshape(-1, *grid.tile, *image.shape[2:])
        _windows(image, grid)[where[:, 1], where[:, 0]] = pixels[: batch.count]
        return
    (source, target), params = _flat(image, grid, made, image)
    put_back.run([source, batch.tiles], target, params)


def _windows(image: Buffer, grid: Grid) -> np.ndarray:
    """Returns the pixels of an image on the host by the corners of tiles."""
    pixels = np.asarray(image)
    windows = np.lib.stride_tricks.sliding_window_view(
        pixels, grid.tile, axis=(0, 1), writeable=True
    )
    return windows.transpose(0, 1, 3, 4, 2) if pixels.ndim == 3 else windows


def _flat(image: Buffer, grid: Grid, *pixels: Buffer) -> tuple[list[Buffer], dict[str, int]]:
    """Returns pixels by rows, those of four bytes as words, and what kernels move them by."""
    channels, scalar = _channels(image), image.scalar
    if channels * scalar.size_bytes == U32.size_bytes:
        channels, scalar = 1, U32
    rows = [view(item, scalar, (item.shape[0], item.shape[1] * channels)) for item in pixels]
    return rows, {"rows": grid.tile[0], "channels": channels}


def _padded(values: np.ndarray, least: int) -> np.ndarray:
    """Returns the values, zero-padded to one of a few sizes."""
    size = least
    while size < len(values):
        size *= GROWTH
    made = np.zeros((size, *values.shape[1:]), values.dtype)
    made[: len(values)] = values
    return made


def _grid(image: Buffer) -> Grid:
    return Grid((image.shape[0], image.shape[1]), TILE)


def _channels(image: Buffer) -> int:
    return image.shape[2] if len(image.shape) == 3 else 1
