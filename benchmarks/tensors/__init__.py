"""Kernels of numbers and tensors against the fastest of NumPy, SciPy, Numba, JAX and others.

Peers write to destinations that are there already where they can; JAX and functions that give
their result do not. What PyTorch reads is the memory of the same arrays, JAX has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from benchmarks.harness import Comparison, Row
from benchmarks.tensors import cases_axes, cases_elements, cases_products
from benchmarks.tensors.case import Case, comparison, contest

MEAN_BAR = 0.8
MODULES = (cases_elements, cases_axes, cases_products)


@cache
def cases(small: bool = False) -> dict[str, Case]:
    """What each row is; small ones are for tests."""
    return {name: case for module in MODULES for name, case in module.cases(small)}


def _row(name: str) -> Comparison:
    return comparison(name, cases()[name])


def _check(name: str) -> None:
    _, _, check = contest(name, cases(small=True)[name])
    check()


ROWS: dict[str, Callable[[], Row]] = {name: partial(_row, name) for name in cases()}
CHECKS: dict[str, Callable[[], None]] = {name: partial(_check, name) for name in cases()}
