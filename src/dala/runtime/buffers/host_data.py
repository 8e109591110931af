"""What users hand over for a buffer, checked before anything is allocated: shapes and values."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any

import numpy as np

from dala.errors import ArgumentError, DeviceError, DtypeError, LimitError, ShapeError
from dala.ir.types import BF16, BOOL, DTYPES, U8, Scalar, dtype_of

MAX_EXTENT = 2**31 - 1
MAX_RANK = 32
MAX_BYTES = 2**63 - 1
# From here on a f64 stands for more than one integer.
FIRST_INEXACT = 2**53

# DLPack's device types that NumPy reads: kDLCPU, kDLCUDAHost, kDLROCMHost and kDLCUDAManaged.
_HOST_DEVICE_TYPES = {1, 3, 11, 13}


def check_shape(given: Any, scalar: Scalar) -> tuple[tuple[int, ...], int]:
    """Returns the extents of a shape that can be, and how many bytes they take."""
    extents = given
    if type(given) is not tuple:
        if isinstance(given, (int, np.integer)):
            extents = (given,)
        elif isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes)):
            extents = tuple(given)
        else:
            raise ShapeError(
                f"shape {short_repr(given)} is not one: give an integer or a sequence of integers."
            )
    for extent in extents:
        if type(extent) is not int:
            extents = tuple(_extent(each, given) for each in extents)
            break
    size_bytes = needed = scalar.size_bytes
    for extent in extents:
        if extent < 0:
            raise ShapeError(
                f"shape {short_repr(given)} has {extent}: no dimension can be negative."
            )
        if extent > MAX_EXTENT:
            raise LimitError(
                f"shape {short_repr(given)} has {extent:,}: a dimension is at most {MAX_EXTENT:,}."
            )
        size_bytes *= extent
        needed *= extent or 1  # the strides of an empty array must be addressable, too
    if needed > MAX_BYTES or len(extents) > MAX_RANK:
        raise LimitError(
            f"a shape of {len(extents)} dimensions that takes {needed:,} bytes as {scalar} is "
            f"refused: at most {MAX_RANK} dimensions and {MAX_BYTES:,} bytes can be addressed."
        )
    return extents, size_bytes


def _extent(extent: Any, given: object) -> int:
    try:
        if isinstance(extent, (bool, np.bool_)):
            raise TypeError
        return operator.index(extent)
    except TypeError:
        raise ShapeError(
            f"shape {short_repr(given)} has {short_repr(extent)}: a dimension is an integer."
        ) from None


def check_count(values: np.ndarray, extents: tuple[int, ...], count: int) -> None:
    """Refuse values that are more or fewer than a shape has elements."""
    if values.size != count:
        raise ShapeError(
            f"{values.size:,} elements of data do not fill shape {extents}, which has {count:,}."
        )


def scalar_of(dtype: np.dtype) -> Scalar:
    """Returns the storage type for an array that comes from outside."""
    try:
        return dtype_of(dtype)
    except DtypeError:
        raise DtypeError(
            f"an array of {dtype} cannot become a buffer, which holds one of {', '.join(DTYPES)}: "
            f"{_conversion(dtype)}."
        ) from None


def _conversion(dtype: np.dtype) -> str:
    """Returns advice on how to convert an array whose dtype no buffer has."""
    if dtype.fields is not None:
        return "give each field by itself, such as array['name']"
    match dtype.kind:
        case "c":
            pair = "float32" if dtype.itemsize <= 8 else "float64"
            real, given = f"view('{pair}')", "array"
            if dtype.itemsize > 16:
                given = "array.astype('complex128')"
            return (
                f"give it as pairs of real and imaginary parts, "
                f"{given}.{real}.reshape(*array.shape, 2), or one part, array.real"
            )
        case "f":
            wide = "float64" if dtype.itemsize > 8 else dtype.name
            rounded = ", which rounds it," if dtype.itemsize > 8 else ""
            return f"convert it first{rounded} with array.astype('{wide}')"
        case "i" | "u":
            return f"convert it first with array.astype('{dtype.name}')"
        case "m" | "M":
            return "give its ticks with array.view('int64')"
    return "it holds no numbers; make it an array of numbers first"


def is_binary(data: object) -> bool:
    """Returns whether `data` is plain bytes, as opposed to values."""
    return isinstance(data, (bytes, bytearray)) or (
        isinstance(data, memoryview) and data.format in {"B", "b", "c"}
    )


def binary(data: Any) -> np.ndarray:
    """Returns the bytes of anything bytes-like, without a copy."""
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, BufferError, AttributeError):
        raise ArgumentError(
            f"contiguous bytes are needed, such as bytes, a bytearray or an array, but "
            f"{type(data).__name__} was given."
        ) from None


def values(data: Any, scalar: Scalar) -> np.ndarray:
    """Numbers that can all be stored as `scalar`, in the shape in which they were given."""
    if is_binary(data):
        if scalar is not U8:
            raise ArgumentError(
                f"bytes are values for u8 only, not for {scalar}: use buffer_from_binary()."
            )
        return binary(data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ShapeError(f"the data is not a full grid of numbers: {error}") from None
    kind = array.dtype.kind
    if kind == "O":
        return _from_objects(array, scalar)
    if array.dtype.name == BF16.numpy_name:
        array, kind = array.astype(np.float32), "f"
    if kind not in "biuf":
        raise ArgumentError(
            f"data of {array.dtype} cannot become {scalar}: give real numbers, or an array of them."
        )
    if not scalar.is_float and array.size and not np.can_cast(array.dtype, scalar.numpy):
        if kind == "f":
            whole = np.isfinite(array) & (np.trunc(array) == array)
            if not whole.all():
                raise _refused(array, int(np.argmin(whole)), scalar)
            mixed = not isinstance(data, np.ndarray)
            if mixed and np.abs(array).max() >= FIRST_INEXACT:
                # NumPy has rounded the integers that stood next to floats.
                return _from_objects(np.asarray(data, object), scalar)
        # As Python's integers: in f64 the highest s64 would be rounded up.
        if int(array.min()) < scalar.lowest:
            raise _refused(array, int(array.argmin()), scalar)
        if int(array.max()) > scalar.highest:
            raise _refused(array, int(array.argmax()), scalar)
    return array


def _from_objects(array: np.ndarray, scalar: Scalar) -> np.ndarray:
    """Returns the same for Python's own numbers, which may be longer than any of NumPy's."""
    numbers = array.reshape(-1).tolist()
    for index, number in enumerate(numbers):
        if not isinstance(number, (int, float, np.integer, np.floating)):
            raise _refused(array, index, scalar)
        if not scalar.is_float and not (
            scalar.lowest <= number <= scalar.highest and number == int(number)
        ):
            raise _refused(array, index, scalar)
    try:
        converted = [float(number) if scalar.is_float else int(number) for number in numbers]
    except OverflowError as error:
        raise ArgumentError(f"the data cannot become {scalar}: {error}.") from None
    dtype = np.dtype(np.float64) if scalar.is_float else scalar.numpy
    return np.array(converted, dtype).reshape(array.shape)


def _refused(array: np.ndarray, index: int, scalar: Scalar) -> ArgumentError:
    value = array.reshape(-1)[index : index + 1].tolist()[0]
    allowed = "a real number"
    if scalar.is_integer:
        allowed = f"an integer from {scalar.lowest:,} to {scalar.highest:,}"
    elif scalar == BOOL:
        allowed = "False or True, 0 or 1"
    return ArgumentError(
        f"element {index:,} of the data is {short_repr(value)}, but {scalar} holds {allowed}: "
        f"round, clip or convert the data first."
    )


def namespace_of(tensor: Any) -> Any:
    """Returns the module that makes such tensors: by the array API standard, else by its type."""
    if hasattr(tensor, "__array_namespace__"):
        return tensor.__array_namespace__()
    library = sys.modules.get(type(tensor).__module__.partition(".")[0])
    if not hasattr(library, "from_dlpack"):
        raise ArgumentError(
            f"{type(tensor).__name__} can be read, but nothing makes another one: give "
            f"np.from_dlpack(tensor), and take the array that the call returns."
        )
    return library


def imported(tensor: Any) -> np.ndarray:
    """Returns an array over the memory of a DLPack tensor."""
    try:
        device_type = int(tensor.__dlpack_device__()[0])
    except AttributeError:
        raise ArgumentError(
            f"from_dlpack takes an array or tensor with __dlpack__, not {type(tensor).__name__}: "
            f"use buffer() for lists."
        ) from None
    except (BufferError, ValueError, RuntimeError) as error:
        raise DeviceError(f"the tensor's device cannot be told: {error}") from error
    if device_type not in _HOST_DEVICE_TYPES:
        raise DeviceError(
            f"the tensor is on another device (DLPack device type {device_type}), whose memory the "
            f"CPU cannot read: copy it to the host first, for example with tensor.cpu()."
        )
    try:
        if str(getattr(tensor, "dtype", "")).endswith(BF16.numpy_name):
            # NumPy's DLPack knows no bf16: its bits are taken as integers.
            return np.from_dlpack(tensor.view(namespace_of(tensor).int16)).view(BF16.numpy)
        return np.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if "dtype" in str(error):
            raise DtypeError(
                f"a tensor of {getattr(tensor, 'dtype', 'this dtype')} cannot become a buffer, "
                f"which holds one of {', '.join(DTYPES)}: convert it first."
            ) from error
        raise ArgumentError(f"the tensor cannot be shared: {error}") from error
