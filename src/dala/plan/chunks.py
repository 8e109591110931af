"""A domain cut into chunks that threads can share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dala.base.record import value
from dala.ir.nodes import For, Load, Reduce, Statement, While, blocks_of
from dala.plan.watchdog import Shapes, most_trips

SMALL_WORK = 1 << 24
"""Effort below which waking another thread costs more than it saves: 0.1 to 0.2 ms of work."""
LEAST_WORK = 1 << 22
"""Effort below which even a thread that is awake is of no help."""
MEMORY_COST = 8
"""The effort of reading or writing an element; that of an operation on it is 1."""
CHUNKS_PER_THREAD = 4
"""More chunks than threads, so that a thread that is held up does not hold up the rest."""
WIDTH_STEP, LEAST_WIDTH_STEP = 1024, 64
"""A row is cut at multiples of these, so that chunks begin at whole cache lines.

The smaller one is for rows of which as many positions are work enough for a chunk.
"""
CHUNK_WORK = 1 << 27
"""Effort of a chunk at the most, 0.1 s: between two of them it is seen whether to go on."""
MOST_CHUNKS = 4096
_TURNS = 16
"""What a loop of unknown length counts for."""


@value
class Chunks:
    """`count` chunks of `size` rows, or of `size` elements of every row, of a domain.

    `small` ones are shared only with threads that are awake; `brief` work is not shared at all, and
    over sooner than other threads of Python would notice.
    """

    rows: int
    width: int
    count: int
    size: int
    by_rows: bool
    small: bool = False
    brief: bool = False


def cut(
    rows: int,
    width: int,
    effort: int,
    threads: int,
    *,
    whole_rows: bool = False,
    least_rows: int = 1,
    most_effort: float = 0,
) -> Chunks:
    """Returns the chunks of a domain: one for small work, a few per thread, more for long work.

    `whole_rows` never cuts a row, for programs that compute much once per row. Chunks have at least
    `least_rows` rows if there are as many for each thread. `most_effort` bounds
    what a position costs; from it follows how many chunks it takes for each to end soon.
    """
    work = rows * width * effort
    whole = Chunks(rows, width, 1, rows, by_rows=True, brief=work < LEAST_WORK)
    least = int(min(rows * width * most_effort // CHUNK_WORK, MOST_CHUNKS))
    if least < 2 and (threads == 1 or work < LEAST_WORK):
        return whole
    small = least < 2 and work < SMALL_WORK
    each = max(1, min(CHUNKS_PER_THREAD, rows // (threads * max(1, least_rows))))
    wanted = max(threads * each, least)
    if rows >= wanted:
        size = -(-rows // wanted)
        return Chunks(rows, width, -(-rows // size), size, True, small)
    if whole_rows or (rows >= threads and width < wanted * WIDTH_STEP):
        return Chunks(rows, width, rows, 1, True, small)
    heavy = rows * effort * WIDTH_STEP >= SMALL_WORK
    step = LEAST_WIDTH_STEP if heavy else WIDTH_STEP
    steps = -(-width // step)
    size = -(-steps // wanted) * step
    count = -(-width // size)
    return Chunks(rows, width, count, size, False, small) if count > 1 else whole


def effort_of(statements: Sequence[Statement], shapes: Shapes, read_cost: int = MEMORY_COST) -> int:
    """Returns roughly how many operations statements take, for buffers of given shapes."""
    return sum(_effort(statement, shapes, read_cost) for statement in statements)


def _effort(statement: Statement, shapes: Shapes, read_cost: int) -> int:
    inner = sum(effort_of(block.statements, shapes, read_cost) for block in blocks_of(statement))
    iterations = 1
    if isinstance(statement, For | Reduce):
        most = most_trips(statement, shapes)
        iterations = int(most) if most < math.inf else _TURNS
    elif isinstance(statement, While):
        iterations = _TURNS
    return (read_cost if isinstance(statement, Load) else 1) + inner * iterations
