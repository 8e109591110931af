"""Emits the channel of each lane, for programs over interleaved channels."""

from __future__ import annotations

from dala.emit.llvm.body import Body
from dala.ir.nodes import Channel, used


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
