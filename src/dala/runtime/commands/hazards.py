"""Which command has to wait for which: those that touch the same bytes, unless all only read them.

Memory is remembered in cells: who wrote those bytes last, and who has read them since. Host memory
may overlap in part, so its cells are intervals of addresses, cut where memories begin and end; any
other memory is a cell by itself. What a new command costs here does not depend on how many others
are in flight: it looks at a few cells, and at few commands in each, because many readers of a cell
and many cells of a read are joined into one turn that all the later ones wait for instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence, Set
from typing import Protocol

from dala.devices.cpu.memory import HostMemory
from dala.devices.device import Memory

MOST_READERS = 32
"""Readers of a cell that are known one by one."""
MOST_CELLS = 16
"""Cells that a read leaves apart."""
FEWEST_KEPT = 64
"""Cells that are not worth a look whether they still matter."""


class Job(Protocol):
    """What a turn is for."""

    def plan(self) -> tuple[Sequence[Memory], Sequence[Memory]] | None:
        """Returns what it reads and what it writes; None if it will not run."""

    def execute(self) -> None:
        """Do it; an error is the job's own affair."""

    def is_awaited(self) -> bool:
        """Returns whether there is anyone to tell that it is over."""

    def announce(self) -> None:
        """Tell whoever waits for it that it is over."""


class Turn:
    """A place in the order: whom it waits for, and who waits for it.

    One that is over and yet waits was withdrawn: it stands for those that it waited for.
    """

    __slots__ = ("followers", "job", "order", "over", "priority", "waits")

    def __init__(self, job: Job | None = None, priority: int = 0) -> None:
        self.job = job  # None where turns are only joined
        self.priority = priority
        self.order = 0
        self.over = False
        self.waits: set[Turn] = set()
        self.followers: dict[Turn, None] = {}

    def wait_for(self, others: Set[Turn]) -> None:
        """Come after these."""
        self.waits |= others
        for other in others:
            other.followers[self] = None


class Cell:
    """Bytes that were used alike: who wrote them last, and who has read them since."""

    __slots__ = ("end", "readers", "start", "writer")

    def __init__(
        self, start: int, end: int, writer: Turn | None = None, readers: Sequence[Turn] = ()
    ) -> None:
        self.start = start
        self.end = end
        self.writer = writer
        self.readers = list(readers)

    def users(self) -> list[Turn]:
        return self.readers if self.writer is None else [self.writer, *self.readers]

    def add_reader(self, turn: Turn) -> None:
        if self.readers and self.readers[-1] is turn:
            return
        if len(self.readers) >= MOST_READERS:
            self.readers = joined(self.readers)
        self.readers.append(turn)


class Hazards:
    """What the commands in flight do to memory."""

    def __init__(self) -> None:
        self._cells: list[Cell] = []  # of host memory, by address; none overlaps another
        self._starts: list[int] = []
        self._others: dict[int, Cell] = {}
        self._most = FEWEST_KEPT

    def __len__(self) -> int:
        return len(self._cells) + len(self._others)

    def admit(self, turn: Turn, reads: Sequence[Memory], writes: Sequence[Memory]) -> None:
        """Have the turn wait for those before it that it must not overtake."""
        before: set[Turn] = set()
        for memory in reads:  # the reads first, or it would wait for itself
            for cell in self._cells_to_read(memory, turn):
                if cell.writer is not None:
                    _add_unfinished([cell.writer], before)
                cell.add_reader(turn)
        for memory in writes:
            for cell in self._cells_to_write(memory):
                _add_unfinished(cell.users(), before)
                cell.writer = turn
                cell.readers = []
        before.discard(turn)
        if before:
            turn.wait_for(before)
        if len(self._cells) + len(self._others) > self._most:
            self._sweep()
            self._most = max(FEWEST_KEPT, 2 * len(self))

    def _cells_to_write(self, memory: Memory) -> list[Cell]:
        """Returns the cell of a memory, split off those it overlaps; none if it is empty."""
        if not isinstance(memory, HostMemory):
            return [self._own_cell(memory)]
        start, end = memory.address, memory.address + memory.size_bytes
        known = self._known_cell(start, end)
        if known is not None or start == end:
            return [known] if known is not None else []
        first, last = self._cut(start), self._cut(end)
        users = [user for cell in self._cells[first:last] for user in cell.users()]
        whole = Cell(start, end, None, users)
        self._replace(first, last, [whole])
        return [whole]

    def _cells_to_read(self, memory: Memory, turn: Turn) -> list[Cell]:
        """Returns the cells that make up a memory, new ones among them where it was not in use."""
        if not isinstance(memory, HostMemory):
            return [self._own_cell(memory)]
        start, end = memory.address, memory.address + memory.size_bytes
        known = self._known_cell(start, end)
        if known is not None or start == end:
            return [known] if known is not None else []
        first, last = self._cut(start), self._cut(end)
        covered = self._cells[first:last]
        if len(covered) > MOST_CELLS:
            cells = [_merged(start, end, covered, turn)]
        else:
            cells, at = [], start
            for cell in covered:
                if at < cell.start:
                    cells.append(Cell(at, cell.start))
                cells.append(cell)
                at = cell.end
            if at < end:
                cells.append(Cell(at, end))
        self._replace(first, last, cells)
        return cells

    def _own_cell(self, memory: Memory) -> Cell:
        known = self._others.get(id(memory))
        if known is None:
            known = self._others[id(memory)] = Cell(0, 0)
        return known

    def _known_cell(self, start: int, end: int) -> Cell | None:
        """Returns the cell of exactly these addresses: the most frequent case."""
        i = bisect_left(self._starts, start)
        if i < len(self._starts) and self._starts[i] == start and self._cells[i].end == end:
            return self._cells[i]
        return None

    def _cut(self, address: int) -> int:
        """Returns the index of the first cell at or after the address, and splits one across it."""
        i = bisect_left(self._starts, address)
        if i and self._cells[i - 1].end > address:
            left = self._cells[i - 1]
            right = Cell(address, left.end, left.writer, left.readers)
            left.end = address
            self._replace(i, i, [right])
        return i

    def _replace(self, first: int, last: int, cells: list[Cell]) -> None:
        self._cells[first:last] = cells
        self._starts[first:last] = [cell.start for cell in cells]

    def _sweep(self) -> None:
        """Forget the cells whose commands are all over."""
        self._cells = [cell for cell in self._cells if unfinished(cell.users())]
        self._starts = [cell.start for cell in self._cells]
        kept = {key: cell for key, cell in self._others.items() if unfinished(cell.users())}
        self._others = kept


def unfinished(turns: Iterable[Turn]) -> set[Turn]:
    """Returns the turns that are not over; for a withdrawn one, those it waited for."""
    found: set[Turn] = set()
    _add_unfinished(turns, found)
    return found


def _add_unfinished(turns: Iterable[Turn], found: set[Turn]) -> None:
    rest: list[Turn] = []
    for turn in turns:
        if not turn.over:
            found.add(turn)
        elif turn.waits:
            rest.append(turn)
    passed: set[Turn] = set()
    while rest:
        turn = rest.pop()
        if not turn.over:
            found.add(turn)
        elif turn not in passed:
            passed.add(turn)
            rest.extend(turn.waits)


def joined(turns: Iterable[Turn]) -> list[Turn]:
    """Returns one turn, or none, that is over when all of these are."""
    rest = unfinished(turns)
    if len(rest) <= 1:
        return list(rest)
    join = Turn()
    join.wait_for(rest)
    return [join]


def _merged(start: int, end: int, cells: Sequence[Cell], reader: Turn) -> Cell:
    """Returns one cell in place of many: whoever uses a part of it waits for all of it."""
    writers = joined(cell.writer for cell in cells if cell.writer is not None)
    # The reader itself may have read a part already: it must not wait for a turn that waits for it.
    readers = joined(each for cell in cells for each in cell.readers if each is not reader)
    return Cell(start, end, writers[0] if writers else None, readers)
