"""Emits reads of buffers: borders, pixels, vectors, gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from dala.emit.llvm.borders import bordered, inside
from dala.emit.llvm.ir_writer import Operand, Writer, llvm_type
from dala.emit.llvm.loops import Loops
from dala.emit.llvm.shared_reads import SharedReads
from dala.emit.partition import Line
from dala.emit.row_reads import Step
from dala.ir.access import offset_from
from dala.ir.nodes import Apply, Load, Program, Value
from dala.ir.types import BOOL, S32, S64, U8, Scalar
from dala.plan.task import InPlace

X, ROW_OFFSET, ZERO = Operand("%x", "i64"), Operand("%row.offset", "i64"), Operand("0", "i64")
NEXT = Step(1)


def output_pointer(number: int) -> str:
    """Returns the address of an output."""
    return f"%out.{number}" if number else "%out"


def memory_type(scalar: Scalar) -> str:
    """Returns the LLVM type of a scalar in memory, where a bool is a byte."""
    return llvm_type(U8 if scalar == BOOL else scalar)


class Memory(Loops):
    """Adds reads to a body; in the interior none leaves its row."""

    in_place: InPlace = frozenset()
    steps: Mapping[Load, Step] = MappingProxyType({})
    """The reads along the row, and the distance of the elements that neighbors read."""
    bounded: Set[Load] = frozenset()
    """Those of them that cannot leave the row here, unless it is at its edges."""
    at_edge = False
    """Whether the border rule applies to what is read along the row."""
    lines: Set[Line] = frozenset()
    """Indices that are known to lie inside here: of the rows that are read."""
    staged: Mapping[Load, str] = MappingProxyType({})
    """The reads that swap rows and columns, and the memory in which that was done."""
    empty = False
    """Whether an input has no elements: then it reads as one zero, whatever its other axes say."""
    rings: Set[str] = frozenset()
    """The addresses of memories that keep only their last rows, each in the place of an older."""
    shared: SharedReads | None = None
    left: Operand | None = None
    """The number of valid lanes as i64, where a row ends within a vector."""

    def pointer(self, source: str) -> str:
        """Returns an input's address: the output's, if it is computed in place."""
        number = dict(self.in_place).get(source)
        return f"%in.{self.source(source)}" if number is None else output_pointer(number)

    def stays_inside(self, node: Load, axis: int, value: Value) -> bool:
        return not self.empty and super().stays_inside(node, axis, value)

    def here(self) -> Operand:
        """Returns the row-major index of this position's element."""
        return self.writer.emit("i64", f"add nsw {ROW_OFFSET}, {X.text}")

    def own(self, pointer: str) -> tuple[str, Operand]:
        """Returns an address, and the index from there of this position's element."""
        base, first = self.row_start(pointer, ROW_OFFSET)
        return base, self.writer.emit("i64", f"add nsw {first}, {X.text}")

    def row_start(self, pointer: str, offset: Operand) -> tuple[str, Operand]:
        """Returns an address, and the index from there of this row's first element."""
        if pointer not in self.rings:
            return pointer, offset
        return self.row_of_ring(pointer, Operand("%position.0", "i64")), ZERO

    def row_of_ring(self, pointer: str, row: Operand) -> str:
        """Returns the address of a row that a ring still keeps."""
        place = self.writer.emit("i64", f"and {row}, {pointer}.mask")
        distance = self.writer.emit("i64", f"mul nsw {place}, {pointer}.pitch")
        return self.writer.emit("ptr", f"getelementptr i8, ptr {pointer}, {distance}").text

    def size(self, source: str, axis: int) -> Operand:
        return Operand(f"%in.{self.source(source)}.size.{axis}", "i64")

    def wide_index(self, value: Value) -> Operand:
        """Returns an index as i64: exact for positions and counters, which never wrap."""
        last = self.program.rank - 1
        for axis in range(self.program.rank):
            offset = offset_from(value, axis)
            if offset is not None and (axis < last or self.writer.lanes == 1):
                name = "%x" if axis == last else f"%position.{axis}"
                return self.writer.emit("i64", f"add nsw i64 {name}, {offset}")
        return self._wide(value)

    # -- reads -----------------------------------------------------------------------------------

    def load(self, node: Load) -> Operand:
        step = self.steps.get(node) if self.writer.lanes > 1 else None
        if node not in self.bounded and node not in self.staged and step is not None:
            return self._guarded(node, step)
        if self.at_edge and not fills_edges(self.program, node):
            step = None
        return self.loaded(node, step)

    def loaded(
        self, node: Load, step: Step | None, indices: Sequence[Operand] | None = None
    ) -> Operand:
        """Emits a read; where there is a step, it cannot leave the row, or is masked.

        `indices` are its own as i64, where these are not computed yet.
        """
        source = self.program.input(node.source)
        channels = source.channels or 1
        outside = None
        if node in self.staged:
            base, element, step = self.staged[node], X, NEXT
        elif node.index is None:
            base, element = self.own(self.pointer(node.source))
            step = NEXT if self.varies(node) else None
        else:
            base, element, outside = self._element(node, indices, along_row=step is not None)
        if step is not None:
            value = self._read_row(node, source.type, base, element, channels, step)
        else:
            value = self._read_at(node, source.type, base, element, channels)
        if source.type == BOOL:
            value = self.ops.convert(value, U8, BOOL)
        if outside is not None:
            zero = self.ops.number(value, source.type, 0)
            value = self.ops.select(outside, zero, value)
        return value

    def _guarded(self, node: Load, step: Step) -> Operand:
        """Emits a vector load for where no element lies outside of the row, and a gather."""
        writer = self.writer
        assert node.index is not None
        first = self.index_at(X, node.index[-1])
        first = writer.emit("i64", f"sub nsw {first}, {step.phase}")
        count = writer.lanes * abs(step.by) if step.over == 1 else step.count(writer.lanes)
        last = count - 1 if step.by > 0 else 1 - count
        far = writer.emit("i64", f"add nsw {first}, {last}")
        size = self.size(node.source, len(node.index) - 1)
        ends = [inside(writer, place, size) for place in (first, far)]
        row, apart, done = (writer.label(stem) for stem in ("row", "apart", "read"))
        writer.branch(self.ops.binary("and", BOOL, *ends), row, apart)
        found = []
        for label, along in ((row, step), (apart, None)):
            writer.begin(label)
            with writer.scope():
                value = writer.splat(self.loaded(node, along))
            found.append(f"[ {value.text}, %{writer.block} ]")
            writer.jump(done)
        writer.begin(done)
        return writer.emit(value.type, f"phi {value.type} {', '.join(found)}", vector=True)

    def index_at(self, x: Operand, value: Value) -> Operand:
        """Returns what an index is at a place of the row; both are i64."""
        offset = offset_from(value, self.program.rank - 1)
        if offset is not None:
            return self.writer.emit("i64", f"add nsw {x}, {offset}")
        narrow = self.ops.convert(x, S64, S32)
        return self.ops.convert(self._address(value, narrow), S32, S64)

    def _address(self, value: Value, x: Operand) -> Operand:
        if value not in self.variance:
            return self.value(value)
        if not isinstance(value, Apply):
            return x
        return self.ops.apply(value, tuple(self._address(arg, x) for arg in value.args))

    def _element(
        self, node: Load, indices: Sequence[Operand] | None, *, along_row: bool
    ) -> tuple[str, Operand, Operand | None]:
        """Returns the element read, and where the zero border applies instead.

        The element is an address and the index that is counted from there.
        """
        assert node.index is not None
        base = self.pointer(node.source)
        outside: Operand | None = None
        element: Operand | None = None
        for axis, value in enumerate(node.index):
            size = self.size(node.source, axis)
            if along_row and axis == len(node.index) - 1:
                index = self.index_at(X, value)
            else:
                wide = self.wide_index(value) if indices is None else indices[axis]
                index = wide
                known = (node.source, axis, value) in self.lines
                if not known and not self.stays_inside(node, axis, value):
                    index = bordered(self.writer, node.border, wide, size)
                    if node.border == "zero":
                        beyond = self.ops.unary("not", BOOL, inside(self.writer, wide, size))
                        outside = beyond if outside is None else self._or(outside, beyond)
            if axis == 0 and base in self.rings:
                base = self.row_of_ring(base, index)
            else:
                element = index if element is None else self.row_major(element, size, index)
        assert element is not None
        return base, element, outside

    def _or(self, a: Operand, b: Operand) -> Operand:
        a, b = self.writer.alike(a, b)
        return self.ops.binary("or", BOOL, a, b)

    def row_major(self, element: Operand, size: Operand, index: Operand) -> Operand:
        element, size, index = self.writer.alike(element, size, index)
        rows = self.ops.emit(element, element.type, f"mul nsw {element}, {size.text}")
        return self.ops.emit(rows, rows.type, f"add nsw {rows}, {index.text}")

    def _read_row(
        self, node: Load, type: Scalar, base: str, element: Operand, channels: int, step: Step
    ) -> Operand:
        """Emits a vector load; of full pixels a channel is taken, of every step-th element."""
        writer, lanes, name = self.writer, self.writer.lanes, memory_type(type)
        elements = lanes * abs(step.by) if step.over == 1 else step.count(lanes)
        count = elements * channels
        wide = f"<{count} x {name}>"
        back = lanes - 1 if step.by < 0 else step.phase
        element = writer.emit("i64", f"sub nsw {element}, {back}")
        first = self._scaled(element, channels)
        place = writer.emit("ptr", f"getelementptr {name}, ptr {base}, {first}")
        rest = self._rest(step)
        if self.at_edge and node in self.bounded:
            whole = self._read_edge(node, type, place, count, back)
        elif self.shared is not None and node in self.shared.reads:
            whole = self.shared.load(writer, node, place)
        elif self.left is None:
            whole = writer.emit(wide, f"load {wide}, {place}, align {type.size_bytes}")
        else:
            function = f"llvm.masked.load.{vector_suffix(count, name)}.p0"
            align, none = Operand(str(type.size_bytes), "i32"), Operand("zeroinitializer", wide)
            mask = self._there(count, self._valid(step, rest), channels)
            if step.by < 0:
                mask = turned(writer, mask, count)
            whole = writer.call(function, wide, place, align, mask, none)
        if count == lanes and step == NEXT:
            return Operand(whole.text, wide, vector=True)
        channel, found = node.channel or 0, None
        for start in range(step.over):
            if step.by < 0:
                places = [lanes - 1 - i for i in range(lanes)]
            else:
                places = [(start + i * step.by) // step.over + step.phase for i in range(lanes)]
            picks = ", ".join(f"i32 {i * channels + channel}" for i in places)
            text = f"shufflevector {whole}, {wide} poison, <{lanes} x i32> <{picks}>"
            picked = writer.emit(writer.vector_type(name), text, vector=True)
            if found is None:
                found = picked
            else:
                here = writer.emit("i1", f"icmp eq {rest}, {start}")
                found = writer.emit(found.type, f"select {here}, {picked}, {found}", vector=True)
        assert found is not None
        return found

    def _read_edge(
        self, node: Load, type: Scalar, place: Operand, count: int, back: int
    ) -> Operand:
        """Emits the load of elements side by side; those outside of the row are its border."""
        writer, name = self.writer, memory_type(type)
        assert node.index is not None
        first = self.index_at(X, node.index[-1])
        first = writer.emit("i64", f"sub nsw {first}, {back}")
        size = self.size(node.source, len(node.index) - 1)
        numbers = writer.numbered(count, writer.emit("i32", f"trunc {first} to i32"))
        sizes = writer.repeated(count, writer.emit("i32", f"trunc {size} to i32"))
        mask = writer.emit(f"<{count} x i1>", f"icmp ult {numbers}, {sizes.text}")
        wide = f"<{count} x {name}>"
        border = Operand("zeroinitializer", wide)
        if node.border == "clamp":
            ends = []
            for end in ("0", writer.emit("i64", f"sub nsw {size}, 1").text):
                step = writer.emit("i64", f"sub nsw i64 {end}, {first.text}")
                there = writer.emit("ptr", f"getelementptr {name}, {place}, {step}")
                text = f"load {name}, {there}, align {type.size_bytes}"
                ends.append(writer.repeated(count, writer.emit(name, text)))
            before = writer.emit(mask.type, f"icmp slt {numbers}, zeroinitializer")
            border = writer.emit(wide, f"select {before}, {ends[0]}, {ends[1]}")
        function = f"llvm.masked.load.{vector_suffix(count, name)}.p0"
        return writer.call(
            function, wide, place, Operand(str(type.size_bytes), "i32"), mask, border
        )

    def _rest(self, step: Step) -> Operand | None:
        """Returns what is left of the first lane's dividend, as i64."""
        if step.dividend is None:
            return None
        first = self.index_at(X, step.dividend)
        return self.ops.binary("mod", S64, first, Operand(str(step.over), "i64"))

    def _valid(self, step: Step, rest: Operand | None) -> Operand:
        """Returns how many elements the valid lanes read, one after another."""
        assert self.left is not None
        if rest is None:
            return self._scaled(self.left, abs(step.by))
        writer = self.writer
        before = writer.emit("i64", f"sub nsw {self.left}, 1")
        far = writer.emit("i64", f"add nsw {self._scaled(before, step.by)}, {rest.text}")
        last = writer.emit("i64", f"udiv {far}, {step.over}")
        return writer.emit("i64", f"add nsw {last}, 1")

    def _read_at(
        self, node: Load, type: Scalar, base: str, element: Operand, channels: int
    ) -> Operand:
        """Emits a scalar load, or a gather with one address per lane."""
        writer, name, channel = self.writer, memory_type(type), node.channel or 0
        if element.vector and type == U8 and channels == 4:
            return self._channel_of_words(base, element, channel)
        element = self._scaled(element, channels)
        if channels > 1:
            element = self.ops.binary("add", S64, element, self.ops.number(element, S64, channel))
        if not element.vector:
            place = writer.emit("ptr", f"getelementptr {name}, ptr {base}, {element}")
            return writer.emit(name, f"load {name}, {place}, align {type.size_bytes}")
        return self._gathered(base, element, name, type.size_bytes)

    def _channel_of_words(self, base: str, element: Operand, channel: int) -> Operand:
        """Gathers RGBA8 pixels as words, shared by all channels, and extracts one channel."""
        words = self._gathered(base, element, "i32", 1)
        bits = Operand(f"splat (i32 {8 * channel})", words.type, vector=True)
        shifted = self.ops.emit(words, words.type, f"lshr {words}, {bits.text}")
        narrow = self.writer.vector_type("i8")
        return self.ops.emit(shifted, narrow, f"trunc {shifted} to {narrow}")

    def _gathered(self, base: str, element: Operand, name: str, align: int) -> Operand:
        writer = self.writer
        pointers = writer.vector_type("ptr")
        places = writer.emit(pointers, f"getelementptr {name}, ptr {base}, {element}", vector=True)
        return self.gathered_at(places, name, align)

    def gathered_at(self, places: Operand, name: str, align: int) -> Operand:
        """Emits a gather of elements at the addresses of each lane."""
        writer = self.writer
        vector = writer.vector_type(name)
        function = f"llvm.masked.gather.v{writer.lanes}{_short(name)}.v{writer.lanes}p0"
        every = Operand("splat (i1 true)", writer.vector_type("i1"), vector=True)
        none = Operand("poison", vector, vector=True)
        return writer.gather(function, vector, places, align, every, none)

    def _scaled(self, element: Operand, channels: int) -> Operand:
        if channels == 1:
            return element
        return self.ops.binary("mul", S64, element, self.ops.number(element, S64, channels))

    def _there(self, count: int, valid: Operand, channels: int) -> Operand:
        """Returns the mask of the valid elements, of which there are so many, with channels."""
        short = self.writer.emit("i32", f"trunc {self._scaled(valid, channels)} to i32")
        return self.writer.below(count, short)


def fills_edges(program: Program, load: Load) -> bool:
    """Whether vectors that reach beyond a row are filled with its border, without a gather."""
    return load.border in ("clamp", "zero") and not program.input(load.source).channels


def turned(writer: Writer, vector: Operand, count: int) -> Operand:
    """Returns the vector with its elements in reverse order."""
    order = ", ".join(f"i32 {i}" for i in reversed(range(count)))
    text = f"shufflevector {vector}, {vector.type} poison, <{count} x i32> <{order}>"
    return writer.emit(vector.type, text, vector=True)


def _short(name: str) -> str:
    return {"float": "f32", "double": "f64"}.get(name, name)


def vector_suffix(lanes: int, name: str) -> str:
    """Returns the suffix of intrinsics on vectors of a type."""
    return f"v{lanes}{_short(name)}"
