"""Interval analysis of floats: known bounds make the range checks of conversions unnecessary."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from dala.ir.nodes import Apply, Const, Value
from dala.ir.types import Scalar

Interval = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
_ROUNDING = ("round", "floor", "ceil", "trunc")
_FOLLOWED = ("min", "max", "mul", "add", *_ROUNDING)

_known: WeakKeyDictionary[Value, Interval] = WeakKeyDictionary()


def interval_of(value: Value) -> Interval:
    """Returns the lower and upper bound of a value, NaN aside.

    Each value is visited once, however often and however deeply it is used.
    """
    waiting = [value]
    while waiting:
        here = waiting[-1]
        first = [arg for arg in _operands(here) if arg not in _known]
        if first and here not in _known:
            waiting += first
        else:
            waiting.pop()
            if here not in _known:
                _known[here] = _interval(here)
    return _known[value]


def _operands(value: Value) -> tuple[Value, ...]:
    """Returns the operands that a value's bounds follow from."""
    if isinstance(value, Apply) and value.type.is_float and value.op in _FOLLOWED:
        return value.args
    return ()


def _interval(value: Value) -> Interval:
    if isinstance(value, Const):
        return (float(value.value), float(value.value))
    ends = [_known[arg] for arg in _operands(value)]
    if not ends:
        return ANYTHING
    assert isinstance(value, Apply)
    low, high = ends[0]
    if value.op in _ROUNDING:
        return (low - 1.0, high + 1.0)
    other_low, other_high = ends[1]
    match value.op:
        case "min":
            return (min(low, other_low), min(high, other_high))
        case "max":
            return (max(low, other_low), max(high, other_high))
        case "add":
            return (low + other_low, high + other_high)
        case _:
            products = [a * b for a in (low, high) for b in (other_low, other_high)]
            return ANYTHING if any(map(math.isnan, products)) else (min(products), max(products))


def surely_fits(value: Value, type: Scalar) -> bool:
    """Whether every value except NaN lies well inside the integer type."""
    low, high = interval_of(value)
    return low > type.lowest + 2 and high < type.highest - 2
