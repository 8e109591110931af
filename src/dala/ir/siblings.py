"""Sibling reductions: those over the same range, which one loop computes together."""

from __future__ import annotations

from collections.abc import Sequence

from dala.ir.nodes import (
    Apply,
    Block,
    Effect,
    Load,
    Reduce,
    Result,
    Statement,
    Value,
    blocks_of,
    used,
    walk,
)

MOST_STATEMENTS = 256
"""The most statements of the loop that computes several reductions."""


def gather_siblings(block: Block) -> None:
    """Moves reductions over one range next to each other, where nothing between prevents it."""
    for item in walk(block):
        for inner in blocks_of(item):
            _gather(inner)
    _gather(block)


def grouped(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Returns the statements in order; siblings that follow each other are in one list."""
    groups: list[list[Statement]] = []
    for item in statements:
        if groups and isinstance(item, Reduce) and _joins(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _joins(group: Sequence[Statement], item: Reduce) -> bool:
    first = group[0]
    return (
        isinstance(first, Reduce)
        and _are_siblings(first, item)
        and not _makers(item) & set(group)
        and sum(len(walk(Block([other]))) for other in (*group, item)) <= MOST_STATEMENTS
    )


def _are_siblings(a: Reduce, b: Reduce) -> bool:
    same_range = a.start is b.start and a.stop is b.stop
    if any(isinstance(item, Effect) for node in (a, b) for item in walk(node.body)):
        return False  # what they say keeps its order
    return same_range and (a.op, a.type.is_float) == (b.op, b.type.is_float)


def _gather(block: Block) -> None:
    if sum(isinstance(item, Reduce) for item in block.statements) < 2:
        return
    order: list[Statement] = []
    left = list(block.statements)
    while left:
        first = left.pop(0)
        if isinstance(first, Reduce):
            before, siblings = _siblings_of(first, left)
            taken = {*before, *siblings}
            left = [item for item in left if item not in taken]
            order += [*before, first, *siblings]
        else:
            order.append(first)
    block.statements[:] = order


def _siblings_of(first: Reduce, after: Sequence[Statement]) -> tuple[list[Statement], list[Reduce]]:
    """Returns what has to be computed before the first for its siblings to follow, and them."""
    before: list[Statement] = []
    group: list[Statement] = [first]
    for place, item in enumerate(after):
        if not isinstance(item, Reduce) or not _joins(group, item):
            continue
        needed = _needed(item, after[:place])
        if needed is not None and not any(_makers(part) & set(group) for part in needed):
            before += [part for part in needed if part not in before]
            group.append(item)
    return before, [item for item in group[1:] if isinstance(item, Reduce)]


def _needed(item: Reduce, between: Sequence[Statement]) -> list[Statement] | None:
    """Returns the statements in between that a reduction needs; None if one cannot be moved."""
    wanted, found = _makers(item), []
    for other in reversed(between):
        if other in wanted:
            if not isinstance(other, Apply | Load):
                return None
            found.append(other)
            wanted |= _makers(other)
    return list(reversed(found))


def _makers(item: Statement) -> set[object]:
    """Returns the statements whose values an item uses."""
    return {_maker(value) for value in used(Block([item]))}


def _maker(value: Value) -> object:
    return value.node if isinstance(value, Result) else value
