"""Bounds of float values that follow from constants: they save conversions their range checks."""

from __future__ import annotations

import math

from dala.ir.nodes import Apply, Const, Value
from dala.ir.types import Scalar

Interval = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
_ROUNDING = ("round", "floor", "ceil", "trunc")


def interval_of(value: Value) -> Interval:
    """The least and the greatest that the value can be, where it is not NaN."""
    if isinstance(value, Const):
        return (float(value.value), float(value.value))
    if not isinstance(value, Apply) or not value.type.is_float:
        return ANYTHING
    if value.op in _ROUNDING:
        low, high = interval_of(value.args[0])
        return (low - 1.0, high + 1.0)
    if value.op not in ("min", "max", "mul", "add") or len(value.args) != 2:
        return ANYTHING
    (low, high), (other_low, other_high) = (interval_of(arg) for arg in value.args)
    match value.op:
        case "min":
            return (min(low, other_low), min(high, other_high))
        case "max":
            return (max(low, other_low), max(high, other_high))
        case "add":
            return (low + other_low, high + other_high)
        case _:
            ends = [a * b for a in (low, high) for b in (other_low, other_high)]
            return ANYTHING if any(map(math.isnan, ends)) else (min(ends), max(ends))


def surely_fits(value: Value, type: Scalar) -> bool:
    """Whether every value that is not NaN lies well inside the integer type."""
    low, high = interval_of(value)
    return low > type.lowest + 2 and high < type.highest - 2
