"""Emits where rows lie and are cut: into the interior and its edges, and into vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from dala.emit.llvm.borders import inside
from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.memory import ZERO, Memory, fills_edges
from dala.emit.partition import Partition
from dala.emit.row_reads import Step
from dala.emit.running_folds import running_folds
from dala.ir.access import offset_from
from dala.ir.nodes import Load, Output
from dala.ir.types import BOOL, S64

LINE_BYTES = 64
"""A cache line."""
MASKED_BITS = {512: 8, 256: 32, 128: 128}
"""The narrowest elements of which vectors are loaded in part, by the width of vectors."""


def outer_positions(writer: Writer, rank: int, row: str) -> list[Operand]:
    """Emits the position of a row along each axis but the last."""
    found: list[Operand] = []
    for axis in range(rank - 2, 0, -1):
        found.append(writer.emit("i64", f"urem i64 {row}, %size.{axis}"))
        row = writer.emit("i64", f"udiv i64 {row}, %size.{axis}").text
    return [Operand(row, "i64"), *reversed(found)] if rank > 1 else []


def next_positions(writer: Writer, rank: int) -> list[Operand]:
    """Emits the position of the next row: one more, and 0 with a carry at the end of an axis."""
    found: list[Operand] = []
    carry = Operand("1", "i64")
    for axis in range(rank - 2, -1, -1):
        after = writer.emit("i64", f"add nsw i64 %position.{axis}, {carry.text}")
        if axis:
            over = writer.emit("i1", f"icmp eq {after}, %size.{axis}")
            after = writer.emit("i64", f"select {over}, i64 0, {after}")
            carry = writer.emit("i64", f"zext {over} to i64")
        found.append(after)
    return found[::-1]


Edges = Literal["slow", "gathered", "filled"]
"""How positions are computed some of whose reads leave their row.

One by one; in vectors of gathers, where there may be many of them; or in vectors of loads that are
filled with the border.
"""


def edges_of(partition: Partition, vector_bits: int) -> Edges:
    """Returns how the edges of rows are computed."""
    reads, program = partition.boundary_reads(), partition.program
    if running_folds(program):
        return "filled"
    steps = partition.reads.steps
    if all(fills_edges(program, load) and steps[load].over == 1 for load in reads):
        narrowest = min((program.input(load.source).type.bits for load in reads), default=0)
        return "filled" if reads and narrowest >= MASKED_BITS[vector_bits] else "slow"
    last = program.rank - 1
    far = any(load.index and offset_from(load.index[-1], last) is None for load in reads)
    return "gathered" if far else "slow"


def interior(writer: Writer, body: Memory, partition: Partition) -> tuple[Operand, Operand]:
    """Emits the bounds of the interior: the positions whose reads all stay in their rows."""
    begin, end = Operand("%x0", "i64"), Operand("%x1", "i64")
    for load in partition.boundary_reads():
        least, stop = _inside(writer, body, load, partition.reads.steps[load])
        begin = body.ops.intrinsic("smax", begin, least)
        end = body.ops.intrinsic("smin", end, stop)
    begin = body.ops.intrinsic("smin", begin, Operand("%x1", "i64"))
    return begin, body.ops.intrinsic("smax", begin, end)


def _inside(writer: Writer, body: Memory, load: Load, step: Step) -> tuple[Operand, Operand]:
    """Emits the first position at which a read stays in its row, and that after the last."""
    assert load.index is not None
    size = body.size(load.source, len(load.index) - 1)
    start = body.index_at(ZERO, load.index[-1])
    start = writer.emit("i64", f"sub nsw {start}, {step.phase}")
    if step.by < 0:
        after = writer.emit("i64", f"sub nsw {start}, {size.text}")
        least, stop = (writer.emit("i64", f"add nsw {item}, 1") for item in (after, start))
        return least, stop
    room = writer.emit("i64", f"sub nsw {size}, {start.text}")
    if step.dividend is not None:
        # Vectors may have one element more than what is read of them.
        rest = body.ops.binary(
            *("mod", S64, body.index_at(ZERO, step.dividend), Operand(str(step.over), "i64"))
        )
        start = writer.emit("i64", f"mul nsw {start}, {step.over}")
        start = writer.emit("i64", f"add nsw {start}, {rest.text}")
        room = writer.emit("i64", f"mul nsw {room}, {step.over}")
        room = writer.emit("i64", f"sub nsw {room}, {rest.text}")
        room = writer.emit("i64", f"add nsw {room}, {step.by - 1 - step.over}")
    before = writer.emit("i64", f"sub nsw i64 {step.by - 1}, {start.text}")
    if step.by == 1:
        return before, room
    by = Operand(str(step.by), "i64")
    return (
        body.ops.binary("floordiv", S64, before, by),
        body.ops.binary("floordiv", S64, room, by),
    )


def vectors(
    writer: Writer,
    body: Memory,
    output: Output,
    lanes: int,
    row: tuple[str, Operand],
    ends: tuple[Operand, ...],
) -> Iterator[tuple[str, Operand, Operand]]:
    """Emits where the interior of a row is cut: full vectors begin with a cache line.

    `row` is an address, and the index from there of the row's first element; yields the functions
    that compute the parts.
    """
    first, last = ends
    start = body.ops.intrinsic("smin", _aligned(writer, output, row, first), last)
    _, middle = _full_vectors(writer, lanes, start, last)
    yield from (("tail", first, start), ("fast", start, middle), ("tail", middle, last))


def vectors_and_edges(
    writer: Writer,
    body: Memory,
    partition: Partition,
    row: tuple[str, Operand],
    *,
    aligned: bool,
) -> Iterator[tuple[str, Operand, Operand]]:
    """Emits where a row is cut whose edges run in vectors.

    All of it is edge if there is no room for a full vector, or if a row outside is read. Full ones
    begin with a cache line if they are to be aligned, else so many lanes after each other.
    """
    output, lanes = partition.program.output, partition.lanes
    begin, end = interior(writer, body, partition)
    first, last = Operand("%x0", "i64"), Operand("%x1", "i64")
    if aligned:
        start = _aligned(writer, output, row, begin)
    else:
        before = writer.emit("i64", f"sub nsw {begin}, {first.text}")
        far = writer.emit("i64", f"add nsw {before}, {lanes - 1}")
        rest = writer.emit("i64", f"urem {far}, {lanes}")
        start = writer.emit("i64", f"sub nsw {far}, {rest.text}")
        start = writer.emit("i64", f"add nsw {start}, {first.text}")
    room, middle = _full_vectors(writer, lanes, start, end)
    fits = writer.emit("i1", f"icmp sge {room}, {lanes}")
    for source, axis, value in partition.lines_read():
        within = inside(writer, body.wide_index(value), body.size(source, axis))
        fits = body.ops.binary("and", BOOL, fits, within)
    start, middle = (body.ops.select(fits, item, last) for item in (start, middle))
    yield from (("edge", first, start), ("fast", start, middle), ("edge", middle, last))


def _full_vectors(
    writer: Writer, lanes: int, start: Operand, end: Operand
) -> tuple[Operand, Operand]:
    """Emits how many positions there are, and where the last full vector of them ends."""
    room = writer.emit("i64", f"sub nsw {end}, {start.text}")
    rest = writer.emit("i64", f"urem {room}, {lanes}")
    return room, writer.emit("i64", f"sub nsw {end}, {rest.text}")


def _aligned(writer: Writer, output: Output, row: tuple[str, Operand], begin: Operand) -> Operand:
    """Emits the first position from `begin` on whose element begins a cache line.

    A store across two lines costs as much as two, and streaming stores must not be.
    """
    size = output.type.size_bytes * (output.channels or 1)
    base, first = row
    address = writer.emit("i64", f"ptrtoint ptr {base} to i64")
    element = writer.emit("i64", f"add {first}, {begin.text}")
    offset = writer.emit("i64", f"mul {element}, {size}")
    here = writer.emit("i64", f"add {address}, {offset.text}")
    back = writer.emit("i64", f"sub i64 0, {here.text}")
    bytes_ = writer.emit("i64", f"and {back}, {LINE_BYTES - 1}")
    count = writer.emit("i64", f"udiv {bytes_}, {size}")
    return writer.emit("i64", f"add {begin}, {count.text}")


@contextmanager
def unless_empty(writer: Writer, first: str, last: str) -> Iterator[None]:
    """Guards the code emitted inside, which runs only if first < last."""
    call, after = writer.label("span"), writer.label("spanned")
    some = writer.emit("i1", f"icmp slt i64 {first}, {last}")
    writer.branch(some, call, after)
    writer.begin(call)
    yield
    writer.jump(after)
    writer.begin(after)
