"""Typed arithmetic while lowering: type promotion, literals, and per-channel pixel arithmetic."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from dala.ir.builder import Builder
from dala.ir.nodes import Const, Load, Value
from dala.ir.ops import OPS
from dala.ir.types import BOOL, F32, F64, S32, S64, U64, Scalar, promote
from dala.lang.values import (
    Componentwise,
    Literal,
    LoweredValue,
    Matrix,
    Number,
    Pixel,
    Tuple,
    Vector,
    describe,
)

LARGEST_LITERAL_BITS = 4096
"""Larger integer literals are refused before they are computed."""


class Mismatch(Exception):
    """Raised for values that do not fit together; the enclosing expression adds the location."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(what)
        self.what = what
        self.instead = instead


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


class Arithmetic:
    """Operations on lowered values, appended to a builder.

    `floats` is the type of float literals that are only combined with each other.
    """

    def __init__(self, build: Builder, floats: Scalar) -> None:
        self.build = build
        self.floats = floats
        self.conditions: set[str] = set()
        """The inputs of numbers that were used as conditions."""

    # -- types -----------------------------------------------------------------------------------

    def literal_type(self, value: bool | int | float, beside: Scalar | None = None) -> Scalar:
        """Returns the type a literal takes by itself, or beside a value of type `beside`."""
        if isinstance(value, bool):
            return BOOL
        if isinstance(value, int):
            if beside is not None and beside != BOOL:
                return beside
            if S32.lowest <= value <= S32.highest:
                return S32
            return U64 if S64.highest < value <= U64.highest else S64
        if beside is None:
            return self.floats
        return beside if beside.is_float else _float_for(beside)

    def typed(self, lowered: LoweredValue, type: Scalar | None = None) -> Number:
        """Returns the value as a typed scalar; a literal takes the given type, or its own."""
        match lowered:
            case Literal():
                own = type or self.literal_type(lowered.value)
                self._require_fit(lowered.value, own)
                return Number(self.build.const(own, lowered.value), weak=type is None)
            case Number():
                return lowered if type is None else self.convert(lowered, type)
        raise _not_a_number(lowered)

    def convert(self, lowered: LoweredValue, type: Scalar) -> Number:
        """Converts the value to another type by the language's conversion rules.

        A float of 16 bits is rounded to, and then computed with as f32.
        """
        return Number(self.build.convert(self.stored(lowered, type), type.computed))

    def stored(self, lowered: LoweredValue, type: Scalar) -> Value:
        """Returns the value as a buffer of the type stores it."""
        if isinstance(lowered, Literal):
            if type.is_float:
                self._require_fit(lowered.value, type)
            if isinstance(lowered.value, float) and type.is_integer:
                wide = self.build.const(F64, lowered.value)
                return self.build.convert(wide, type)
            return self.build.const(type, lowered.value)
        return self.build.convert(self.typed(lowered).value, type)

    def to_common_type(self, a: LoweredValue, b: LoweredValue) -> tuple[Number, Number]:
        """Returns both values in their common type."""
        type = self.common_type_of(a, b)
        weak = is_weak(a) and is_weak(b)
        return Number(self._adopt(a, type), weak), Number(self._adopt(b, type), weak)

    def common_type_of(self, a: LoweredValue, b: LoweredValue) -> Scalar:
        """Returns the common type of two values; weak ones take the type of the other."""
        if isinstance(a, Literal) and isinstance(b, Literal):
            if isinstance(a.value, float) or isinstance(b.value, float):
                return self.floats
            return self.common_type(self.literal_type(a.value), self.literal_type(b.value))
        if isinstance(a, Literal) or (is_weak(a) and not is_weak(b)):
            return self._beside(a, self.type_of(b))
        if isinstance(b, Literal) or (is_weak(b) and not is_weak(a)):
            return self._beside(b, self.type_of(a))
        return self.common_type(self.type_of(a), self.type_of(b))

    def type_of(self, lowered: LoweredValue) -> Scalar:
        """Returns the type of a scalar, or the type a literal takes by itself."""
        if isinstance(lowered, Literal):
            return self.literal_type(lowered.value)
        if isinstance(lowered, Number):
            return lowered.type
        raise _not_a_number(lowered)

    def common_type(self, a: Scalar, b: Scalar) -> Scalar:
        """Returns the common type of two types; raises Mismatch if there is none."""
        both = promote(a, b)
        if both is None:
            remedy = "dala.s32(…), dala.u32(…), or dala.s64(…) where the device has it"
            if U64 in (a, b):
                remedy = "dala.s64(…), dala.u64(…), or dala.f64(…), which rounds"
            raise Mismatch(
                f"{a} and {b} do not mix: each holds values that the other does not.",
                f"Convert one: {remedy}.",
            )
        return both

    def _beside(self, weak: LoweredValue, type: Scalar) -> Scalar:
        """Returns the common type of a weak value and a value of `type`."""
        if isinstance(weak, Literal):
            own = self.literal_type(weak.value, beside=type)
        else:
            assert isinstance(weak, Number)
            own = type if weak.type.is_integer and type != BOOL else weak.type
            if weak.type.is_float:
                own = type if type.is_float else self.literal_type(0.5, beside=type)
        if own == BOOL:
            return type
        return own if own.is_float or not type.is_float else type

    def _adopt(self, lowered: LoweredValue, type: Scalar) -> Value:
        if isinstance(lowered, Literal):
            return self.typed(lowered, type).value
        return self.convert(lowered, type).value

    def _require_fit(self, value: bool | int | float, type: Scalar) -> None:
        if type.is_float and abs(value) > sys.float_info.max and isinstance(value, int):
            raise Mismatch("this integer is too large for a float.", "Write it as a float.")
        if type.is_integer and not type.lowest <= value <= type.highest:
            raise Mismatch(
                f"{value} does not fit {type}, which holds {type.lowest} to {type.highest}.",
                _wider_advice(value),
            )

    # -- operations ------------------------------------------------------------------------------

    def binary(self, op: str, a: LoweredValue, b: LoweredValue) -> LoweredValue:
        """Returns the operation's result, computed per channel for pixels; tuples are refused."""
        if isinstance(a, Componentwise) or isinstance(b, Componentwise):
            return self.by_component(lambda x, y: self.binary(op, x, y), a, b)
        if isinstance(a, Literal) and isinstance(b, Literal):
            return Literal(_compute(op, a.value, b.value))
        left, right = self.to_common_type(a, b)
        return self._operate(op, left, right)

    def _operate(self, op: str, left: Number, right: Number) -> Number:
        weak = left.weak and right.weak
        type = left.type
        if op == "div" and not type.is_float:
            wide = _float_for(type)
            left, right = self.convert(left, wide), self.convert(right, wide)
        elif op in ("floordiv", "mod") and type.is_float:
            quotient = self.build.apply("div", left.value, right.value)
            floored = self.build.apply("floor", quotient)
            if op == "floordiv":
                return Number(floored, weak)
            taken = self.build.apply("mul", right.value, floored)
            return Number(self.build.apply("sub", left.value, taken), weak)
        elif type == BOOL and not OPS[op].accepts(BOOL):
            left, right = self.convert(left, S32), self.convert(right, S32)
        if not OPS[op].accepts(left.type):
            raise Mismatch(
                f"`{OPS[op].symbol or op}` does not take {left.type} values.",
                "Convert them to an integer type first, e.g. dala.s32(…).",
            )
        return Number(self.build.apply(op, left.value, right.value), weak)

    def multiply_add(self, a: LoweredValue, b: LoweredValue, c: LoweredValue) -> LoweredValue:
        """Returns a * b + c of floats, rounded once where the device can."""
        numbers = self.floats_alike(a, b, c)
        product = self.build.apply("fma", *(number.value for number in numbers))
        return Number(product, all(number.weak for number in numbers))

    def unary(self, op: str, a: LoweredValue) -> LoweredValue:
        if isinstance(a, Componentwise):
            return self.by_component(lambda x: self.unary(op, x), a)
        number = self.typed(a)
        if op == "neg" and number.type == BOOL:
            number = self.convert(number, S32)
        if not OPS[op].accepts(number.type):
            raise Mismatch(
                f"`{OPS[op].symbol or op}` does not take a {number.type} value.",
                "Convert it first, e.g. dala.f32(…) or dala.s32(…).",
            )
        return Number(self.build.apply(op, number.value), number.weak)

    def floating(self, a: LoweredValue) -> Number:
        """Converts to float: 64 bits become f64, all else f32; literals stay weak."""
        if isinstance(a, Literal):
            return Number(self.typed(a, self.floats).value, weak=True)
        number = self.typed(a)
        if number.type.is_float:
            return number
        wide = _float_for(number.type)
        return Number(self.build.convert(number.value, wide), number.weak)

    def floats_alike(self, *args: LoweredValue) -> list[Number]:
        """Returns all arguments as floats of their common type."""
        met = self.floating(args[0])
        for arg in args[1:]:
            met, _ = self.to_common_type(met, self.floating(arg))
        return [self.convert(arg, met.type) for arg in args]

    def condition(self, a: LoweredValue) -> Number:
        """Returns the value as a bool; raises Mismatch for numbers."""
        number = self.typed(a)
        if number.type != BOOL:
            if isinstance(number.value, Load):
                self.conditions.add(number.value.source)
            raise Mismatch(
                f"a condition is needed here, not {describe(a)}.", "Compare it: write `… != 0`."
            )
        return number

    def choose(
        self, condition: Number, then: LoweredValue, otherwise: LoweredValue
    ) -> LoweredValue:
        """Returns `then` where the condition holds, else `otherwise`; both are computed."""
        known = decided(condition)
        if known is not None:
            then, otherwise = (then, then) if known else (otherwise, otherwise)
        if isinstance(then, Tuple) and isinstance(otherwise, Tuple):
            if len(then.items) == len(otherwise.items) and then.named is otherwise.named:
                pairs = zip(then.items, otherwise.items, strict=True)
                chosen = tuple(self.choose(condition, a, b) for a, b in pairs)
                return Tuple(chosen, then.named)
            sides = f"{describe(then)} and {describe(otherwise)}"
            raise Mismatch(f"the two sides differ: {sides}.", "Make them alike.")
        if isinstance(then, Componentwise) or isinstance(otherwise, Componentwise):
            return self.by_component(lambda a, b: self.choose(condition, a, b), then, otherwise)
        if then == otherwise:
            return then
        left, right = self.to_common_type(then, otherwise)
        picked = self.build.select(condition.value, left.value, right.value)
        return Number(picked, left.weak and right.weak)

    def by_component(
        self, operate: Callable[..., LoweredValue], *operands: LoweredValue
    ) -> Componentwise:
        """Returns a pixel, vector or matrix of computed components; scalars are broadcast."""
        if any(isinstance(item, Matrix) for item in operands):
            return self._by_row(operate, *operands)
        if not any(isinstance(item, Vector) for item in operands):
            return self._by_channel(operate, *operands)
        sizes = {len(item.items) for item in operands if isinstance(item, Vector)}
        if len(sizes) > 1 or any(isinstance(item, Pixel | Tuple) for item in operands):
            given = " and ".join(map(describe, operands))
            raise Mismatch(
                f"{given} do not go together: components are computed one by one.",
                "Take as many components of each, v.xy, or make vectors of both.",
            )
        parts = [
            [item.items[i] if isinstance(item, Vector) else item for item in operands]
            for i in range(sizes.pop())
        ]
        return Vector(tuple(self.typed(operate(*each)) for each in parts))

    def _by_row(self, operate: Callable[..., LoweredValue], *operands: LoweredValue) -> Matrix:
        sizes = {len(item.rows) for item in operands if isinstance(item, Matrix)}
        if len(sizes) > 1 or any(isinstance(item, Pixel | Vector | Tuple) for item in operands):
            raise Mismatch(
                f"{' and '.join(map(describe, operands))} do not go together: elements are "
                f"computed one by one.",
                "For a product of matrices and vectors, write m @ v.",
            )
        rows: list[Vector] = []
        for i in range(sizes.pop()):
            parts = [item.rows[i] if isinstance(item, Matrix) else item for item in operands]
            row = self.by_component(operate, *parts)
            assert isinstance(row, Vector)
            rows.append(row)
        return Matrix(tuple(rows))

    def _by_channel(self, operate: Callable[..., LoweredValue], *operands: LoweredValue) -> Pixel:
        """Returns a pixel computed channel by channel; scalars are broadcast to all four channels.

        Equal channels stay a single value, so that gray pixels are known to be gray.
        """
        done: list[tuple[list[LoweredValue], Number]] = []
        for i in range(4):
            parts: list[LoweredValue] = []
            parts += [item.channels[i] if isinstance(item, Pixel) else item for item in operands]
            alike = next((made for known, made in done if known == parts), None)
            done.append((parts, alike or self.typed(operate(*parts))))
        (_, red), (_, green), (_, blue), (_, alpha) = done
        return Pixel((red, green, blue, alpha))


def _not_a_number(lowered: LoweredValue) -> Mismatch:
    match lowered:
        case Tuple(named=type() as cls):
            instead = f"Take one of its fields: {', '.join(cls._fields)}."  # type: ignore[attr-defined]
        case Tuple():
            instead = (
                "Take one of its items: unpack it, as in `(i,) = dala.position(1)`, or index it."
            )
        case Vector():
            instead = "Take one of its components, v.x, or make a pixel of it: dala.rgba(v)."
        case Matrix():
            instead = "Take one of its elements, m[i, j]."
        case _:
            instead = "Use a scalar, or one of its elements."
    return Mismatch(f"a number is needed here, not {describe(lowered)}.", instead)


def _float_for(type: Scalar) -> Scalar:
    """Returns the float type that an integer type becomes where a float is needed."""
    return F64 if type.bits == 64 else F32


def _wider_advice(value: bool | int | float) -> str:
    """Returns advice on which type holds an integer that another does not."""
    for type in (S32, S64, U64):
        if type.lowest <= value <= type.highest:
            return f"Convert the other operand to a wider type first: dala.{type}(…)."
    if abs(value) > sys.float_info.max:
        return "No type holds it: use a smaller number."
    return f"No integer type holds it: write it as a float, {float(value)!r}."


def decided(condition: Number) -> bool | None:
    """Returns a condition made of literals alone, else None: folding must not change a type."""
    if isinstance(condition.value, Const) and condition.weak:
        return bool(condition.value.value)
    return None


def is_weak(lowered: LoweredValue) -> bool:
    """Whether a value is made of literals alone, and takes the type of what it meets."""
    return isinstance(lowered, Literal) or (isinstance(lowered, Number) and lowered.weak)


def _compute(op: str, a: Any, b: Any) -> Any:
    """Computes literals in Python; division by zero follows the language's semantics."""
    if op == "shl" and isinstance(b, int) and b > LARGEST_LITERAL_BITS:
        raise Mismatch("this number is too large to write down.", "Shift by less.")
    try:
        return _PYTHON[op](a, b)
    except ZeroDivisionError:
        if op != "div" and isinstance(a, int) and isinstance(b, int):
            return 0
        undefined = op == "mod" or a == 0 or a != a
        return math.nan if undefined else math.copysign(math.inf, a) * math.copysign(1, b)
    except (TypeError, ValueError, OverflowError) as error:
        raise Mismatch(
            f"{a!r} and {b!r}: {error}.", "Use numbers for which this is defined."
        ) from None
