"""Reads that swap rows and columns: along a row of the output they go down a column of an input."""

from __future__ import annotations

from dala.base.record import value
from dala.ir.nodes import Load, Program, Value, walk
from dala.ir.polynomials import Leaf, polynomial, position_of


@value
class Swap:
    """How a read goes through its input: one down or up for each column, one aside for each row."""

    down: int
    across: int


def transposed_reads(program: Program) -> dict[Load, Swap]:
    """Returns the reads of a program that swap its last two axes."""
    if program.rank < 2:
        return {}
    loads = [item for item in walk(program.body) if isinstance(item, Load)]
    found = {load: _swap(load, program.rank) for load in loads}
    return {load: swap for load, swap in found.items() if swap is not None}


def _swap(load: Load, rank: int) -> Swap | None:
    if load.index is None or len(load.index) < 2:
        return None
    row, column = position_of(rank - 2), position_of(rank - 1)
    *outer, down, across = (_steps(index, row, column) for index in load.index)
    if any(item != (0, 0) for item in outer) or down is None or across is None:
        return None
    is_swap = down[0] == 0 == across[1] and abs(down[1]) == 1 == abs(across[0])
    return Swap(down[1], across[0]) if is_swap else None


def _steps(index: Value, *axes: Leaf) -> tuple[int, ...] | None:
    """Returns how much an index grows along each of the axes, None if that varies."""
    found = polynomial(index)
    if found is None:
        return None
    steps = tuple(found.get((axis,), 0) for axis in axes)
    bent = any(len(product) > 1 and set(axes) & set(product) for product in found)
    return None if bent else steps
