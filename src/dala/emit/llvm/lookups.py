"""Emits look-ups of bytes in tables of 256: by byte permutes of the CPU, one by one elsewhere."""

from __future__ import annotations

from typing import Literal

from dala.emit.llvm.ir_writer import Operand, Writer
from dala.ir.level_tables import LEVELS

Permutes = Literal["vbmi", "avx2", "neon", ""]
"""The instructions that pick bytes of vectors by bytes."""
COSTS: dict[Permutes, float] = {"vbmi": 5, "avx2": 64, "neon": 28, "": 256}
"""What looking up 64 bytes takes, in operations on as many of them."""
_WIDTHS: dict[Permutes, int] = {"vbmi": 64, "avx2": 32, "neon": 16}
_NEAR = 16


class Lookups:
    """Looks up vectors of bytes; tables are loaded where a span begins."""

    def __init__(self, writer: Writer, permutes: Permutes) -> None:
        self.writer = writer
        self.permutes: Permutes = permutes if writer.lanes > 1 else ""
        self._loaded: dict[str, list[Operand]] = {}

    def load(self, table: str) -> None:
        """Emits what loads a table into registers."""
        size = {"vbmi": 64, "avx2": 16, "neon": 16}.get(self.permutes)
        if size is None:
            return
        writer, type, parts = self.writer, f"<{size} x i8>", []
        for first in range(0, LEVELS, size):
            place = writer.emit("ptr", f"getelementptr i8, ptr {table}, i64 {first}")
            part = writer.emit(type, f"load {type}, {place}, align {size}")
            if self.permutes == "avx2":
                both = ", ".join(f"i32 {i % _NEAR}" for i in range(2 * _NEAR))
                text = f"shufflevector {part}, {part}, <{2 * _NEAR} x i32> <{both}>"
                part = writer.emit(f"<{2 * _NEAR} x i8>", text)
            parts.append(part)
        self._loaded[table] = parts

    def look_up(self, table: str, levels: Operand) -> Operand:
        """Emits the values of levels."""
        if not levels.vector:
            return self._one(table, levels)
        width = _WIDTHS.get(self.permutes, 0)
        lanes = self.writer.lanes
        if not width or lanes % width:
            return self._one_by_one(table, levels)
        pieces = [self._piece(levels, first, width) for first in range(0, lanes, width)]
        permute = {"vbmi": self._vbmi, "avx2": self._avx2, "neon": self._neon}[self.permutes]
        found = [permute(self._loaded[table], piece, width) for piece in pieces]
        while len(found) > 1:
            found = [self._joined(*found[i : i + 2]) for i in range(0, len(found), 2)]
        return Operand(found[0].text, found[0].type, vector=True)

    def _piece(self, levels: Operand, first: int, width: int) -> Operand:
        if width == self.writer.lanes:
            return levels
        picks = ", ".join(f"i32 {first + i}" for i in range(width))
        text = f"shufflevector {levels}, {levels.type} poison, <{width} x i32> <{picks}>"
        return self.writer.emit(f"<{width} x i8>", text)

    def _joined(self, first: Operand, *second: Operand) -> Operand:
        if not second:
            return first
        width, other = _count(first), second[0]
        if _count(other) != width:  # an odd number of pieces: the last is filled up
            picks = ", ".join(f"i32 {i % _count(other)}" for i in range(width))
            text = f"shufflevector {other}, {other.type} poison, <{width} x i32> <{picks}>"
            other = self.writer.emit(first.type, text)
        total = width + _count(second[0])
        picks = ", ".join(f"i32 {i}" for i in range(total))
        text = f"shufflevector {first}, {other}, <{total} x i32> <{picks}>"
        return self.writer.emit(f"<{total} x i8>", text)

    # -- one by one ------------------------------------------------------------------------------

    def _one(self, table: str, level: Operand) -> Operand:
        writer = self.writer
        wide = writer.emit("i64", f"zext {level} to i64")
        place = writer.emit("ptr", f"getelementptr i8, ptr {table}, {wide}")
        return writer.emit("i8", f"load i8, {place}")

    def _one_by_one(self, table: str, levels: Operand) -> Operand:
        writer, made = self.writer, Operand("poison", levels.type, vector=True)
        for lane in range(writer.lanes):
            level = writer.emit("i8", f"extractelement {levels}, i64 {lane}")
            value = self._one(table, level)
            made = writer.emit(levels.type, f"insertelement {made}, {value}, i64 {lane}", True)
        return made

    # -- permutes --------------------------------------------------------------------------------

    def _vbmi(self, parts: list[Operand], levels: Operand, width: int) -> Operand:
        """Two of the four registers at a time, by seven bits; the eighth chooses."""
        writer, type = self.writer, f"<{width} x i8>"
        name = "llvm.x86.avx512.vpermi2var.qi.512"
        low = writer.call(name, type, parts[0], levels, parts[1])
        high = writer.call(name, type, parts[2], levels, parts[3])
        upper = writer.emit(f"<{width} x i1>", f"icmp slt {levels}, zeroinitializer")
        return writer.emit(type, f"select {upper}, {high}, {low}")

    def _avx2(self, parts: list[Operand], levels: Operand, width: int) -> Operand:
        """Sixteen bytes at a time; levels that are none of them have the highest bit set."""
        writer, type, found = self.writer, f"<{width} x i8>", None
        for number, part in enumerate(parts):
            near = levels
            if number:
                near = writer.emit(type, f"xor {levels}, splat (i8 {_signed(_NEAR * number)})")
            far = Operand(f"splat (i8 {0x80 - _NEAR})", type)
            place = writer.call(f"llvm.uadd.sat.v{width}i8", type, near, far)
            value = writer.call("llvm.x86.avx2.pshuf.b", type, part, place)
            found = value if found is None else writer.emit(type, f"or {found}, {value.text}")
        assert found is not None
        return found

    def _neon(self, parts: list[Operand], levels: Operand, width: int) -> Operand:
        """Four registers of sixteen bytes at a time; a place beyond them keeps what is there."""
        writer, type = self.writer, f"<{width} x i8>"
        found = writer.call("llvm.aarch64.neon.tbl4.v16i8", type, *parts[:4], levels)
        for first in range(4, len(parts), 4):
            far = f"sub {levels}, splat (i8 {_signed(_NEAR * first)})"
            place = writer.emit(type, far)
            name = "llvm.aarch64.neon.tbx4.v16i8"
            found = writer.call(name, type, found, *parts[first : first + 4], place)
        return found


def _count(vector: Operand) -> int:
    return int(vector.type[1:].split(" x ")[0])


def _signed(byte: int) -> int:
    return byte - LEVELS if byte >= LEVELS // 2 else byte
