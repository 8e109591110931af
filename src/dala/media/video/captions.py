"""Text and pictures over frames, at a place and for a time."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ArgumentError, FileError, LimitError, MediaError
from dala.images.frames import Shape, frame_of, new_buffer
from dala.kernels.shapes import number_within, positive_number, whole_number
from dala.media.chain import FilterStep, filter_step
from dala.media.coding import require_pillow, text_of
from dala.media.files import load
from dala.media.video.layouts import Place
from dala.runtime.buffer import Buffer, from_numpy
from dala.runtime.kernel import Kernel

MOST_CHARACTERS = 2000
LARGEST_LAYER_PIXELS = 1 << 26
LEAST_SIZE, MOST_SIZE = 4, 1000
"""How high letters can be, in pixels."""
_TRIED_SIZE = 32
_NO_LETTER = "\U0010ffff"

Colour = tuple[float, float, float]


class _Layer(ABC):
    """What lies over frames from `start` on until before `end`, in seconds."""

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
        """The filter for a frame of that shape, shown at that time; None where there is nothing."""
        if not self._start_s <= time_s < self._end_s or not self._opacity:
            return None
        # On a device it is made once, not for each frame.
        key = (current_device().id, self._size_in(shape))
        if key not in self._layers:
            self._layers[key] = self._made(key[1])
        layer = self._layers[key]
        x, y = self._place.corner(_size(shape), _size(layer.shape))
        return filter_step("overlay", {"layer": layer, "x": x, "y": y, "alpha": self._opacity})

    def _size_in(self, shape: Shape) -> int:
        """What the layer depends on, of a frame's shape."""
        return 0

    @abstractmethod
    def _made(self, size: int) -> Buffer:
        """The layer on the current device."""


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
        _require_room("image", width * factor, height * factor)
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
    outline, unless `box` gives them a background of that colour. Colours are names such as "white",
    codes such as "#ff8000", or numbers from 0 to 1: a gray or (r, g, b).
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
        self._text = _checked_text(text)
        self._letters_px = None if size is None else _whole("size", size, LEAST_SIZE, MOST_SIZE)
        self._outline_px = None if outline is None else _whole("outline", outline, 0, MOST_SIZE)
        self._color = colour_of("text", "color", color)
        self._outline_color = colour_of("text", "outline_color", outline_color)
        self._box = None if box is None else colour_of("text", "box", box)
        self._box_opacity = number_within("text", "box_opacity", box_opacity, 0, 1)
        self._font = font
        named = place.position if isinstance(place.position, str) else "left"
        self._align = next((side for side in ("left", "right") if side in named), "center")
        _require_letters(self._text, _opened_font(font, _TRIED_SIZE), font)

    def _size_in(self, shape: Shape) -> int:
        if self._letters_px is not None:
            return self._letters_px
        return max(LEAST_SIZE, min(round(shape[0] / 20), MOST_SIZE))

    def _made(self, size: int) -> Buffer:
        return from_numpy(self._drawn(size))

    def _drawn(self, size: int) -> np.ndarray:
        """The text as RGBA, just large enough for it."""
        from PIL import Image, ImageDraw

        font = _opened_font(self._font, size)
        outline = self._outline_px
        if outline is None:
            outline = 0 if self._box is not None else max(1, round(size / 14))
        padding = 0 if self._box is None else max(1, round(size / 3))
        style = {"font": font, "align": self._align, "spacing": size // 4}
        measure = ImageDraw.Draw(Image.new("L", (1, 1)))
        bounds = measure.multiline_textbbox((0, 0), self._text, stroke_width=outline, **style)
        left, top = math.floor(bounds[0]) - padding, math.floor(bounds[1]) - padding
        width = math.ceil(bounds[2]) + padding - left
        height = math.ceil(bounds[3]) + padding - top
        _require_room("text", width, height)

        def covered(stroke: int) -> np.ndarray:
            mask = Image.new("L", (max(1, width), max(1, height)))
            draw = ImageDraw.Draw(mask)
            draw.multiline_text((-left, -top), self._text, fill=255, stroke_width=stroke, **style)
            return np.asarray(mask) / 255

        letters = covered(0)
        parts = [(letters, self._color)]
        if outline:
            parts.insert(0, (covered(outline), self._outline_color))
        if self._box is not None:
            parts.insert(0, (np.full_like(letters, self._box_opacity), self._box))
        return _composed(parts)


def colour_of(what: str, name: str, value: Any) -> Colour:
    """Red, green and blue in 0..1, of a gray, of three numbers, of a name or a code."""
    if isinstance(value, str):
        require_pillow(what)
        from PIL import ImageColor

        try:
            levels = ImageColor.getrgb(value)
        except ValueError as error:
            raise ArgumentError(
                f"{what}: {name} {value!r} is no colour: give a name such as 'white', a code such "
                f"as '#ff8000', or numbers from 0 to 1, a gray or (r, g, b)."
            ) from error
        return levels[0] / 255, levels[1] / 255, levels[2] / 255
    given = value if isinstance(value, tuple | list) else (value,) * 3
    if len(given) != 3:
        raise ArgumentError(
            f"{what}: {name} is a colour's name, a gray or (r, g, b), not {value!r}."
        )
    red, green, blue = (number_within(what, name, item, 0, 1) for item in given)
    return red, green, blue


def _composed(parts: list[tuple[np.ndarray, Colour]]) -> np.ndarray:
    """Colours over each other, the first at the bottom, each as far as its mask covers it."""
    # Not drawn over each other by Pillow, which mixes the black of what is transparent into edges.
    alpha = np.zeros_like(parts[0][0])
    colours = np.zeros((*alpha.shape, 3))
    for mask, colour in parts:
        below = alpha * (1 - mask)
        alpha = mask + below
        share = np.divide(mask, alpha, out=np.zeros_like(mask), where=alpha > 0)[..., None]
        colours += share * (np.array(colour) - colours)
    layer = np.concatenate([colours, alpha[..., None]], -1)
    levels: np.ndarray = np.rint(layer * 255)
    return levels.astype(np.uint8)


def _opened_font(font: Any, size: int) -> Any:
    from PIL import ImageFont

    if font is None:
        return ImageFont.load_default(size)
    if not isinstance(font, str | os.PathLike):
        raise ArgumentError(f"text: font is the path of a font's file, not {font!r}.")
    if not Path(font).is_file():
        raise FileError(f"text: there is no font {os.fspath(font)}: give the path of its file.")
    try:
        return ImageFont.truetype(os.fspath(font), size)
    except OSError as error:
        raise MediaError(f"{os.fspath(font)} is no font: {text_of(error)}.") from error


def _checked_text(text: Any) -> str:
    shown = str(text) if isinstance(text, int | float) and not isinstance(text, bool) else text
    if not isinstance(shown, str) or not shown.strip():
        raise ArgumentError(f"text: text is what to show, not {text!r}.")
    if len(shown) > MOST_CHARACTERS:
        raise LimitError(
            f"text: {len(shown):,} characters are more than the {MOST_CHARACTERS:,} that are shown."
        )
    return "\n".join(shown.expandtabs(4).splitlines())


def _require_letters(text: str, font: Any, given: Any) -> None:
    """An ArgumentError where the font would show empty boxes instead of letters."""
    box = bytes(font.getmask(_NO_LETTER))
    missing = [
        item
        for item in sorted(set(text))
        if not item.isspace() and bytes(font.getmask(item)) == box
    ]
    if any(box) and missing:
        which = "the built-in font" if given is None else os.fspath(given)
        raise ArgumentError(
            f"text: {which} has no {' '.join(missing)}: give font=… the path of a font that has."
        )


def _whole(name: str, value: Any, least: int, most: int) -> int:
    number = whole_number("text", name, value)
    if least <= number <= most:
        return number
    raise ArgumentError(f"text: {name} is {least} to {most} pixels, not {number}.")


def _require_room(what: str, width: float, height: float) -> None:
    if width * height > LARGEST_LAYER_PIXELS:
        raise LimitError(
            f"{what}: {width:.0f} × {height:.0f} is more than {LARGEST_LAYER_PIXELS:,} pixels: "
            f"make it smaller."
        )


def _size(shape: Shape) -> tuple[int, int]:
    return shape[1], shape[0]
