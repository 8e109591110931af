"""Emits writes to any element of the output: one by one, as vectors, or as scatters.

In lanes no two positions write the same element (`ir/writes.py`), so an update is a read, an
operation and a write. Elsewhere all updates are made by one thread: none has to be atomic.
"""

from __future__ import annotations

from dala.emit.llvm.borders import inside
from dala.emit.llvm.ir_writer import Operand
from dala.emit.llvm.memory import memory_type, turned, vector_suffix
from dala.emit.llvm.row_stores import RowStores
from dala.emit.store_groups import store_groups
from dala.ir.nodes import AtomicUpdate, Store
from dala.ir.polynomials import polynomial, position_of
from dala.ir.types import BOOL


class Scatters(RowStores):
    """Adds writes to any element; those outside the output are skipped."""

    covers = False
    """Whether all elements of the output are stored to once, and nothing else is."""

    def store(self, node: Store | AtomicUpdate) -> None:
        writer = self.writer
        if self.covers and writer.lanes > 1:
            return
        fits: Operand | None = None
        element: Operand | None = None
        for axis, value in enumerate(node.index):
            size = Operand(f"%out.size.{axis}", "i64")
            index = self.wide_index(value)
            within = inside(writer, index, size)
            fits = within if fits is None else self._both(fits, within)
            element = index if element is None else self.row_major(element, size, index)
        assert fits is not None
        assert element is not None
        value_ = self.value(node.value)
        if isinstance(node, Store):
            value_ = self.stored(value_, self.program.output.type)
        write, skip = writer.label("write"), writer.label("written")
        if writer.lanes == 1:
            writer.branch(fits, write, skip)
            writer.begin(write)
            self._write_one(node, element, value_)
        else:
            element, value_ = writer.splat(element), writer.splat(value_)
            self._write_lanes(node, element, value_, writer.splat(fits), (write, skip))
        writer.jump(skip)
        writer.begin(skip)

    def _both(self, a: Operand, b: Operand) -> Operand:
        a, b = self.writer.alike(a, b)
        return self.ops.binary("and", BOOL, a, b)

    def _updated(self, node: Store | AtomicUpdate, old: Operand, value: Operand) -> Operand:
        """Emits what is stored after an update; floats of 16 bits are computed in f32."""
        assert isinstance(node, AtomicUpdate)
        type = self.program.output.type
        wide = self.ops.convert(old, type, type.computed)
        return self.ops.convert(
            self.ops.binary(node.op, type.computed, wide, value), type.computed, type
        )

    def _write_one(self, node: Store | AtomicUpdate, element: Operand, value: Operand) -> None:
        writer, name = self.writer, memory_type(self.program.output.type)
        place = writer.emit("ptr", f"getelementptr {name}, ptr %out, {element}")
        if isinstance(node, AtomicUpdate):
            old = writer.emit(name, f"load {name}, {place}")
            value = self._updated(node, old, value)
        writer.line(f"store {value}, {place}")

    # -- all elements ----------------------------------------------------------------------------

    def cover(self) -> None:
        """Emits the stores of a position's elements, none of which is outside.

        As none is read either, this is done when all else is.
        """
        writer, scalar = self.writer, self.program.output.type
        for group in store_groups(self.program):
            values = [
                writer.splat(self.stored(self.value(item.value), scalar)) for item in group.stores
            ]
            elements = [writer.splat(self._written(item)) for item in group.stores]
            if group.step > 1 and self.mask is None:
                first = self._lane(elements[0], 0)
                place = writer.emit(
                    "ptr", f"getelementptr {memory_type(scalar)}, ptr %out, {first}"
                )
                parts = self.woven_parts(values, scalar)
                self.store_parts(parts, place, scalar, streaming=False)
                continue
            for item, element, value in zip(group.stores, elements, values, strict=True):
                if abs(group.step) == 1:
                    self._write_row(item, element, value, backward=group.step < 0)
                else:
                    mask = self.mask or Operand("splat (i1 true)", writer.vector_type("i1"))
                    self._scatter(item, element, value, mask)

    def _written(self, node: Store) -> Operand:
        first, *others = map(self.wide_index, node.index)
        for axis, index in enumerate(others, 1):
            first = self.row_major(first, Operand(f"%out.size.{axis}", "i64"), index)
        return first

    # -- lanes -----------------------------------------------------------------------------------

    def _write_lanes(
        self,
        node: Store | AtomicUpdate,
        element: Operand,
        value: Operand,
        fits: Operand,
        labels: tuple[str, str],
    ) -> None:
        """Emits a vector store where all lanes lie side by side inside, else a scatter."""
        writer, step = self.writer, self._step(node)
        if step:
            first, last = (self._lane(fits, lane) for lane in (0, writer.lanes - 1))
            row, (scattered, done) = writer.label("row"), labels
            writer.branch(self.ops.binary("and", BOOL, first, last), row, scattered)
            writer.begin(row)
            with writer.scope():
                self._write_row(node, element, value, backward=step < 0)
            writer.jump(done)
            writer.begin(scattered)
        with writer.scope():
            mask = fits if self.mask is None else self.ops.binary("and", BOOL, fits, self.mask)
            self._scatter(node, element, value, mask)

    def _step(self, node: Store | AtomicUpdate) -> int:
        """Returns 1 or -1 if elements of neighboring positions are neighbors, else 0."""
        found = polynomial(node.index[-1])
        if found is None or self.variance.any(node.index[:-1]):
            return 0
        here = position_of(self.program.rank - 1)
        moving = {product: factor for product, factor in found.items() if here in product}
        step = moving.get((here,), 0)
        return step if len(moving) == 1 and abs(step) == 1 else 0

    def _lane(self, vector: Operand, lane: int) -> Operand:
        element = vector.type.split(" x ")[1].rstrip(">")
        return self.writer.emit(element, f"extractelement {vector}, i64 {lane}")

    def _write_row(
        self, node: Store | AtomicUpdate, element: Operand, value: Operand, *, backward: bool
    ) -> None:
        """Emits a write of as many elements side by side as there are lanes."""
        writer, scalar = self.writer, self.program.output.type
        name, mask = memory_type(scalar), self.mask
        vector = writer.vector_type(name)
        least = self._lane(element, writer.lanes - 1 if backward else 0)
        place = writer.emit("ptr", f"getelementptr {name}, ptr %out, {least}")
        if backward:
            value = turned(writer, value, writer.lanes)
            mask = None if mask is None else turned(writer, mask, writer.lanes)
        align = Operand(str(scalar.size_bytes), "i32")
        suffix = vector_suffix(writer.lanes, name)
        if isinstance(node, AtomicUpdate):
            if mask is None:
                old = writer.emit(
                    vector, f"load {vector}, {place}, align {align.text}", vector=True
                )
            else:
                none = Operand("zeroinitializer", vector, vector=True)
                function = f"llvm.masked.load.{suffix}.p0"
                old = writer.call(function, vector, place, align, mask, none)
            value = self._updated(node, old, value)
        if mask is None:
            writer.line(f"store {value}, {place}, align {align.text}")
        else:
            writer.call_void(f"llvm.masked.store.{suffix}.p0", value, place, align, mask)

    def _scatter(
        self, node: Store | AtomicUpdate, element: Operand, value: Operand, mask: Operand
    ) -> None:
        writer, scalar = self.writer, self.program.output.type
        name, lanes = memory_type(scalar), self.writer.lanes
        pointers = writer.vector_type("ptr")
        places = writer.emit(pointers, f"getelementptr {name}, ptr %out, {element}", vector=True)
        suffix = f"{vector_suffix(lanes, name)}.v{lanes}p0"
        if isinstance(node, AtomicUpdate):
            vector = writer.vector_type(name)
            none = Operand("zeroinitializer", vector, vector=True)
            function, align = f"llvm.masked.gather.{suffix}", scalar.size_bytes
            old = writer.gather(function, vector, places, align, mask, none)
            value = self._updated(node, old, value)
        align_ = Operand(str(scalar.size_bytes), "i32")
        writer.call_void(f"llvm.masked.scatter.{suffix}", value, places, align_, mask)
