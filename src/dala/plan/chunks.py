"""A domain cut into chunks that threads can share."""

from __future__ import annotations

from dala.base.record import value
from dala.ir.nodes import Const, For, Load, Program, Reduce, Statement, While, blocks_of

SMALL_WORK = 1 << 24
"""Effort below which waking another thread costs more than it saves: 0.1 to 0.2 ms of work."""
MEMORY_COST = 8
"""The effort of reading or writing an element; that of an operation on it is 1."""
CHUNKS_PER_THREAD = 4
"""More chunks than threads, so that a thread that is held up does not hold up the rest."""
WIDTH_STEP = 1024
"""A row is cut at multiples of this, so that chunks begin at whole cache lines."""
CHUNK_WORK = 1 << 27
"""Effort of a chunk at the most, 0.1 s: between two of them it is seen whether to go on."""
MOST_CHUNKS = 4096
_TURNS = 16
"""What a loop of unknown length counts for."""


@value
class Chunks:
    """`count` chunks of `size` rows, or of `size` elements of every row, of a domain."""

    rows: int
    width: int
    count: int
    size: int
    by_rows: bool


def cut(
    rows: int,
    width: int,
    effort: int,
    threads: int,
    *,
    whole_rows: bool = False,
    most_effort: float = 0,
) -> Chunks:
    """Returns the chunks of a domain: one for small work, a few per thread, more for long work.

    `whole_rows` never cuts a row, for programs that compute much once per row. `most_effort` bounds
    what a position costs; from it follows how many chunks it takes for each to end soon.
    """
    whole = Chunks(rows, width, 1, rows, by_rows=True)
    least = int(min(rows * width * most_effort // CHUNK_WORK, MOST_CHUNKS))
    if least < 2 and (threads == 1 or rows * width * effort < SMALL_WORK):
        return whole
    wanted = max(threads * CHUNKS_PER_THREAD, least)
    if rows >= wanted:
        size = -(-rows // wanted)
        return Chunks(rows, width, -(-rows // size), size, by_rows=True)
    if whole_rows or (rows >= threads and width < wanted * WIDTH_STEP):
        return Chunks(rows, width, rows, 1, by_rows=True)
    steps = -(-width // WIDTH_STEP)
    size = -(-steps // wanted) * WIDTH_STEP
    count = -(-width // size)
    return Chunks(rows, width, count, size, by_rows=False) if count > 1 else whole


def effort_of(program: Program) -> int:
    """Roughly how many operations one position takes."""
    written = MEMORY_COST * len(program.outputs)
    return written + sum(_effort(statement) for statement in program.body.statements)


def _effort(statement: Statement) -> int:
    inner = sum(_effort(item) for block in blocks_of(statement) for item in block.statements)
    iterations = 1
    if isinstance(statement, For | Reduce):
        iterations = _TURNS
        if isinstance(statement.start, Const) and isinstance(statement.stop, Const):
            iterations = max(0, int(statement.stop.value) - int(statement.start.value))
    elif isinstance(statement, While):
        iterations = _TURNS
    return (MEMORY_COST if isinstance(statement, Load) else 1) + inner * iterations
