"""What a buffer holds, read and written; its size, and its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dala.devices.cpu.memory import HostMemory
from dala.errors import ArgumentError, ShapeError
from dala.ir.types import U8
from dala.runtime.buffers import host_data as hostdata
from dala.runtime.buffers.buffer import Buffer, store


def read(buf: Buffer) -> np.ndarray:
    """Returns the values as a new NumPy array.

    >>> from dala.gpu import compute
    >>> compute.read(compute.buffer([1.0, 2.0], (2,), "f32")).tolist()
    [1.0, 2.0]
    """
    return _readable(buf).__array__(copy=True)


def to_numpy(buf: Buffer) -> np.ndarray:
    """Returns a new NumPy array of the values, as `read` does; `np.asarray(buf)` does not copy."""
    return read(buf)


def read_binary(buf: Buffer) -> memoryview:
    """Returns the bytes, to be read: a view of the memory itself on the CPU, so without a copy.

    >>> from dala.gpu import compute
    >>> bytes(compute.read_binary(compute.buffer([1, 2], (2,), "u8")))
    b'\\x01\\x02'
    """
    memory = _readable(buf).memory
    if isinstance(memory, HostMemory):
        return memory.as_array(U8.numpy, (memory.size_bytes,)).data.toreadonly()
    return memory.device.read(memory).data.toreadonly()


def read_list(buf: Buffer) -> list[Any]:
    """Returns the values as one flat list of Python numbers."""
    flat: list[Any] = _readable(buf)._exported.reshape(-1).tolist()
    return flat


def write(buf: Buffer, data: object) -> None:
    """Refill `buf` with as many values as it has; bytes are taken as they are in memory.

    >>> from dala.gpu import compute
    >>> x = compute.buffer_zeros((2,), "f32")
    >>> compute.write(x, [1.5, 2.5])
    >>> compute.read_list(x)
    [1.5, 2.5]
    """
    memory, scalar = _readable(buf).memory, buf.scalar
    if hostdata.is_binary(data):
        binary = hostdata.binary(data)
        if binary.size != buf.size:
            raise ShapeError(
                f"{binary.size:,} bytes do not fill {buf!r}, which takes {buf.size:,}."
            )
        store(binary, memory, U8)
    else:
        values = hostdata.values(data, scalar)
        hostdata.check_count(values, buf.shape, buf.size // scalar.size_bytes)
        store(values, memory, scalar)


def shape(buf: Buffer) -> tuple[int, ...]:
    """Returns the extent of each dimension."""
    return _buffer(buf).shape


def dtype(buf: Buffer) -> str:
    """Returns the name of the dtype, such as `"f32"`."""
    return _buffer(buf).dtype


def size(buf: Buffer) -> int:
    """Returns the size in bytes."""
    return _buffer(buf).size


def free(buf: Buffer) -> None:
    """Give the memory of `buf` back; a second time does nothing."""
    _buffer(buf).free()


def free_many(buffers: Iterable[Buffer]) -> None:
    """Give the memory of all of them back."""
    for buf in [_buffer(each) for each in buffers]:
        buf.free()


def _buffer(given: Buffer) -> Buffer:
    if not isinstance(given, Buffer):
        raise ArgumentError(
            f"a buffer is needed, but {type(given).__name__} was given: make one with buffer() or "
            f"from_numpy()."
        )
    return given


def _readable(given: Buffer) -> Buffer:
    if _buffer(given).is_scratch:
        raise ArgumentError(
            f"{given!r} cannot be read or written: it is only for what lies between stages of a "
            f"pipeline. Use buffer_zeros() for what you want to see."
        )
    return given
