"""Emits the function that computes a chunk in tiles, for programs that swap rows and columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.reports import Reports
from dala.emit.llvm.transposes import TILE_ROWS, Tiles
from dala.ir.types import BOOL

if TYPE_CHECKING:
    from dala.emit.llvm.functions import Functions

X, ROW = Operand("%left", "i64"), Operand("%top", "i64")
"""Where a tile begins."""


def rows_in_tiles(functions: Functions, tiles: Tiles) -> str:
    """Returns the function `rows`: whole tiles by `staged`, and by `part` what is left."""
    writer = Writer(has_halves=functions.target.has_halves)
    body = Reports(functions.program, writer, functions.variance, free_order=True)
    body.in_place = functions.target.in_place
    given = ", ".join(functions.arguments(declare=False))
    memories = tiles.allocate(body)
    with (
        counted(writer, X, ("%x0", "%x1"), tiles.width, "right"),
        counted(writer, ROW, ("%row0", "%row1"), TILE_ROWS, "bottom"),
    ):
        width = writer.emit("i64", f"sub nsw i64 %right, {X.text}")
        rows = writer.emit("i64", f"sub nsw i64 %bottom, {ROW.text}")
        elements = writer.emit("i64", f"mul nsw {width}, {rows.text}")
        whole = writer.emit("i1", f"icmp eq {elements}, {tiles.width * TILE_ROWS}")
        fits = body.ops.binary("and", BOOL, whole, tiles.is_inside(body, X, ROW))
        writer.branch(fits, "whole", "cut")
        writer.begin("cut")
        cut = f"{given}, {ROW}, i64 %bottom, {X}, i64 %right"
        writer.line(f"call i32 @{functions.prefix}part({cut})")
        writer.jump("top.next")
        writer.begin("whole")
        tiles.fill(body, memories, X, ROW)
        with counted(writer, Operand("%row", "i64"), (ROW.text, "%bottom"), 1, "after"):
            functions.positions(writer)
            body.statements(functions.partition.of_row)
            number = writer.emit("i64", f"sub nsw i64 %row, {ROW.text}")
            staged = tiles.rows(body, memories, X, number)
            functions.call(writer, body, "staged", X.text, "%right", staged)
    writer.line("ret i32 0")
    functions.declarations |= writer.declarations
    return functions.defined("rows", functions.chunk_arguments, writer)


@contextmanager
def counted(
    writer: Writer, counter: Operand, ends: tuple[str, str], step: int, after: str
) -> Iterator[None]:
    """Emits a loop from one end to the other; `%after` is where an iteration ends."""
    before, (first, last), name = writer.block, ends, counter.text[1:]
    writer.jump(f"{name}.head")
    writer.begin(f"{name}.head")
    place = len(writer.lines)
    more = writer.emit("i1", f"icmp slt {counter}, {last}")
    writer.branch(more, f"{name}.turn", f"{name}.done")
    writer.begin(f"{name}.turn")
    far = writer.emit("i64", f"add nsw {counter}, {step}")
    short = writer.emit("i1", f"icmp slt {far}, {last}")
    writer.line(f"%{after} = select {short}, {far}, i64 {last}")
    yield
    writer.jump(f"{name}.next")
    writer.begin(f"{name}.next")
    writer.jump(f"{name}.head")
    phi = f"  {counter.text} = phi i64 [ {first}, %{before} ], [ {far.text}, %{name}.next ]"
    writer.lines.insert(place, phi)
    writer.begin(f"{name}.done")
