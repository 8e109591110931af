"""Reads of neighbors: elements side by side, at a place that is another one in each lane.

Where a pixel is read anywhere, all of its channels are, and mostly the pixels around it, too. A
lane finds its place once, and reads what lies side by side in one to four words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dala.base.record import record
from dala.emit.row_reads import RowReads
from dala.emit.variance import Variance
from dala.ir.nodes import Apply, Block, Const, Input, Load, Program, Value, blocks_of, walk
from dala.ir.types import BOOL, S32, U8

WORD = 4
MOST_WORDS = 4
"""What a lane reads at a time: as much as is turned over in registers."""
FARTHEST = 1 << 10
"""Elements that are farther away along an axis are no neighbors."""

Index = tuple[int, ...]


@record
class Place:
    """What the indices of neighbors count from, and how far along each axis."""

    first: Load
    """The one that is read first."""
    bases: tuple[Value, ...]
    least: Index
    most: Index
    beyond: int
    """Bytes that are loaded beyond the last element."""


@record
class Neighbors:
    """Reads of one row that begin within a few bytes of each other, in the order of their block."""

    place: Place
    reads: tuple[Load, ...]
    offsets: tuple[Index, ...]
    """How far each is from the bases of its place."""
    starts: tuple[int, ...]
    """Where each begins, in bytes from the element that is least along the row."""

    @property
    def start(self) -> int:
        return min(self.starts)

    @property
    def words(self) -> int:
        """The words that are loaded: one, two or four."""
        return _words(self.start, max(self.starts) + self.reads[0].type.size_bytes)


def _words(start: int, end: int) -> int:
    return 1 << (-(-(end - start) // WORD) - 1).bit_length()


def neighbor_reads(program: Program, variance: Variance, reads: RowReads) -> dict[Load, Neighbors]:
    """Returns the neighbors that each read is one of, if any."""
    inner = [block for item in walk(program.body) for block in blocks_of(item)]
    return {
        load: found
        for block in (program.body, *inner)
        for found in _in_block(program, block, variance, reads)
        for load in found.reads
    }


def _in_block(
    program: Program, block: Block, variance: Variance, reads: RowReads
) -> Iterator[Neighbors]:
    around: dict[object, list[Load]] = {}
    for item in block.statements:
        if isinstance(item, Load) and item.index is not None and item not in reads.steps:
            bases = tuple(_counted(index)[0] for index in item.index)
            is_known = all(base.type == S32 for base in bases) and bases[-1] in variance
            if is_known and item.type.bits <= 8 * WORD and item.type != BOOL:
                around.setdefault((item.source, bases, item.border), []).append(item)
    for loads in around.values():
        yield from _at_place(program.input(loads[0].source), loads)


def _counted(index: Value) -> tuple[Value, int]:
    """Returns what an index is counted from, and how far."""
    if isinstance(index, Apply) and index.op in ("add", "sub"):
        base, added = index.args
        if isinstance(added, Const) and abs(added.value) <= FARTHEST:
            return base, int(added.value) if index.op == "add" else -int(added.value)
    return index, 0


def _at_place(source: Input, loads: list[Load]) -> Iterator[Neighbors]:
    """Yields the neighbors among reads that count from the same place."""
    found = {load: [_counted(index) for index in load.index or ()] for load in loads}
    offsets = {load: tuple(far for _, far in pairs) for load, pairs in found.items()}
    bases = tuple(base for base, _ in found[loads[0]])
    least, most = (
        tuple(limit(axis) for axis in zip(*offsets.values(), strict=True)) for limit in (min, max)
    )
    size, channels = source.type.size_bytes, source.channels or 1
    starts = {
        load: ((offset[-1] - least[-1]) * channels + (load.channel or 0)) * size
        for load, offset in offsets.items()
    }
    runs = [run for run in _runs(loads, offsets, starts, size) if len(run) > 1]
    if (source.type, channels) == (U8, 4):  # words of bytes are gathered as they are
        runs = [run for run in runs if len({offsets[load] for load in run}) > 1]
    if not runs:
        return
    begins = [starts[run[0]] for run in runs]
    ends = [starts[run[-1]] + size for run in runs]
    loaded = max(a + WORD * _words(a, b) for a, b in zip(begins, ends, strict=True))
    beyond = loaded - (most[-1] - least[-1] + 1) * channels * size
    first = next(load for load in loads if any(load in run for run in runs))
    place = Place(first, bases, least, most, max(beyond, 0))
    for run in runs:
        ordered = tuple(load for load in loads if load in run)
        yield Neighbors(
            place,
            ordered,
            tuple(offsets[load] for load in ordered),
            tuple(starts[load] for load in ordered),
        )


def _runs(
    loads: Sequence[Load], offsets: dict[Load, Index], starts: dict[Load, int], size: int
) -> Iterator[list[Load]]:
    """Yields reads of a row as far as they fit into words, by where they begin."""
    rest = sorted(loads, key=lambda load: (offsets[load][:-1], starts[load]))
    while rest:
        first = rest[0]
        end = starts[first] + WORD * MOST_WORDS
        run = [
            load
            for load in rest
            if offsets[load][:-1] == offsets[first][:-1] and starts[load] + size <= end
        ]
        rest = rest[len(run) :]
        yield run
