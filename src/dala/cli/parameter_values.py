"""Parses the values of filter parameters by kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dala.base.suggestions import hint
from dala.errors import ArgumentError
from dala.kernels.image.paint import names, paint_of
from dala.kernels.image.sizes import FORMS, exact_size, wanted_size
from dala.media.filters.catalog import range_of

FLAGS = {"yes": True, "true": True, "on": True, "1": True}
FLAGS |= {"no": False, "false": False, "off": False, "0": False}
_NOTHING = ("none", "auto")
_COLOR = "a name such as green, a code such as #00b140, or 0/0.69/0.25 with parts of 0 to 1"


def read(kind: str, text: str, param: dict[str, Any]) -> Any:
    """Returns the value of a text; raises ArgumentError with what is allowed."""
    return None if is_nothing(text, param) else READERS[kind](text, param)


def is_nothing(text: str, param: dict[str, Any]) -> bool:
    """Returns whether the text leaves the value to the filter, as its default does."""
    is_left = "rule" in param or param.get("default", 0) is None
    return is_left and text.lower() in _NOTHING


def number(text: str, param: dict[str, Any]) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refused(text, f"a number{_range(param)}") from None


def integer(text: str, param: dict[str, Any]) -> int:
    try:
        return int(text)
    except ValueError:
        raise _refused(text, f"an integer{_range(param)}") from None


def flag(text: str, param: dict[str, Any]) -> bool:
    if text.lower() not in FLAGS:
        raise _refused(text, "yes or no")
    return FLAGS[text.lower()]


def choice(text: str, param: dict[str, Any]) -> str:
    choices = param["choices"]
    if text.replace("_", "-") not in choices and text not in choices:
        raise ArgumentError(f"{text!r} is not one of {', '.join(choices)}.{hint(text, choices)}")
    return text


def color(text: str, param: dict[str, Any]) -> tuple[float, ...]:
    """Returns red, green and blue in 0..1, and alpha unless it is 1."""
    # Shells take # for a comment, so codes may omit it.
    given: Any = f"#{text}" if re.fullmatch("([0-9a-fA-F]{3}){2}|[0-9a-fA-F]{8}", text) else text
    with suppress(ValueError):
        given = tuple(float(part) for part in given.split("/"))
        given = given * 3 if len(given) == 1 else given
    try:
        paint = paint_of("", "", given)
    except ArgumentError:
        raise ArgumentError(
            f"{text!r} is no color: give {_COLOR}.{hint(text.lower(), names())}"
        ) from None
    return paint[:3] if paint[3] == 1 else paint


def size(text: str, param: dict[str, Any]) -> tuple[int, int] | str:
    """Returns width and height, or the text if the size is relative to the image."""
    try:
        if param.get("relative") and wanted_size("size", text).kind != "exact":
            return text
        return exact_size("size", text)
    except ArgumentError:
        forms = FORMS if param.get("relative") else "1280x720"
        raise _refused(text, f"a size such as {forms}") from None


def matrix(text: str, param: dict[str, Any]) -> list[list[float]]:
    """Returns rows of numbers, as in 1:0:10/0:1:20."""
    try:
        return [[float(item) for item in re.split("[:;]", row)] for row in text.split("/")]
    except ValueError:
        raise _refused(text, "rows of numbers, such as 1:0:10/0:1:20") from None


def place(text: str, param: dict[str, Any]) -> str | tuple[int, int]:
    """Returns a named position, or (x, y) from the upper left as in 10/20."""
    found = re.fullmatch(r"(-?\d{1,6})/(-?\d{1,6})", text)
    return text if found is None else (int(found[1]), int(found[2]))


def path(text: str, param: dict[str, Any]) -> str:
    if not text:
        raise ArgumentError("the name of a file is missing.")
    return text


def guess(text: str, param: dict[str, Any]) -> Any:
    """Returns an integer, a number, a flag, else the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    if text.startswith("#") and re.fullmatch("#([0-9a-fA-F]{3}){2}", text):
        return color(text, param)
    return FLAGS.get(text.lower(), text)


READERS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "number": number,
    "integer": integer,
    "flag": flag,
    "choice": choice,
    "color": color,
    "size": size,
    "matrix": matrix,
    "table": path,
    "image": path,
    "file": path,
    "model": path,
    "place": place,
    "text": lambda text, param: text,
    "any": guess,
}


def allowed(param: dict[str, Any]) -> str:
    """Returns the text about a parameter's allowed values."""
    kind = param["kind"]
    if kind == "choice":
        return ", ".join(param["choices"])
    said = {
        "flag": "yes or no",
        "color": f"a color: {_COLOR}",
        "size": FORMS if param.get("relative") else "WIDTHxHEIGHT",
        "matrix": "rows of numbers: 1:0:10/0:1:20",
        "table": "a .cube file",
        "image": "a picture's file",
        "file": "a file",
        "model": "a model's name, or an ONNX file",
        "place": "a place such as top-left, or x/y in pixels",
        "integer": f"an integer{_range(param)}",
        "number": f"a number{_range(param)}",
    }
    return said.get(kind, "a text or a number" if kind == "any" else "a text")


def _range(param: dict[str, Any]) -> str:
    said = range_of(param)
    return f", {said}" if said else ""


def _refused(text: str, wanted: str) -> ArgumentError:
    return ArgumentError(f"{text!r} is not {wanted}.")
