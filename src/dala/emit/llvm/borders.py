"""Border rules as index arithmetic in LLVM IR."""

from __future__ import annotations

from dala.emit.llvm.ir_writer import Operand, Writer
from dala.emit.llvm.ops import Ops
from dala.ir.nodes import Border
from dala.ir.types import S64


def inside(writer: Writer, index: Operand, size: Operand) -> Operand:
    """Emits the test 0 <= index < size for i64 operands."""
    index, size = writer.alike(index, size)
    type = writer.vector_type("i1") if index.vector else "i1"
    return writer.emit(type, f"icmp ult {index}, {size.text}", index.vector)


def bordered(writer: Writer, border: Border, index: Operand, size: Operand) -> Operand:
    """Emits the index clamped, mirrored or wrapped into 0..size-1; sizes are at least 1."""
    ops = Ops(writer)
    index, size = writer.alike(index, size)
    zero, one = ops.number(index, S64, 0), ops.number(index, S64, 1)
    last = ops.emit(size, size.type, f"sub {size}, {one.text}")
    if border in ("clamp", "zero"):
        return ops.extreme("min", S64, ops.extreme("max", S64, index, zero), last)
    if border == "wrap":
        return ops.binary("mod", S64, index, size)
    period_base = last if border == "mirror" else size
    doubled = ops.emit(size, size.type, f"shl {period_base}, {one.text}")
    period = ops.extreme("max", S64, doubled, one)
    folded = ops.binary("mod", S64, index, period)
    far_end = (
        period if border == "mirror" else ops.emit(size, size.type, f"sub {period}, {one.text}")
    )
    turned = ops.emit(size, size.type, f"sub {far_end}, {folded.text}")
    return ops.extreme("min", S64, folded, turned)
