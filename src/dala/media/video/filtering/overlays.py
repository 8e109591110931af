"""Text and pictures over the frames of a video, at a position and for a time."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ArgumentError
from dala.images.frames import Shape, frame_of, new_buffer
from dala.images.text_rendering import (
    LEAST_SIZE,
    MOST_SIZE,
    checked_text,
    opened_font,
    pixels_of,
    require_font,
    require_pillow,
    require_room,
    text_bounds,
    text_coverage,
    text_style,
)
from dala.kernels.base.shapes import number_within, positive_number
from dala.kernels.image.paint import Paint, paint_of
from dala.media.filters.chain import FilterStep, filter_step
from dala.media.pictures.files import load
from dala.media.video.filtering.placement import Place
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.kernels.kernel import Kernel


class _Layer(ABC):
    """An overlay that is shown from `start` until `end`, in seconds."""

    def __init__(self, name: str, place: Place, opacity: Any, start: Any, end: Any) -> None:
        self._place = place
        self._opacity = number_within(name, "opacity", opacity, 0, 1)
        self._start_s = number_within(name, "start", start)
        self._end_s = math.inf if end is None else number_within(name, "end", end)
        if self._end_s <= self._start_s:
            raise ArgumentError(
                f"{name}: it ends at {self._end_s:g} s, but begins at {self._start_s:g} s: the end "
                f"comes after the start."
            )
        self._layers: dict[tuple[str, int], Buffer] = {}

    def step(self, time_s: float, shape: Shape) -> FilterStep | None:
        """Returns the filter step for a frame of that shape and time, or None if not shown."""
        if not self._start_s <= time_s < self._end_s or not self._opacity:
            return None
        # Rendered once per device, not for each frame.
        key = (current_device().id, self._size_in(shape))
        if key not in self._layers:
            self._layers[key] = self._made(key[1])
        layer = self._layers[key]
        x, y = self._place.corner(_size(shape), _size(layer.shape))
        return filter_step("overlay", {"layer": layer, "x": x, "y": y, "alpha": self._opacity})

    def _size_in(self, shape: Shape) -> int:
        """Returns the size that the layer is rendered at for a frame of that shape."""
        return 0

    @abstractmethod
    def _made(self, size: int) -> Buffer:
        """Returns the layer, on the current device."""


class ImageLayer(_Layer):
    """A picture over frames, such as a watermark: a file or an array, `scale` times its size."""

    def __init__(
        self,
        source: Any,
        position: Any = "bottom-right",
        scale: float = 1.0,
        opacity: float = 1.0,
        margin: int | None = None,
        start: float = 0.0,
        end: float | None = None,
    ) -> None:
        super().__init__("image", Place.of("image", position, margin), opacity, start, end)
        factor = positive_number("image", "scale", scale)
        pixels = load(source) if isinstance(source, str | os.PathLike) else source
        self._frame = frame_of("image", pixels).kept()
        height, width = self._frame.shape[:2]
        if not height or not width:
            raise ArgumentError(f"image: a picture of {width} × {height} has no pixels.")
        require_room("image", width * factor, height * factor)
        self._size = max(1, round(factor * height)), max(1, round(factor * width))

    def _made(self, size: int) -> Buffer:
        image = self._frame.buffer().to(current_device())
        if self._size == image.shape[:2]:
            return image
        made = new_buffer((*self._size, *image.shape[2:]), image.dtype)
        Kernel.lookup("resize").run([image], made, {"method": "bicubic", "premultiply": True})
        return made


class TextLayer(_Layer):
    """Text over frames, in lines where it has line breaks.

    `size` is the height of the letters, a twentieth of the frame's unless given. They have an
    outline, unless `box` gives them a background of that color. Colors are names such as "white",
    codes such as "#ff8000" or "#ff800080", or numbers from 0 to 1: a gray, (r, g, b) or (r, g, b,
    a).
    """

    def __init__(
        self,
        text: Any,
        position: Any = "bottom",
        size: int | None = None,
        color: Any = "white",
        font: str | os.PathLike[str] | None = None,
        outline: int | None = None,
        outline_color: Any = "black",
        box: Any = None,
        box_opacity: float = 0.6,
        opacity: float = 1.0,
        margin: int | None = None,
        start: float = 0.0,
        end: float | None = None,
    ) -> None:
        place = Place.of("text", position, margin)
        super().__init__("text", place, opacity, start, end)
        require_pillow("text")
        self._text = checked_text("text", text)
        self._letters_px = (
            None if size is None else pixels_of("text", "size", size, LEAST_SIZE, MOST_SIZE)
        )
        self._outline_px = (
            None if outline is None else pixels_of("text", "outline", outline, 0, MOST_SIZE)
        )
        self._color = paint_of("text", "color", color)
        self._outline_color = paint_of("text", "outline_color", outline_color)
        self._box = None if box is None else paint_of("text", "box", box)
        self._box_opacity = number_within("text", "box_opacity", box_opacity, 0, 1)
        self._font = font
        named = place.position if isinstance(place.position, str) else "left"
        self._align = next((side for side in ("left", "right") if side in named), "center")
        require_font("text", self._text, font)

    def _size_in(self, shape: Shape) -> int:
        if self._letters_px is not None:
            return self._letters_px
        return max(LEAST_SIZE, min(round(shape[0] / 20), MOST_SIZE))

    def _made(self, size: int) -> Buffer:
        return from_numpy(self._drawn(size))

    def _drawn(self, size: int) -> np.ndarray:
        """Returns the text as RGBA, cropped to its bounds."""
        style = text_style(opened_font("text", self._font, size), size, self._align)
        outline = self._outline_px
        if outline is None:
            outline = 0 if self._box is not None else max(1, round(size / 14))
        padding = 0 if self._box is None else max(1, round(size / 3))
        left, top, right, bottom = text_bounds(self._text, style, outline)
        bounds = left - padding, top - padding, right + padding, bottom + padding
        require_room("text", bounds[2] - bounds[0], bounds[3] - bounds[1])
        letters = text_coverage(self._text, style, bounds) / 255
        parts = [(letters, self._color)]
        if outline:
            around = text_coverage(self._text, style, bounds, outline) / 255
            parts.insert(0, (around, self._outline_color))
        if self._box is not None:
            parts.insert(0, (np.full_like(letters, self._box_opacity), self._box))
        return _composed(parts)


def _composed(parts: list[tuple[np.ndarray, Paint]]) -> np.ndarray:
    """Returns layers composited from bottom to top, each through its mask, as RGBA."""
    # Pillow would mix the black of transparent pixels into the edges.
    alpha = np.zeros_like(parts[0][0])
    colors = np.zeros((*alpha.shape, 3))
    for coverage, (*color, opacity) in parts:
        mask = coverage * opacity
        below = alpha * (1 - mask)
        alpha = mask + below
        share = np.divide(mask, alpha, out=np.zeros_like(mask), where=alpha > 0)[..., None]
        colors += share * (np.array(color) - colors)
    layer = np.concatenate([colors, alpha[..., None]], -1)
    levels: np.ndarray = np.rint(layer * 255)
    return levels.astype(np.uint8)


def _size(shape: Shape) -> tuple[int, int]:
    return shape[1], shape[0]
