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
    """Its type in LLVM IR; the bits of a float that is only stored."""
    wgsl: str
    """The type that it is computed in in WGSL; the bits of a float that is only stored."""
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
        if self.numpy_name == "bfloat16":
            return _bfloat16()
        return np.dtype(self.numpy_name)

    @property
    def is_storage(self) -> bool:
        """Whether it is a float of 16 bits: stored as such, computed with as f32."""
        return self.kind == "f" and self.bits == 16

    @property
    def computed(self) -> Scalar:
        """Returns the type that its values are computed in."""
        return F32 if self.is_storage else self

    @property
    def white(self) -> int:
        """Returns the level of white in an image: 1 for floats, the highest of u8 and u16."""
        return 1 if self.is_float else self.highest

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
BOOL = Scalar("bool", "b", 1, "bool", "?", "i1", "bool", "")
"""Stored as a byte that is 0 or 1."""
S8 = Scalar("s8", "s", 8, "int8", "b", "i8", "i32", "i")
S16 = Scalar("s16", "s", 16, "int16", "h", "i16", "i32", "i")
U16 = Scalar("u16", "u", 16, "uint16", "H", "i16", "u32", "u")
U64 = Scalar("u64", "u", 64, "uint64", "Q", "i64", "u64", "lu")
F16 = Scalar("f16", "f", 16, "float16", "e", "i16", "u32", "u")
BF16 = Scalar("bf16", "f", 16, "bfloat16", "H", "i16", "u32", "u")
"""The upper half of an f32; its arrays need the package `ml_dtypes`."""
N16 = Scalar("n16", "u", 16, "uint16", "H", "i16", "u32", "u")
"""Levels of u8 with bits to spare: for intermediates on the CPU, where 16 bits are twice as fast as
32; never a user's dtype."""

_USERS = (F32, F64, S32, S64, U32, U8, BOOL, S8, S16, U16, U64, F16, BF16)
DTYPES = {scalar.name: scalar for scalar in _USERS}
"""The dtypes that a user's buffer can have, by name."""
DtypeName: TypeAlias = Literal[
    "f32", "f64", "s32", "s64", "u32", "u8", "bool", "s8", "s16", "u16", "u64", "f16", "bf16"
]
"""The names of `DTYPES`, for type checkers; a test compares both."""
NumpyName: TypeAlias = Literal[
    "float32",
    "float64",
    "int32",
    "int64",
    "uint32",
    "uint8",
    "bool",
    "int8",
    "int16",
    "uint16",
    "uint64",
    "float16",
    "bfloat16",
]
DtypeLike: TypeAlias = DtypeName | NumpyName | Scalar | np.dtype[Any] | type[Any]
"""What stands for a dtype."""
IMAGES = (U8, U16, F32, F16)
"""The dtypes that an image can have."""
SCALARS = {**DTYPES, N16.name: N16}
"""All scalar types, by name."""
_BY_NUMPY = {item.numpy_name: item for item in _USERS}


def dtype_of(given: object) -> Scalar:
    """Returns the storage type for a name (`"f32"`), a NumPy dtype or its name."""
    if isinstance(given, str) and (known := DTYPES.get(given) or _BY_NUMPY.get(given)):
        return known
    if isinstance(given, Scalar):
        return given
    try:
        if given is None:
            raise TypeError  # NumPy would take it for float64
        dtype = np.dtype(given)  # type: ignore[call-overload]
        if not dtype.isnative or dtype.subdtype is not None:
            raise TypeError
        return _BY_NUMPY[dtype.name]
    except (TypeError, KeyError, ValueError):
        raise DtypeError(
            f"dtype {given!r} is not one that a buffer can have: give one of {', '.join(DTYPES)} "
            f"(or the NumPy dtype of the same width, such as float32)."
        ) from None


def _bfloat16() -> np.dtype:
    try:
        import ml_dtypes
    except ImportError:
        raise DtypeError(
            "NumPy has no arrays of bf16 by itself: pip install ml_dtypes, or use f16 or f32."
        ) from None
    dtype: np.dtype = np.dtype(ml_dtypes.bfloat16)
    return dtype


def promote(a: Scalar, b: Scalar) -> Scalar | None:
    """Returns the common type of `a` and `b`, or None if an explicit conversion is required.

    Floats win over integers, and those of 16 bits are computed in f32; beside 64 bits it is f64.
    Integers of one sign meet in the wider type; of both, in a signed type that holds either, if
    every GPU has it.
    """
    if a == b:
        return a
    if BOOL in (a, b):
        return b if a == BOOL else a
    if a.is_float or b.is_float:
        return F64 if a.bits == 64 or b.bits == 64 else F32
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.kind == "s" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return {8: S16, 16: S32}.get(unsigned.bits)
