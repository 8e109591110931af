"""Emits programs that do most of their work in a box: a function for it, and one for elsewhere."""

from __future__ import annotations

from dala.base.record import record
from dala.emit.llvm.functions import Functions
from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.reports import Reports
from dala.emit.llvm.target import Target
from dala.emit.llvm.tiled_rows import counted
from dala.emit.variance import Variance
from dala.ir.boxes import Box, Test, box_of
from dala.ir.fixed_point import in_fixed_point
from dala.ir.nodes import Program
from dala.ir.pixel_words import as_words

_LARGEST = (1 << 31) - 1


def functions_of(
    program: Program, target: Target, prefix: str = "", *, rings: tuple[str, ...] = ()
) -> Functions:
    """Returns the functions of a program, which are told apart by where it does its work."""
    plain = Functions(program, target, prefix, rings=rings)
    is_special = plain.program.tables or plain.tiles is not None or plain.carried.arguments
    if plain.lanes == 1 or target.watched or is_special:
        return plain
    box = box_of(in_fixed_point(program))
    return plain if box is None else BoxFunctions(program, target, prefix, box, rings)


@record
class _Edge:
    """A bound of the box in a row: where x + added is tested against a limit, in i64."""

    test: Test
    added: Operand
    limit: Operand


class BoxFunctions(Functions):
    """Emits the functions of a program with a box."""

    def __init__(
        self, program: Program, target: Target, prefix: str, box: Box, rings: tuple[str, ...]
    ) -> None:
        super().__init__(program, target, prefix, rings=rings)
        self._box = box
        self._inside, self._outside = (
            Functions(as_words(part), target, f"{prefix}{name}.", is_part=True, rings=rings)
            for part, name in ((box.inside, "inside"), (box.outside, "outside"))
        )

    def texts(self) -> list[str]:
        """Returns the functions as text."""
        parts = [*self._inside.texts(), *self._outside.texts(), self._rows()]
        self.declarations |= self._inside.declarations | self._outside.declarations
        return parts

    def _rows(self) -> str:
        """Emits the function that computes a chunk: along each row outside, inside, outside."""
        writer = Writer(has_halves=self.target.has_halves)
        bounds = self._box.bounds
        body = Reports(bounds, writer, Variance(bounds), free_order=True)
        with counted(writer, Operand("%row", "i64"), ("%row0", "%row1"), 1, "below"):
            self.positions(writer)
            body.statements(bounds.body.statements)
            meets, *rest = (body.value(value) for value in bounds.body.results)
            wide = [writer.emit("i64", f"sext {item} to i64") for item in rest]
            pairs = zip(self._box.tests, wide[::2], wide[1::2], strict=True)
            edges = [_Edge(*pair) for pair in pairs]
            writer.branch(self._may_wrap(writer, edges), "wraps", "fits")
            writer.begin("fits")
            first, last = self._span_of(writer, edges, meets)
            self._compute(writer, self._outside, "%x0", first)
            self._compute(writer, self._inside, first, last)
            self._compute(writer, self._outside, last, "%x1")
            writer.jump("row.next")
            writer.begin("wraps")
            self._one_by_one(writer, edges, meets)
        writer.line("ret i32 0")
        self.declarations |= writer.declarations
        return self.defined("rows", self.chunk_arguments, writer)

    def _compute(self, writer: Writer, part: Functions, first: str, last: str) -> None:
        """Emits the call that computes a part of a row."""
        given = ", ".join(part.arguments(declare=False))
        chunk = f"i64 %row, i64 %below, i64 {first}, i64 {last}"
        writer.line(f"call i32 @{part.prefix}rows({given}, {chunk})")

    def _may_wrap(self, writer: Writer, edges: list[_Edge]) -> Operand:
        """Emits whether x + added may be no s32 somewhere in the row."""
        found = Operand("false", "i1")
        for edge in edges:
            most = writer.emit("i64", f"add nsw i64 %x1, {edge.added.text}")
            beyond = writer.emit("i1", f"icmp sgt {most}, {_LARGEST}")
            found = writer.emit("i1", f"or {found}, {beyond.text}")
        return found

    def _span_of(self, writer: Writer, edges: list[_Edge], meets: Operand) -> tuple[str, str]:
        """Emits where the box begins and ends in the row; at its end, if it is not there."""
        begin, end = "%x0", "%x1"
        for edge in edges:
            place = writer.emit("i64", f"sub nsw {edge.limit}, {edge.added.text}").text
            if edge.test in ("gt", "le"):
                place = writer.emit("i64", f"add nsw i64 {place}, 1").text
            if edge.test in ("gt", "ge"):
                begin = _picked(writer, "sgt", place, begin)
            else:
                end = _picked(writer, "slt", place, end)
        some = writer.emit("i1", f"icmp slt i64 {begin}, {end}")
        some = writer.emit("i1", f"and {some}, {meets.text}")
        return tuple(
            writer.emit("i64", f"select {some}, i64 {item}, i64 %x1").text for item in (begin, end)
        )  # type: ignore[return-value]

    def _one_by_one(self, writer: Writer, edges: list[_Edge], meets: Operand) -> None:
        """Emits a loop that tests each position of the row in s32."""
        with counted(writer, Operand("%x", "i64"), ("%x0", "%x1"), 1, "beside"):
            found = meets
            for edge in edges:
                place = writer.emit("i64", f"add i64 %x, {edge.added.text}")
                near, limit = (
                    writer.emit("i32", f"trunc {item} to i32") for item in (place, edge.limit)
                )
                holds = writer.emit("i1", f"icmp s{edge.test} {near}, {limit.text}")
                found = writer.emit("i1", f"and {found}, {holds.text}")
            writer.branch(found, "within", "beyond")
            writer.begin("within")
            self._compute(writer, self._inside, "%x", "%beside")
            writer.jump("x.next")
            writer.begin("beyond")
            self._compute(writer, self._outside, "%x", "%beside")


def _picked(writer: Writer, test: str, a: str, b: str) -> str:
    """Emits one of two numbers: the first, if the test holds of them."""
    holds = writer.emit("i1", f"icmp {test} i64 {a}, {b}")
    return writer.emit("i64", f"select {holds}, i64 {a}, i64 {b}").text
