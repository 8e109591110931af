"""Interval analysis of floats: known bounds make the range checks of conversions unnecessary."""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from dala.base.record import value as record_value
from dala.ir.nodes import Apply, Const, Value
from dala.ir.ops import CONVERT
from dala.ir.types import BOOL, F32, F64, Scalar

LARGE = 3e38
_ROUNDING = ("round", "floor", "ceil", "trunc")
_FOLLOWED = ("min", "max", "mul", "add", "sub", "fma", "neg", "abs", *_ROUNDING)


@record_value
class Interval:
    """The bounds of a value, NaN aside, and whether it may be NaN."""

    low: float
    high: float
    may_be_nan: bool = False

    def negated(self) -> Interval:
        return Interval(-self.high, -self.low, self.may_be_nan)


ANYTHING = Interval(-math.inf, math.inf, may_be_nan=True)
_known: WeakKeyDictionary[Value, Interval] = WeakKeyDictionary()


def interval_of(value: Value) -> Interval:
    """Returns the bounds of a value.

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
        number = float(value.value)
        return ANYTHING if math.isnan(number) else Interval(number, number)
    if isinstance(value, Apply) and value.op == CONVERT and value.type in (F32, F64):
        source = value.args[0].type
        if source.is_integer and source != BOOL:
            return Interval(source.lowest, source.highest)
    ends = [_known[arg] for arg in _operands(value)]
    if not ends:
        return ANYTHING
    assert isinstance(value, Apply)
    return _followed(value.op, ends)


def _followed(op: str, ends: list[Interval]) -> Interval:
    first, last = ends[0], ends[-1]
    nan = any(end.may_be_nan for end in ends)
    if op in _ROUNDING:
        return Interval(first.low - 1.0, first.high + 1.0, nan)
    match op:
        case "min":
            return Interval(min(first.low, last.low), min(first.high, last.high), nan)
        case "max":
            return Interval(max(first.low, last.low), max(first.high, last.high), nan)
        case "neg":
            return first.negated()
        case "abs":
            return Interval(0.0, max(abs(first.low), abs(first.high)), nan)
        case "sub":
            return _sum(first, last.negated())
        case "add":
            return _sum(first, last)
        case "fma":
            return _sum(_product(first, ends[1]), last)
        case _:
            return _product(first, last)


def _sum(a: Interval, b: Interval) -> Interval:
    """Returns the bounds of a sum, which is NaN if infinities of both signs meet."""
    low, high = a.low + b.low, a.high + b.high
    nan = a.may_be_nan or b.may_be_nan or not _is_finite(low, high)
    return Interval(low, high, nan)


def _product(a: Interval, b: Interval) -> Interval:
    products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(map(math.isnan, products)):
        return ANYTHING
    low, high = min(products), max(products)
    nan = a.may_be_nan or b.may_be_nan or not _is_finite(low, high)
    return Interval(low, high, nan)


def _is_finite(low: float, high: float) -> bool:
    """Whether nothing between the bounds may have become infinite in f32."""
    return low > -LARGE and high < LARGE


def surely_fits(value: Value, type: Scalar) -> bool:
    """Whether every value except NaN lies well inside the integer type."""
    found = interval_of(value)
    return found.low > type.lowest + 2 and found.high < type.highest - 2


def surely_rounds_to(value: Value, type: Scalar) -> bool:
    """Whether every value is a number that is rounded to one of the integer type.

    A quarter is left for what rounding on the way adds up to.
    """
    found = interval_of(value)
    near = found.low > type.lowest - 0.25 and found.high < type.highest + 0.25
    return near and not found.may_be_nan
