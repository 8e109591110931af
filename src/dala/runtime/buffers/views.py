"""Buffers that see the memory of others in another shape or dtype."""

from __future__ import annotations

import math

from dala.errors import ShapeError
from dala.ir.types import Scalar
from dala.runtime.buffers.buffer import Buffer


def reshaped(buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
    """Returns the same memory in another shape; raises ShapeError unless the sizes match."""
    return view(buffer, buffer.scalar, shape)


def view(buffer: Buffer, scalar: Scalar, shape: tuple[int, ...]) -> Buffer:
    """Returns the same memory seen as another dtype, in another shape of as many bytes."""
    have = buffer.scalar.size_bytes * math.prod(buffer.shape)
    need = scalar.size_bytes * math.prod(shape)
    if have != need:
        raise ShapeError(
            f"{buffer!r} has {math.prod(buffer.shape):,} elements, {have:,} bytes, but {scalar} "
            f"{tuple(shape)} has {math.prod(shape):,}, {need:,} bytes: what is seen in another "
            f"shape is as much."
        )
    return _seen(buffer, scalar, shape)


def beginning(buffer: Buffer, shape: tuple[int, ...], scalar: Scalar | None = None) -> Buffer:
    """Returns the first elements of the same memory, in a shape that fits into it."""
    return _seen(buffer, scalar or buffer.scalar, shape)


def _seen(buffer: Buffer, scalar: Scalar, shape: tuple[int, ...]) -> Buffer:
    there = buffer.memory if buffer._memory is None else buffer._memory  # a FreedError if it is not
    return Buffer(there, scalar, tuple(shape))
