"""Emits tiles of programs whose reads swap rows and columns.

A tile of the input is turned over once, into memory that stays in the cache; from there it is read
along the row. Elements of up to 8 bytes are turned over in registers, larger ones one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dala.emit.llvm.borders import inside
from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.memory import Memory
from dala.emit.transposed_reads import Swap
from dala.ir.nodes import Load, Program, Value
from dala.ir.polynomials import polynomial
from dala.ir.types import BOOL

TILE_ROWS = 16
_WIDTHS = {1: 256, 2: 256, 3: 128, 4: 128}
"""The columns of a tile, by the bytes of an element: what is read and made stays in the cache."""
_LEAST_WIDTH = 64
_PADDED = {3: 4, 6: 8}
"""The bytes that elements are padded to in registers."""


class Tiles:
    """Emits how a tile is read: once for all reads of the same place."""

    def __init__(self, program: Program, swaps: Mapping[Load, Swap], prefix: str) -> None:
        self.swaps = swaps
        self.prefix = prefix
        self.places: dict[tuple[str, tuple[Value, ...] | None], Load] = {}
        for load in swaps:
            self.places.setdefault((load.source, load.index), load)
        largest = max(_element_bytes(program, load) for load in swaps)
        self.width = _WIDTHS.get(largest, _LEAST_WIDTH)

    def names(self) -> dict[Load, str]:
        """Returns the argument of a span that each read is of."""
        numbers = {place: number for number, place in enumerate(self.places)}
        return {load: f"%tile.{numbers[load.source, load.index]}" for load in self.swaps}

    @property
    def arguments(self) -> list[str]:
        return [f"ptr %tile.{number}" for number in range(len(self.places))]

    def allocate(self, body: Memory) -> list[Operand]:
        """Emits the memory of each place."""
        elements = self.width * TILE_ROWS
        sizes = [elements * _element_bytes(body.program, load) for load in self.places.values()]
        return [body.writer.emit("ptr", f"alloca [{size} x i8], align 64") for size in sizes]

    def is_inside(self, body: Memory, x: Operand, row: Operand) -> Operand:
        """Emits whether all that a tile reads lies inside of its inputs, and its rows in one."""
        writer, last = body.writer, body.program.rank - 1
        first = _positions(writer, row, last)
        far = writer.emit("i64", f"add nsw {x}, {self.width - 1}")
        below = writer.emit("i64", f"add nsw {first[-1]}, {TILE_ROWS - 1}")
        found = writer.emit("i1", f"icmp slt {below}, %size.{last - 1}")
        for load in self.places.values():
            for at in ([*first, x], [*first[:-1], below, far]):
                for axis, index in enumerate(_indices(body, load, at)):
                    within = inside(writer, index, body.size(load.source, axis))
                    found = body.ops.binary("and", BOOL, found, within)
        return found

    def fill(self, body: Memory, memories: Sequence[Operand], x: Operand, row: Operand) -> None:
        """Emits the calls that turn the tile of each place over."""
        writer = body.writer
        for load, memory in zip(self.places.values(), memories, strict=True):
            swap, size = self.swaps[load], _element_bytes(body.program, load)
            at = [*_positions(writer, row, body.program.rank - 1), x]
            element, *others = _indices(body, load, at)
            for axis, index in enumerate(others, 1):
                element = body.row_major(element, body.size(load.source, axis), index)
            first = writer.emit("i64", f"mul nsw {element}, {size}")
            pointer = body.pointer(load.source)
            start = writer.emit("ptr", f"getelementptr i8, ptr {pointer}, {first}")
            width = body.size(load.source, len(load.index or ()) - 1)
            pitch = writer.emit("i64", f"mul nsw {width}, {swap.down * size}")
            aside = swap.across * size
            writer.line(
                f"call void @{self.prefix}turn.{size}({memory}, {start}, {pitch}, i64 {aside})"
            )

    def rows(self, body: Memory, memories: Sequence[Operand], x: Operand, number: Operand) -> str:
        """Emits the arguments of a span for one row of the tile, which begins at x."""
        writer, given = body.writer, []
        for load, memory in zip(self.places.values(), memories, strict=True):
            rows = writer.emit("i64", f"mul nsw {number}, {self.width}")
            element = writer.emit("i64", f"sub nsw {rows}, {x.text}")
            start = writer.emit("i64", f"mul nsw {element}, {_element_bytes(body.program, load)}")
            given.append(str(writer.emit("ptr", f"getelementptr i8, {memory}, {start}")))
        return ", ".join(given)

    def functions(self, program: Program) -> list[str]:
        """Returns the functions that turn tiles over."""
        sizes = dict.fromkeys(_element_bytes(program, load) for load in self.places.values())
        return [turn_over(f"{self.prefix}turn.{size}", size, self.width) for size in sizes]


def _element_bytes(program: Program, load: Load) -> int:
    source = program.input(load.source)
    return source.type.size_bytes * (source.channels or 1)


def _positions(writer: Writer, row: Operand, last: int) -> list[Operand]:
    """Emits the position of a row along each axis but the last."""
    found, rest = [], row
    for axis in range(last - 1, 0, -1):
        found.append(writer.emit("i64", f"urem {rest}, %size.{axis}"))
        rest = writer.emit("i64", f"udiv {rest}, %size.{axis}")
    return [rest, *reversed(found)]


def _indices(body: Memory, load: Load, position: Sequence[Operand]) -> list[Operand]:
    """Emits where an element is that is read at a position, as i64."""
    assert load.index is not None
    writer = body.writer
    at = [writer.emit("i32", f"trunc {item} to i32") for item in position]
    found = []
    for index in load.index:
        total = Operand("0", "i32")
        for product, factor in (polynomial(index) or {}).items():
            term = Operand(str(factor), "i32")
            for kind, name, axis in product:
                leaf = at[axis] if kind == "p" else body.leaf(kind, name, axis)
                term = writer.emit("i32", f"mul {term}, {leaf.text}")
            total = writer.emit("i32", f"add {total}, {term.text}")
        found.append(writer.emit("i64", f"sext {total} to i64"))
    return found


def turn_over(name: str, element_bytes: int, width: int) -> str:
    """Returns a function that turns a tile over.

    Element j of row i of the source goes to row j of the target, where it is the i-th. The source's
    rows are `%down` bytes apart, its elements `%across`, either of which may be negative.
    """
    head = (
        f"define internal void @{name}(ptr noalias %to, ptr noalias readonly %from, "
        f"i64 %down, i64 %across) #0 {{\nentry:\n"
    )
    made = _Blocks if element_bytes <= 8 else _Elements
    return head + "\n".join(made(element_bytes, width).lines()) + "\n}"


class _Blocks:
    """Emits a loop over square blocks, each turned over by interleaving its rows."""

    def __init__(self, size: int, width: int) -> None:
        self.size = size
        self.width = width
        self.padded = _PADDED.get(size, size)
        self.side = 8 if self.padded == 8 else 16
        self.type = f"<{self.side} x i{8 * self.padded}>"
        self.writer = Writer()

    def lines(self) -> list[str]:
        writer = self.writer
        writer.line("%back = icmp slt i64 %across, 0")
        writer.line("br label %head")
        writer.begin("head")
        writer.line("%i = phi i64 [ 0, %entry ], [ %next, %turn ]")
        writer.line(f"%more = icmp slt i64 %i, {self.width}")
        writer.line("br i1 %more, label %turn, label %done")
        writer.begin("turn")
        for first in range(0, TILE_ROWS, self.side):
            self._block(first)
        writer.line(f"%next = add nsw i64 %i, {self.side}")
        writer.line("br label %head")
        writer.begin("done")
        writer.line("ret void")
        return writer.lines

    def _block(self, first: int) -> None:
        """Emits what turns a block over, whose first element of each row is given."""
        writer, side = self.writer, self.side
        # The first element in memory is the last of those that go backwards.
        start = f"select i1 %back, i64 {-(first + side - 1) * self.size}, i64 {first * self.size}"
        aside = writer.emit("i64", start)
        rows = [self._loaded(number, aside) for number in range(side)]
        low = ", ".join(f"i32 {k // 2 + (k % 2) * side}" for k in range(side))
        high = ", ".join(f"i32 {(k + side) // 2 + (k % 2) * side}" for k in range(side))
        for _ in range(side.bit_length() - 1):
            pairs = [(rows[k // 2], rows[k // 2 + side // 2]) for k in range(side)]
            rows = [
                self._shuffled(a, b, high if k % 2 else low, side) for k, (a, b) in enumerate(pairs)
            ]
        for number, row in enumerate(rows):
            self._store(row, first + number, first + side - 1 - number)

    def _shuffled(self, a: Operand, b: Operand, picks: str, count: int) -> Operand:
        kind = a.type.split(" x ")[1].rstrip(">")
        text = f"shufflevector {a}, {b}, <{count} x i32> <{picks}>"
        return self.writer.emit(f"<{count} x {kind}>", text)

    def _loaded(self, number: int, aside: Operand) -> Operand:
        """Emits the read of a row of a block."""
        writer, count = self.writer, self.side * self.size
        row = writer.emit("i64", f"add nsw i64 %i, {number}")
        offset = writer.emit("i64", f"mul nsw {row}, %down")
        start = writer.emit("i64", f"add nsw {offset}, {aside.text}")
        place = writer.emit("ptr", f"getelementptr i8, ptr %from, {start}")
        if self.padded == self.size:
            return writer.emit(self.type, f"load {self.type}, {place}, align 1")
        bytes_ = writer.emit(f"<{count} x i8>", f"load <{count} x i8>, {place}, align 1")
        picks = ", ".join(
            f"i32 {k // self.padded * self.size + min(k % self.padded, self.size - 1)}"
            for k in range(self.side * self.padded)
        )
        wide = self._shuffled(bytes_, bytes_, picks, self.side * self.padded)
        return writer.emit(self.type, f"bitcast {wide} to {self.type}")

    def _store(self, row: Operand, number: int, backwards: int) -> None:
        """Emits the write of a row of the target: another one where the source goes backwards."""
        writer, count = self.writer, self.side * self.size
        if self.padded != self.size:
            wide = f"<{self.side * self.padded} x i8>"
            bytes_ = writer.emit(wide, f"bitcast {row} to {wide}")
            picks = ", ".join(
                f"i32 {k // self.size * self.padded + k % self.size}" for k in range(count)
            )
            row = self._shuffled(bytes_, bytes_, picks, count)
        line = writer.emit("i64", f"select i1 %back, i64 {backwards}, i64 {number}")
        offset = writer.emit("i64", f"mul nsw {line}, {self.width}")
        column = writer.emit("i64", f"add nsw {offset}, %i")
        start = writer.emit("i64", f"mul nsw {column}, {self.size}")
        place = writer.emit("ptr", f"getelementptr i8, ptr %to, {start}")
        writer.line(f"store {row}, {place}, align 1")


class _Elements:
    """Emits a loop over all elements, of which each is copied in a few words."""

    def __init__(self, size: int, width: int) -> None:
        self.size = size
        self.width = width

    def lines(self) -> list[str]:
        lines = [
            "  br label %head",
            "head:",
            "  %n = phi i64 [ 0, %entry ], [ %next, %turn ]",
            f"  %more = icmp slt i64 %n, {self.width * TILE_ROWS}",
            "  br i1 %more, label %turn, label %done",
            "turn:",
            f"  %i = udiv i64 %n, {TILE_ROWS}",
            f"  %j = urem i64 %n, {TILE_ROWS}",
            "  %row = mul nsw i64 %i, %down",
            "  %column = mul nsw i64 %j, %across",
            "  %start = add nsw i64 %row, %column",
            f"  %line = mul nsw i64 %j, {self.width}",
            "  %element = add nsw i64 %line, %i",
            f"  %end = mul nsw i64 %element, {self.size}",
        ]
        at = 0
        for word in (16, 8, 4, 2, 1):
            while self.size - at >= word:
                lines += [
                    f"  %f{at} = add nsw i64 %start, {at}",
                    f"  %t{at} = add nsw i64 %end, {at}",
                    f"  %p{at} = getelementptr i8, ptr %from, i64 %f{at}",
                    f"  %q{at} = getelementptr i8, ptr %to, i64 %t{at}",
                    f"  %v{at} = load i{8 * word}, ptr %p{at}, align 1",
                    f"  store i{8 * word} %v{at}, ptr %q{at}, align 1",
                ]
                at += word
        return [*lines, "  %next = add nsw i64 %n, 1", "  br label %head", "done:", "  ret void"]
