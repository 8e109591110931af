"""Draws shapes, text, images and model results over a surface, on its device.

Coordinates and colors are those of `dala.images.drawing`: pixels from the upper left corner, the
center of the first at (0.5, 0.5); names, codes such as "#ff8000" and numbers from 0 to 1. Calls are
gathered, and drawn in order before the pixels are read or shown, before a kernel's result replaces
them, and at the end of a `batch`. Images are copied when they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.devices import using
from dala.errors import ArgumentError
from dala.images.drawing import Drawing
from dala.images.drawing_renderer import draw
from dala.images.frames import frame_of, new_buffer
from dala.images.text_rendering import Font
from dala.ml.results.drawing import add_results
from dala.ml.results.results import Result, Segmentation
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.surfaces.result_scaling import fitted_results
from dala.surfaces.surface import Surface, require_surface

MOST_SHAPES, MOST_BYTES = 1 << 14, 1 << 28
"""The memory of pending images at which they are drawn."""

Place = tuple[Any, Any, Any, Any]


class Gathered:
    """A pending drawing over a surface, and the memory that its images take."""

    def __init__(self) -> None:
        self.drawing = Drawing()
        self.size_bytes = 0

    def draw(self, surface: Surface) -> None:
        """Draws it over the surface's pixels, on their device."""
        if not len(self.drawing):
            return
        pixels = surface.buffer()
        with pixels.memory.device.batch():
            draw(pixels, self.drawing)
            surface.show(pixels)


class Settings:
    """A surface's drawing state: its clip, images by name, open batches."""

    def __init__(self) -> None:
        self.clip: Place = (None, None, None, None)
        self.images: dict[str, Buffer] = {}
        self.batches = 0


# -- shapes --------------------------------------------------------------------------------------


def fill_rect(surface: Surface, x: float, y: float, w: float, h: float, color: Any) -> None:
    """Fills a rectangle with its upper left corner at (x, y)."""
    _drawing(surface).fill_rect(x, y, w, h, color)


def draw_rect(
    surface: Surface, x: float, y: float, w: float, h: float, color: Any, width: float = 1.0
) -> None:
    """Draws the outline of a rectangle; the line is centered on its edge."""
    _drawing(surface).draw_rect(x, y, w, h, color, width)


def fill_round_rect(
    surface: Surface, x: float, y: float, w: float, h: float, radius: float, color: Any
) -> None:
    """Fills a rectangle with rounded corners."""
    _drawing(surface).fill_round_rect(x, y, w, h, radius, color)


def draw_round_rect(
    surface: Surface,
    x: float,
    y: float,
    w: float,
    h: float,
    radius: float,
    color: Any,
    width: float = 1.0,
) -> None:
    """Draws the outline of a rectangle with rounded corners."""
    _drawing(surface).draw_round_rect(x, y, w, h, radius, color, width)


def fill_circle(surface: Surface, x: float, y: float, radius: float, color: Any) -> None:
    """Fills a circle around (x, y)."""
    _drawing(surface).fill_circle(x, y, radius, color)


def draw_circle(
    surface: Surface, x: float, y: float, radius: float, color: Any, width: float = 1.0
) -> None:
    """Draws the outline of a circle around (x, y); the line is centered on its edge."""
    _drawing(surface).draw_circle(x, y, radius, color, width)


def draw_line(
    surface: Surface, x0: float, y0: float, x1: float, y1: float, color: Any, width: float = 1.0
) -> None:
    """Draws a line from (x0, y0) to (x1, y1), with round caps."""
    _drawing(surface).draw_line(x0, y0, x1, y1, color, width)


def draw_text(
    surface: Surface,
    text: Any,
    x: float,
    y: float,
    size: int = 16,
    color: Any = "#ffffff",
    font: Font = None,
    background: Any = None,
) -> None:
    """Draws text in that size, with the upper left corner of its box at (x, y).

    `font` is the path of a font file; a background fills the box. Pillow renders the text.
    """
    _drawing(surface).draw_text(text, x, y, size, color, background, font)


# -- images --------------------------------------------------------------------------------------


def load_image(surface: Surface, name: str, image: Any) -> None:
    """Keeps an image on the surface's device, for `draw_image` to draw by name."""
    settings = _settings(surface)
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"load_image: name is a text, not {name!r}.")
    settings.images[name] = _taken("load_image", surface, image)


def draw_image(
    surface: Surface,
    image: Any,
    x: float,
    y: float,
    w: float | None = None,
    h: float | None = None,
    alpha: float = 1.0,
) -> None:
    """Draws an image with its upper left corner at (x, y), in its own size unless one is given.

    It is an array, a Pillow image, a Buffer, or the name that `load_image` gave one.
    """
    settings = _settings(surface)
    if isinstance(image, str):
        if image not in settings.images:
            known = ", ".join(map(repr, settings.images)) or "none yet"
            raise ArgumentError(
                f"draw_image: no image {image!r} was loaded on {surface!r}, but {known}: load it "
                f"with load_image(surface, {image!r}, …)."
            )
        _drawing(surface).draw_image(settings.images[image], x, y, w, h, alpha)
        return
    taken = _taken("draw_image", surface, image)
    _drawing(surface).draw_image(taken, x, y, w, h, alpha)
    _gathered(surface).size_bytes += taken.size


def _taken(what: str, surface: Surface, image: Any) -> Buffer:
    """Returns a copy of the image on the surface's device."""
    pixels = frame_of(what, image).pixels
    with using(surface.device) as device:
        if isinstance(pixels, np.ndarray):
            return from_numpy(pixels)
        if pixels.memory.device is not device:
            return pixels.to(device)
        made = new_buffer(pixels.shape, pixels.dtype)
        device.copy(pixels.memory, made.memory)
        return made


# -- results -------------------------------------------------------------------------------------


def annotate(
    surface: Surface,
    results: Result | Iterable[Result],
    image_size: tuple[int, int] | None = None,
) -> None:
    """Draws model results: labeled boxes, key points and skeletons, masks, classes.

    Coordinates are pixels of the surface or, with an `image_size` (width, height), of an image
    that fills the surface.
    """
    settings, size = _settings(surface), (surface.width, surface.height)
    found = fitted_results(results, size, image_size)
    made = Drawing()  # separate: if one result fails, none is drawn
    made.set_clip(*settings.clip)
    add_results(made, found, size)
    _drawing(surface).add(made)
    masks = [item.mask for item in found if isinstance(item, Segmentation)]
    _gathered(surface).size_bytes += sum(mask.nbytes for mask in masks)


# -- clips and batches ---------------------------------------------------------------------------


def set_clip(
    surface: Surface,
    x: float | None = None,
    y: float | None = None,
    w: float | None = None,
    h: float | None = None,
) -> None:
    """Clips what is drawn from now on to a rectangle; without one, ends clipping."""
    settings = _settings(surface)
    Drawing().set_clip(x, y, w, h)  # raises for invalid rectangles
    settings.clip = (x, y, w, h)


@contextmanager
def batch(surface: Surface) -> Iterator[Surface]:
    """Gathers the shapes inside the block, and draws them together at its end; clips end there.

    A nested batch is drawn with the outer one.
    """
    settings = _settings(surface)
    clip = settings.clip
    settings.batches += 1
    try:
        yield surface
    finally:
        settings.clip = clip
        settings.batches -= 1
        if not settings.batches and not surface.destroyed:
            surface.settle()


# -- what is gathered ----------------------------------------------------------------------------


def _drawing(surface: Surface) -> Drawing:
    """Returns the drawing that the surface's next shape is added to, with its clip."""
    settings, gathered = _settings(surface), _gathered(surface)
    if len(gathered.drawing) >= MOST_SHAPES or gathered.size_bytes >= MOST_BYTES:
        surface.settle()
        gathered = _gathered(surface)
    gathered.drawing.set_clip(*settings.clip)
    return gathered.drawing


def _gathered(surface: Surface) -> Gathered:
    if not isinstance(surface.pending, Gathered):
        surface.settle()
        surface.pending = Gathered()
    return surface.pending


def _settings(surface: Surface) -> Settings:
    _ = require_surface(surface).store  # raises if the surface was destroyed
    if not isinstance(surface.kept, Settings):
        surface.kept = Settings()
    return surface.kept
