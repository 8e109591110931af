"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str], most: int = 1) -> list[str]:
    """Returns the known names that look most like a name, the nearest first."""
    return difflib.get_close_matches(str(name), list(known), most)


def hint(name: object, known: Iterable[str], most: int = 1) -> str:
    """Returns " Did you mean 'x'?" with the nearest names, or an empty string.

    >>> hint("sharpn", ["blur", "sharpen"])
    " Did you mean 'sharpen'?"
    """
    found = nearest(name, known, most)
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""
