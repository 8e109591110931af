"""Renders drawings over images, on the image's device.

On the CPU, the tiles with visible shapes are copied out of the image, drawn on, and written back:
the rest is not touched, and all pixels of a tile's row go through the same shapes. On a GPU one
dispatch covers the image. A kernel is planned again when its buffers change size, so tables grow in
large steps, and tiles are drawn in batches of one size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.devices import current_device, using
from dala.errors import ArgumentError
from dala.images.coordinates import Box
from dala.images.drawing import Drawing, Layer, Shapes
from dala.images.drawing_tiles import Grid
from dala.images.frames import destination, frame_of, new_buffer
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.drawing import (
    LETTERS,
    LETTERS_STEP,
    TILE,
    image_kernel,
    tiles_kernel,
)
from dala.kernels.image.drawing_layers import layer_image_kernel, layer_tiles_kernel
from dala.kernels.image.images import require_image
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.kernels.kernel import Kernel

TILES_AT_A_TIME = 256
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
        if image.is_host:
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
    if not image.is_host:
        layer_image_kernel(channels, layer.kind).run([image, *shared], image)
        return
    left, top = (max(box[axis], layer.clip[axis]) for axis in (0, 1))
    right, bottom = (min(box[axis], layer.clip[axis]) for axis in (2, 3))
    tiles = grid.corners(grid.within(left, top, right, bottom))
    _draw_tiles(image, grid, tiles, layer_tiles_kernel(channels, layer.kind), shared)


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


def _draw_tiles(
    image: Buffer, grid: Grid, tiles: np.ndarray, kernel: Kernel, shared: Sequence[Buffer]
) -> None:
    """Runs a kernel over tiles of an image on the CPU; each row of `tiles` begins with x and y."""
    rows, columns = grid.tile
    pixels = np.asarray(image)
    windows = np.lib.stride_tricks.sliding_window_view(
        pixels, grid.tile, axis=(0, 1), writeable=True
    )
    if pixels.ndim == 3:
        windows = windows.transpose(0, 1, 3, 4, 2)
    count = -(-len(tiles) // TILES_AT_A_TIME) * TILES_AT_A_TIME
    # Tiles at the edges overlap others: all are read before any is written.
    before = np.zeros((count, *windows.shape[2:]), pixels.dtype)
    before[: len(tiles)] = windows[tiles[:, 1], tiles[:, 0]]
    shape = (TILES_AT_A_TIME * rows, columns, *image.shape[2:])
    after = new_buffer(shape, image.dtype)
    made = np.asarray(after).reshape(TILES_AT_A_TIME, *windows.shape[2:])
    for first in range(0, len(tiles), TILES_AT_A_TIME):
        some = tiles[first : first + TILES_AT_A_TIME]
        where = np.zeros((TILES_AT_A_TIME, tiles.shape[1]), np.int32)
        where[: len(some)] = some
        given = destination(
            before[first : first + TILES_AT_A_TIME].reshape(shape), shape, image.dtype
        )
        kernel.run([given, from_numpy(where), *shared], after, {"rows": rows})
        windows[some[:, 1], some[:, 0]] = made[: len(some)]


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
