"""What a caller may choose about the results of a model: how sure, how far apart, how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dala.base.suggestions import hint
from dala.errors import ArgumentError, argument
from dala.kernels.base.shapes import integer_of, number_within
from dala.ml.catalog.reading import Reading

SETTINGS = {
    "threshold": "score",
    "iou": "overlap",
    "top_k": "count",
    "max_results": "count",
    "classes": "classes",
}
"""The names under which the catalog has the defaults of options."""
DEFAULTS: dict[str, Any] = {
    "threshold": 0.5,
    "iou": 0.45,
    "top_k": 5,
    "max_results": 100,
    "classes": None,
}
OTHER_NAMES = {"max_detections": "max_results"}
"""What options are called elsewhere, where they mean the same."""
MOST_RESULTS = 1000


def chosen(entry: Reading, given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options of these names: as given, else as the catalog has them; checked."""
    for other, name in OTHER_NAMES.items():
        if other in given and name in names:
            if name in given:
                raise ArgumentError(
                    f"{entry.name}: {argument(other)} and {argument(name)} are the same: leave one "
                    f"out."
                )
            given = {_usual(key): value for key, value in given.items()}
    for name in given:
        if name not in names:
            takes = f"it takes {', '.join(map(argument, names))}" if names else "it takes none"
            raise ArgumentError(
                f"{entry.name} has no option {argument(str(name))}; {takes}."
                f"{hint(str(name), names)}"
            )
    defaults = {name: entry.settings.get(SETTINGS[name], DEFAULTS[name]) for name in names}
    return {name: _checked(entry, name, {**defaults, **given}[name]) for name in names}


def wanted_classes(entry: Reading, given: Any, names: Sequence[str]) -> list[int] | None:
    """The numbers of the classes to keep, given by their labels or numbers; None for all."""
    if given is None:
        return None
    items = [given] if isinstance(given, str | int) else list(given)
    found = []
    for item in items:
        if isinstance(item, str) and item in names:
            found.append(names.index(item))
        elif isinstance(item, int) and not isinstance(item, bool) and 0 <= item < len(names):
            found.append(item)
        else:
            known = f"labels, or numbers from 0 to {len(names) - 1}"
            raise ArgumentError(
                f"{entry.name}: {argument('classes')} has {item!r}, but classes are named by their "
                f"{known}.{hint(str(item), names)}"
            )
    return found


def _usual(name: str) -> str:
    return OTHER_NAMES.get(name, name)


def _checked(entry: Reading, name: str, value: Any) -> Any:
    if name == "classes":
        return value
    if name in ("threshold", "iou"):
        return number_within(entry.name, name, value, 0, 1)
    count = integer_of(entry.name, name, value)
    if not 1 <= count <= MOST_RESULTS:
        raise ArgumentError(
            f"{entry.name}: {argument(name)} is an integer from 1 to {MOST_RESULTS}, not {value!r}."
        )
    return count
