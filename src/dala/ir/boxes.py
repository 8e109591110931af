"""Finds kernels that do most of their work in a box: where the position is between bounds.

A layer over an image, a rectangle, a picture in a picture: positions inside of the box and outside
of it are computed by two programs, each without the condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dala.base.record import changed, record, remembered
from dala.ir.builder import Builder
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    If,
    Param,
    Position,
    Program,
    Statement,
    Value,
    While,
    walk,
)
from dala.ir.ops import SELECT
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import BOOL, S32

LEAST_GAIN = 2
"""How many times as many statements it must take inside of the box as outside."""
Test = Literal["lt", "le", "gt", "ge"]
_MIRRORED: dict[str, Test] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@record
class Box:
    """Where a condition holds: in some rows, between bounds along each.

    `bounds` results in whether the row meets the box, and for each of `tests` in a and b: x + a is
    compared with b.
    """

    bounds: Program
    tests: tuple[Test, ...]
    inside: Program
    outside: Program


@record
class _Bound:
    """The test of x + added against a limit; both are uniform along the row."""

    test: Test
    added: tuple[tuple[int, Value], ...]
    limit: Value


@remembered
def box_of(program: Program) -> Box | None:
    """Returns the box of a program, or None if there is none that pays."""
    body = walk(program.body)
    if program.output.scattered or program.sites or any(isinstance(i, While) for i in body):
        return None
    search = _Search(program)
    for condition in dict.fromkeys(_conditions(program.body.statements)):
        found = search.box(condition)
        if found is None:
            continue
        inside, outside = (_where(program, condition, holds) for holds in (True, False))
        if len(walk(inside.body)) >= LEAST_GAIN * len(walk(outside.body)):
            rows, columns = found
            bounds = _bounds(program, rows, columns)
            return Box(bounds, tuple(item.test for item in columns), inside, outside)
    return None


def _conditions(statements: list[Statement]) -> Iterator[Value]:
    for item in statements:
        if isinstance(item, Apply) and item.op == SELECT:
            yield item.args[0]
        elif isinstance(item, If):
            yield item.condition


class _Search:
    """Takes conditions apart."""

    def __init__(self, program: Program) -> None:
        self._last = program.rank - 1
        self._uniforms: set[Value] = set()
        for item in program.body.statements:
            if isinstance(item, Apply) and all(map(self._is_uniform, item.args)):
                self._uniforms.add(item)

    def _is_uniform(self, value: Value) -> bool:
        """Whether a value is the same along a row, and known before it."""
        if isinstance(value, Position):
            return value.axis != self._last
        return isinstance(value, Const | Param | Extent) or value in self._uniforms

    def box(self, condition: Value) -> tuple[list[Value], list[_Bound]] | None:
        """Returns the conditions on the row and the bounds along it; None if it is no box."""
        rows: list[Value] = []
        columns: list[_Bound] = []
        pending = [condition]
        while pending:
            value = pending.pop()
            if self._is_uniform(value):
                rows.append(value)
            elif isinstance(value, Apply) and value.op == "and":
                pending += value.args
            else:
                bound = self._bound(value)
                if bound is None:
                    return None
                columns.append(bound)
        return (rows, columns) if columns else None

    def _bound(self, value: Value) -> _Bound | None:
        if not isinstance(value, Apply) or value.op not in _MIRRORED:
            return None
        test: Test = value.op  # type: ignore[assignment]
        place, limit = value.args
        if self._is_uniform(place):
            place, limit, test = limit, place, _MIRRORED[test]
        added = self._added(place)
        if place.type != S32 or added is None or not self._is_uniform(limit):
            return None
        return _Bound(test, added, limit)

    def _added(self, place: Value) -> tuple[tuple[int, Value], ...] | None:
        """Returns the terms of a place beside the position along the row, with their signs."""
        terms: list[tuple[int, Value]] = []
        found, pending = 0, [(1, place)]
        while pending:
            sign, value = pending.pop()
            if self._is_uniform(value):
                terms.append((sign, value))
            elif isinstance(value, Position) and sign == 1:
                found += 1
            elif isinstance(value, Apply) and value.op in ("add", "sub"):
                first, second = value.args
                pending += [(sign, first), (sign if value.op == "add" else -sign, second)]
            else:
                return None
        return tuple(terms) if found == 1 else None


class _Known(Rewriter):
    """Copies statements; what a condition comes to is known."""

    def __init__(self, condition: Value, holds: bool) -> None:
        super().__init__()
        self._condition = condition
        self._holds = holds

    def value(self, old: Value) -> Value:
        if old is self._condition:
            return self.builder.const(BOOL, self._holds)
        return super().value(old)


def _where(program: Program, condition: Value, holds: bool) -> Program:
    """Returns the program for where a condition holds, or where it does not."""
    rewriter = _Known(condition, holds)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    return changed(program, body=body)


def _bounds(program: Program, rows: list[Value], columns: list[_Bound]) -> Program:
    """Returns the program whose results tell where the box is along a row."""
    copied = Rewriter()
    build: Builder = copied.builder
    with build.block() as body:
        copied.copy(program.body)
        meets: Value = build.const(BOOL, True)
        for row in rows:
            meets = build.apply("and", meets, copied.value(row))
        results = [meets]
        for bound in columns:
            added: Value = build.const(S32, 0)
            for sign, term in bound.added:
                added = build.apply("add" if sign > 0 else "sub", added, copied.value(term))
            results += [added, copied.value(bound.limit)]
        body.results = tuple(results)
    drop_dead(body)
    return changed(program, body=body)
