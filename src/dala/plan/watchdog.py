"""The watchdog's limits: how many iterations a program's loops may take."""

from __future__ import annotations

import math

from dala.ir.nodes import (
    Apply,
    Block,
    Const,
    Extent,
    For,
    Program,
    Reduce,
    Statement,
    Value,
    While,
    blocks_of,
    walk,
)

Shapes = dict[str, tuple[int, ...]]

STEP_LIMIT = 1 << 32
"""Iterations that the loops of one position may take; one of a `while` counts for several."""
TOTAL_LIMIT = 1 << 36
"""Loop operations of all positions of a run whose number of iterations is not known.

About a minute of one core. Positions that are computed together, as lanes of a vector, count once.
"""
WHILE_COST = 16
SLICE = 1 << 18
"""Iterations between two checks whether a run was stopped, or exceeded a limit."""
MOST_SLICES = 1 << 26
"""Slices that all positions of a run may take on a GPU, where each is computed by itself."""
TOO_FAR, STOPPED, ALL_TOO_FAR = 1, 2, 4
"""Bits of a status: a position took too many iterations, the run was stopped, all positions did."""
WATCHED_ITERATIONS = 1 << 18
"""Loops that may take more iterations at one position are watched while they run."""
TIMEOUT = (
    "a loop took more iterations than are allowed at one position (2**28 of a `while`, 2**32 of "
    "all `for`s). Bound it, or do less at a time. The output is as it was before."
)
"""What is said of a kernel that went past the limit of a position."""
TOTAL_TIMEOUT = (
    "the loops of all positions together took more than one run is allowed (on the CPU 2**36 "
    "operations, where positions that are computed together count once; on a GPU 2**44 "
    "iterations). Bound them, or run over fewer positions at a time. The output is as it was "
    "before."
)
"""What is said of a kernel that went past the limit of a run."""


def has_loops(statements: list[Statement]) -> bool:
    """Returns whether there is a loop at all, whose iterations have to be counted."""
    return any(isinstance(item, While | For | Reduce) for item in walk(Block(statements)))


def max_iterations(program: Program, shapes: Shapes) -> float:
    """Returns the most iterations of the loops at one position, for buffers of given shapes."""
    return _block_iterations(program.body, shapes)


def total_iterations(program: Program) -> int:
    """Returns the iterations that all positions of a run may take, given what one of them costs."""
    return TOTAL_LIMIT // max(1, _iteration_cost(program.body))


def _iteration_cost(block: Block) -> int:
    """Returns the operations of the costliest iteration, without those of loops inside."""
    costs = [0]
    for item in block.statements:
        parts = blocks_of(item)
        costs += map(_iteration_cost, parts)
        if isinstance(item, For | Reduce | While):
            own = 1 + sum(_own_operations(part) for part in parts)
            costs.append(own // WHILE_COST if isinstance(item, While) else own)
    return max(costs)


def _own_operations(block: Block) -> int:
    """Returns the operations of a block, those of branches too, but not those of its loops."""
    return sum(
        1
        if isinstance(item, For | Reduce | While)
        else 1 + sum(_own_operations(part) for part in blocks_of(item))
        for item in block.statements
    )


def _block_iterations(block: Block, shapes: Shapes) -> float:
    iterations = 0.0
    for item in block.statements:
        inner = sum(_block_iterations(part, shapes) for part in blocks_of(item))
        if isinstance(item, While):
            return math.inf
        if isinstance(item, For | Reduce):
            trips = most_trips(item, shapes)
            inner = trips * (1 + inner) if trips else 0.0  # 0 times endless is not a number
        iterations += inner
    return iterations


def most_trips(loop: For | Reduce, shapes: Shapes) -> float:
    """Returns the most iterations of a loop, for buffers of given shapes."""
    (low, high), (last_low, last_high) = (_bounds(end, shapes) for end in (loop.start, loop.stop))
    return max(last_high - low, high - last_low)


def _bounds(value: Value, shapes: Shapes) -> tuple[float, float]:
    """Returns the least and the greatest that the end of a loop can be."""
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
