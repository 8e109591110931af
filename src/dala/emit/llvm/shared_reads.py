"""Emits reads of neighbors in a row: shifted out of registers instead of loaded again.

A vector that is loaded across two cache lines costs as much as two, and most vectors of a stencil
are. Those of one row consist of the same elements.
"""

from __future__ import annotations

from dala.base.record import value
from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.lookups import Permutes
from dala.emit.llvm.registers import shuffled
from dala.ir.access import offsets_of
from dala.ir.nodes import Apply, Load, Program, walk
from dala.ir.types import Scalar

REGISTER_BITS = 512
"""Where registers are whole cache lines; of smaller ones, most do not lie across two lines."""
LEAST_COLUMNS = 4
"""Fewer vectors of one register are loaded as fast: those at the ends have to be, anyway."""
LOADED = 3
"""Of vectors of one register, one of so many is loaded: that takes as long as to shift two."""

Row = tuple[str, tuple[int, ...]]
"""An input, and a row of it, as seen from this one."""


@value
class Shared:
    """A read of a row, and how far its column is from the one that is loaded for all of them."""

    row: Row
    shift: int


class SharedReads:
    """Emits the reads of a program that share their row with others.

    The vectors of a row are made of that at one column, and of what lies beyond its ends.
    """

    def __init__(self, program: Program, lanes: int, vector_bits: int, permutes: Permutes) -> None:
        self._lanes = lanes
        self.reads: dict[Load, Shared] = {}
        if vector_bits == REGISTER_BITS:
            least = 8 if permutes == "vbmi" else 16
            self.reads = _shared_reads(program, lanes, least)
        self._whole: dict[Row, Operand] = {}
        self._ends: dict[tuple[Row, bool], tuple[Operand, int]] = {}
        self._shifted = 0
        self._reach: dict[Row, tuple[int, int]] = {}
        for read in self.reads.values():
            low, high = self._reach.get(read.row, (0, 0))
            self._reach[read.row] = min(low, read.shift), max(high, read.shift)

    def load(self, writer: Writer, node: Load, place: Operand) -> Operand:
        """Emits the vector that begins at a place."""
        read, type = self.reads[node], node.type
        origin = writer.emit("ptr", f"getelementptr {type.llvm}, {place}, i64 {-read.shift}")
        if read.row not in self._whole:
            self._whole[read.row] = _load(writer, self._lanes, type, origin)
        whole = self._whole[read.row]
        if not read.shift:
            return whole
        part = REGISTER_BITS // type.bits
        registers = []
        for first in range(0, self._lanes, part):
            wanted = range(first + read.shift, first + read.shift + part)
            if wanted[0] >= 0 and wanted[-1] < self._lanes:
                registers.append(shuffled(writer, whole, whole, wanted, type.llvm))
            elif self._is_loaded(part):
                at = writer.emit("ptr", f"getelementptr {type.llvm}, {place}, i64 {first}")
                registers.append(_load(writer, part, type, at))
            else:
                end, start = self._end(writer, read.row, type, origin, above=read.shift > 0)
                places = [at if 0 <= at < part else part + at - start for at in wanted]
                registers.append(shuffled(writer, whole, end, places, type.llvm))
        return writer.joined(registers, type.llvm)

    def _is_loaded(self, part: int) -> bool:
        """Whether the next register at an end is loaded: one of several, or in its turn."""
        self._shifted += 1
        return self._lanes > part or self._shifted % LOADED == 0

    def _end(
        self, writer: Writer, row: Row, type: Scalar, origin: Operand, *, above: bool
    ) -> tuple[Operand, int]:
        """Returns the register with the farthest elements that are read, and where it begins."""
        known = self._ends.get((row, above))
        if known is None:
            low, high = self._reach[row]
            start = self._lanes - REGISTER_BITS // type.bits + high if above else low
            at = writer.emit("ptr", f"getelementptr {type.llvm}, {origin}, i64 {start}")
            known = _load(writer, REGISTER_BITS // type.bits, type, at), start
            self._ends[row, above] = known
        return known


def _load(writer: Writer, count: int, type: Scalar, place: Operand) -> Operand:
    vector = f"<{count} x {type.llvm}>"
    return writer.emit(vector, f"load {vector}, {place}, align {type.size_bytes}")


def _shared_reads(program: Program, lanes: int, least_bits: int) -> dict[Load, Shared]:
    """Returns the reads that share a row with others, less than a register away."""
    statements = walk(program.body)
    if not all(isinstance(item, Apply | Load) for item in statements):
        return {}
    rows: dict[Row, dict[Load, int]] = {}
    for load in statements:
        if isinstance(load, Load):
            item, offsets = program.input(load.source), offsets_of(load, program.rank)
            bits = item.type.bits
            fits = least_bits <= bits <= 32 and lanes % (REGISTER_BITS // bits) == 0
            if offsets is not None and fits and not item.channels:
                rows.setdefault((load.source, offsets[:-1]), {})[load] = offsets[-1]
    found = {}
    for row, columns in rows.items():
        base = min(columns.values(), key=abs)
        part = REGISTER_BITS // program.input(row[0]).type.bits
        if len(set(columns.values())) < (2 if lanes > part else LEAST_COLUMNS):
            continue
        for load, column in columns.items():
            if abs(column - base) < part:
                found[load] = Shared(row, column - base)
    return found
