"""Buffers: typed, shaped memory on a device, and everything that fills and reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dala.devices import Device, current_device, find_device
from dala.devices.cpu.memory import Borrowed, HostMemory
from dala.devices.device import DeferredMemory, Memory
from dala.errors import ArgumentError, DeviceError, DtypeError, FreedError, ShapeError
from dala.ir.types import BF16, U8, DtypeLike, DtypeName, Scalar, dtype_of
from dala.runtime.buffers import buffer_protocol as pybuffer
from dala.runtime.buffers import host_data as hostdata

# DLPack's device type for host memory.
_DLPACK_CPU = 1


class Buffer:
    """Typed memory on a device, row-major and contiguous.

    On the CPU, NumPy, DLPack and the buffer protocol see it without a copy: a view that was taken
    stays valid after the buffer is freed, and the memory goes back when the last view is gone. From
    any other device they get a copy of the values as they are then.
    """

    __slots__ = ("__weakref__", "_memory", "device", "scalar", "shape", "size")

    # Installed with the first buffer, not on import: it loads LLVM.
    _export_pending: ClassVar[bool] = pybuffer.NEEDED

    _memory: Memory | DeferredMemory | None  # None once freed
    device: str
    scalar: Scalar
    shape: tuple[int, ...]
    size: int

    def __init__(
        self, memory: Memory | DeferredMemory, scalar: Scalar, shape: tuple[int, ...]
    ) -> None:
        if Buffer._export_pending:
            pybuffer.install(Buffer, "_shared")
            Buffer._export_pending = False
        # Whoever asks: every read and write of a device trusts the shape.
        size_bytes = math.prod(shape) * scalar.size_bytes
        if size_bytes > memory.size_bytes or min(shape, default=0) < 0:
            raise ShapeError(
                f"{scalar} {shape} takes {size_bytes:,} bytes, but its memory has "
                f"{memory.size_bytes:,}."
            )
        fix = object.__setattr__
        fix(self, "_memory", memory)
        fix(self, "scalar", scalar)
        fix(self, "shape", shape)
        fix(self, "size", memory.size_bytes)
        fix(self, "device", memory.device.id)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{name} of {self!r} cannot be changed: make another buffer, or reshape the array that "
            f"np.asarray(buffer) gives."
        )

    @property
    def dtype(self) -> DtypeName:
        return self.scalar.name  # type: ignore[return-value]  # n16 is no user's

    @property
    def freed(self) -> bool:
        return self._memory is None

    @property
    def memory(self) -> Memory:
        """The memory behind this buffer; a `FreedError` once it was freed."""
        if self._memory is None:
            raise FreedError(
                f"{self!r} cannot be used: it was freed. Free a buffer after its last use, or make "
                f"a new one."
            )
        if isinstance(self._memory, DeferredMemory):
            return self._memory.get()
        return self._memory

    @property
    def is_scratch(self) -> bool:
        """Whether nobody reads it but the stages of a pipeline, so that it need not be there."""
        return isinstance(self._memory, DeferredMemory)

    @property
    def place(self) -> Memory | DeferredMemory:
        """What tells its memory from that of other buffers, whether it is there yet or not."""
        return self._memory or self.memory

    @property
    def is_host(self) -> bool:
        """Whether libraries of the host can work on its own memory."""
        return self.place.device.is_host

    def aliases(self, other: Buffer) -> bool:
        """Returns whether a write to one of the two may change the other."""
        (start, end), (other_start, other_end) = self.place.span(), other.place.span()
        return start < other_end and other_start < end

    def free(self) -> None:
        """Give the memory back; a second time does nothing."""
        object.__setattr__(self, "_memory", None)

    def to(self, device: str | Device) -> Buffer:
        """Returns a copy on another device, or the buffer itself if it is there already."""
        memory, target = self.memory, find_device(device)
        if memory.device is target:
            return self
        made = target.allocate(self.size, zeroed=False)
        if self.size:
            target.write(made, memory.device.read(memory))
        return Buffer(made, self.scalar, self.shape)

    @property
    def _shared(self) -> np.ndarray:
        """The same as `_exported`, for the buffer protocol, which has no format for bf16."""
        if self.scalar == BF16:
            raise DtypeError(
                f"{self!r} cannot be given away as bytes: the buffer protocol knows no bf16. Give "
                f"np.asarray(buffer).view(np.uint16), or compute.read_binary(buffer)."
            )
        return self._exported

    @property
    def _exported(self) -> np.ndarray:
        memory = self.memory
        if isinstance(memory, HostMemory):
            return memory.as_array(self.scalar.numpy, self.shape)
        return memory.device.read(memory).view(self.scalar.numpy).reshape(self.shape)

    def _need_copy(self, copy: bool | None) -> None:
        """Refuse to be seen without a copy where that cannot be."""
        if copy is False and not isinstance(self.memory, HostMemory):
            raise DeviceError(
                f"{self!r} cannot be seen without a copy: its memory is on a device. Allow a copy, "
                f"or move it with buffer.to('cpu')."
            )

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        self._need_copy(copy)
        view = self._exported
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ArgumentError(f"{self!r} cannot be seen as {np.dtype(dtype)} without a copy.")
            return view.astype(dtype)
        if isinstance(self.memory, HostMemory):
            return view.copy() if copy else view
        view.flags.writeable = bool(copy)  # what is written into a copy would be lost
        return view

    def __buffer__(self, flags: int) -> memoryview:
        return self._shared.data

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        self._need_copy(copy)
        if self.scalar == BF16:
            raise DtypeError(
                f"{self!r} cannot be given away by DLPack, which NumPy speaks for all dtypes but "
                f"bf16: give np.asarray(buffer), or cast it to f16 or f32 first."
            )
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        export: Callable[..., Any] = self._exported.__dlpack__
        return export(**{name: value for name, value in given.items() if value is not None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DLPACK_CPU, 0)

    def __reduce__(self) -> tuple[Callable[[np.ndarray], Buffer], tuple[np.ndarray]]:
        return from_numpy, (self._exported,)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.free()

    def __repr__(self) -> str:
        state = ", freed" if self._memory is None else ", scratch" if self.is_scratch else ""
        return f"<Buffer {self.scalar.name} {self.shape} {self.device}{state}>"


def buffer(data: object, shape: int | Sequence[int], dtype: DtypeLike) -> Buffer:
    """Returns a new buffer that holds `data`: a flat or nested list, an array, or bytes for `u8`.

    Floats are rounded to the buffer's precision. What an integer buffer cannot hold is refused.

    >>> from dala.gpu import compute
    >>> compute.buffer([1.0, 2.0, 3.0, 4.0], (2, 2), "f32")
    <Buffer f32 (2, 2) cpu>
    """
    scalar = dtype_of(dtype)
    extents, size_bytes = hostdata.check_shape(shape, scalar)
    values = hostdata.values(data, scalar)
    hostdata.check_count(values, extents, size_bytes // scalar.size_bytes)
    return _made(values, scalar, scalar, extents, size_bytes)


def buffer_zeros(shape: int | Sequence[int], dtype: DtypeLike) -> Buffer:
    """Returns a new buffer full of zeros.

    >>> from dala.gpu import compute
    >>> compute.read_list(compute.buffer_zeros((2, 2), "s32"))
    [0, 0, 0, 0]
    """
    scalar = dtype_of(dtype)
    extents, size_bytes = hostdata.check_shape(shape, scalar)
    return Buffer(current_device().allocate(size_bytes), scalar, extents)


def buffer_from_binary(data: object, shape: int | Sequence[int], dtype: DtypeLike) -> Buffer:
    """Returns a new buffer with exactly these bytes, from anything bytes-like.

    >>> from dala.gpu import compute
    >>> compute.read_list(compute.buffer_from_binary(b"\\x01\\x00\\x02\\x00", (4,), "u8"))
    [1, 0, 2, 0]
    """
    scalar = dtype_of(dtype)
    extents, size_bytes = hostdata.check_shape(shape, scalar)
    binary = hostdata.binary(data)
    if binary.size != size_bytes:
        raise ShapeError(
            f"{binary.size:,} bytes do not fill a buffer of {scalar} and shape {extents}, which "
            f"takes {size_bytes:,}."
        )
    return _made(binary, U8, scalar, extents, size_bytes)


def from_numpy(array: np.ndarray) -> Buffer:
    """Returns a new buffer with a copy of `array`, of the same shape and dtype.

    >>> import numpy as np
    >>> from dala.gpu import compute
    >>> compute.from_numpy(np.ones((2, 3), np.float32))
    <Buffer f32 (2, 3) cpu>
    """
    if not isinstance(array, (np.ndarray, np.generic)):
        raise ArgumentError(
            f"from_numpy takes a NumPy array, not {type(array).__name__}: use buffer() for lists, "
            f"buffer_from_binary() for bytes and from_dlpack() for tensors."
        )
    scalar = hostdata.scalar_of(array.dtype)
    extents, size_bytes = hostdata.check_shape(array.shape, scalar)
    return _made(np.asarray(array), scalar, scalar, extents, size_bytes)


def from_dlpack(x: Any) -> Buffer:
    """Returns a buffer over the memory of a NumPy array or of a tensor of PyTorch, JAX and others.

    On the CPU device nothing is copied: what is written on one side is seen on the other, and the
    memory lives until both are gone. Only what is not contiguous, is read-only (as JAX's arrays
    are) or lies across its elements' alignment is copied, and what goes to another device.

    >>> import numpy as np
    >>> from dala.gpu import compute
    >>> x = np.zeros(3, np.float32)
    >>> shared = compute.from_dlpack(x)
    >>> x[0] = 5.0
    >>> compute.read_list(shared)
    [5.0, 0.0, 0.0]
    """
    array = np.asarray(x) if isinstance(x, np.ndarray) else hostdata.imported(x)
    return over(array) if array.flags.writeable else from_numpy(array)


def over(array: np.ndarray) -> Buffer:
    """Returns a buffer over the memory of an array; a copy where that cannot be.

    Whoever shares what is read-only has to see to it that nobody writes to the buffer.
    """
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned and current_device().is_host):
        return from_numpy(array)
    scalar = hostdata.scalar_of(array.dtype)
    extents, size_bytes = hostdata.check_shape(array.shape, scalar)
    return Buffer(Borrowed(array.ctypes.data, size_bytes, array), scalar, extents)


def scratch(shape: int | Sequence[int], dtype: DtypeLike) -> Buffer:
    """Returns a buffer for values between the stages of a pipeline, which nobody reads directly.

    Where stages are computed together it never exists. Reading it is refused.

    >>> from dala.gpu import compute
    >>> compute.scratch((1080, 1920, 4), "u8")
    <Buffer u8 (1080, 1920, 4) cpu, scratch>
    """
    scalar = dtype_of(dtype)
    extents, size_bytes = hostdata.check_shape(shape, scalar)
    return Buffer(DeferredMemory(current_device(), size_bytes), scalar, extents)


def _made(
    values: np.ndarray, held: Scalar, scalar: Scalar, extents: tuple[int, ...], size_bytes: int
) -> Buffer:
    """Returns a new buffer on the current device, filled with values that are stored as `held`."""
    made = current_device().allocate(size_bytes, zeroed=False)
    store(values, made, held)
    return Buffer(made, scalar, extents)


def store(values: np.ndarray, memory: Memory, scalar: Scalar) -> None:
    """Fill memory with values, which are stored as `scalar`."""
    if not memory.size_bytes:
        return
    # A float that is too large for f32 becomes infinite, as IEEE 754 has it.
    with np.errstate(over="ignore"):
        if isinstance(memory, HostMemory):
            memory.as_array(scalar.numpy, values.shape)[...] = values
        else:
            memory.device.write(memory, np.ascontiguousarray(values, scalar.numpy))
