"""Documents of plain mappings, lists, texts and numbers, in which a mistake has a place.

A place is written as in `$.stages[1].inputs[0]`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.errors import ArgumentError, DalaError

_FLOATS = ("inf", "-inf", "nan")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Inside, an error begins with the place."""
    try:
        yield
    except DalaError as error:
        raise type(error)(f"{place}: {error}") from error


def key(place: str, name: str) -> str:
    """Returns the place of a key of a mapping."""
    return f"{place}.{name}" if name.isidentifier() else f"{place}[{json.dumps(name)}]"


def mapping(given: Any, place: str) -> Mapping[str, Any]:
    """Returns the mapping itself; raises ArgumentError if it is none."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{place}: a mapping is needed, not {_shown(given)}.")
    return given


def sequence(given: Any, place: str) -> list[Any]:
    """Returns the list itself; raises ArgumentError if it is none."""
    if not isinstance(given, list):
        raise ArgumentError(f"{place}: a list is needed, not {_shown(given)}.")
    return given


def text(given: Any, place: str) -> str:
    """Returns the text itself; raises ArgumentError if it is none."""
    if not isinstance(given, str):
        raise ArgumentError(f"{place}: a text is needed, not {_shown(given)}.")
    return given


def value(given: Any, place: str) -> Any:
    """Returns a number, a text or a list of them, as `plain` wrote it."""
    if isinstance(given, list):
        return [value(item, f"{place}[{i}]") for i, item in enumerate(given)]
    if isinstance(given, Mapping) and list(given) == ["float"] and given["float"] in _FLOATS:
        return float(given["float"])
    if given is None or isinstance(given, bool | int | float | str):
        return given
    raise ArgumentError(f"{place}: a number, a text or a list is needed, not {_shown(given)}.")


def plain(given: Any, place: str) -> Any:
    """Returns a value as JSON has it; infinities and NaN as {"float": "inf"}."""
    if isinstance(given, np.generic | np.ndarray):
        given = given.tolist()
    if isinstance(given, float) and not math.isfinite(given):
        return {"float": str(given)}
    if given is None or isinstance(given, bool | int | float | str):
        return given
    if isinstance(given, list | tuple):
        return [plain(item, f"{place}[{i}]") for i, item in enumerate(given)]
    raise ArgumentError(
        f"{place} is {type(given).__name__}, which cannot be saved: numbers, texts and lists of "
        f"them can."
    )


def _shown(given: Any) -> str:
    """Returns what was found, cut short."""
    said = repr(given)
    return "nothing" if given is None else said if len(said) <= 60 else f"{said[:59]}…"
