"""Memory of a WebGPU device: blocks that are reused when they come back.

A block comes back in `__del__`, which can run at any moment on any thread: inside a method here,
inside a callback of wgpu that holds locks of its own, in a forked child. So a finaliser does only
single operations of a dict and a deque, which are atomic; what has to be done with the block is
done by the next call of the device.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from wgpu import BufferUsage

from dala.base.record import record
from dala.base.size_classes import size_class
from dala.devices.device import Memory, MemoryStatistics

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

KEPT_BYTES = 1 << 30
"""How much is kept for reuse: WebGPU does not tell how much there is."""
SMALLEST_BYTES = 256
_USAGE = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
_serials = itertools.count(1)


@record
class Block:
    """A buffer of wgpu; its serial is that of no other, before or after."""

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
        """The buffer of wgpu: a multiple of 256 bytes, and anything at all after ours."""
        return self._block.buffer

    @property
    def serial(self) -> int:
        """A number that stands for `buffer` and is never used again."""
        return self._block.serial

    @property
    def identity(self) -> int:
        return self._block.serial

    def part(self, size_bytes: int) -> GpuMemory:
        return GpuPart(self, size_bytes)

    def __del__(self) -> None:
        self._blocks.live.pop(self._block.serial, None)
        self._blocks.returned.append(self._block)


class GpuPart(GpuMemory):
    """The first bytes of another memory, which gives the block back."""

    __slots__ = ("_whole",)

    def __init__(self, whole: GpuMemory, size_bytes: int) -> None:
        self.device = whole.device
        self.size_bytes = size_bytes
        self._whole = whole
        self._block = whole._block

    def __del__(self) -> None:
        """The whole has the block."""


class Blocks:
    """All blocks of a device: those in use, and up to `limit_bytes` that wait for the next use."""

    def __init__(self, gpu: Any, largest_bytes: int, limit_bytes: int = KEPT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.live: dict[int, int] = {}
        self.returned: deque[Block] = deque()
        self._gpu = gpu
        self._largest_bytes = largest_bytes
        self._lock = threading.RLock()
        # By size, the one least recently given back first: that is where room is made.
        self._kept: OrderedDict[int, list[Block]] = OrderedDict()
        # Every buffer that there is: a forked child keeps them all by keeping this.
        self._buffers: dict[int, Any] = {}

    def take(self, size_bytes: int) -> tuple[Block, bool]:
        """A block that holds so many bytes, and whether it is new and therefore all zero."""
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
        """Keep what has come back, and destroy what is too much."""
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
        """Destroy all blocks that are not in use; how many bytes that were."""
        self.settle()
        destroyed = 0
        with self._lock:
            while size_bytes := self._destroy_oldest():
                destroyed += size_bytes
        return destroyed

    def held(self) -> MemoryStatistics:
        """How much is in use, and how much is kept for reuse."""
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
