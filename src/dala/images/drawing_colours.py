"""Colours as callers name them: words, codes such as '#ff8000', numbers from 0 to 1."""

from __future__ import annotations

import re
from typing import Any

from dala.errors import ArgumentError
from dala.images.lettering import require_pillow
from dala.kernels.shapes import number_within

Colour = tuple[float, float, float]
Paint = tuple[float, float, float, float]
"""Red, green, blue and alpha, each from 0 to 1; colours are not multiplied by alpha."""

_CODE = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)


def colour_of(what: str, name: str, value: Any) -> Colour:
    """Red, green and blue in 0..1, of a gray, of three numbers, of a name or a code."""
    if isinstance(value, str):
        return _named(what, name, value)[:3]
    given = value if isinstance(value, tuple | list) else (value,) * 3
    if len(given) != 3:
        raise ArgumentError(
            f"{what}: {name} is a colour's name, a gray or (r, g, b), not {value!r}."
        )
    red, green, blue = (number_within(what, name, item, 0, 1) for item in given)
    return red, green, blue


def paint_of(what: str, name: str, value: Any) -> Paint:
    """The same with alpha, which is 1 unless a code or a fourth number gives it."""
    if isinstance(value, str):
        return _named(what, name, value)
    if isinstance(value, tuple | list) and len(value) == 4:
        return (*colour_of(what, name, value[:3]), number_within(what, name, value[3], 0, 1))
    return (*colour_of(what, name, value), 1.0)


def _named(what: str, name: str, value: str) -> Paint:
    if _CODE.fullmatch(value):
        digits = value[1:] if len(value) > 5 else "".join(2 * digit for digit in value[1:])
        red, green, blue, alpha = bytes.fromhex(digits.ljust(8, "f"))
        return red / 255, green / 255, blue / 255, alpha / 255
    require_pillow(what)
    from PIL import ImageColor

    try:
        levels = ImageColor.getrgb(value)
        if max(levels) > 255:  # Pillow takes "rgb(300, 0, 0)" as it is
            raise ValueError(f"{max(levels)} is more than 255")
    except ValueError as error:
        raise ArgumentError(
            f"{what}: {name} {value!r} is no colour: give a name such as 'white', a code such as "
            f"'#ff8000', or numbers from 0 to 1, a gray or (r, g, b)."
        ) from error
    opacity = levels[3] / 255 if len(levels) == 4 else 1.0
    return levels[0] / 255, levels[1] / 255, levels[2] / 255, opacity
