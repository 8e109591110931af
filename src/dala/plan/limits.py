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

Shapes = dict[str, tuple[int, ...]]

STEP_LIMIT = 1 << 32
"""Turns that the loops of one position may take in all; one of a `while` counts for several."""
WHILE_COST = 16
TIMEOUT = (
    "a loop took more turns than are allowed at one position (2**28 of a `while`, 2**32 of all "
    "`for`s). Bound it, or do less at a time. The output is as it was before."
)
"""What is said of a kernel that went past the limit."""


def has_loops(statements: list[Statement]) -> bool:
    """Whether there is a loop at all, whose turns have to be counted."""
    return any(isinstance(item, While | For | Reduce) for item in walk(Block(statements)))


def most_turns(program: Program, shapes: Shapes) -> float:
    """The most turns that the loops can take at one position, for buffers of given shapes."""
    return _most_turns(program.body, shapes)


def _most_turns(block: Block, shapes: Shapes) -> float:
    turns = 0.0
    for item in block.statements:
        inner = sum(_most_turns(part, shapes) for part in blocks_of(item))
        if isinstance(item, While):
            return math.inf
        if isinstance(item, For | Reduce):
            inner = _trips(item, shapes) * (1 + inner)
        turns += inner
    return turns


def _trips(loop: For | Reduce, shapes: Shapes) -> float:
    start, stop = loop.start, loop.stop
    if isinstance(start, Const) and isinstance(stop, Const):
        return abs(float(stop.value) - float(start.value))
    if isinstance(start, Const) and isinstance(stop, Extent):
        return float(shapes[stop.source][stop.axis])
    return math.inf


def widest(program: Program) -> Scalar:
    """The widest type that the program computes with."""
    types = [item.type for item in walk(program.body) if isinstance(item, Apply | Load)]
    types.append(program.output.type)
    return max(types, key=lambda scalar: scalar.bits)
