"""Emits writes of rows: vectors, whole pixels, the last of a row under a mask."""

from __future__ import annotations

from collections.abc import Sequence

from dala.emit.llvm.ir_writer import Operand
from dala.emit.llvm.memory import memory_type, vector_suffix
from dala.emit.llvm.neighbor_reads import NeighborReads
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
        whole = self._interleaved([writer.splat(value) for value in values])
        size = writer.lanes * channels * type.size_bytes
        if self.left is not None:
            align = Operand(str(type.size_bytes), "i32")
            name = vector_suffix(writer.lanes * channels, element)
            writer.call_void(
                *(f"llvm.masked.store.{name}.p0", whole, place, align),
                self._there(writer.lanes * channels, self.left, channels),
            )
        elif streaming:
            writer.line(f"store {whole}, {place}, align {min(size, 64)}, !nontemporal !0")
        elif size <= self.register_bytes:
            writer.line(f"store {whole}, {place}, align {type.size_bytes}")
        else:
            self._store_upwards(whole, place, type)

    def _store_upwards(self, whole: Operand, place: Operand, type: Scalar) -> None:
        """Emits the store of several registers in the order of their addresses.

        LLVM turns it around. What is not in the cache yet then takes twice as long to write.
        """
        writer, element = self.writer, memory_type(type)
        count = int(whole.type[1:].split(" x ")[0])
        step = self.register_bytes // type.size_bytes
        for first in range(0, count, step):
            last = min(count, first + step)
            picks = ", ".join(f"i32 {i}" for i in range(first, last))
            text = f"shufflevector {whole}, {whole.type} poison, <{last - first} x i32> <{picks}>"
            part = writer.emit(f"<{last - first} x {element}>", text)
            there = writer.emit("ptr", f"getelementptr {element}, {place}, i64 {first}")
            writer.line(f"store volatile {part}, {there}, align {type.size_bytes}")

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
