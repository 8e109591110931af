"""Transfers between the host and a WebGPU device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from wgpu import BufferUsage

from dala.ir.types import U8

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu
    from dala.devices.webgpu.memory import GpuMemory

CHUNK_BYTES = 4 << 20
"""The chunk size of transfers: the device moves one chunk while the host copies another.

wgpu makes a staging buffer for each chunk of an upload, and drivers reuse memory for small ones
only: Mesa takes 64 MiB six times as fast in chunks as at once.
"""
KEPT_BUFFERS = 4
UNSUBMITTED_BYTES = 4 << 20
"""The bytes written before a submission: until then wgpu holds a second copy of them."""


class Transfers:
    """Uploads and read-backs of one device, and its staging buffers."""

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._unsubmitted_bytes = 0

    def write(self, device: WebGpu, memory: GpuMemory, data: np.ndarray) -> None:
        """Copies the bytes of a contiguous array into the memory."""
        flat = data.reshape(-1).view(U8.numpy)
        whole = flat.size & -4
        queue = device.gpu.queue
        with device.lock:  # no kernel runs between two chunks
            for start in range(0, whole, CHUNK_BYTES):
                size = min(CHUNK_BYTES, whole - start)
                queue.write_buffer(memory.buffer, start, flat, start, size)
                self._unsubmitted_bytes += size
                if self._unsubmitted_bytes >= UNSUBMITTED_BYTES:
                    self._unsubmitted_bytes = 0
                    device.submit([])
            if whole < flat.size:
                queue.write_buffer(memory.buffer, whole, flat[whole:].tobytes().ljust(4, b"\0"))

    def read(self, device: WebGpu, memory: GpuMemory) -> np.ndarray:
        """Returns the bytes of the memory as a new array."""
        out = np.empty(memory.size_bytes, U8.numpy)
        starts = range(0, out.size, CHUNK_BYTES)
        with self._staging(device) as first, self._staging(device, len(starts) > 1) as second:
            staging = [first, second]
            pending = _begin(device, memory, starts[0], first)
            for i, start in enumerate(starts):
                device.wait(pending)
                if i + 1 < len(starts):
                    pending = _begin(device, memory, starts[i + 1], staging[(i + 1) % 2])
                piece = out[start : start + CHUNK_BYTES]
                mapped = staging[i % 2].read_mapped(0, _rounded(piece.size), copy=False)
                piece[:] = np.frombuffer(mapped, U8.numpy, piece.size)
                staging[i % 2].unmap()
        return out

    @contextmanager
    def _staging(self, device: WebGpu, needed: bool = True) -> Iterator[Any]:
        """Yields a staging buffer that the host can map; one whose use failed is dropped."""
        if not needed:
            yield None
            return
        try:
            buffer = self._free.pop()
        except IndexError:
            usage = BufferUsage.COPY_DST | BufferUsage.MAP_READ
            buffer = device.gpu.create_buffer(size=CHUNK_BYTES, usage=usage)
        try:
            yield buffer
        except BaseException:
            buffer.destroy()
            raise
        if len(self._free) < KEPT_BUFFERS:
            self._free.append(buffer)
        else:
            buffer.destroy()


def _begin(device: WebGpu, memory: GpuMemory, start: int, staging: Any) -> Any:
    """Submits the copy of one chunk; returns a promise that resolves when it is mapped."""
    size = _rounded(min(CHUNK_BYTES, memory.size_bytes - start))
    with device.lock:
        encoder = device.gpu.create_command_encoder()
        encoder.copy_buffer_to_buffer(memory.buffer, start, staging, 0, size)
        device.submit([encoder.finish()])
        # Work that was just submitted needs no empty submission to be waited for.
        return staging.map_async("READ_NOSYNC", 0, size)


def _rounded(size_bytes: int) -> int:
    """Rounds a size up to a multiple of 4, as copies and mappings require; blocks have room."""
    return -(-size_bytes // 4) * 4
