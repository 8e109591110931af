"""Emits reads of neighbors: each lane loads a few words, which are turned over in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from dala.base.record import record
from dala.emit.llvm.borders import inside
from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.memory import Memory, memory_type
from dala.emit.neighbor_reads import WORD, Index, Neighbors, Place
from dala.emit.variance import Variance
from dala.ir.nodes import Load, Program, Value
from dala.ir.types import BOOL, S32, S64

_ZERO, _ONE = Operand("0", "i64"), Operand("1", "i64")
_INDICES = Operand(str((1 << 31) - 1), "i64")
"""No index of s32 is higher than that."""


@record
class Lanes:
    """Where lanes read."""

    offsets: Operand
    """How far from the beginning of the input the least element is, in bytes."""
    single: list[Operand]
    """The same, lane by lane."""
    pitches: list[Operand]
    """How many elements lie from one index to the next, along each axis."""
    are_inside: Operand
    """Whether none leaves the input, whichever of the neighbors it reads."""


class NeighborReads(Memory):
    """Adds reads of several elements at once, wherever all lanes stay inside of the input."""

    neighbors: Mapping[Load, Neighbors] = MappingProxyType({})
    """The neighbors that each read is one of, if any."""

    def __init__(
        self, program: Program, writer: Writer, variance: Variance, *, free_order: bool
    ) -> None:
        super().__init__(program, writer, variance, free_order=free_order)
        self._places: dict[Place, Lanes] = {}

    def load(self, node: Load) -> Operand:
        found = self.neighbors.get(node) if self.writer.lanes > 1 else None
        if found is None or node in self.staged or self.pointer(node.source) in self.rings:
            return super().load(node)
        if node is found.place.first:
            self._places[found.place] = self._lanes(found.place)
        if node is found.reads[0]:
            self.values.update(zip(found.reads, self._read(found), strict=True))
        return self.values[node]

    def _read(self, found: Neighbors) -> list[Operand]:
        """Emits the reads of neighbors: together, or each by itself where one may be outside."""
        writer, lanes = self.writer, self._places[found.place]
        near, apart, done = (writer.label(stem) for stem in ("near", "apart", "read"))
        writer.branch(lanes.are_inside, near, apart)
        writer.begin(near)
        with writer.scope():
            words = self._words(found, lanes)
            starts = [start - found.start for start in found.starts]
            pairs = zip(found.reads, starts, strict=True)
            together = [self._of_words(words, start, load) for load, start in pairs]
        writer.jump(done)
        writer.begin(apart)
        with writer.scope():
            places = zip(found.reads, found.offsets, strict=True)
            single = [self._apart(load, found.place.bases, far) for load, far in places]
        there = writer.block
        writer.jump(done)
        writer.begin(done)
        return [
            writer.emit(
                a.type, f"phi {a.type} [ {a.text}, %{near} ], [ {b.text}, %{there} ]", vector=True
            )
            for a, b in zip(together, single, strict=True)
        ]

    def _apart(self, load: Load, bases: tuple[Value, ...], offsets: Index) -> Operand:
        """Emits a read by itself; its own indices may be computed only later."""
        pairs = zip(bases, offsets, strict=True)
        indices = [self._moved(self.value(base), far) for base, far in pairs]
        wide = [self.ops.convert(index, S32, S64) for index in indices]
        return self.writer.splat(self.loaded(load, None, wide))

    # -- places ----------------------------------------------------------------------------------

    def _lanes(self, place: Place) -> Lanes:
        """Emits where each lane reads, and whether all that is inside."""
        writer, ops, source = self.writer, self.ops, place.first.source
        sizes = [self.size(source, axis) for axis in range(len(place.bases))]
        far = [most - least for least, most in zip(place.least, place.most, strict=True)]
        tests, element = [], _ZERO
        for base, least, more, size in zip(place.bases, place.least, far, sizes, strict=True):
            index = self._moved(self.value(base), least)
            tests.append(self._below(index, writer.emit("i64", f"sub nsw {size}, {more}")))
            wide = ops.type_like(index, "i64")
            index = ops.emit(index, wide, f"zext {index} to {wide}")  # none inside is negative
            element = self.row_major(element, size, index)
        pitches = [_ONE]
        for size in reversed(sizes):
            pitches.insert(0, writer.emit("i64", f"mul nsw {pitches[0]}, {size.text}"))
        count, *pitches = pitches
        pixel = self._pixel(place.first)
        if place.beyond:  # what is loaded beyond the last element must be there
            last = self._distance(pitches, far)
            room = writer.emit("i64", f"sub nsw {count}, {last.text}")
            room = writer.emit("i64", f"sub nsw {room}, {-(-place.beyond // pixel)}")
            tests.append(inside(writer, element, ops.extreme("max", S64, room, _ZERO)))
        offsets = ops.binary("mul", S64, element, ops.number(element, S64, pixel))
        single = [
            writer.emit("i64", f"extractelement {offsets}, i64 {lane}")
            for lane in range(writer.lanes)
        ]
        return Lanes(offsets, single, pitches, self._all(tests))

    def _pixel(self, load: Load) -> int:
        """Returns the bytes of an element of what is read."""
        source = self.program.input(load.source)
        return source.type.size_bytes * (source.channels or 1)

    def _distance(self, pitches: Sequence[Operand], offsets: Sequence[int]) -> Operand:
        """Returns how many elements there are to one that is so far away along each axis."""
        total = _ZERO
        for pitch, far in zip(pitches, offsets, strict=True):
            part = self.writer.emit("i64", f"mul nsw {pitch}, {far}")
            total = self.writer.emit("i64", f"add nsw {total}, {part.text}")
        return total

    def _moved(self, index: Operand, far: int) -> Operand:
        return self.ops.binary("add", S32, index, self.ops.number(index, S32, far))

    def _below(self, index: Operand, size: Operand) -> Operand:
        """Returns whether an index of s32 is one of so many (i64), in each lane."""
        low = self.ops.extreme("max", S64, size, _ZERO)
        limit = self.ops.convert(self.ops.extreme("min", S64, low, _INDICES), S64, S32)
        return inside(self.writer, index, limit)

    def _all(self, tests: list[Operand]) -> Operand:
        """Returns whether all tests hold, in all lanes."""
        found = Operand("true", "i1")
        for test in tests:
            found = self.ops.binary("and", BOOL, *self.writer.alike(found, test))
        function = f"llvm.vector.reduce.and.{self.writer.suffix(found)}"
        return Operand(self.writer.call(function, "i1", found).text, "i1")

    # -- words -----------------------------------------------------------------------------------

    def _words(self, found: Neighbors, lanes: Lanes) -> list[Operand]:
        """Emits the loads: each word of all lanes as a vector."""
        writer, count, load = self.writer, found.words, found.reads[0]
        down = [
            far - least
            for far, least in zip(found.offsets[0][:-1], found.place.least[:-1], strict=True)
        ]
        rows = self._distance(lanes.pitches[:-1], down)
        bytes_ = writer.emit("i64", f"mul nsw {rows}, {self._pixel(load)}")
        bytes_ = writer.emit("i64", f"add nsw {bytes_}, {found.start}")
        start = writer.emit("ptr", f"getelementptr i8, ptr {self.pointer(load.source)}, {bytes_}")
        align = load.type.size_bytes
        if count == 1:
            text = f"getelementptr i8, {start}, {lanes.offsets}"
            places = writer.emit(writer.vector_type("ptr"), text, vector=True)
            return [self.gathered_at(places, "i32", align)]
        type, loaded = f"<{count} x i32>", []
        for offset in lanes.single:
            place = writer.emit("ptr", f"getelementptr i8, {start}, {offset}")
            loaded.append(writer.emit(type, f"load {type}, {place}, align {align}"))
        return self._turned_over(loaded, count)

    def _turned_over(self, loaded: list[Operand], count: int) -> list[Operand]:
        """Returns vectors of first words, of second words, and so on, of two or four."""
        # Block b of vector j has the words of lane 4 b + j, or of two lanes from 4 b + 2 j on.
        per_block, vectors = WORD // count, []
        for j in range(0, WORD, per_block):
            parts = [
                loaded[b + j + i] for b in range(0, len(loaded), WORD) for i in range(per_block)
            ]
            while len(parts) > 1:
                parts = [self._joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            vectors += parts
        if count == 2:
            a, b = vectors
            return [self._mixed(a, b, picks) for picks in ((0, 2, 4, 6), (1, 3, 5, 7))]
        a, b, c, d = vectors
        found = []
        for picks in ((0, 4, 1, 5), (2, 6, 3, 7)):
            first, second = self._mixed(a, b, picks), self._mixed(c, d, picks)
            found += [self._mixed(first, second, both) for both in ((0, 1, 4, 5), (2, 3, 6, 7))]
        return found

    def _joined(self, a: Operand, b: Operand) -> Operand:
        """Returns a vector of the words of both, one after another."""
        count = 2 * int(a.type[1:].split()[0])
        picks = ", ".join(f"i32 {i}" for i in range(count))
        text = f"shufflevector {a}, {b}, <{count} x i32> <{picks}>"
        return self.writer.emit(f"<{count} x i32>", text)

    def _mixed(self, a: Operand, b: Operand, picks: Sequence[int]) -> Operand:
        """Returns four words of each block of both, of which those of the second are 4 to 7."""
        lanes = self.writer.lanes
        order = ", ".join(
            f"i32 {block + pick % WORD + lanes * (pick // WORD)}"
            for block in range(0, lanes, WORD)
            for pick in picks
        )
        text = f"shufflevector {a}, {b}, <{lanes} x i32> <{order}>"
        return self.writer.emit(f"<{lanes} x i32>", text, vector=True)

    def _of_words(self, words: list[Operand], at: int, load: Load) -> Operand:
        """Returns the element that begins at a byte of the words."""
        word, ops = words[at // WORD], self.ops
        type = self.writer.vector_type(memory_type(load.type))
        if load.type.size_bytes == WORD:
            return ops.emit(word, type, f"bitcast {word} to {type}")
        if at % WORD:
            word = ops.emit(word, word.type, f"lshr {word}, splat (i32 {at % WORD * 8})")
        return ops.emit(word, type, f"trunc {word} to {type}")
