"""What a program's loops may cost, and how wide its values are."""

from __future__ import annotations

from dala.ir.nodes import (
    Apply,
    Block,
    Const,
    Extent,
    For,
    Load,
    Program,
    Reduce,
    Statement,
    While,
    blocks_of,
    walk,
)
from dala.ir.types import Scalar

STEP_LIMIT = 1 << 32
"""Turns that the loops of one position may take in all; one of a `while` counts for several."""
WHILE_COST = 16


def has_loops(statements: list[Statement]) -> bool:
    """Whether the number of turns of some loop is not known beforehand."""
    return any(
        isinstance(item, While)
        or (
            isinstance(item, For | Reduce)
            and not (isinstance(item.start, Const) and isinstance(item.stop, Const))
        )
        for item in walk(Block(statements))
    )


def may_time_out(program: Program) -> bool:
    """Whether some input could make the loops go past their limit."""
    return _may_time_out(program.body, inside=False)


def _may_time_out(block: Block, *, inside: bool) -> bool:
    for item in block.statements:
        if isinstance(item, While):
            return True
        dynamic = False
        if isinstance(item, For | Reduce):
            bounds = (item.start, item.stop)
            dynamic = not all(isinstance(bound, Const) for bound in bounds)
            if dynamic and (inside or not all(isinstance(b, Const | Extent) for b in bounds)):
                return True
        if any(_may_time_out(inner, inside=inside or dynamic) for inner in blocks_of(item)):
            return True
    return False


def widest(program: Program) -> Scalar:
    """The widest type that the program computes with."""
    types = [item.type for item in walk(program.body) if isinstance(item, Apply | Load)]
    types.append(program.output.type)
    return max(types, key=lambda scalar: scalar.bits)
