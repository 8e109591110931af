"""The scalar types that buffers store and kernels compute with."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from dala.base.record import record
from dala.errors import DtypeError


@record
class Scalar:
    """A scalar type: one row of the table below."""

    name: str
    """Its name in the API."""
    kind: Literal["f", "s", "u", "b"]
    """Float, signed, unsigned or bool."""
    bits: int
    numpy_name: str
    code: str
    """Its format character in the `struct` module."""
    llvm: str
    """Its type in LLVM IR."""
    wgsl: str
    """The type that it is computed in in WGSL."""
    suffix: str
    """The suffix of its literals in WGSL."""

    @cached_property
    def size_bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def per_word(self) -> int:
        """Returns how many of them share a 32-bit word of GPU storage."""
        return max(1, 4 // self.size_bytes)

    @cached_property
    def numpy(self) -> np.dtype:
        return np.dtype(self.numpy_name)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.kind in "su"

    @property
    def lowest(self) -> int:
        """Returns the smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "s" else 0

    @property
    def highest(self) -> int:
        """Returns the largest value of an integer type."""
        return (1 << (self.bits - (self.kind == "s"))) - 1

    def __str__(self) -> str:
        return self.name


F32 = Scalar("f32", "f", 32, "float32", "f", "float", "f32", "f")
F64 = Scalar("f64", "f", 64, "float64", "d", "double", "f64", "lf")
S32 = Scalar("s32", "s", 32, "int32", "i", "i32", "i32", "i")
S64 = Scalar("s64", "s", 64, "int64", "q", "i64", "i64", "li")
U32 = Scalar("u32", "u", 32, "uint32", "I", "i32", "u32", "u")
U8 = Scalar("u8", "u", 8, "uint8", "B", "i8", "u32", "u")
U16 = Scalar("u16", "u", 16, "uint16", "H", "i16", "u32", "u")
"""For intermediates on the CPU, where it is twice as fast as 32 bits; never a user's dtype."""
BOOL = Scalar("bool", "b", 1, "bool", "?", "i1", "bool", "")

DTYPES = {scalar.name: scalar for scalar in (F32, F64, S32, S64, U32, U8)}
"""The dtypes that a user's buffer can have, by name."""
DtypeName: TypeAlias = Literal["f32", "f64", "s32", "s64", "u32", "u8"]
"""The names of `DTYPES`, for type checkers; a test compares both."""
NumpyName: TypeAlias = Literal["float32", "float64", "int32", "int64", "uint32", "uint8"]
DtypeLike: TypeAlias = DtypeName | NumpyName | Scalar | np.dtype[Any] | type[Any]
"""What stands for a dtype."""
STORED = {**DTYPES, U16.name: U16}
"""The types that memory can store, by name."""
SCALARS = {**STORED, BOOL.name: BOOL}
"""All scalar types, by name."""
_BY_NUMPY = {scalar.numpy: scalar for scalar in DTYPES.values()}


def dtype_of(given: object) -> Scalar:
    """Returns the storage type for a name (`"f32"`), a NumPy dtype or its name."""
    if isinstance(given, str) and given in DTYPES:
        return DTYPES[given]
    if isinstance(given, Scalar) and given != BOOL:
        return given
    try:
        if given is None:
            raise TypeError  # NumPy would take it for float64
        return _BY_NUMPY[np.dtype(given)]  # type: ignore[call-overload]
    except (TypeError, KeyError, ValueError):
        raise DtypeError(
            f"dtype {given!r} is not one that a buffer can have: give one of {', '.join(DTYPES)} "
            f"(or the NumPy dtype of the same width, such as float32)."
        ) from None


def promote(a: Scalar, b: Scalar) -> Scalar | None:
    """Returns the common type of `a` and `b`, or None if an explicit conversion is required.

    Floats win over integers, wide types over narrow ones; s64 and f32 promote to f64. s32 and u32
    each hold values that the other does not, and no wider type exists on every GPU.
    """
    if a == b:
        return a
    if BOOL in (a, b):
        other = b if a == BOOL else a
        return other
    if a.is_float or b.is_float:
        wide = F64 in (a, b) or S64 in (a, b)
        return F64 if wide else F32
    if {a, b} == {S32, U32}:
        return None
    return a if a.bits > b.bits else b
