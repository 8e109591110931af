"""Reference semantics of each operation in NumPy, for constant folding and for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dala.ir.ops import BITCAST, CONVERT, SELECT
from dala.ir.types import BOOL, Scalar

Array = Any  # a NumPy array or scalar of the operand's dtype


def _floordiv(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b).astype(b.dtype)))


def _mod(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b).astype(b.dtype)))


def _min(a: Array, b: Array) -> Array:
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def _max(a: Array, b: Array) -> Array:
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _fma(a: Array, b: Array, c: Array) -> Array:
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def _count(b: Array) -> Array:
    return b & b.dtype.type(b.dtype.itemsize * 8 - 1)


def _bits(a: Array) -> Array:
    """Returns the bits of each integer along one more axis, the highest first."""
    stored = np.asarray(a).astype(a.dtype.newbyteorder(">"))[..., np.newaxis]
    return np.unpackbits(stored.view(np.uint8), axis=-1)


def _packed(bits: Array, dtype: np.dtype) -> Array:
    packed = np.packbits(bits, axis=-1).view(dtype.newbyteorder(">"))
    return packed[..., 0].astype(dtype)


def _upper_half(a: Array, b: Array) -> Array:
    double = np.int64 if a.dtype.kind == "i" else np.uint64
    return (a.astype(double) * b.astype(double)) >> double(a.dtype.itemsize * 8)


_NUMPY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "mulhi": _upper_half,
    "fma": _fma,
    "div": np.divide,
    "floordiv": _floordiv,
    "mod": _mod,
    "min": _min,
    "max": _max,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "popcount": lambda a: _bits(a).sum(-1),
    "clz": lambda a: np.cumprod(1 - _bits(a), -1).sum(-1),
    "reverse_bits": lambda a: _packed(_bits(a)[..., ::-1], a.dtype),
    "shl": lambda a, b: np.left_shift(a, _count(b)),
    "shr": lambda a, b: np.right_shift(a, _count(b)),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    SELECT: np.where,
}


def convert(value: Array, to: Scalar) -> Array:
    """Converts a value: floats round to even and saturate (NaN becomes 0), integers wrap."""
    value = np.asarray(value)
    if to == BOOL:
        return value != 0
    if value.dtype.kind != "f" or to.is_float:
        return value.astype(to.numpy)
    rounded = np.rint(value)
    inside = (rounded > to.lowest) & (rounded < float(to.highest + 1))
    exact = np.where(inside, rounded, 0).astype(to.numpy)
    high = rounded >= float(to.highest + 1)
    low = rounded <= to.lowest
    highest, lowest, zero = (to.numpy.type(item) for item in (to.highest, to.lowest, 0))
    limits = np.where(high, highest, np.where(low, lowest, zero))
    return np.where(inside, exact, limits).astype(to.numpy)


def evaluate(op: str, result: Scalar, *args: Array) -> Array:
    """Returns the result of an operation on arrays of its operands' dtypes."""
    with np.errstate(all="ignore"):
        if op == CONVERT:
            return convert(args[0], result)
        if op == BITCAST:
            return np.ascontiguousarray(args[0]).view(result.numpy).reshape(np.shape(args[0]))
        return np.asarray(_NUMPY[op](*args)).astype(result.numpy)
