"""The tensors of an ONNX file, each checked against the bytes that are behind it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.errors import DtypeError, LimitError, ModelError
from dala.ir.types import BF16
from dala.ml.onnx.external_files import Outside
from dala.ml.onnx.protobuf import Message, floats_in, integers_in, varints_in

LARGEST_VALUE_BYTES = 1 << 34
"""How large an input, an output, or all that lies in other files may be."""
LARGEST_RANK = 32

DTYPES = {
    1: ("f32", 32),
    2: ("u8", 8),
    3: ("INT8", 8),
    4: ("UINT16", 16),
    5: ("INT16", 16),
    6: ("s32", 32),
    7: ("s64", 64),
    8: ("STRING", 0),
    9: ("BOOL", 8),
    10: ("FLOAT16", 16),
    11: ("f64", 64),
    12: ("u32", 32),
    13: ("UINT64", 64),
    14: ("COMPLEX64", 64),
    15: ("COMPLEX128", 128),
    16: ("BFLOAT16", 16),
    17: ("FLOAT8E4M3FN", 8),
    18: ("FLOAT8E4M3FNUZ", 8),
    19: ("FLOAT8E5M2", 8),
    20: ("FLOAT8E5M2FNUZ", 8),
    21: ("UINT4", 4),
    22: ("INT4", 4),
    23: ("FLOAT4E2M1", 4),
    24: ("FLOAT8E8M0", 8),
    25: ("UINT2", 2),
    26: ("INT2", 2),
}
"""The name of each element type, ours where there is one, and its bits."""

NUMPY_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
}
"""The element types that NumPy has too, or has from `ml_dtypes`, where that is installed."""
with contextlib.suppress(DtypeError):
    NUMPY_DTYPES[16] = BF16.numpy
_FLOAT16, _BFLOAT16 = 10, 16

# Where values are that are not raw; a complex one is two of them, and the narrowest share one.
_FIELDS = {1: "float_data", 7: "int64_data", 8: "string_data", 11: "double_data", 12: "uint64_data"}
_FIELDS |= {13: "uint64_data", 14: "float_data", 15: "double_data"}
DATA_FIELDS = ("raw_data", "int32_data", *sorted(set(_FIELDS.values())))
"""Where values are that lie in the model itself."""
_FIXED_BYTES = {"float_data": 4, "double_data": 8}
_PACKED = 2
EXTERNAL = 1
"""Where a tensor says that it is in another file."""


def check_tensor(where: str, tensor: Message, outside: Outside | None) -> int:
    """How many bytes of other files the tensor is in; refused where it claims what is not there.

    `outside` are the files beside the model, or None for a model without a folder.
    """
    number, dims = tensor.get("data_type", 0), tensor.get("dims", [])
    size_bytes = bytes_of(where, number, dims)
    dtype, bits = DTYPES[number]
    elements = math.prod(dims)
    claim = f"{where} claims {_shape(dims)} of {dtype}, {size_bytes:,} bytes"
    if tensor.get("data_location", 0) == EXTERNAL:
        _check_external(where, claim, tensor, size_bytes, outside)
        return size_bytes
    if "raw_data" in tensor:
        if number == 8 or len(tensor["raw_data"]) != size_bytes:
            raise ModelError(f"{claim}, and the file has {len(tensor['raw_data']):,} for it.")
        return 0
    field = _FIELDS.get(number, "int32_data")
    values = _value_count(tensor, field)
    narrow, is_complex = 0 < bits < 8, number in (14, 15)
    wanted = size_bytes if narrow else elements * (1 + is_complex)
    if values != wanted:
        raise ModelError(f"{claim}: {wanted:,} values, and the file has {values:,} for it.")
    return 0


def array_of(tensor: Message, beside: Mapping[str, bytes]) -> np.ndarray | None:
    """Returns the values of a tensor that was checked; None where NumPy has not its element type.

    `beside` are the bytes of those in other files.
    """
    number = tensor.get("data_type", 0)
    dtype = NUMPY_DTYPES.get(number)
    if dtype is None:
        return None
    shape = tuple(tensor.get("dims", []))
    raw: Any = tensor.get("raw_data")
    if tensor.get("data_location", 0) == EXTERNAL:
        entries = {e.get("key", ""): e.get("value", "") for e in tensor.get("external_data", [])}
        raw = beside[entries["location"]]
    if raw is not None:
        return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    field = _FIELDS.get(number, "int32_data")
    held = tensor.get(field, [])
    if field in _FIXED_BYTES:
        form = "f" if field == "float_data" else "d"
        return np.array(floats_in(held, form), dtype).reshape(shape)
    values = np.array(integers_in(held), np.int64)
    if number in (_FLOAT16, _BFLOAT16):  # as their bits
        return values.astype(np.uint16).view(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def bytes_of(where: str, number: int, dims: list[int]) -> int:
    """Returns how many bytes a tensor of that element type and shape has."""
    if number not in DTYPES:
        raise ModelError(f"{where} has the element type {number}, which is not known.")
    return (element_count(where, dims) * DTYPES[number][1] + 7) // 8


def element_count(where: str, dims: list[int]) -> int:
    """Returns how many elements these sizes make, if memory could hold them."""
    if len(dims) > LARGEST_RANK:
        raise LimitError(f"{where} has {len(dims):,} dimensions, of at most {LARGEST_RANK}.")
    if min(dims, default=0) < 0:
        raise ModelError(f"{where} has the shape {_shape(dims)}: a size cannot be negative.")
    # Sizes beside a 0 are multiplied too, by those who read this next.
    if math.prod(size or 1 for size in dims) >= 1 << 62:
        raise LimitError(f"{where} has the shape {_shape(dims)}, which no memory holds.")
    return math.prod(dims)


def _shape(dims: list[int]) -> str:
    return f"({', '.join(str(size) for size in dims)}{',' * (len(dims) == 1)})"


def _value_count(tensor: Message, field: str) -> int:
    held = tensor.get(field, [])
    if field == "string_data":
        return len(held)
    size = _FIXED_BYTES.get(field)
    count = 0
    for wire, view in held:
        if wire != _PACKED:
            count += 1
        else:
            count += len(view) // size if size else varints_in(view)
    return count


def _check_external(
    where: str, claim: str, tensor: Message, size_bytes: int, outside: Outside | None
) -> None:
    entries = {e.get("key", ""): e.get("value", "") for e in tensor.get("external_data", [])}
    location = entries.get("location", "")
    if outside is None:
        raise ModelError(
            f"{where} is in another file, {location!r}, and a model given as bytes has no folder "
            f"to look in: give the path of the model's file."
        )
    offset, length = (_whole(where, entries, key) for key in ("offset", "length"))
    if length not in (None, size_bytes):
        raise ModelError(f"{claim}, and says that {length:,} of {location!r} are it.")
    there = outside.size_bytes(where, location)
    if (offset or 0) + size_bytes > there:
        raise ModelError(
            f"{claim}, from byte {offset or 0:,} of {outside.folder / location}, which has "
            f"{there:,}."
        )


def _whole(where: str, entries: dict[str, str], key: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ModelError(f"{where} is in another file, at the {key} {text[:40]!r}: no such place.")
    return int(text)
