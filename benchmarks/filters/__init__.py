"""Image filters against the fastest of all who share the definition.

On 1080p unless a row says otherwise, with the same number of threads on both sides and
destinations that are there already, where a peer can write to one. A row is called after the
filter, its parameter and the format: `blur-3-rgba`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from benchmarks.filters import (
    cases_alike,
    cases_colors,
    cases_convert,
    cases_geometry,
    cases_layers,
    cases_points,
    cases_resize,
    cases_smoothing,
)
from benchmarks.filters.case import Case, comparison, contest
from benchmarks.filters.formats import TINY, USUAL, Sizes
from benchmarks.harness import Comparison, Row

MODULES = (
    cases_points,
    cases_colors,
    cases_smoothing,
    cases_alike,
    cases_layers,
    cases_geometry,
    cases_resize,
    cases_convert,
)
MEAN_BAR = 0.6
NOT_MEASURED = {"detect": "the models that it runs are in the group `models`"}
"""Filters without a row, and why."""


@cache
def cases(sizes: Sizes = USUAL) -> dict[str, Case]:
    """What each row is; nothing of it is made yet."""
    return {name: case for module in MODULES for name, case in module.cases(sizes)}


def _check(row: str) -> None:
    """An AssertionError where an installed peer of the row makes something else of tiny images."""
    contest(row, cases(TINY)[row]).check()


def _row(name: str) -> Comparison:
    return comparison(name, cases()[name])


ROWS: dict[str, Callable[[], Row]] = {name: partial(_row, name) for name in cases()}
CHECKS: dict[str, Callable[[], None]] = {name: partial(_check, name) for name in cases()}
FORMAT_OF = {name: case.format.name for name, case in cases().items()}
