"""Rows of several inputs, one after another in each row of the output."""

from __future__ import annotations

from dala.emit.llvm.functions import CHUNK
from dala.emit.llvm.module import ENTRY, module_text

_COPY = "llvm.memcpy.p0.p0.i64"


def row_copies(count: int) -> str:
    """Returns the module that joins rows of so many inputs.

    Its arguments are the output, the inputs, and the bytes that a row of each of them has.
    """
    names = ["out", *(f"in.{i}" for i in range(count))]
    lines = []
    for i, name in enumerate([*names, *(f"{name}.bytes" for name in names)]):
        lines.append(f"  %slot.{i} = getelementptr i64, ptr %slots, i64 {i}")
        lines.append(f"  %{name} = load {'ptr' if i < len(names) else 'i64'}, ptr %slot.{i}")
    lines += [
        "  br label %row.head",
        "row.head:",
        "  %row = phi i64 [ %row0, %entry ], [ %row.next, %row.head ]",
        "  %by = mul i64 %row, %out.bytes",
        "  %to.0 = getelementptr i8, ptr %out, i64 %by",
    ]
    for i, name in enumerate(names[1:]):
        lines += [
            f"  %{name}.by = mul i64 %row, %{name}.bytes",
            f"  %{name}.from = getelementptr i8, ptr %{name}, i64 %{name}.by",
            f"  call void @{_COPY}(ptr %to.{i}, ptr %{name}.from, i64 %{name}.bytes, i1 false)",
            f"  %to.{i + 1} = getelementptr i8, ptr %to.{i}, i64 %{name}.bytes",
        ]
    lines += [
        "  %row.next = add i64 %row, 1",
        "  %more = icmp slt i64 %row.next, %row1",
        "  br i1 %more, label %row.head, label %done",
        "done:",
        "  ret i32 0",
    ]
    head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0 {{"
    text = "\n".join([head, "entry:", *lines, "}"])
    return module_text("join rows", {f"declare void @{_COPY}(ptr, ptr, i64, i1)"}, [text])
