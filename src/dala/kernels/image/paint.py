"""Colors as callers give them, read in one way everywhere: names, codes, numbers from 0 to 1."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from dala.base.suggestions import hint
from dala.errors import ArgumentError
from dala.kernels.base.shapes import number_within

Color = tuple[float, float, float]
Paint = tuple[float, float, float, float]
"""Red, green, blue and alpha, each from 0 to 1; colors are not multiplied by alpha."""

_CODE = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_LARGEST_LEVEL = 255

# The named colors of CSS Color Module Level 4, and what it says `transparent` is.
_NAMES = """
transparent:00000000
aliceblue:f0f8ff antiquewhite:faebd7 aqua:00ffff aquamarine:7fffd4 azure:f0ffff beige:f5f5dc
bisque:ffe4c4 black:000000 blanchedalmond:ffebcd blue:0000ff blueviolet:8a2be2 brown:a52a2a
burlywood:deb887 cadetblue:5f9ea0 chartreuse:7fff00 chocolate:d2691e coral:ff7f50
cornflowerblue:6495ed cornsilk:fff8dc crimson:dc143c cyan:00ffff darkblue:00008b darkcyan:008b8b
darkgoldenrod:b8860b darkgray:a9a9a9 darkgreen:006400 darkgrey:a9a9a9 darkkhaki:bdb76b
darkmagenta:8b008b darkolivegreen:556b2f darkorange:ff8c00 darkorchid:9932cc darkred:8b0000
darksalmon:e9967a darkseagreen:8fbc8f darkslateblue:483d8b darkslategray:2f4f4f
darkslategrey:2f4f4f darkturquoise:00ced1 darkviolet:9400d3 deeppink:ff1493 deepskyblue:00bfff
dimgray:696969 dimgrey:696969 dodgerblue:1e90ff firebrick:b22222 floralwhite:fffaf0
forestgreen:228b22 fuchsia:ff00ff gainsboro:dcdcdc ghostwhite:f8f8ff gold:ffd700
goldenrod:daa520 gray:808080 green:008000 greenyellow:adff2f grey:808080 honeydew:f0fff0
hotpink:ff69b4 indianred:cd5c5c indigo:4b0082 ivory:fffff0 khaki:f0e68c lavender:e6e6fa
lavenderblush:fff0f5 lawngreen:7cfc00 lemonchiffon:fffacd lightblue:add8e6 lightcoral:f08080
lightcyan:e0ffff lightgoldenrodyellow:fafad2 lightgray:d3d3d3 lightgreen:90ee90 lightgrey:d3d3d3
lightpink:ffb6c1 lightsalmon:ffa07a lightseagreen:20b2aa lightskyblue:87cefa
lightslategray:778899 lightslategrey:778899 lightsteelblue:b0c4de lightyellow:ffffe0 lime:00ff00
limegreen:32cd32 linen:faf0e6 magenta:ff00ff maroon:800000 mediumaquamarine:66cdaa
mediumblue:0000cd mediumorchid:ba55d3 mediumpurple:9370db mediumseagreen:3cb371
mediumslateblue:7b68ee mediumspringgreen:00fa9a mediumturquoise:48d1cc mediumvioletred:c71585
midnightblue:191970 mintcream:f5fffa mistyrose:ffe4e1 moccasin:ffe4b5 navajowhite:ffdead
navy:000080 oldlace:fdf5e6 olive:808000 olivedrab:6b8e23 orange:ffa500 orangered:ff4500
orchid:da70d6 palegoldenrod:eee8aa palegreen:98fb98 paleturquoise:afeeee palevioletred:db7093
papayawhip:ffefd5 peachpuff:ffdab9 peru:cd853f pink:ffc0cb plum:dda0dd powderblue:b0e0e6
purple:800080 rebeccapurple:663399 red:ff0000 rosybrown:bc8f8f royalblue:4169e1
saddlebrown:8b4513 salmon:fa8072 sandybrown:f4a460 seagreen:2e8b57 seashell:fff5ee sienna:a0522d
silver:c0c0c0 skyblue:87ceeb slateblue:6a5acd slategray:708090 slategrey:708090 snow:fffafa
springgreen:00ff7f steelblue:4682b4 tan:d2b48c teal:008080 thistle:d8bfd8 tomato:ff6347
turquoise:40e0d0 violet:ee82ee wheat:f5deb3 white:ffffff whitesmoke:f5f5f5 yellow:ffff00
yellowgreen:9acd32
"""


@cache
def names() -> dict[str, str]:
    """The code of each color that has a name."""
    pairs = (pair.split(":") for pair in _NAMES.split())
    return {name: f"#{digits}" for name, digits in pairs}


def paint_of(what: str, name: str, value: Any) -> Paint:
    """Red, green, blue and alpha in 0..1 of a name, a code, a gray, three numbers or four.

    Names are those of CSS, codes #rgb, #rgba, #rrggbb and #rrggbbaa. Alpha is 1 unless given.

    >>> paint_of("clear", "color", "#f000")
    (1.0, 0.0, 0.0, 0.0)
    """
    if isinstance(value, str):
        return _of_text(what, name, value)
    several = isinstance(value, tuple | list | np.ndarray)
    given = list(value) if several else [value] * 3
    if len(given) not in (3, 4):
        raise ArgumentError(
            f"{what}: {name} is a color's name, a code, a gray, (r, g, b) or (r, g, b, a), not "
            f"{value!r}."
        )
    if several and _are_levels(given):
        raise ArgumentError(
            f"{what}: {name} is of numbers from 0 to 1, not {value!r}: divide levels by "
            f"{_LARGEST_LEVEL}, or give {'#' + bytes(given).hex()!r}."
        )
    red, green, blue, alpha = (number_within(what, name, item, 0, 1) for item in [*given, 1.0][:4])
    return red, green, blue, alpha


def color_of(what: str, name: str, value: Any) -> Color:
    """The same without alpha, where nothing shows through: an ArgumentError unless it is opaque."""
    red, green, blue, alpha = paint_of(what, name, value)
    if alpha != 1:
        raise ArgumentError(
            f"{what}: {name} {value!r} is transparent, but here it is opaque: leave its alpha out."
        )
    return red, green, blue


def _of_text(what: str, name: str, text: str) -> Paint:
    code = names().get(text.lower(), text)
    if not _CODE.fullmatch(code):
        raise ArgumentError(
            f"{what}: {name} {text!r} is no color: give a name such as 'white', a code such as "
            f"'#ff8000', or numbers from 0 to 1, a gray or (r, g, b).{hint(text.lower(), names())}"
        )
    digits = code[1:] if len(code) > 5 else "".join(2 * digit for digit in code[1:])
    red, green, blue, alpha = bytes.fromhex(digits.ljust(8, "f"))
    return red / 255, green / 255, blue / 255, alpha / 255


def _are_levels(given: list[Any]) -> bool:
    """Whether these are integers as bytes hold them, and so meant to be."""
    return all(type(item) is int and 0 <= item <= _LARGEST_LEVEL for item in given) and (
        max(given) > 1
    )
