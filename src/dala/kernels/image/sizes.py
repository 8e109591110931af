"""Sizes as users write them: (width, height), or a text, which may leave them to the image.

In an array's own order, (height, width), the same is called a shape.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Literal

from dala.base.record import value
from dala.errors import ArgumentError
from dala.kernels.base.shapes import integer_of

Size = tuple[int, int]
"""Width and height."""
GivenSize = Size | str
"""A width and a height that depend on nothing, as users give them: a pair, or "1280x720"."""
Kind = Literal["exact", "width", "height", "scale", "fit", "fill"]

FORMS = "1280x720, 640x, x360, 50%, fit:640x360 or fill:640x360"
"""What a text may be."""
_BOXED: dict[str, Kind] = {"": "exact", "fit": "fit", "fill": "fill"}
_BOX = re.compile(r"(?:(fit|fill):)?(\d{1,6})[xX×](\d{1,6})")
_SIDE = re.compile(r"(\d{1,6})[xX×]|[xX×](\d{1,6})")
_SHARE = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)%")


@value
class WantedSize:
    """The size of a result, which may depend on that of the image.

    "exact" is the width and the height themselves. All others keep the image's proportions: "width"
    and "height" are one side, "scale" a share of both; "fit" is as large as fits into a box,
    enlarged where the image is smaller; "fill" covers a box with the middle of the image.
    """

    kind: Kind
    width: int = 0
    height: int = 0
    share: Fraction = Fraction(1)

    def of(self, width: int, height: int, *, even: bool = False) -> Size:
        """The size for an image of that width and height; sides that follow may have to be even.

        They are rounded to the nearest integer, or even one, at least 1 or 2.
        """
        if self.kind == "width":
            return self.width, _side(Fraction(height * self.width, width), even)
        if self.kind == "height":
            return _side(Fraction(width * self.height, height), even), self.height
        if self.kind == "scale":
            return _side(width * self.share, even), _side(height * self.share, even)
        if self.kind == "fit":
            scale = min(Fraction(self.width, width), Fraction(self.height, height))
            across, down = _side(width * scale, even), _side(height * scale, even)
            return _within(across, self.width, even), _within(down, self.height, even)
        return self.width, self.height

    def part_of(self, width: int, height: int) -> tuple[int, int, int, int]:
        """The part (x, y, width, height) of an image that is scaled: of "fill" the middle."""
        if self.kind != "fill":
            return 0, 0, width, height
        wide = min(width, _side(Fraction(height * self.width, self.height)))
        tall = min(height, _side(Fraction(width * self.height, self.width)))
        return (width - wide) // 2, (height - tall) // 2, wide, tall

    def __str__(self) -> str:
        if self.kind == "scale":
            return f"{float(self.share * 100):g}%"
        box = f"{self.width or ''}x{self.height or ''}"
        return f"{self.kind}:{box}" if self.kind in ("fit", "fill") else box


def wanted_size(what: str, given: Any) -> WantedSize:
    """The size that is given as a text, or as (width, height), one of which may be None."""
    if isinstance(given, WantedSize):
        return given
    found = _read(given) if isinstance(given, str) else None
    if isinstance(given, tuple | list) and len(given) == 2:
        sides = [None if item is None else integer_of(what, "size", item) for item in given]
        kinds: dict[tuple[bool, bool], Kind]
        kinds = {(True, True): "exact", (True, False): "width", (False, True): "height"}
        kind = kinds.get((sides[0] is not None, sides[1] is not None))
        if kind is not None and all(side is None or side >= 1 for side in sides):
            found = WantedSize(kind, sides[0] or 0, sides[1] or 0)
    if found is None:
        raise ArgumentError(
            f"{what}: size is (width, height), from 1 on, or a text: {FORMS}; not {given!r}."
        )
    return found


def is_relative(given: Any) -> bool:
    """Whether a size is one that may depend on that of the image."""
    pair = isinstance(given, tuple | list) and len(given) == 2 and None in given
    return pair or isinstance(given, str | WantedSize)


def exact_size(what: str, given: Any, most: int | None = None) -> Size:
    """A width and a height that depend on nothing: a pair, or a text such as 1280x720."""
    read = _read(given) if isinstance(given, str) else None
    pair = (read.width, read.height) if read is not None and read.kind == "exact" else given
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(
            f"{what}: size is (width, height), or a text such as '1280x720', not {given!r}."
        )
    width, height = (integer_of(what, "size", item) for item in pair)
    if min(width, height) < 1 or (most is not None and max(width, height) > most):
        bounds = "from 1 on" if most is None else f"1 to {most} pixels each way"
        raise ArgumentError(f"{what}: size is (width, height), {bounds}, not {given!r}.")
    return width, height


def _read(text: str) -> WantedSize | None:
    text = text.strip()
    if found := _BOX.fullmatch(text):
        width, height = int(found[2]), int(found[3])
        return WantedSize(_BOXED[found[1] or ""], width, height) if width and height else None
    if found := _SIDE.fullmatch(text):
        width, height = int(found[1] or 0), int(found[2] or 0)
        return WantedSize("width" if width else "height", width, height) if width + height else None
    if found := _SHARE.fullmatch(text):
        share = Fraction(found[1]) / 100
        return WantedSize("scale", share=share) if share else None
    return None


def _side(exact: Fraction, even: bool = False) -> int:
    step = 2 if even else 1
    return max(step, step * round(exact / step))


def _within(side: int, most: int, even: bool) -> int:
    """A side of a box, where rounding went beyond it."""
    return side if side <= most or most < 2 else most - most % 2 if even else most
