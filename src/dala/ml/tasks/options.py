"""What a caller may choose about the results of a model: how sure, how far apart, how many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dala.base.suggestions import hint
from dala.errors import ArgumentError, argument
from dala.kernels.base.shapes import integer_of, number_within
from dala.ml.catalog.entries import Entry

SETTINGS = {"threshold": "score", "iou": "overlap", "top_k": "count", "max_results": "count"}
"""The names under which the catalog has the defaults of options."""
DEFAULTS: dict[str, Any] = {"threshold": 0.5, "iou": 0.45, "top_k": 5, "max_results": 100}
MOST_RESULTS = 1000


def chosen(entry: Entry, given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options of these names: as given, else as the catalog has them; checked."""
    for name in given:
        if name not in names:
            takes = f"it takes {', '.join(map(argument, names))}" if names else "it takes none"
            raise ArgumentError(
                f"{entry.name} has no option {argument(str(name))}; {takes}."
                f"{hint(str(name), names)}"
            )
    defaults = {name: entry.settings.get(SETTINGS[name], DEFAULTS[name]) for name in names}
    return {name: _checked(entry, name, {**defaults, **given}[name]) for name in names}


def _checked(entry: Entry, name: str, value: Any) -> Any:
    if name in ("threshold", "iou"):
        return number_within(entry.name, name, value, 0, 1)
    count = integer_of(entry.name, name, value)
    if not 1 <= count <= MOST_RESULTS:
        raise ArgumentError(
            f"{entry.name}: {argument(name)} is an integer from 1 to {MOST_RESULTS}, not {value!r}."
        )
    return count
