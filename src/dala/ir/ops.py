"""The scalar operations: their operand types and result types."""

from __future__ import annotations

from collections.abc import Callable

from dala.base.record import record
from dala.ir.types import BOOL, F32, N16, S16, U16, U32, Scalar


def _number(scalar: Scalar) -> bool:
    return scalar != BOOL and not scalar.is_storage


def _integer(scalar: Scalar) -> bool:
    return scalar.is_integer


def _float(scalar: Scalar) -> bool:
    return scalar.is_float and not scalar.is_storage


def _bits(scalar: Scalar) -> bool:
    return not scalar.is_float


def _halved(scalar: Scalar) -> bool:
    return scalar in (N16, U16, S16, U32)


def _any(scalar: Scalar) -> bool:
    return not scalar.is_storage


@record
class Op:
    """An operation whose operands share one type; `compares` makes its result a bool."""

    name: str
    arity: int
    accepts: Callable[[Scalar], bool]
    symbol: str = ""
    compares: bool = False
    commutes: bool = False


_TABLE = [
    Op("add", 2, _number, "+", commutes=True),
    Op("sub", 2, _number, "-"),
    Op("mul", 2, _number, "*", commutes=True),
    Op("mulhi", 2, _halved, commutes=True),  # the upper half of the product
    Op("fma", 3, _float),  # a * b + c, rounded once where the device can
    Op("div", 2, _float, "/"),
    Op("floordiv", 2, _integer, "//"),
    Op("mod", 2, _integer, "%"),
    Op("min", 2, _number, commutes=True),
    Op("max", 2, _number, commutes=True),
    Op("neg", 1, _number, "-"),
    Op("abs", 1, _number),
    Op("sqrt", 1, _float),
    Op("floor", 1, _float),
    Op("ceil", 1, _float),
    Op("trunc", 1, _float),
    Op("round", 1, _float),
    Op("and", 2, _bits, "&", commutes=True),
    Op("or", 2, _bits, "|", commutes=True),
    Op("xor", 2, _bits, "^", commutes=True),
    Op("not", 1, _bits, "~"),
    Op("popcount", 1, _integer),  # how many bits are set
    Op("clz", 1, _integer),  # how many bits above the highest that is set are not
    Op("reverse_bits", 1, _integer),
    Op("shl", 2, _integer, "<<"),
    Op("shr", 2, _integer, ">>"),
    Op("eq", 2, _any, "==", compares=True, commutes=True),
    Op("ne", 2, _any, "!=", compares=True, commutes=True),
    Op("lt", 2, _number, "<", compares=True),
    Op("le", 2, _number, "<=", compares=True),
    Op("gt", 2, _number, ">", compares=True),
    Op("ge", 2, _number, ">=", compares=True),
]
OPS = {op.name: op for op in _TABLE}

SELECT = "select"
"""`select(condition, a, b)`: a if the condition holds, else b."""
CONVERT = "convert"
"""`convert(a)` to the result type: floats round to even and saturate, integers wrap.

Floats of 16 bits, which are only stored, convert from and to f32 alone."""
BITCAST = "bitcast"
"""`bitcast(a)`: the same bits reinterpreted as another type of the same width."""


def problem_with(op: str, result: Scalar, args: tuple[Scalar, ...]) -> str | None:
    """Returns what is wrong with an operation on these types, or None."""
    if op == SELECT:
        fits = len(args) == 3 and args[0] == BOOL and args[1] == args[2] == result
        return None if fits else f"select takes (bool, T, T) and gives T, not {args} -> {result}"
    if op == CONVERT:
        if len(args) != 1:
            return "convert takes one operand"
        stored = result.is_storage or args[0].is_storage
        fits = F32 in (result, args[0]) or not stored
        return None if fits else f"convert of 16-bit floats goes by f32, not {args} -> {result}"
    if op == BITCAST:
        fits = len(args) == 1 and args[0].bits == result.bits and BOOL not in (args[0], result)
        return None if fits else f"bitcast keeps the width, not {args} -> {result}"
    known = OPS.get(op)
    if known is None:
        return f"there is no operation {op!r}"
    if len(args) != known.arity:
        return f"{op} takes {known.arity} operands, not {len(args)}"
    if any(arg != args[0] for arg in args) or not known.accepts(args[0]):
        return f"{op} does not take {', '.join(map(str, args))}"
    expected = BOOL if known.compares else args[0]
    return None if result == expected else f"{op} of {args[0]} gives {expected}, not {result}"


def neutral_of(op: str, type: Scalar) -> int | float:
    """Returns the identity element of a reduction."""
    if op == "add":
        return 0
    if type.is_float:
        return float("inf") if op == "min" else float("-inf")
    return type.highest if op == "min" else type.lowest
