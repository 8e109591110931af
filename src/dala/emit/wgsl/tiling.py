"""Cuts the domain of a fusion group into tiles: a workgroup computes one, with all its steps.

What lies between two steps is kept in workgroup memory, with the halo that its readers need. An
input that is read at several offsets is loaded there first, by a step like any other. Halos are
computed again by neighboring workgroups: what that costs, and the bytes that are saved, decide
whether steps share tiles, and of which size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache

from dala.base.record import record, remembered
from dala.emit.wgsl.grid import MOST_GROUPS
from dala.emit.wgsl.memory import element_type
from dala.emit.wgsl.packing import is_packed
from dala.emit.wgsl.tile_steps import borders_of, is_aligned, over_pixels, readers, with_loads
from dala.ir.access import accesses
from dala.ir.nodes import Border, Output
from dala.plan.chunks import effort_of
from dala.plan.fusion import Halo, halos
from dala.plan.memory import plan_memory
from dala.plan.step import Step

SIZES = (4, 8, 16, 24, 32, 48, 64, 128)
"""Rows and columns that a tile may have."""
MOST_POSITIONS, LEAST_POSITIONS = 2048, 128
"""Columns times rows of a tile: a few for each invocation."""
OPERATIONS_PER_BYTE = 16
"""The operations that a GPU makes in the time that it takes to move a byte of a buffer."""
READ_COST = 4
"""The operations that it makes in the time of a read from workgroup memory, or from a cache."""
POSITION_COST = 20
"""The operations that it takes to find a position, and to store what is computed there."""
MOST_LENGTHS = 4096
"""Lengths of tiles with halos that are remembered, the latest ones."""
WORD_BYTES = 4
ALIGNMENT = 16
"""What the size of a variable in workgroup memory is rounded up to."""


@record
class Tile:
    """How one buffer lies in workgroup memory: rows of `pitch` pixels, each of so many words.

    Channels share words where they are narrow. The first row and column are `above` and `before`
    those of the workgroup's own part.
    """

    slot: int
    words: int
    pitch: int
    above: int
    before: int


@record
class Slot:
    """An array in workgroup memory: pixels of so many words."""

    pixels: int
    words: int


@record
class Member:
    """A step, its halos, and what its tile holds beyond the domain, if that is read."""

    step: Step
    rows: Halo
    columns: Halo
    border: Border | None


@record
class Tiling:
    """The tiles of a group: `rows` × `columns` each, of a domain of `height` × `width`.

    `slots` are the arrays in workgroup memory, `tiles` the buffers that lie there, and `stored`
    those that are written to memory.
    """

    height: int
    width: int
    rows: int
    columns: int
    members: tuple[Member, ...]
    tiles: Mapping[int, Tile]
    slots: tuple[Slot, ...]
    stored: frozenset[int]
    halo: tuple[int, int]
    """The most rows and columns around its own part that a workgroup computes or reads."""
    moved_bytes: int
    """The bytes that all workgroups read and write, halos included."""
    cost_bytes: float
    """The same, and the bytes that could be moved while halos are computed again."""

    @property
    def shared_bytes(self) -> int:
        """The workgroup memory that it takes."""
        sizes = (WORD_BYTES * slot.pixels * slot.words for slot in self.slots)
        return sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes)


def find_tiling(
    steps: Sequence[Step], materialized: Set[int], most_bytes: int, most_buffers: int
) -> Tiling | str:
    """Returns the best tiling of steps within `most_bytes` of workgroup memory, or why not."""
    found = over_pixels(steps)
    if isinstance(found, str):
        return found
    stored = frozenset(n for step in steps for n in step.outputs if n in materialized)
    groups = [_Group(*with_loads(found), stored), _Group((), found, stored)]
    if groups[0].bindings > most_buffers:
        return f"{steps[-1].name} would be one buffer too many"
    shapes = [(group, rows, columns) for group in groups for rows, columns in _shapes(group.width)]
    # Memory is planned for few of them: the first that fits is the best.
    for group, rows, columns in sorted(shapes, key=lambda item: item[0].cost_bytes(*item[1:])):
        tiling = group.tiling(rows, columns)
        if tiling.shared_bytes <= most_bytes:
            return tiling
    return f"the tiles of {steps[-1].name} would not fit into workgroup memory"


def shares_words(output: Output) -> bool:
    """Whether pixels of an output share words of its storage with others."""
    return is_packed(output.type) and output.channels != 4


def _shapes(width: int) -> Iterator[tuple[int, int]]:
    """Yields the shapes of tiles for rows of a length, wide ones first."""
    for columns in reversed(SIZES):
        for rows in SIZES if width <= columns * MOST_GROUPS else ():
            if LEAST_POSITIONS <= rows * columns <= MOST_POSITIONS:
                yield rows, columns


# -- tiles of one shape ----------------------------------------------------------------------------


class _Group:
    """Steps, and all that does not depend on the shape of their tiles."""

    def __init__(
        self, loads: Sequence[Step], steps: Sequence[Step], stored: frozenset[int]
    ) -> None:
        self.loads = len(loads)
        self.steps = steps = (*loads, *steps)
        self.stored = stored
        self.height = steps[0].domain[0]
        self.width = steps[0].domain[1]
        self.written = {number for step in steps for number in step.outputs}
        self.members = tuple(
            Member(step, rows, columns, next(iter(borders_of(steps, step.outputs)), None))
            for step, rows, columns in zip(steps, halos(steps), halos(steps, 1), strict=True)
        )

    @property
    def bindings(self) -> int:
        """How many buffers are bound: an input once for each type that it is read as."""
        read = {
            (number, element_type(item))
            for step in self.steps
            for item, number in zip(step.program.inputs, step.inputs, strict=True)
            if number not in self.written
        }
        return len(read) + len(self.stored)

    @cached_property
    def kept(self) -> dict[int, tuple[Member, Output]]:
        """What lies in workgroup memory, and who makes it.

        Elements that share words with others of their row are stored from there.
        """
        found = {}
        for member in self.members:
            outputs = member.step.program.outputs
            for number, output in zip(member.step.outputs, outputs, strict=True):
                is_stored = number in self.stored and shares_words(output)
                if is_stored or readers(self.steps, number):
                    found[number] = (member, output)
        return found

    @cached_property
    def uses(self) -> list[list[int]]:
        """The tiles that are used between two barriers: a step's, and those stored after it."""
        before: list[int] = []
        found = []
        for step in self.steps:
            found.append([n for n in (*before, *step.inputs, *step.outputs) if n in self.kept])
            before = [number for number in step.outputs if number in self.stored]
        return [*found, [number for number in before if number in self.kept]]

    @cached_property
    def alike(self) -> dict[int, dict[int, Member]]:
        """The tiles whose pixels have as many words, and who makes them."""
        found: dict[int, dict[int, Member]] = {}
        for number, (member, output) in self.kept.items():
            words = -(-(output.channels or 1) // output.type.per_word)
            found.setdefault(words, {})[number] = member
        return found

    def tiling(self, rows: int, columns: int) -> Tiling:
        tiles: dict[int, Tile] = {}
        slots: list[Slot] = []
        for count, alike in self.alike.items():
            pitches = {n: columns + sum(member.columns) for n, member in alike.items()}
            sizes = {n: pitches[n] * (rows + sum(member.rows)) for n, member in alike.items()}
            plan = plan_memory(self.uses, sizes, {})
            for n, member in alike.items():
                slot, around = len(slots) + plan.slots[n], (member.rows[0], member.columns[0])
                tiles[n] = Tile(slot, count, pitches[n], *around)
            slots += [Slot(size, count) for size in plan.sizes]
        moved, cost = self._moved_bytes(rows, columns), self.cost_bytes(rows, columns)
        return Tiling(
            *(self.height, self.width, rows, columns, self.members, tiles, tuple(slots)),
            *(self.stored, self.halo, moved, cost),
        )

    def cost_bytes(self, rows: int, columns: int) -> float:
        """Returns the bytes that are moved, and could be while halos are computed again."""
        again = self._again(rows, columns) / OPERATIONS_PER_BYTE
        return self._moved_bytes(rows, columns) + again

    @cached_property
    def halo(self) -> tuple[int, int]:
        """The most rows and columns around its own part that a workgroup computes or reads."""
        around = [(item.rows, item.columns) for item in self.members]
        around += [(rows, columns) for _, rows, columns in self.inputs[1]]
        return max(max(rows) for rows, _ in around), max(max(columns) for _, columns in around)

    @cached_property
    def inputs(self) -> tuple[int, list[tuple[int, Halo, Halo]]]:
        """What is read of memory: bytes that are, and bytes for each pixel, with their halos."""
        anywhere, found = 0, []
        for member in self.members:
            step = member.step
            read, kinds = accesses(step.program), step.input_kinds()
            for name, number in step.numbers().items():
                if number in self.written or read[name].kind == "unused":
                    continue
                size = kinds[name][0].size_bytes * math.prod(kinds[name][1])
                if read[name].kind == "anywhere" or not is_aligned(step, name):
                    anywhere += size
                else:
                    per_pixel = size // (self.height * self.width)
                    found.append((per_pixel, *_around(member, read[name].offsets)))
        return anywhere, found

    def _moved_bytes(self, rows: int, columns: int) -> int:
        moved, inputs = self.inputs
        for per_pixel, around, beside in inputs:
            moved += per_pixel * self._covered(rows, columns, around, beside)
        return moved + self.written_bytes

    @cached_property
    def written_bytes(self) -> int:
        return sum(
            scalar.size_bytes * math.prod(shape)
            for step in self.steps
            for number, (scalar, shape) in zip(step.outputs, step.output_kinds, strict=True)
            if number in self.stored
        )

    def _again(self, rows: int, columns: int) -> int:
        """Returns the operations for what more than one workgroup computes."""
        return sum(
            effort
            * (self._covered(rows, columns, item.rows, item.columns) - self.height * self.width)
            for item, effort in zip(self.members[self.loads :], self.efforts, strict=True)
        )

    @cached_property
    def efforts(self) -> list[int]:
        """The operations that a position of each step takes, but for those that load."""
        return [_effort(step) for step in self.steps[self.loads :]]

    def _covered(self, rows: int, columns: int, above: Halo, beside: Halo) -> int:
        """Returns the pixels of all tiles, with halos, within the domain."""
        return _clipped(self.height, rows, above) * _clipped(self.width, columns, beside)


@remembered
def _effort(step: Step) -> int:
    statements = step.program.body.statements
    return POSITION_COST + effort_of(statements, step.task().shapes, READ_COST)


def _around(member: Member, offsets: Set[tuple[int, ...]]) -> tuple[Halo, Halo]:
    """Returns how far around its tile a member reads an input of the group."""
    rows, columns = zip(*(offsets or {(0, 0)}), strict=True)
    (above, below), (before, after) = member.rows, member.columns
    return (
        (above - min(0, *rows), below + max(0, *rows)),
        (before - min(0, *columns), after + max(0, *columns)),
    )


@lru_cache(MOST_LENGTHS)
def _clipped(size: int, tile: int, halo: Halo) -> int:
    """Returns the length of all tiles of an axis together, with halos, within the domain."""
    return sum(
        min(size, start + tile + halo[1]) - max(0, start - halo[0])
        for start in range(0, size, tile)
    )
