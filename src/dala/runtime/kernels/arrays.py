"""Arrays that kernels are called on: buffers, NumPy's arrays, and tensors of other libraries."""

from __future__ import annotations

import os
from reprlib import repr as short_repr
from typing import Any, Protocol, TypeAlias

import numpy as np

from dala.devices.device import Device
from dala.errors import ArgumentError
from dala.ir.types import BF16
from dala.runtime.buffers import host_data as hostdata
from dala.runtime.buffers.access import write
from dala.runtime.buffers.buffer import Buffer, over


class DlpackArray(Protocol):
    """An array that others can see through DLPack: buffers, NumPy's, PyTorch's, JAX's."""

    def __dlpack__(self) -> Any:
        """Returns a capsule over its memory."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """Returns where its memory is."""


Value: TypeAlias = float | str | np.generic | list[Any] | tuple[Any, ...] | os.PathLike[str] | None
Argument: TypeAlias = DlpackArray | Value
"""What a kernel can be called with: an input, or the value of a parameter."""


def read_from(kernel: str, name: str, given: Any) -> Buffer:
    """Returns an input as a buffer of the current device, over its own memory where it can be."""
    if isinstance(given, Buffer):
        return given
    if isinstance(given, np.ndarray | np.generic):
        return over(np.asarray(given))
    if hasattr(given, "__dlpack__"):
        return over(hostdata.imported(given))
    raise ArgumentError(f"{kernel}: input {name!r} is {_refused(name, given)}")


def _refused(name: str, given: Any) -> str:
    if isinstance(given, bool | int | float):
        return (
            f"the number {given!r}, but inputs are arrays: give an array, such as "
            f"np.array({given!r}, np.float32), which broadcasts; or make {name} a parameter of "
            f"the kernel, as in `{name}: dala.f32`."
        )
    if isinstance(given, list | tuple):
        return (
            f"a {type(given).__name__}, whose dtype nobody has said: give an array, such as "
            f"np.array({short_repr(given)}, np.float32)."
        )
    if given is None:
        return "None: give an array."
    return (
        f"{type(given).__name__}, which is no array: give a NumPy array, a buffer, or a tensor "
        f"that speaks DLPack; np.asarray(…) makes an array of many things."
    )


class Destination:
    """What a caller gave as `out`: the buffer that a kernel writes to, and the way back.

    If it is to be `filled`, the buffer holds what was given before the kernel runs.
    """

    def __init__(self, kernel: str, given: Any, device: Device, *, filled: bool) -> None:
        self.given = given
        self._array: np.ndarray | None = None
        if isinstance(given, Buffer):
            self.buffer = given
            return
        array = self._writable(kernel, given)
        flags = array.flags
        if device.is_host and flags.c_contiguous and flags.aligned:
            self.buffer = over(array)
            return
        self._array = array
        scalar = hostdata.scalar_of(array.dtype)
        self.buffer = made(device, (scalar, array.shape))
        if filled:
            write(self.buffer, array)

    @staticmethod
    def _writable(kernel: str, given: Any) -> np.ndarray:
        if not isinstance(given, np.ndarray) and not hasattr(given, "__dlpack__"):
            raise ArgumentError(
                f"{kernel}: out is {type(given).__name__}, which cannot be written to: give a "
                f"buffer, a NumPy array or a tensor that speaks DLPack."
            )
        array = given if isinstance(given, np.ndarray) else hostdata.imported(given)
        if not array.flags.writeable:
            raise ArgumentError(
                f"{kernel}: out is read-only ({type(given).__name__}): give an array that can be "
                f"written to, or leave out= away and take what the call returns."
            )
        return array

    def filled(self) -> Any:
        """Returns what was given, with what the kernel has written."""
        if self._array is not None:
            self._array[...] = self.buffer
        return self.given


def made(device: Device, kind: tuple[Any, tuple[int, ...]], *, zeroed: bool = False) -> Buffer:
    """Returns a new buffer, of which every byte is to be written unless it is zeroed."""
    scalar, shape = kind
    extents, size_bytes = hostdata.check_shape(shape, scalar)
    return Buffer(device.allocate(size_bytes, zeroed=zeroed), scalar, extents)


def like(first: Any, buffer: Buffer) -> Any:
    """Returns the buffer as an array of the kind of `first`: on the host, over its memory."""
    if isinstance(first, Buffer):
        return buffer
    array = buffer.__array__(copy=None if buffer.is_host else True)
    if first is None or isinstance(first, np.ndarray | np.generic):
        return array
    namespace = hostdata.namespace_of(first)
    if buffer.scalar == BF16:  # NumPy's DLPack knows none: its bits are given as integers
        return namespace.from_dlpack(array.view(np.int16)).view(namespace.bfloat16)
    return namespace.from_dlpack(array)
