"""Emits reads of neighbors in a row: shifted out of registers instead of loaded again.

A vector that is loaded across two cache lines costs as much as two, and most vectors of a stencil
are. Those of one row consist of the same elements.
"""

from __future__ import annotations

from dala.base.record import value
from dala.emit.llvm.ir_writer import Operand, Writer, llvm_type
from dala.ir.access import offsets_of
from dala.ir.nodes import Apply, Load, Program, walk

REGISTER_BITS = 512
"""Where registers are whole cache lines; of smaller ones, most do not lie across two lines."""
ELEMENT_BITS = 32
"""The size of elements that one instruction shifts from register to register."""


@value
class Shared:
    """A read of a row, and how far its column is from the one that is loaded for all of them."""

    row: tuple[str, tuple[int, ...]]
    shift: int


class SharedReads:
    """Emits the reads of a program that share their row with others, several registers at a time.

    Of a shifted vector, one register is loaded, and the others are made of what there is.
    """

    def __init__(self, program: Program, lanes: int, vector_bits: int) -> None:
        self._lanes = lanes
        self._part = REGISTER_BITS // ELEMENT_BITS
        is_wide = vector_bits == REGISTER_BITS and lanes > self._part and lanes % self._part == 0
        self.reads = _shared_reads(program, self._part - 1) if is_wide else {}
        self._loaded: dict[tuple[str, tuple[int, ...]], Operand] = {}

    def load(self, writer: Writer, node: Load, place: Operand) -> Operand:
        """Emits the vector that begins at a place."""
        read, part, lanes, name = self.reads[node], self._part, self._lanes, llvm_type(node.type)
        whole = self._loaded.get(read.row)
        if whole is None:
            first = writer.emit("ptr", f"getelementptr {name}, {place}, i64 {-read.shift}")
            whole = _load(writer, lanes, name, first)
            self._loaded[read.row] = whole
        if not read.shift:
            return whole
        start = lanes - part if read.shift > 0 else 0
        at = writer.emit("ptr", f"getelementptr {name}, {place}, i64 {start}")
        new = _load(writer, part, name, at)
        padding = ", ".join([*(f"i32 {i}" for i in range(part)), *["i32 poison"] * (lanes - part)])
        text = f"shufflevector {new}, {new.type} poison, <{lanes} x i32> <{padding}>"
        padded = writer.emit(whole.type, text)
        picks = ", ".join(
            f"i32 {lanes + i - start if 0 <= i - start < part else i + read.shift}"
            for i in range(lanes)
        )
        text = f"shufflevector {whole}, {padded}, <{lanes} x i32> <{picks}>"
        return writer.emit(whole.type, text)


def _load(writer: Writer, count: int, name: str, place: Operand) -> Operand:
    type = f"<{count} x {name}>"
    return writer.emit(type, f"load {type}, {place}, align {ELEMENT_BITS // 8}")


def _shared_reads(program: Program, most: int) -> dict[Load, Shared]:
    """Returns the reads that share a row with others, none farther away than `most` columns."""
    statements = walk(program.body)
    if not all(isinstance(item, Apply | Load) for item in statements):
        return {}
    rows: dict[tuple[str, tuple[int, ...]], dict[Load, int]] = {}
    for load in statements:
        if isinstance(load, Load):
            item, offsets = program.input(load.source), offsets_of(load, program.rank)
            if offsets is not None and item.type.bits == ELEMENT_BITS and not item.channels:
                rows.setdefault((load.source, offsets[:-1]), {})[load] = offsets[-1]
    found = {}
    for row, columns in rows.items():
        base = min(columns.values(), key=abs)
        for load, column in columns.items():
            if len(set(columns.values())) > 1 and abs(column - base) <= most:
                found[load] = Shared(row, column - base)
    return found
