"""Emits what programs over interleaved channels need: each lane's channel, widths in channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.emit.llvm.body import Body
from dala.emit.llvm.ir_writer import Writer
from dala.ir.nodes import Channel, used

if TYPE_CHECKING:
    from dala.emit.llvm.functions import Functions


def set_channel(body: Body) -> set[str]:
    """Emits the channel of each lane where a span begins, and returns what it declares.

    It is the same in all vectors of a span.
    """
    counts = {item.count for item in used(body.program.body) if isinstance(item, Channel)}
    if not counts:
        return set()
    writer, count = body.writer, counts.pop()
    length = writer.lanes + count
    numbers = ", ".join(f"i8 {i % count}" for i in range(length))
    pattern = f"@channels.{count}.{writer.lanes}"
    first = writer.emit("i64", f"urem i64 %x.begin, {count}")
    place = writer.emit("ptr", f"getelementptr i8, ptr {pattern}, {first}")
    type = writer.vector_type("i8")
    body.values["channel"] = writer.emit(type, f"load {type}, {place}, align 1", vector=True)
    return {f"{pattern} = private constant [{length} x i8] [{numbers}]"}


def in_channels(writer: Writer, functions: Functions, flat: Functions) -> list[str]:
    """Returns the arguments of the flat program, whose image widths count channels."""
    program = functions.program
    images, last = {item.name for item in program.inputs if item.channels}, program.rank - 1
    arguments = []
    for slot in flat.slots:
        name = flat.argument(slot)
        is_width = slot.axis == last and (slot.kind == "size" or slot.source in images)
        if is_width and slot.kind in ("size", "input size"):
            name = writer.emit("i64", f"mul nsw i64 {name}, {program.output.channels}").text
        arguments.append(f"{flat.argument_type(slot)} {name}")
    return [*arguments, *flat.more_arguments]
