"""Builds blocks with constant folding, algebraic identities and value numbering."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from dala.ir.evaluate import evaluate
from dala.ir.nodes import (
    Apply,
    Block,
    Border,
    Const,
    Extent,
    For,
    If,
    Load,
    Param,
    Position,
    Reduce,
    Result,
    Statement,
    Value,
    While,
)
from dala.ir.ops import BITCAST, CONVERT, OPS, SELECT
from dala.ir.types import BOOL, F32, F64, N16, S8, S16, S32, U8, U16, U32, Scalar

Leaf = TypeVar("Leaf", bound=Value)


class Builder:
    """Appends to the innermost open block; with `fold=False`, exactly what it is told."""

    def __init__(self, *, fold: bool = True) -> None:
        self.fold = fold
        self._blocks: list[Block] = []
        self._known: list[dict[Hashable, Value]] = [{}]

    @contextmanager
    def block(self) -> Iterator[Block]:
        """Opens a nested block, in which values of the enclosing blocks are visible."""
        block = Block()
        self._blocks.append(block)
        self._known.append({})
        try:
            yield block
        finally:
            self._blocks.pop()
            self._known.pop()

    # -- leaves ----------------------------------------------------------------------------------

    def const(self, type: Scalar, value: bool | float) -> Const:
        """Returns the constant as the type stores it: integers wrap, floats are rounded."""
        if type == BOOL:
            value = bool(value)
        elif type.is_float:
            with np.errstate(over="ignore"):
                value = float(type.numpy.type(value))
        else:
            value = (int(value) - type.lowest) % (1 << type.bits) + type.lowest
        return self._leaf((Const, type, _bits(value)), Const(type, value))

    def param(self, type: Scalar, name: str) -> Param:
        return self._leaf((Param, name), Param(type, name))

    def position(self, axis: int) -> Position:
        return self._leaf((Position, axis), Position(S32, axis))

    def extent(self, source: str, axis: int) -> Extent:
        return self._leaf((Extent, source, axis), Extent(S32, source, axis))

    def _leaf(self, key: Hashable, leaf: Leaf) -> Leaf:
        return self._known[0].setdefault(key, leaf)  # type: ignore[return-value]

    # -- statements ------------------------------------------------------------------------------

    def append(self, statement: Statement) -> None:
        """Appends a statement that has side effects or several results."""
        self._blocks[-1].statements.append(statement)

    def results(self, node: If | For | While) -> tuple[Result, ...]:
        """Appends a structured statement and returns its results."""
        self.append(node)
        left = node.then.results if isinstance(node, If) else node.carried
        return tuple(Result(value.type, node, i) for i, value in enumerate(left))

    def reduce(self, node: Reduce) -> Reduce:
        self.append(node)
        return node

    def load(
        self,
        type: Scalar,
        source: str,
        index: tuple[Value, ...] | None,
        channel: int | None,
        border: Border,
    ) -> Value:
        place = None if index is None else tuple(map(id, index))
        key = (Load, source, place, channel, border)
        return self._known_or(key, Load(type, source, index, channel, border))

    def apply(self, op: str, *args: Value) -> Value:
        """Returns the result of an operation from `ir.ops`."""
        return self._apply(BOOL if OPS[op].compares else args[0].type, op, args)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return self._apply(then.type, SELECT, (condition, then, otherwise))

    def convert(self, value: Value, type: Scalar) -> Value:
        if value.type == type:
            return value
        if F32 not in (value.type, type) and (value.type.is_storage or type.is_storage):
            if value.type == F64:
                return self.convert(self._rounded_to_odd(value), type)
            return self.convert(self.convert(value, F32), type)
        return self._apply(type, CONVERT, (value,))

    def _rounded_to_odd(self, value: Value) -> Value:
        """Returns an f64 as the f32 that can be rounded again to what it would be rounded to."""
        near = self.convert(value, F32)
        back, bits = self.convert(near, F64), self.bitcast(near, U32)
        beyond = self.apply("gt", self.apply("abs", back), self.apply("abs", value))
        cut = self.apply("sub", bits, self.convert(beyond, U32))
        odd = self.apply("or", cut, self.const(U32, 1))
        inexact = self.apply("ne", back, value)
        return self.bitcast(self.select(inexact, odd, bits), F32)

    def bitcast(self, value: Value, type: Scalar) -> Value:
        return value if value.type == type else self._apply(type, BITCAST, (value,))

    def rebuild(self, node: Apply, args: tuple[Value, ...]) -> Value:
        """Returns the operation of `node` applied to other operands."""
        return self._apply(node.type, node.op, args)

    def _apply(self, type: Scalar, op: str, args: tuple[Value, ...]) -> Value:
        if self.fold:
            if all(isinstance(arg, Const) for arg in args):
                return self.const(type, _fold(type, op, args))
            if op in OPS and OPS[op].commutes and isinstance(args[0], Const):
                args = (args[1], args[0])
            if op == CONVERT and (halves := _upper_half(args[0], type)) is not None:
                return self.apply("mulhi", *halves)
            if op == CONVERT and type.is_storage:
                moved = self._moved(args[0], type)
                if moved is not None:
                    return moved
            simpler = self._identity(op, args) or self._narrowed(type, op, args)
            if simpler is not None:
                return simpler
        return self._known_or((op, type, *map(id, args)), Apply(type, op, args))

    def _known_or(self, key: Hashable, statement: Apply | Load) -> Value:
        if self.fold:
            for known in reversed(self._known):
                if key in known:
                    return known[key]
            self._known[-1][key] = statement
        self.append(statement)
        return statement

    def _identity(self, op: str, args: tuple[Value, ...]) -> Value | None:
        """Returns a simpler value that is bit-identical for every operand, or None."""
        last = args[-1]
        match op:
            case "select":
                if isinstance(args[0], Const):
                    return args[1] if args[0].value else args[2]
                return args[1] if args[1] is args[2] else None
            case "mul" | "div" | "floordiv" if _is(last, 1):
                return args[0]
            case "mul" if last.type.is_integer and _is(last, 0):
                return last
            case "mod" if _is(last, 1):
                return self.const(last.type, 0)
            case "sub" if _is(last, 0) and not math.copysign(1, _number(last)) < 0:
                return args[0]
            case "sub" if last.type.is_integer and isinstance(last, Const):
                return self.apply("add", args[0], self.const(last.type, -_number(last)))
            case "add" | "or" | "xor" | "shl" | "shr" if last.type.is_integer and _is(last, 0):
                return args[0]
            case "add" if last.type.is_integer and isinstance(last, Const):
                return self._joined_sum(args[0], last)
            case "and" | "or" if last.type == BOOL and isinstance(last, Const):
                return args[0] if bool(last.value) == (op == "and") else last
            case "min" | "max" if args[0] is last:
                return last
            case "min" if isinstance(last, Const) and last.value == last.type.highest:
                return args[0] if last.type.is_integer else None
            case "max" if isinstance(last, Const) and last.value == last.type.lowest:
                return args[0] if last.type.is_integer else None
            case "sub" | "xor" if args[0] is last and last.type.is_integer:
                return self.const(last.type, 0)
            case "not" | "neg" if isinstance(last, Apply) and last.op == op:
                return last.args[0]
        return None

    def _narrowed(self, type: Scalar, op: str, args: tuple[Value, ...]) -> Value | None:
        """Returns the operation in the narrower type its operands were converted from, or None."""
        narrow = next((found for arg in args if (found := _widened(arg)) is not None), None)
        if narrow is None:
            return None
        if op == CONVERT:
            return self.convert(narrow, type)
        if op not in ("min", "max") or not all(_fits(arg, narrow.type) for arg in args):
            return None
        return self.convert(self.apply(op, *(self.convert(arg, narrow.type) for arg in args)), type)

    def _moved(self, value: Value, type: Scalar) -> Value | None:
        """Returns the 16-bit float that an f32 was made of, or a choice of two, so bits stay."""
        if isinstance(value, Const):
            return self.const(type, value.value)
        if not isinstance(value, Apply):
            return None
        if value.op == CONVERT and value.args[0].type == type:
            return value.args[0]
        if value.op != SELECT or not any(isinstance(arg, Apply) for arg in value.args[1:]):
            return None
        sides = [self._moved(arg, type) for arg in value.args[1:]]
        if sides[0] is None or sides[1] is None:
            return None
        return self.select(value.args[0], sides[0], sides[1])

    def _joined_sum(self, left: Value, right: Const) -> Value | None:
        """Reassociates integer sums, (x + a) + b to x + (a + b), so that offsets are recognized."""
        if isinstance(left, Apply) and left.op == "add" and isinstance(left.args[1], Const):
            both = _number(left.args[1]) + _number(right)
            return self.apply("add", left.args[0], self.const(right.type, both))
        return None


def _fold(type: Scalar, op: str, args: tuple[Value, ...]) -> bool | int | float:
    arrays = [np.asarray(_number(arg), arg.type.numpy) for arg in args]
    return evaluate(op, type, *arrays).item()  # type: ignore[no-any-return]


def _number(value: Value) -> bool | int | float:
    assert isinstance(value, Const)
    return value.value


def _is(value: Value, number: int) -> bool:
    return isinstance(value, Const) and value.type != BOOL and value.value == number


def _bits(value: bool | float) -> Hashable:
    """Returns a key that tells 0.0 from -0.0, and for which NaN equals itself."""
    return value.hex() if isinstance(value, float) else value


def _widened(value: Value) -> Value | None:
    """Returns the narrow integer that a conversion to a wider type came from, or None.

    A signed one only where the wider type holds all of its values.
    """
    if not isinstance(value, Apply) or value.op != CONVERT or not value.type.is_integer:
        return None
    (narrow,) = value.args
    if narrow.type in (S8, S16) and value.type.kind != "s":
        return None
    fits = narrow.type in (U8, S8, N16, U16, S16) and narrow.type.bits < value.type.bits
    return narrow if fits else None


def _fits(value: Value, type: Scalar) -> bool:
    """Whether the value is a constant of the narrower type, or was converted from it."""
    if isinstance(value, Const):
        return type.lowest <= value.value <= type.highest
    narrow = _widened(value)
    return narrow is not None and narrow.type == type


def _upper_half(value: Value, type: Scalar) -> tuple[Value, Value] | None:
    """Returns (a, b) if the value is (u32(a) * u32(b)) >> 16 for two of 16 bits, else None.

    Those of s16 are multiplied as s32.
    """
    if (
        type not in (N16, U16, S16)
        or not isinstance(value, Apply)
        or value.op != "shr"
        or not _is(value.args[1], 16)
    ):
        return None
    product = value.args[0]
    double = S32 if type == S16 else U32
    if not isinstance(product, Apply) or product.op != "mul" or product.type != double:
        return None
    a, b = product.args
    if not (isinstance(a, Apply) and isinstance(b, Apply)) or (a.op, b.op) != (CONVERT, CONVERT):
        return None
    halves = (a.args[0], b.args[0])
    return halves if all(item.type == type for item in halves) else None
