"""Memory of a WebGPU device: pooled blocks.

A block returns in `__del__`, which can run at any moment on any thread: inside a method here,
inside a callback of wgpu that holds locks, in a forked child. So a finalizer only uses single
operations of a dict and a deque, which are atomic; the device's next call does the rest.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from wgpu import BufferUsage

from dala.base.record import record
from dala.base.size_classes import size_class
from dala.devices.device import Memory, MemoryStatistics, check_sizes

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

KEPT_BYTES = 1 << 30
"""How much is kept for reuse: WebGPU does not report how much memory there is."""
SMALLEST_BYTES = 256
_USAGE = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
_serials = itertools.count(1)


@record
class Block:
    """A wgpu buffer, with a serial number that is never reused."""

    buffer: Any
    capacity: int
    serial: int


class GpuMemory(Memory):
    """Bytes at the start of a block, which may be larger."""

    __slots__ = ("_block", "_blocks", "device")

    device: WebGpu

    def __init__(self, device: WebGpu, size_bytes: int, block: Block, blocks: Blocks) -> None:
        self.device = device
        self.size_bytes = size_bytes
        self._block = block
        self._blocks = blocks
        blocks.live[block.serial] = size_bytes

    @property
    def buffer(self) -> Any:
        """Returns the wgpu buffer: a multiple of 256 bytes, undefined after ours."""
        return self._block.buffer

    @property
    def serial(self) -> int:
        """Returns a number that identifies `buffer` and is never reused."""
        return self._block.serial

    @property
    def identity(self) -> int:
        return self._block.serial

    def part(self, size_bytes: int) -> GpuMemory:
        check_sizes("a part", [self], [size_bytes])
        return GpuPart(self, size_bytes)

    def __del__(self) -> None:
        self._blocks.live.pop(self._block.serial, None)
        self._blocks.returned.append(self._block)


class GpuPart(GpuMemory):
    """The first bytes of another memory, which owns the block."""

    __slots__ = ("_whole",)

    def __init__(self, whole: GpuMemory, size_bytes: int) -> None:
        self.device = whole.device
        self.size_bytes = size_bytes
        self._whole = whole
        self._block = whole._block

    def __del__(self) -> None:
        """Does nothing: the other memory owns the block."""


class Blocks:
    """All blocks of a device: those in use, and up to `limit_bytes` kept for reuse."""

    def __init__(self, gpu: Any, largest_bytes: int, limit_bytes: int = KEPT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.live: dict[int, int] = {}
        self.returned: deque[Block] = deque()
        self._gpu = gpu
        self._largest_bytes = largest_bytes
        self._lock = threading.RLock()
        # By size, the least recently returned first: those are evicted first.
        self._kept: OrderedDict[int, list[Block]] = OrderedDict()
        # All existing buffers: a forked child keeps them alive by keeping this.
        self._buffers: dict[int, Any] = {}

    def take(self, size_bytes: int) -> tuple[Block, bool]:
        """Returns a block of at least this size, and whether it is new and therefore zeroed."""
        capacity = min(size_class(size_bytes, SMALLEST_BYTES), self._largest_bytes)
        self.settle()
        with self._lock:
            kept = self._kept.get(capacity)
            if kept:
                return kept.pop(), False
        buffer = self._gpu.create_buffer(size=capacity, usage=_USAGE)
        block = Block(buffer, capacity, next(_serials))
        self._buffers[block.serial] = buffer
        return block, True

    def settle(self) -> None:
        """Pools returned blocks, and destroys those over the limit."""
        if not self.returned:
            return
        with self._lock:
            while self.returned:
                block = self.returned.popleft()
                self._kept.setdefault(block.capacity, []).append(block)
                self._kept.move_to_end(block.capacity)
            while self._pooled_bytes() > self.limit_bytes:
                self._destroy_oldest()

    def trim(self) -> int:
        """Destroys all blocks that are not in use; returns how many bytes."""
        self.settle()
        destroyed = 0
        with self._lock:
            while size_bytes := self._destroy_oldest():
                destroyed += size_bytes
        return destroyed

    def held(self) -> MemoryStatistics:
        """Returns how much memory is in use, and how much is kept for reuse."""
        self.settle()
        live = list(self.live.values())
        return MemoryStatistics(sum(live), len(live), self._pooled_bytes(), self.limit_bytes)

    def _pooled_bytes(self) -> int:
        return sum(capacity * len(kept) for capacity, kept in list(self._kept.items()))

    def _destroy_oldest(self) -> int:
        for capacity, kept in list(self._kept.items()):
            if kept:
                block = kept.pop(0)
                self._buffers.pop(block.serial)
                block.buffer.destroy()
                return capacity
            del self._kept[capacity]
        return 0
