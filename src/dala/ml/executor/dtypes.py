"""The dtypes of values: what ONNX declares, and what the current device has of it."""

from __future__ import annotations

import numpy as np

from dala.devices import current_device
from dala.errors import DtypeError
from dala.ir.types import F64, S32, S64, U32, U64, Scalar, dtype_of
from dala.ml.onnx.tensors import NUMPY_DTYPES

CASTS: dict[int, Scalar] = {number: dtype_of(dtype) for number, dtype in NUMPY_DTYPES.items()}
"""What a Cast can lead to, by ONNX's numbers of element types."""
NUMBERS = {scalar.name: number for number, scalar in CASTS.items()}
"""ONNX's numbers of element types, by the names of ours."""
_NARROWER = {S64: S32, U64: U32}


def on_device(scalar: Scalar) -> Scalar:
    """Returns the dtype that values have on the current device.

    Where it has no integers of 64 bits they are held in 32.
    """
    device = current_device()
    if scalar in _NARROWER and not device.supports("s64"):
        return _NARROWER[scalar]
    if scalar == F64 and not device.supports("f64"):
        raise DtypeError(f"{device.id} has no f64: convert the model to f32, or run it on the CPU.")
    return scalar


def scalar_of_array(array: np.ndarray) -> Scalar:
    """Returns the dtype that an array has on the current device."""
    return on_device(dtype_of(array.dtype))


def stored(what: str, array: np.ndarray) -> np.ndarray:
    """Returns an array in the dtype that it has on the current device, if its values fit it."""
    scalar = scalar_of_array(array)
    if scalar.numpy == array.dtype:
        return array
    if array.size and not scalar.lowest <= int(array.min()) <= int(array.max()) <= scalar.highest:
        raise DtypeError(
            f"{what} is {array.dtype} from {array.min()} to {array.max()}, but "
            f"{current_device().id} has integers of 32 bits only: run it on the CPU."
        )
    return array.astype(scalar.numpy)
