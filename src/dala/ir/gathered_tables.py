"""Finds what depends on one level of 16 bits alone, and costs more than reading it from a table.

The table has 65,536 values, which another program computes first: those that this program would
compute, so whether a table is used changes no bit.
"""

from __future__ import annotations

from dala.base.record import changed, record, remembered
from dala.ir.fixed_point import in_fixed_point
from dala.ir.level_tables import READ_COST, Function, Tables, functions_of, uniforms_of
from dala.ir.nodes import Apply, Input, Load, Program, Statement, Value
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import F32, S32, U8, U16

LEVELS = 1 << 16
MOST_TABLES = 4
"""More of them than this would not stay in a core's cache."""


@record
class Tabled:
    """A program that reads tables, its last inputs, and the programs that compute them."""

    program: Program
    tables: tuple[Program, ...]


@remembered
def tabled(program: Program) -> Tabled | None:
    """Returns the program with tables for what they make faster, or None."""
    if not any(item.type == U16 for item in program.inputs) or program.sites:
        return None
    narrow = in_fixed_point(program)
    if not all(isinstance(item, Apply | Load) for item in narrow.body.statements):
        return None
    uniforms = uniforms_of(narrow)
    chosen = functions_of(narrow, uniforms, U16, {U8, U16, F32}, READ_COST)
    tables = Tables(narrow, uniforms)
    rewriter = _Reads(chosen, tables)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(narrow.body)
    if not 0 < len(tables.programs) <= MOST_TABLES:
        return None
    drop_dead(body)
    inputs = tuple(
        Input(_name(number), table.output.type, 1) for number, table in enumerate(tables.programs)
    )
    made = changed(narrow, inputs=(*narrow.inputs, *inputs), body=body, narrowed=True)
    return Tabled(made, tuple(tables.programs))


def _name(number: int) -> str:
    return f"levels {number}"


class _Reads(Rewriter):
    """Copies statements; functions of levels become reads of tables."""

    def __init__(self, functions: dict[Value, Function], tables: Tables) -> None:
        super().__init__()
        self._functions = functions
        self._tables = tables

    def statement(self, old: Statement) -> None:
        if not isinstance(old, Apply | Load) or old not in self._functions:
            super().statement(old)
            return
        function = self._functions[old]
        number = self._tables.number(old, function)
        level = self.builder.convert(self.value(function.stem), S32)
        self._new[old] = self.builder.load(old.type, _name(number), (level,), None, "clamp")
