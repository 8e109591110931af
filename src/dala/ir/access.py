"""Access patterns: whether a program reads inputs at its own position, at offsets, or anywhere."""

from __future__ import annotations

from typing import Literal

from dala.base.record import remembered, value
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Param,
    Position,
    Program,
    Value,
    used,
    walk,
)

FARTHEST_OFFSET = 1 << 20
"""Larger offsets count as "anywhere", so that position + offset cannot overflow."""


@value
class Access:
    """How one input is accessed; `offsets` are relative to the position."""

    kind: Literal["unused", "own", "offsets", "anywhere"]
    offsets: frozenset[tuple[int, ...]] = frozenset()

    def __str__(self) -> str:
        if self.kind != "offsets":
            return {"own": "its own position"}.get(self.kind, self.kind)
        return "offsets " + ", ".join(map(str, sorted(self.offsets)))


def offset_from(value: Value, axis: int) -> int | None:
    """Returns c if the value is the position along `axis` plus a constant c, else None."""
    if isinstance(value, Position):
        return 0 if value.axis == axis else None
    if isinstance(value, Apply) and value.op == "add":
        base, added = value.args
        if isinstance(base, Position) and base.axis == axis and isinstance(added, Const):
            offset = int(added.value)
            return offset if abs(offset) <= FARTHEST_OFFSET else None
    return None


def offsets_of(load: Load, rank: int) -> tuple[int, ...] | None:
    """Returns the load's constant offset along each axis, or None if it has none."""
    if load.index is None:
        return (0,) * rank
    if len(load.index) != rank:
        return None
    offsets = [offset_from(value, axis) for axis, value in enumerate(load.index)]
    return None if None in offsets else tuple(offsets)  # type: ignore[arg-type]


@remembered
def accesses(program: Program) -> dict[str, Access]:
    """Returns the access pattern of each input."""
    places: dict[str, set[tuple[int, ...] | None]] = {item.name: set() for item in program.inputs}
    indexed: set[str] = set()
    for statement in walk(program.body):
        if isinstance(statement, Load):
            places[statement.source].add(offsets_of(statement, program.rank))
            if statement.index is not None:
                indexed.add(statement.source)
    return {name: _access(found, name in indexed) for name, found in places.items()}


def _access(found: set[tuple[int, ...] | None], indexed: bool) -> Access:
    if not found:
        return Access("unused")
    if None in found:
        return Access("anywhere")
    if not indexed:
        return Access("own")
    return Access("offsets", frozenset(place for place in found if place is not None))


def leaves(program: Program) -> set[type[Value]]:
    """Returns the types of leaf values that the program uses."""
    values = used(program.body)
    return {type(value) for value in values if isinstance(value, Const | Param | Position | Extent)}


@remembered
def is_elementwise(program: Program) -> bool:
    """Whether each output element depends only on the same element of each input."""
    if program.output.scattered or program.sites or leaves(program) & {Position, Extent}:
        return False
    return all(access.kind in ("unused", "own") for access in accesses(program).values())


def is_flat(program: Program) -> bool:
    """Whether it is elementwise, but for elements of other inputs that it looks up."""
    if program.output.scattered or program.sites or leaves(program) & {Position, Extent}:
        return False
    return all(
        access.kind in ("unused", "own") or not reads_own(program, name)
        for name, access in accesses(program).items()
    )


def reads_own(program: Program, source: str) -> bool:
    """Whether an input is read at each position's own element."""
    return any(
        isinstance(item, Load) and item.source == source and item.index is None
        for item in walk(program.body)
    )
