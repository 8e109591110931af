"""Finds what depends on one level alone: 256 values, which are computed once and then looked up.

A chain of such functions is one table. The values are those that the program computes, so whether
a table is used changes no bit.
"""

from __future__ import annotations

from collections.abc import Hashable

from dala.base.record import changed, record
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Output,
    Param,
    Program,
    Statement,
    Value,
    operands_of,
    used,
)
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import U8, Scalar

LEVELS = 256
LOOKUP = "lookup"
"""The operation that looks a level up in the table whose number follows, as in `lookup.0`."""
READ_COST = 144
"""What reading 64 elements from anywhere costs, in operations on vectors of 64 bytes."""


@record
class Function:
    """A value that depends on a level, the stem, and on nothing else that varies."""

    stem: Value
    parts: frozenset[Value]
    """What has to be computed between the two."""


def with_tables(program: Program, cost: float) -> Program:
    """Returns the program with tables for functions of a level that cost more than a look-up.

    `cost` is that of looking a vector of bytes up, in operations on such a vector.
    """
    statements = program.body.statements
    if program.tables or not all(isinstance(item, Apply | Load) for item in statements):
        return program
    uniforms = uniforms_of(program)
    chosen = functions_of(program, uniforms, U8, {U8}, cost)
    if not chosen:
        return program
    tables = Tables(program, uniforms)
    rewriter = _Lookups(chosen, tables)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    return changed(program, body=body, tables=tuple(tables.programs))


def uniforms_of(program: Program) -> set[Value]:
    """Returns the values that are computed of constants and parameters alone."""
    found: set[Value] = set()
    for item in program.body.statements:
        is_read_here = isinstance(item, Load) and item.index is None
        if not is_read_here and all(
            isinstance(value, Const | Param | Extent) or value in found
            for value in operands_of(item)
        ):
            found.add(item)  # type: ignore[arg-type]
    return found


def functions_of(
    program: Program, uniforms: set[Value], level: Scalar, types: set[Scalar], cost: float
) -> dict[Value, Function]:
    """Returns the values of these types that are functions of one level and cost more than that.

    Of those that are computed one from another, it has the last.
    """
    chosen = {
        value: function
        for value, function in _functions(program, uniforms, level).items()
        if value.type in types and sum(map(_cost, function.parts)) > cost
    }
    return {value: chosen[value] for value in _outermost(program, chosen)}


def _functions(program: Program, uniforms: set[Value], level: Scalar) -> dict[Value, Function]:
    """Returns the values that are functions of one level."""
    found: dict[Value, Function] = {}
    for item in program.body.statements:
        stems: set[Value] = set()
        parts: set[Value] = {item}  # type: ignore[arg-type]
        for value in operands_of(item):
            known = found.get(value)
            if known is not None:
                stems.add(known.stem)
                parts |= known.parts
            elif not isinstance(value, Const | Param | Extent) and value not in uniforms:
                stems.add(value)
        (stem,) = stems if len(stems) == 1 else (None,)
        if isinstance(stem, Load | Apply) and stem.type == level:
            found[item] = Function(stem, frozenset(parts))  # type: ignore[index]
    return found


def _cost(value: Value) -> float:
    """Returns how many operations on bytes a value takes."""
    if isinstance(value, Load):
        return READ_COST
    assert isinstance(value, Apply)
    bytes_ = max(value.type.size_bytes, *(arg.type.size_bytes for arg in value.args))
    return float(bytes_)


def _outermost(program: Program, chosen: dict[Value, Function]) -> list[Value]:
    """Returns the functions that something else needs: results, and operands of what is none."""
    needed: set[Value] = set()
    pending = list(program.body.results)
    while pending:
        value = pending.pop()
        if value in needed:
            continue
        needed.add(value)
        if value in chosen:
            pending.append(chosen[value].stem)
        elif isinstance(value, Apply | Load):
            pending += operands_of(value)
    return [value for value in chosen if value in needed]


class Tables:
    """The tables of a program; functions that are computed alike share one."""

    def __init__(self, program: Program, uniforms: set[Value]) -> None:
        self._program = program
        self._uniforms = uniforms
        self.programs: list[Program] = []
        self._numbers: dict[object, int] = {}

    def number(self, result: Value, function: Function) -> int:
        """Returns the number of the table of a function."""
        key = self._form(result, function)
        if key not in self._numbers:
            self._numbers[key] = len(self.programs)
            self.programs.append(self._table(result, function))
        return self._numbers[key]

    def _form(self, result: Value, function: Function) -> object:
        """Returns what is the same for functions that are computed alike, each of its stem."""
        known: dict[Value, Hashable] = {function.stem: "level"}
        numbers: dict[Hashable, int] = {}
        for item in self._program.body.statements:
            if item in function.parts:
                operands = tuple(known.get(value, value) for value in operands_of(item))
                plain = tuple(_leaf(value) for value in operands)
                named: Hashable = (
                    (item.op, item.type.name)
                    if isinstance(item, Apply)
                    else (item.source, item.channel, item.border)  # type: ignore[union-attr]
                )
                key = (named, plain)
                known[item] = ("part", numbers.setdefault(key, len(numbers)))
        return (known[result], tuple(numbers))

    def _table(self, result: Value, function: Function) -> Program:
        """Returns the program that computes a table: its position is the level."""
        copied = _Level(function.stem)
        with copied.builder.block() as body:
            for item in self._program.body.statements:
                if item in function.parts or item in self._uniforms:
                    copied.statement(item)
            body.results = (copied.value(result),)
        drop_dead(body)
        names = {item.source for item in used(body) if isinstance(item, Extent)}
        names |= {item.source for item in body.statements if isinstance(item, Load)}
        return Program(
            f"{self._program.name} (levels)",
            tuple(item for item in self._program.inputs if item.name in names),
            self._program.params,
            (Output(result.type, 1),),
            1,
            body,
            narrowed=True,
        )


def _leaf(value: object) -> Hashable:
    return (value.type.name, repr(value.value)) if isinstance(value, Const) else value


class _Level(Rewriter):
    """Copies statements; the stem becomes the position."""

    def __init__(self, stem: Value) -> None:
        super().__init__()
        self._stem = stem

    def value(self, old: Value) -> Value:
        if old is self._stem:
            return self.builder.convert(self.builder.position(0), old.type)
        return super().value(old)


class _Lookups(Rewriter):
    """Copies statements; functions of levels become look-ups."""

    def __init__(self, functions: dict[Value, Function], tables: Tables) -> None:
        super().__init__()
        self._functions = functions
        self._tables = tables

    def statement(self, old: Statement) -> None:
        if not isinstance(old, Apply) or old not in self._functions:
            super().statement(old)
            return
        function = self._functions[old]
        number = self._tables.number(old, function)
        looked_up = Apply(U8, f"{LOOKUP}.{number}", (self.value(function.stem),))
        self.builder.append(looked_up)
        self._new[old] = looked_up
