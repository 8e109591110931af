"""Images as callers hold them (bytes, arrays, Pillow images, buffers), and returned alike."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import current_device
from dala.devices.cpu.memory import Borrowed
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import DTYPES, IMAGES, U8, U16, DtypeName, Scalar
from dala.runtime.buffers.buffer import Buffer, from_numpy

PILLOW_MODES = ("L", "RGB", "RGBA")
Shape = tuple[int, ...]
_NAMES = {scalar.numpy: scalar.name for scalar in IMAGES}
_DTYPES = frozenset(_NAMES.values())
_LUMA = np.array([0.299, 0.587, 0.114])


@record
class Frame:
    """An image's pixels, and how a result is converted back to the caller's kind."""

    pixels: np.ndarray | Buffer
    give_back: Callable[[Buffer], Any]

    @property
    def shape(self) -> Shape:
        return tuple(self.pixels.shape)

    @property
    def dtype(self) -> DtypeName:
        if isinstance(self.pixels, Buffer):
            return self.pixels.dtype
        return _NAMES[self.pixels.dtype]  # type: ignore[return-value]

    def buffer(self) -> Buffer:
        """Returns the pixels on the current device, for reading; copied only if necessary."""
        pixels = self.pixels
        if isinstance(pixels, Buffer):
            return pixels
        if not current_device().is_host or not (pixels.flags.c_contiguous and pixels.flags.aligned):
            return from_numpy(pixels)
        memory = Borrowed(pixels.ctypes.data, pixels.nbytes, pixels)
        return Buffer(memory, DTYPES[self.dtype], self.shape)

    def kept(self) -> Frame:
        """Returns the image, copied if its owner could change it."""
        if isinstance(self.pixels, Buffer) or not self.pixels.flags.writeable:
            return self
        return Frame(self.pixels.copy(), self.give_back)


def frame_of(what: str, image: Any, size: tuple[int, int] | None = None) -> Frame:
    """Returns the image of any kind as a Frame; bytes need a size (width, height)."""
    if isinstance(image, bytes | bytearray | memoryview):
        return Frame(_from_bytes(what, image, size), lambda buffer: _array(buffer).tobytes())
    if size is not None:
        raise ArgumentError(
            f"{what}: width and height are for bytes; {type(image).__name__} has a size of its own."
        )
    if isinstance(image, Buffer):
        _check(what, image.shape, image.dtype)
        return Frame(image, lambda buffer: buffer)
    if isinstance(image, np.ndarray):
        name = _NAMES.get(image.dtype, str(image.dtype))
        _check(what, image.shape, name)
        return Frame(image, _array)
    pillow = sys.modules.get("PIL.Image")  # a caller with such an image has imported it
    if pillow is not None and isinstance(image, pillow.Image):
        if image.mode not in PILLOW_MODES:
            raise ArgumentError(
                f"{what}: the image's mode is {image.mode!r}, but it has to be one of "
                f'{", ".join(PILLOW_MODES)}: give image.convert("RGB").'
            )
        return Frame(np.asarray(image), lambda buffer: pillow.fromarray(_array(buffer)))
    raise ArgumentError(
        f"{what}: an image is an array, bytes with their width and height, a Pillow image or a "
        f"Buffer, not {type(image).__name__}."
    )


def _from_bytes(what: str, data: Any, size: tuple[int, int] | None) -> np.ndarray:
    """Returns bytes as a u8 array, with as many channels as there are bytes per pixel."""
    if size is None:
        raise ArgumentError(f"{what}: bytes have no size: give width and height after them.")
    width, height = size
    for name, extent in (("width", width), ("height", height)):
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
            raise ShapeError(f"{what}: {name} is an integer from 1 on, not {extent!r}.")
    flat = flat_bytes(data)
    channels, rest = divmod(flat.size, width * height)
    if rest or channels not in (1, 3, 4):
        raise ShapeError(
            f"{what}: {flat.size:,} bytes are no image of {width} × {height}: that takes "
            f"{width * height:,} (gray), {width * height * 3:,} (RGB) or {width * height * 4:,} "
            f"(RGBA)."
        )
    return flat.reshape((height, width) if channels == 1 else (height, width, channels))


def flat_bytes(data: bytes | bytearray | memoryview) -> np.ndarray:
    """Returns the bytes as an array; non-contiguous views are copied."""
    if isinstance(data, memoryview) and not data.c_contiguous:
        return np.frombuffer(data.tobytes(), np.uint8)
    return np.frombuffer(data, np.uint8)


def _check(what: str, shape: Shape, dtype: str) -> None:
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (3, 4)):
        raise ShapeError(
            f"{what}: {shape} is not the shape of an image: that is (height, width), (height, "
            f"width, 3) or (height, width, 4)."
        )
    if dtype not in _DTYPES:
        kinds = [f"{scalar} in 0..{scalar.white}" for scalar in IMAGES]
        raise DtypeError(
            f"{what}: the image is {dtype}, but images are {', '.join(kinds[:-1])} or {kinds[-1]}: "
            f"convert it first."
        )


def _array(buffer: Buffer) -> np.ndarray:
    """Returns a result as an array that the caller owns."""
    return np.asarray(buffer) if buffer.is_host else np.array(buffer)


def new_buffer(shape: Shape, dtype: str) -> Buffer:
    """Returns an uninitialized buffer on the current device."""
    scalar = DTYPES[dtype]
    size_bytes = scalar.size_bytes * math.prod(shape)
    return Buffer(current_device().allocate(size_bytes, zeroed=False), scalar, shape)


def destination(out: np.ndarray, shape: Shape, dtype: str) -> Buffer:
    """Returns a buffer for a result that goes into `out`, sharing its memory if possible."""
    wanted = DTYPES[dtype].numpy
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != wanted:
        given = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ShapeError(f"out is {given}, but the result is {dtype} {shape}.")
    if not out.flags.writeable:
        raise ArgumentError("out cannot be written: it is read-only.")
    if not current_device().is_host or not (out.flags.c_contiguous and out.flags.aligned):
        return new_buffer(shape, dtype)
    return Buffer(Borrowed(out.ctypes.data, out.nbytes, out), DTYPES[dtype], shape)


def levels_of(image: np.ndarray, scalar: Scalar = U8) -> np.ndarray:
    """Returns the pixels as u8 or u16: rounded to nearest and clamped, NaN is 0."""
    if image.dtype == scalar.numpy:
        return image
    if image.dtype == np.uint16:
        return ((image.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if image.dtype == np.uint8:
        return image.astype(np.uint16) * np.uint16(257)
    shares = np.nan_to_num(image, nan=0.0).astype(np.float32).clip(0.0, 1.0)
    return np.asarray(np.rint(shares * np.float32(scalar.white)).astype(scalar.numpy))


def converted(image: np.ndarray, scalar: Scalar) -> np.ndarray:
    """Returns the image in another dtype of images; white stays white."""
    if scalar in (U8, U16):
        return levels_of(image, scalar)
    if image.dtype.kind == "u":
        white = np.float32(np.iinfo(image.dtype).max)
        return np.asarray((image / white).astype(scalar.numpy, copy=False))
    return image.astype(scalar.numpy, copy=False)


def with_channels(image: np.ndarray, mode: str) -> np.ndarray:
    """Returns levels as gray, rgb or rgba: gray is luma, and new alpha is opaque."""
    if mode == "gray":
        if image.ndim == 2:
            return image
        return np.asarray(np.rint(image[..., :3] @ _LUMA).astype(image.dtype))
    colors = np.repeat(image[..., None], 3, -1) if image.ndim == 2 else image
    if mode == "rgb" or colors.shape[2] == 4:
        return np.ascontiguousarray(colors[..., : len(mode)])
    opaque = np.full((*colors.shape[:2], 1), np.iinfo(image.dtype).max, image.dtype)
    return np.concatenate([colors, opaque], -1)
