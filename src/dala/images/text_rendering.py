"""Renders text to coverage masks with Pillow, and checks fonts for missing letters."""

from __future__ import annotations

import math
import os
import unicodedata
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ArgumentError, FileError, LimitError, MediaError
from dala.kernels.base.shapes import integer_of

MOST_CHARACTERS = 2000
LARGEST_PIXELS = 1 << 26
"""The most pixels of a text or an overlaid picture."""
LEAST_SIZE, MOST_SIZE = 4, 1000
"""The smallest and largest text size, in pixels."""
_TRIED_SIZE = 32
_NO_LETTER = "\U0010ffff"
_UNSEEN = ("Cf", "Mn")
"""Unicode categories of format characters and combining marks, which may be invisible."""
_MOST_NAMED = 8
_OWN_FONT = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
_MOST_REMEMBERED = 512

Font = str | os.PathLike[str] | None
Bounds = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels from the text's origin."""


@record
class RenderedText:
    """A text's coverage mask, its offset from the text's corner, and the size of the text's box.

    The box has the font's line height, whatever the letters.
    """

    coverage: np.ndarray
    left: int
    top: int
    width: int
    height: int


def require_pillow(what: str) -> None:
    """Raises MediaError, with what to install, unless Pillow is installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise MediaError(
            f"{what} needs the library Pillow, which is not installed ({error}): pip install "
            f'"dala-gpu[media]".'
        ) from error


def rendered_text(what: str, text: Any, size: Any, font: Font = None) -> RenderedText:
    """Returns the text rendered in that size; recent ones are cached."""
    require_pillow(what)
    shown = checked_text(what, text)
    letters_px = pixels_of(what, "size", size, LEAST_SIZE, MOST_SIZE)
    return _rendered_text(what, shown, letters_px, _font_path(what, font))


@lru_cache(_MOST_REMEMBERED)
def _rendered_text(what: str, text: str, size: int, font: str | None) -> RenderedText:
    from PIL import Image, ImageDraw

    opened = opened_font(what, font, size)
    require_font(what, text, font)
    style = text_style(opened, size)
    left, top, right, bottom = text_bounds(text, style)
    measure = ImageDraw.Draw(Image.new("L", (1, 1)))
    lines = text.split("\n")
    width = math.ceil(max(measure.textlength(line, font=opened) for line in lines))
    ascent, descent = opened.getmetrics()
    step = measure.textbbox((0, 0), "A", font=opened)[3] + style["spacing"]
    height = math.ceil(ascent + descent + (len(lines) - 1) * step)
    require_room(what, right - left, bottom - top)
    coverage = text_coverage(text, style, (left, top, right, bottom))
    coverage.flags.writeable = False
    return RenderedText(coverage, left, top, width, height)


def text_style(font: Any, size: int, align: str = "left") -> dict[str, Any]:
    """Returns Pillow's options for multiline text."""
    return {"font": font, "align": align, "spacing": size // 4}


def text_bounds(text: str, style: dict[str, Any], stroke: int = 0) -> Bounds:
    """Returns the bounds of a text, with an outline of that width around its letters."""
    from PIL import Image, ImageDraw

    measure = ImageDraw.Draw(Image.new("L", (1, 1)))
    left, top, right, bottom = measure.multiline_textbbox(
        (0, 0), text, stroke_width=stroke, **style
    )
    return math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)


def text_coverage(text: str, style: dict[str, Any], bounds: Bounds, stroke: int = 0) -> np.ndarray:
    """Returns the coverage of each pixel within the bounds, 0 to 255, with an outline if given."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = bounds
    mask = Image.new("L", (max(1, right - left), max(1, bottom - top)))
    draw = ImageDraw.Draw(mask)
    draw.multiline_text((-left, -top), text, fill=255, stroke_width=stroke, **style)
    return np.array(mask)


def opened_font(what: str, font: Any, size: int) -> Any:
    """Returns Pillow's font of that size, from a file or the built-in DejaVu Sans."""
    from PIL import ImageFont

    path = _font_path(what, font)
    if path is None:
        return ImageFont.truetype(BytesIO(_own_font()), size)
    if not Path(path).is_file():
        raise FileError(f"{what}: there is no font {path}: give the path of its file.")
    try:
        return ImageFont.truetype(path, size)
    except OSError as error:
        problem = (str(error) or type(error).__name__).rstrip(".").replace("\n", " ")
        raise MediaError(f"{path} is no font: {problem}.") from error


@cache
def _own_font() -> bytes:
    """Returns the built-in font file (Latin, Greek and Cyrillic); see fonts/LICENSE."""
    return _OWN_FONT.read_bytes()


def _font_path(what: str, font: Any) -> str | None:
    if font is None:
        return None
    if not isinstance(font, str | os.PathLike):
        raise ArgumentError(f"{what}: font is the path of a font's file, not {font!r}.")
    return os.fspath(font)


def checked_text(what: str, text: Any) -> str:
    """Returns the text normalized to NFC, without tabs; raises ArgumentError if it is not text.

    Raises LimitError if it is too long.
    """
    shown = str(text) if isinstance(text, int | float) and not isinstance(text, bool) else text
    if not isinstance(shown, str) or not shown.strip():
        raise ArgumentError(f"{what}: text is what to show, not {text!r}.")
    if len(shown) > MOST_CHARACTERS:
        raise LimitError(
            f"{what}: {len(shown):,} characters are more than the {MOST_CHARACTERS:,} that are "
            f"shown."
        )
    return "\n".join(unicodedata.normalize("NFC", shown).expandtabs(4).splitlines())


def require_font(what: str, text: str, font: Any) -> None:
    """Raises unless the font can be opened and has the text's letters."""
    opened = opened_font(what, font, _TRIED_SIZE)
    # Fonts draw a box, or nothing, for missing glyphs.
    box = bytes(opened.getmask(_NO_LETTER))
    missing = [
        _named(item)
        for item in sorted(set(text))
        if not item.isspace() and bytes(opened.getmask(item)) == box
        if any(box) or unicodedata.category(item) not in _UNSEEN
    ]
    if missing:
        which = "the built-in font, DejaVu Sans," if font is None else os.fspath(font)
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        raise ArgumentError(
            f"{what}: {which} has no {', '.join(missing[:_MOST_NAMED])}{more}: give font=… the "
            f"path of a font that has."
        )


def _named(letter: str) -> str:
    """Returns the letter with its code point."""
    number = f"U+{ord(letter):04X}"
    return f"{letter} ({number})" if letter.isprintable() else number


def pixels_of(what: str, name: str, value: Any, least: int, most: int) -> int:
    """Returns an integer number of pixels; raises ArgumentError if it is out of bounds."""
    number = integer_of(what, name, value)
    if least <= number <= most:
        return number
    raise ArgumentError(f"{what}: {name} is {least} to {most} pixels, not {number}.")


def require_room(what: str, width: float, height: float) -> None:
    """Raises LimitError if a layer of that size would be too large."""
    if width * height > LARGEST_PIXELS:
        raise LimitError(
            f"{what}: {width:.0f} × {height:.0f} is more than {LARGEST_PIXELS:,} pixels: make it "
            f"smaller."
        )
