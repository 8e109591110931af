"""Emits conversions of 16-bit floats, whose values are their bits in the emitted code.

By an instruction where the CPU has one, else by integer operations: LLVM would call functions of a
library that is not linked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.emit.llvm.ir_writer import Operand, llvm_type
from dala.ir.types import BF16, F32, U16, U32, Scalar

if TYPE_CHECKING:
    from dala.emit.llvm.ops import Ops

_REBIASED = 112 << 23
"""What the exponents of f32 and f16 are apart, in the place of an f32's exponent."""


def widened(ops: Ops, a: Operand, source: Scalar) -> Operand:
    """Returns the f32 that 16 bits stand for."""
    to = ops.type_like(a, llvm_type(F32))
    if source != BF16 and ops.writer.has_halves:
        half = ops.type_like(a, "half")
        return ops.emit(a, to, f"fpext {ops.emit(a, half, f'bitcast {a} to {half}')} to {to}")
    bits = ops.convert(a, U16, U32)
    if source == BF16:
        return _float(ops, _shifted(ops, "shl", bits, 16))
    sign = _shifted(ops, "shl", _masked(ops, bits, 0x8000), 16)
    rest = _masked(ops, bits, 0x7FFF)
    moved = _shifted(ops, "shl", rest, 13)
    normal = ops.binary("add", U32, moved, ops.number(bits, U32, _REBIASED))
    endless = ops.binary("or", U32, moved, ops.number(bits, U32, 0x7F800000))
    count = ops.convert(rest, U32, F32)
    tiny = _bits(ops, ops.binary("mul", F32, count, ops.number(a, F32, 2.0**-24)))
    is_tiny = ops.compare("lt", U32, rest, ops.number(bits, U32, 0x0400))
    is_endless = ops.compare("ge", U32, rest, ops.number(bits, U32, 0x7C00))
    found = ops.select(is_endless, endless, ops.select(is_tiny, tiny, normal))
    return _float(ops, ops.binary("or", U32, sign, found))


def narrowed(ops: Ops, a: Operand, to: Scalar) -> Operand:
    """Returns the bits of an f32 rounded to 16; what is too large becomes infinite."""
    if to != BF16 and ops.writer.has_halves:
        half, type = ops.type_like(a, "half"), ops.type_like(a, llvm_type(to))
        rounded = ops.emit(a, half, f"fptrunc {a} to {half}")
        return ops.emit(a, type, f"bitcast {rounded} to {type}")
    bits = _bits(ops, a)
    size = _masked(ops, bits, 0x7FFFFFFF)
    is_nan = ops.compare("gt", U32, size, ops.number(bits, U32, 0x7F800000))
    if to == BF16:
        quiet = ops.binary("or", U32, bits, ops.number(bits, U32, 0x400000))
        found = ops.select(is_nan, quiet, _rounded(ops, bits, 16))
        return ops.convert(_shifted(ops, "shr", found, 16), U32, U16)
    sign = _shifted(ops, "shr", _masked(ops, bits, 0x80000000), 16)
    rebiased = ops.binary("sub", U32, size, ops.number(bits, U32, _REBIASED))
    normal = _shifted(ops, "shr", _rounded(ops, rebiased, 13), 13)
    scaled = ops.binary("mul", F32, _float(ops, size), ops.number(a, F32, 2.0**24))
    is_tiny = ops.compare("lt", U32, size, ops.number(bits, U32, 0x38800000))
    bounded = ops.select(is_tiny, scaled, ops.number(a, F32, 0.0))
    whole = ops.intrinsic("roundeven", bounded)
    count = ops.type_like(a, llvm_type(U32))
    tiny = ops.emit(a, count, f"fptoui {whole} to {count}")
    is_endless = ops.compare("ge", U32, size, ops.number(bits, U32, 0x477FF000))
    found = ops.select(is_tiny, tiny, normal)
    found = ops.select(is_endless, ops.number(bits, U32, 0x7C00), found)
    payload = _masked(ops, _shifted(ops, "shr", size, 13), 0x3FF)
    nan = ops.binary("or", U32, payload, ops.number(bits, U32, 0x7E00))
    found = ops.select(is_nan, nan, found)
    return ops.convert(ops.binary("or", U32, sign, found), U32, U16)


def _rounded(ops: Ops, bits: Operand, dropped: int) -> Operand:
    """Returns integers plus what rounds them to even once their lower bits are dropped."""
    odd = _masked(ops, _shifted(ops, "shr", bits, dropped), 1)
    half = ops.number(bits, U32, (1 << (dropped - 1)) - 1)
    return ops.binary("add", U32, bits, ops.binary("add", U32, odd, half))


def _masked(ops: Ops, bits: Operand, mask: int) -> Operand:
    return ops.binary("and", U32, bits, ops.number(bits, U32, mask))


def _shifted(ops: Ops, op: str, bits: Operand, count: int) -> Operand:
    return ops.binary(op, U32, bits, ops.number(bits, U32, count))


def _bits(ops: Ops, a: Operand) -> Operand:
    to = ops.type_like(a, llvm_type(U32))
    return ops.emit(a, to, f"bitcast {a} to {to}")


def _float(ops: Ops, bits: Operand) -> Operand:
    to = ops.type_like(bits, llvm_type(F32))
    return ops.emit(bits, to, f"bitcast {bits} to {to}")
