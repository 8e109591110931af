"""What a program's loops may cost, and how wide its values are."""

from __future__ import annotations

import math

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
    """Whether there is a loop at all, whose turns have to be counted."""
    return any(isinstance(item, While | For | Reduce) for item in walk(Block(statements)))


def may_time_out(program: Program) -> bool:
    """Whether some input could make the loops go past their limit."""
    return _most_turns(program.body) > STEP_LIMIT


def _most_turns(block: Block) -> float:
    """The most turns that the loops of a block can take at one position."""
    turns = 0.0
    for item in block.statements:
        inner = sum(_most_turns(part) for part in blocks_of(item))
        if isinstance(item, While):
            return math.inf
        if isinstance(item, For | Reduce):
            inner = _trips(item) * (1 + inner)
        turns += inner
    return turns


def _trips(loop: For | Reduce) -> float:
    start, stop = loop.start, loop.stop
    if isinstance(start, Const) and isinstance(stop, Const):
        return abs(float(stop.value) - float(start.value))
    if isinstance(start, Const) and isinstance(stop, Extent):
        return float(2**31)
    return math.inf


def widest(program: Program) -> Scalar:
    """The widest type that the program computes with."""
    types = [item.type for item in walk(program.body) if isinstance(item, Apply | Load)]
    types.append(program.output.type)
    return max(types, key=lambda scalar: scalar.bits)
