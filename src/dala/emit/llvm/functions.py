"""Emits the functions of a program: one that computes a chunk of rows, and its row spans.

The chunk function iterates over its rows. Values that are uniform along a row are computed once per
row. Then the row is split into spans: the interior, where no read can leave the row, runs in full
vectors (`fast`) and a masked last one (`tail`); both edges run element by element, with the border
rule (`slow`), or in masked vectors (`edge`) where that costs less.
"""

from __future__ import annotations

from dala.base.record import changed
from dala.emit.argument_slots import Slot, layout_of
from dala.emit.extreme_networks import extreme_networks
from dala.emit.llvm import watchdog
from dala.emit.llvm.arguments import Arguments
from dala.emit.llvm.body import Body
from dala.emit.llvm.interleaved_channels import in_channels, set_channel
from dala.emit.llvm.ir_writer import Operand, Writer, llvm_type
from dala.emit.llvm.lookups import COSTS, Lookups
from dala.emit.llvm.memory import ROW_OFFSET, output_pointer
from dala.emit.llvm.reports import Reports
from dala.emit.llvm.row_cuts import (
    Edges,
    edges_of,
    interior,
    next_positions,
    outer_positions,
    unless_empty,
    vectors,
    vectors_and_edges,
)
from dala.emit.llvm.running_folds import Carried
from dala.emit.llvm.shared_reads import SharedReads
from dala.emit.llvm.target import Options, Target
from dala.emit.llvm.tiled_rows import rows_in_tiles
from dala.emit.llvm.transposes import Tiles
from dala.emit.neighbor_reads import neighbor_reads
from dala.emit.partition import PAIR, Partition
from dala.emit.running_folds import running_folds, with_running_folds
from dala.emit.transposed_reads import transposed_reads
from dala.ir.channels import over_channels
from dala.ir.fixed_point import in_fixed_point
from dala.ir.level_tables import with_tables
from dala.ir.nodes import For, Program, Reduce, by_output
from dala.ir.pixel_words import as_words
from dala.ir.short_integers import in_short_integers
from dala.plan.watchdog import has_loops

CHUNK = ("i64 %row0", "i64 %row1", "i64 %x0", "i64 %x1")
"""The last parameters of every chunk function."""


class Functions(Arguments):
    """Emits the functions that compute a chunk of a program; `prefix` keeps their names unique."""

    def __init__(
        self,
        program: Program,
        target: Target,
        prefix: str = "",
        *,
        is_part: bool = False,
        rings: tuple[str, ...] = (),
    ) -> None:
        self.rings = rings
        self.program = with_running_folds(program)
        running = running_folds(self.program)
        self.carried = Carried(running)
        if not is_part and not running:
            narrow = as_words(in_short_integers(in_fixed_point(program)))
            self.program = with_tables(narrow, COSTS[target.permutes])
        self.target = target
        self.prefix = prefix
        self.partition = Partition(self.program, target.vector_bits, wide=target.wide)
        self.variance = self.partition.variance
        self.neighbors = neighbor_reads(self.program, self.variance, self.partition.reads)
        self.lanes = self.partition.lanes
        self.passed = self.partition.passed
        more = [Slot("report")] * bool(program.sites) + [Slot("control")] * target.watched
        self.slots = (*layout_of(program), *more, *[Slot("tee")] * target.tee)
        self.row_loops = target.watched and has_loops(self.partition.of_row)
        self.span_loops = target.watched and has_loops(self.partition.of_position)
        self.loops = self.row_loops or self.span_loops
        self.declarations: set[str] = set()
        # If all channels are treated alike, vectors hold interleaved channels, without shuffles.
        flat = over_channels(self.program) if self.lanes > 1 and not target.watched else None
        self.flat = None
        if flat is not None:
            self.flat = Functions(flat, target, f"{prefix}flat.", is_part=True, rings=rings)
        self.tables: list[Functions] = []
        if not is_part:
            plain = changed(target, streaming=False, in_place=frozenset(), tee=False, watched=False)
            self.tables = [
                Functions(table, plain, f"{prefix}table{number}.", is_part=True)
                for number, table in enumerate(self.program.tables)
            ]
        # Sums of floats that are carried on depend on which lanes are added up first.
        self.aligned = (target.wide or target.streaming) and not running
        self.edges: Edges = "slow"
        if self.lanes > 1 and not is_part:
            self.edges = edges_of(self.partition, target.vector_bits)
        turns = self.lanes > 1 and not target.watched and not running
        swaps = transposed_reads(self.program) if turns else {}
        self.tiles = Tiles(self.program, swaps, prefix) if swaps else None

    @property
    def options(self) -> Options:
        of_row = any(isinstance(item, Reduce | For) for item in self.partition.of_row)
        interior = self.flat or self
        return Options(
            vectorize=self.lanes == 1 or of_row, in_order=interior.partition.vectors > PAIR
        )

    def texts(self) -> list[str]:
        """Returns the functions as text; `rows` computes a chunk from the unpacked slots."""
        parts = [text for table in self.tables for text in table.texts()]
        made = self.flat or self
        if self.edges != "filled":
            parts.append(self._span("slow", 1))
        if self.edges != "slow":
            parts.append(self._span("edge", self.lanes))
        if self.lanes > 1:
            parts.append(made._span("fast", made.lanes))
        if self.lanes > 1 and (self.flat or self.edges != "filled"):
            parts.append(made._span("tail", made.lanes))
        if self.tiles is not None:
            parts += [*self.tiles.functions(self.program), self._span("staged", self.lanes)]
        parts.append(self._rows())
        if self.loops:
            parts.append(watchdog.refuel(self._refuel))
        for other in (self.flat, *self.tables):
            self.declarations |= other.declarations if other is not None else set()
        return parts

    @property
    def _refuel(self) -> str:
        """The function that grants loops more fuel."""
        return f"{self.prefix}refuel" if self.loops else ""

    def _row_arguments(self) -> list[str]:
        """Returns the arguments of a span beyond the slots: the row, and its per-row values."""
        positions = [f"i64 %position.{axis}" for axis in range(self.program.rank - 1)]
        passed = [f"{llvm_type(type)} %row.{i}" for i, (_, type) in enumerate(self.passed)]
        tank = [*self.carried.arguments, *["ptr %tank"] * self.span_loops]
        return [*positions, "i64 %row.offset", *passed, *tank, "i64 %x.begin", "i64 %x.end"]

    # -- spans -----------------------------------------------------------------------------------

    def _span(self, name: str, lanes: int) -> str:
        """Emits the function for the positions x.begin to x.end of one row."""
        target = self.target
        writer = Writer(lanes, has_halves=target.has_halves, has_extremes=target.has_extremes)
        body = Reports(self.program, writer, self.variance, free_order=self.lanes == 1)
        body.in_place, body.empty, body.covers = target.in_place, target.empty, target.covers
        body.register_bytes = target.vector_bits // 8
        body.rings = set(self.rings)
        if name == "staged" and self.tiles is not None:
            body.staged = self.tiles.names()
        body.at_edge = name == "edge"
        if self.edges == "filled" and name == "fast":
            body.lines = self.partition.lines_read()
        if lanes > 1:
            body.steps = self.partition.reads.steps
            body.bounded = set(self.partition.reads.bounded(self.partition.of_row))
            body.neighbors = self.neighbors
        if lanes > 1 and target.has_ranges:
            body.networks = extreme_networks(self.partition.of_position, self.program.body)
        if name == "fast":
            body.shared = SharedReads(self.program, lanes, target.vector_bits, target.permutes)
        body.watched = self._refuel
        for i, (key, type) in enumerate(self.passed):
            body.values[key] = Operand(f"%row.{i}", llvm_type(type))
        if self.span_loops:
            watchdog.begin_span(writer)
        if name != "slow":
            self.declarations |= set_channel(body)
        body.lookups = Lookups(writer, self.target.permutes)
        for number in range(len(self.program.tables)):
            body.lookups.load(f"%table.{number}")
        carried = self.carried.begin_span(body)
        writer.jump("x.head")
        writer.begin("x.head")
        place = len(writer.lines)
        more = writer.emit("i1", "icmp slt i64 %x, %x.end")
        writer.branch(more, "x.turn", "x.done")
        writer.begin("x.turn")
        if self.span_loops:
            watchdog.begin_position(writer)
        self._set_position(body)
        if name in ("tail", "edge"):
            body.left = writer.emit("i64", "sub nsw i64 %x.end, %x")
            short = writer.emit("i32", f"trunc {body.left} to i32")
            body.mask = writer.below(lanes, short)
        body.statements(self.partition.of_position)
        if target.covers and lanes > 1:
            body.cover()
        if not self.program.output.scattered:
            outputs = self.program.outputs
            results = [body.value(value) for value in self.program.body.results]
            for number, found in enumerate(by_output(outputs, results)):
                for pointer in (output_pointer(number), "%twin")[: 1 + self.target.tee]:
                    streaming = self.target.streaming and name != "staged" and self.aligned
                    body.write_row(found, pointer, outputs[number].type, streaming=streaming)
        after = writer.emit("i64", f"add nsw i64 %x, {lanes}")
        latch = writer.block
        self._loop_again(writer, "x", self.span_loops, "" if self.lanes == 1 else ", !llvm.loop !1")
        writer.lines[place:place] = [
            f"  %x = phi i64 [ %x.begin, %entry ], [ {after.text}, %{latch} ]",
            *self.carried.phis(body, carried, latch),
        ]
        writer.begin("x.done")
        self.carried.end_span(writer)
        if self.span_loops:
            watchdog.give_tank(writer)
        _return_status(writer, self.span_loops)
        self.declarations |= writer.declarations
        staged = self.tiles.arguments if name == "staged" and self.tiles is not None else []
        arguments = ", ".join([*self.arguments(declare=True), *staged, *self._row_arguments()])
        return self.defined(name, arguments, writer)

    def _loop_again(self, writer: Writer, name: str, loops: bool, metadata: str = "") -> None:
        """Emits the jump back to the loop head, unless a loop ran out of fuel."""
        if loops:
            status = writer.emit("i32", "load i32, ptr %status")
            going_on = writer.emit("i1", f"icmp eq {status}, 0")
            writer.branch(going_on, f"{name}.head", f"{name}.done", metadata)
        else:
            writer.line(f"br label %{name}.head{metadata}")

    def _set_position(self, body: Reports) -> None:
        writer, last = body.writer, self.program.rank - 1
        x = writer.emit("i32", "trunc i64 %x to i32")
        if writer.lanes > 1:
            first, lanes = writer.splat(x), writer.iota("i32")
            x = writer.emit(first.type, f"add {first}, {lanes.text}", vector=True)
        body.values[("position", last)] = x

    # -- rows ------------------------------------------------------------------------------------

    def _rows(self) -> str:
        """Emits the function that iterates over the rows of a chunk."""
        writer = Writer(has_halves=self.target.has_halves)
        body = Reports(self.program, writer, self.variance, free_order=True)
        body.in_place, body.empty = self.target.in_place, self.target.empty
        body.rings = set(self.rings)
        body.watched = self._refuel
        if self.loops:
            watchdog.begin_chunk(writer)
        self.carried.allocate(writer)
        writer.line("%some = icmp slt i64 %x0, %x1")
        writer.branch(Operand("%some", "i1"), "row.first", "row.done")
        writer.begin("row.first")
        first = [Operand("%row0", "i64"), *outer_positions(writer, self.program.rank, "%row0")]
        writer.jump("row.head")
        writer.begin("row.head")
        place = len(writer.lines)
        more = writer.emit("i1", "icmp slt i64 %row, %row1")
        writer.branch(more, "row.turn", "row.done")
        writer.begin("row.turn")
        writer.line(f"%row.offset = mul nsw i64 %row, %size.{self.program.rank - 1}")
        if self.row_loops:
            watchdog.begin_position(writer)
        self.carried.begin_row(writer)
        body.statements(self.partition.of_row)
        if self.lanes == 1:
            self.call(writer, body, "slow", "%x0", "%x1")
        elif self.flat is None:
            self._spans(writer, body)
        else:
            self._flat_spans(writer, body, self.flat)
        after = [
            writer.emit("i64", "add nsw i64 %row, 1"),
            *next_positions(writer, self.program.rank),
        ]
        latch = writer.block
        self._loop_again(writer, "row", self.loops)
        names = ["%row", *(f"%position.{axis}" for axis in range(self.program.rank - 1))]
        writer.lines[place:place] = [
            f"  {name} = phi i64 [ {a.text}, %row.first ], [ {b.text}, %{latch} ]"
            for name, a, b in zip(names, first, after, strict=True)
        ]
        writer.begin("row.done")
        if self.loops:
            watchdog.end_chunk(writer)
        _return_status(writer, self.loops)
        self.declarations |= writer.declarations
        if self.tiles is None:
            return self.defined("rows", self.chunk_arguments, writer)
        part = self.defined("part", self.chunk_arguments, writer)
        return "\n".join([part, rows_in_tiles(self, self.tiles)])

    @property
    def chunk_arguments(self) -> str:
        """The parameters of functions that compute a chunk."""
        return ", ".join([*self.arguments(declare=True), *CHUNK])

    def defined(self, name: str, arguments: str, writer: Writer) -> str:
        # Of long rows the call is no matter, and what is inlined shares registers with the rest.
        attributes = "#2" if name == "fast" and not self.target.wide else "#0"
        head = f"define internal i32 @{self.prefix}{name}({arguments}) {attributes} {{"
        return "\n".join([head, "entry:", *writer.lines, "}"])

    def positions(self, writer: Writer) -> None:
        """Emits the position along each outer axis, and the index of the row's first element."""
        found = outer_positions(writer, self.program.rank, "%row")
        for axis, position in enumerate(found):
            writer.line(f"%position.{axis} = add {position}, 0")
        writer.line(f"%row.offset = mul nsw i64 %row, %size.{self.program.rank - 1}")

    def _spans(self, writer: Writer, body: Reports) -> None:
        """Emits the calls that compute one row: its edges, and vectors in between."""
        row = body.row_start(output_pointer(0), ROW_OFFSET)
        if self.edges == "filled":
            parts = vectors_and_edges(writer, body, self.partition, row, aligned=self.aligned)
        else:
            begin, end = interior(writer, body, self.partition)
            self._edge(writer, body, "%x0", begin.text)
            output, lanes = self.program.output, self.lanes
            parts = vectors(writer, body, output, lanes, row, (begin, end))
        for name, first, last in parts:
            with unless_empty(writer, first.text, last.text):
                self.call(writer, body, name, first.text, last.text)
        if self.edges != "filled":
            self._edge(writer, body, end.text, "%x1")

    def _edge(self, writer: Writer, body: Reports, first: str, last: str) -> None:
        """Emits the calls for positions some of whose reads leave their row."""
        if self.edges == "gathered":
            room = writer.emit("i64", f"sub nsw i64 {last}, {first}")
            rest = writer.emit("i64", f"urem {room}, {self.lanes}")
            middle = writer.emit("i64", f"sub nsw i64 {last}, {rest.text}").text
            with unless_empty(writer, first, middle):
                self.call(writer, body, "edge", first, middle)
            first = middle
        with unless_empty(writer, first, last):
            self.call(writer, body, "edge" if self.edges == "filled" else "slow", first, last)

    def _flat_spans(self, writer: Writer, body: Reports, flat: Functions) -> None:
        """Emits the calls for one row whose interior is computed over interleaved channels."""
        begin, end = interior(writer, body, self.partition)
        channels = self.program.output.channels
        row = Reports(flat.program, writer, flat.variance, free_order=True)
        row.in_place = self.target.in_place
        row.statements(flat.partition.of_row)
        offset, first, last = (
            writer.emit("i64", f"mul nsw {item}, {channels}") for item in (ROW_OFFSET, begin, end)
        )
        given = in_channels(writer, self, flat)
        passed = [str(row.values[key]) for key, _ in flat.passed]
        positions = ["i64 %position.0"] * (self.program.rank - 1)
        arguments = ", ".join([*given, *positions, str(offset), *passed])
        self._edge(writer, body, "%x0", begin.text)
        output, start = flat.program.output, body.row_start(output_pointer(0), offset)
        for name, low, high in vectors(writer, body, output, flat.lanes, start, (first, last)):
            with unless_empty(writer, low.text, high.text):
                writer.emit("i32", f"call i32 @{flat.prefix}{name}({arguments}, {low}, {high})")
        self._edge(writer, body, end.text, "%x1")

    def call(
        self, writer: Writer, body: Body, name: str, first: str, last: str, *more: str
    ) -> None:
        positions = [f"i64 %position.{axis}" for axis in range(self.program.rank - 1)]
        passed = [str(body.values[key]) for key, _ in self.passed]
        given = [*self.arguments(declare=False), *more, *positions, "i64 %row.offset", *passed]
        given += [*self.carried.arguments, *["ptr %tank"] * self.span_loops]
        arguments = ", ".join([*given, f"i64 {first}", f"i64 {last}"])
        if self.span_loops:
            watchdog.give_tank(writer)
        failed = writer.emit("i32", f"call i32 @{self.prefix}{name}({arguments})")
        if self.span_loops:
            watchdog.take_tank(writer)
            status = writer.emit("i32", "load i32, ptr %status")
            both = writer.emit("i32", f"or {status}, {failed.text}")
            writer.line(f"store {both}, ptr %status")


def _return_status(writer: Writer, loops: bool) -> None:
    status = writer.emit("i32", "load i32, ptr %status") if loops else Operand("0", "i32")
    writer.line(f"ret {status}")
