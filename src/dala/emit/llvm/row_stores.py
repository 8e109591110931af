"""Emits writes of rows: vectors, whole pixels, the last of a row under a mask."""

from __future__ import annotations

from collections.abc import Sequence

from dala.emit.llvm.ir_writer import Operand
from dala.emit.llvm.memory import memory_type, vector_suffix
from dala.emit.llvm.neighbor_reads import NeighborReads
from dala.emit.llvm.registers import length_of, parts_of, woven
from dala.ir.types import BOOL, U8, Scalar


class RowStores(NeighborReads):
    """Adds writes of the outputs' elements at this position."""

    def stored(self, value: Operand, type: Scalar) -> Operand:
        """Returns a value as memory holds it."""
        return self.ops.convert(value, BOOL, U8) if type == BOOL else value

    register_bytes = 64
    """The size of a vector register."""

    def write_row(
        self, values: Sequence[Operand], pointer: str, type: Scalar, *, streaming: bool
    ) -> None:
        """Emits the store of an output's elements here; `streaming` stores bypass the cache."""
        writer, channels, element = self.writer, len(values), memory_type(type)
        values = [self.stored(value, type) for value in values]
        base, here = self.own(pointer)
        first = self._scaled(here, channels)
        place = writer.emit("ptr", f"getelementptr {element}, ptr {base}, {first}")
        if writer.lanes == 1:
            for channel, value in enumerate(values):
                step = f"getelementptr {element}, {place}, i64 {channel}"
                target = writer.emit("ptr", step) if channel else place
                writer.line(f"store {value}, {target}, align {type.size_bytes}")
            return
        vectors = [writer.splat(value) for value in values]
        size = writer.lanes * type.size_bytes
        if self.left is not None:
            align = Operand(str(type.size_bytes), "i32")
            name = vector_suffix(writer.lanes * channels, element)
            writer.call_void(
                *(f"llvm.masked.store.{name}.p0", self._interleaved(vectors), place, align),
                self._there(writer.lanes * channels, self.left, channels),
            )
            return
        count = self.register_bytes // type.size_bytes
        if channels > 1 and size % self.register_bytes == 0:
            parts = self.woven_parts(vectors, type)
        else:
            parts = parts_of(writer, self._interleaved(vectors), element, count)
        self.store_parts(parts, place, type, streaming=streaming)

    def store_parts(
        self, parts: list[Operand], place: Operand, type: Scalar, *, streaming: bool
    ) -> None:
        """Emits the store of several registers in the order of their addresses.

        LLVM turns it around. What is not in the cache yet then takes twice as long to write.
        """
        writer, done = self.writer, 0
        for part in parts:
            there = place
            if done:
                there = writer.emit(
                    "ptr", f"getelementptr {memory_type(type)}, {place}, i64 {done}"
                )
            if streaming:
                size = length_of(part) * type.size_bytes
                writer.line(f"store {part}, {there}, align {size & -size}, !nontemporal !0")
            else:
                kind = "store volatile" if len(parts) > 1 else "store"
                writer.line(f"{kind} {part}, {there}, align {type.size_bytes}")
            done += length_of(part)

    def woven_parts(self, vectors: list[Operand], type: Scalar) -> list[Operand]:
        """Interleaves vectors; returns the registers of what they come to."""
        name = memory_type(type)
        count = min(self.writer.lanes, self.register_bytes // type.size_bytes)
        rows = zip(*(parts_of(self.writer, vector, name, count) for vector in vectors), strict=True)
        return [part for row in rows for part in woven(self.writer, row, name)]

    def _interleaved(self, values: list[Operand]) -> Operand:
        """Interleaves the channels of pixels."""
        if len(values) == 1:
            return values[0]
        writer, lanes = self.writer, self.writer.lanes
        element = values[0].type.split(" x ")[1].rstrip(">")
        pair = f"<{2 * lanes} x {element}>"
        both = ", ".join(f"i32 {i}" for i in range(2 * lanes))
        padded = [*values, *[Operand("poison", values[0].type, vector=True)] * (len(values) % 2)]
        halves = [
            writer.emit(pair, f"shufflevector {a}, {b}, <{2 * lanes} x i32> <{both}>")
            for a, b in zip(padded[::2], padded[1::2], strict=True)
        ]
        count = len(values) * lanes
        order = ", ".join(
            f"i32 {channel * lanes + lane}"
            for lane in range(lanes)
            for channel in range(len(values))
        )
        rest = halves[1] if len(halves) > 1 else Operand("poison", pair, vector=True)
        text = f"shufflevector {halves[0]}, {rest}, <{count} x i32> <{order}>"
        return writer.emit(f"<{count} x {element}>", text, vector=True)
