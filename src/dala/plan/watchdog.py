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
    Value,
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


def max_iterations(program: Program, shapes: Shapes) -> float:
    """The most turns that the loops can take at one position, for buffers of given shapes."""
    return _most_turns(program.body, shapes)


def _most_turns(block: Block, shapes: Shapes) -> float:
    turns = 0.0
    for item in block.statements:
        inner = sum(_most_turns(part, shapes) for part in blocks_of(item))
        if isinstance(item, While):
            return math.inf
        if isinstance(item, For | Reduce):
            trips = _trips(item, shapes)
            inner = trips * (1 + inner) if trips else 0.0  # 0 times endless is not a number
        turns += inner
    return turns


def _trips(loop: For | Reduce, shapes: Shapes) -> float:
    (low, high), (last_low, last_high) = (_bounds(end, shapes) for end in (loop.start, loop.stop))
    return max(last_high - low, high - last_low)


def _bounds(value: Value, shapes: Shapes) -> tuple[float, float]:
    """The least and the greatest that the end of a loop can be."""
    match value:
        case Const():
            return float(value.value), float(value.value)
        case Extent():
            return (float(shapes[value.source][value.axis]),) * 2
        case Apply(op="min" | "max" | "select"):
            lows, highs = zip(*(_bounds(item, shapes) for item in value.args[-2:]), strict=True)
            match value.op:
                case "min":
                    return min(lows), min(highs)
                case "max":
                    return max(lows), max(highs)
            return min(lows), max(highs)
    return -math.inf, math.inf


def widest(program: Program) -> Scalar:
    """The widest type that the program computes with."""
    types = [item.type for item in walk(program.body) if isinstance(item, Apply | Load)]
    types.append(program.output.type)
    return max(types, key=lambda scalar: scalar.bits)
