"""Host memory of the CPU device: aligned blocks, zeroed on allocation and pooled for reuse.

A `Memory` lives as long as anything refers to it: its buffer, and every array that views it. When
the last reference is gone, its bytes return to their `Pool`.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from dala.base.size_classes import size_class
from dala.devices.device import Memory, MemoryStatistics, check_sizes
from dala.errors import LimitError, MemoryLimitError

ALIGNMENT_BYTES = 64
SMALL_BYTES = 64 * 1024
HUGE_PAGE_BYTES = 2 * 1024 * 1024
DEFAULT_LIMIT_BYTES = 2 * 1024**3


class HostMemory(Memory):
    """Bytes at a fixed address, kept alive together with their owner."""

    __slots__ = ("_owner", "address")

    address: int

    def __init__(self, address: int, size_bytes: int, owner: object) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self._owner = owner

    def as_array(self, dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
        """Returns a writable view of these bytes, without a copy, that keeps them alive."""
        check_sizes("an array", [self], [dtype.itemsize * math.prod(shape)])
        seen = np.asarray(_View(self, dtype.str, tuple(shape)))
        return seen if seen.dtype == dtype else seen.view(dtype)  # NumPy has no name for bf16

    def span(self) -> tuple[int, int]:
        return self.address, self.address + self.size_bytes

    def part(self, size_bytes: int) -> HostMemory:
        check_sizes("a part", [self], [size_bytes])
        return HostMemory(self.address, size_bytes, owner=self)


class Borrowed(HostMemory):
    """Memory owned by another object, which is kept alive; it never enters a pool."""

    __slots__ = ()


class _View:
    """The base of NumPy views: its reference keeps the memory alive."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: HostMemory, typestr: str, shape: tuple[int, ...]) -> None:
        self.memory = memory
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr,
            "shape": shape,
            "data": (memory.address, False),
        }


class _Small(HostMemory):
    """A block from Python's heap, which already pools small sizes well."""

    __slots__ = ("_live",)

    def __init__(self, size_bytes: int, storage: bytearray, live: dict[int, int]) -> None:
        start = ctypes.addressof(ctypes.c_char.from_buffer(storage))
        self.address = (start + ALIGNMENT_BYTES - 1) & -ALIGNMENT_BYTES
        self.size_bytes = size_bytes
        self._owner = storage
        self._live = live
        live[id(self)] = size_bytes

    def __del__(self) -> None:
        self._live.pop(id(self), None)


class _Mapped(HostMemory):
    """A block of full pages, which returns to its pool."""

    __slots__ = ("_pool",)

    _owner: mmap.mmap

    def __init__(self, size_bytes: int, pages: mmap.mmap, pool: Pool) -> None:
        start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        super().__init__(start, size_bytes, pages)
        self._pool = pool

    def __del__(self) -> None:
        self._pool._take_back(self._owner, self.size_bytes)


class Pool:
    """Memory blocks, of which at most `limit_bytes` are kept for reuse.

    `capacity_bytes` limits what may be in use at a time; by default, what the machine has.

    Blocks return in `__del__`, which can run at any moment on any thread, even within a method here
    that triggers garbage collection. Hence the lock is reentrant, no two statements under it depend
    on each other, and small blocks are counted in a dict, whose single operations are atomic.
    """

    def __init__(self, limit_bytes: int | None = None, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = machine_bytes() if capacity_bytes is None else capacity_bytes
        if limit_bytes is None:
            limit_bytes = min(self.capacity_bytes // 8, DEFAULT_LIMIT_BYTES)
        self.limit_bytes = limit_bytes
        self._lock = threading.RLock()
        self._small: dict[int, int] = {}
        self._mapped_bytes = 0
        self._mapped_blocks = 0
        # By size, the least recently returned first: those are evicted first.
        self._kept: OrderedDict[int, list[mmap.mmap]] = OrderedDict()

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> HostMemory:
        """Allocates memory: zeroed, unless the caller says that it overwrites every byte."""
        if size_bytes <= SMALL_BYTES:
            try:
                storage = bytearray(size_bytes + ALIGNMENT_BYTES - 1)
            except MemoryError:
                raise self._out_of_memory(size_bytes) from None
            return _Small(size_bytes, storage, self._small)
        capacity = size_class(size_bytes, mmap.PAGESIZE)
        with self._lock:
            available = self.capacity_bytes - self._mapped_bytes
            if size_bytes > available:
                raise LimitError(
                    f"{size_bytes:,} bytes were asked for, but only {available:,} are available "
                    f"({self.capacity_bytes:,} bytes of memory, {self._mapped_bytes:,} in use): "
                    f"free buffers that are done with, or work in smaller pieces."
                )
            kept = self._kept.get(capacity)
            pages = kept.pop() if kept else None
            # Counted before the pages are mapped: two threads must not both get the last of it.
            self._mapped_bytes += size_bytes
            self._mapped_blocks += 1
        if pages is not None:
            memory = _Mapped(size_bytes, pages, self)
            if zeroed:
                ctypes.memset(memory.address, 0, size_bytes)
            return memory
        try:
            return _Mapped(size_bytes, self._map(capacity), self)
        except (OSError, ValueError, MemoryError):
            with self._lock:
                self._mapped_bytes -= size_bytes
                self._mapped_blocks -= 1
            raise self._out_of_memory(size_bytes) from None

    def held(self) -> MemoryStatistics:
        """Returns how much memory is in use, and how much is kept for reuse."""
        with self._lock:
            small = list(self._small.values())
            return MemoryStatistics(
                live_bytes=self._mapped_bytes + sum(small),
                live_blocks=self._mapped_blocks + len(small),
                pooled_bytes=self._pooled_bytes(),
                limit_bytes=self.limit_bytes,
            )

    def trim(self) -> int:
        """Returns all memory kept for reuse to the system; returns how many bytes."""
        released = []
        with self._lock:
            while (pages := self._oldest()) is not None:
                released.append(pages)
        return sum(map(len, released))

    def _map(self, capacity: int) -> mmap.mmap:
        try:
            return _map_pages(capacity)
        except (OSError, MemoryError):
            if not self.trim():
                raise
            return _map_pages(capacity)

    def _take_back(self, pages: mmap.mmap, size_bytes: int) -> None:
        capacity = len(pages)
        evicted = []  # unmapped on return, without the lock
        with self._lock:
            self._mapped_bytes -= size_bytes
            self._mapped_blocks -= 1
            if capacity > self.limit_bytes:
                return
            while self._pooled_bytes() + capacity > self.limit_bytes:
                evicted.append(self._oldest())
            self._kept.setdefault(capacity, []).append(pages)
            self._kept.move_to_end(capacity)

    def _pooled_bytes(self) -> int:
        return sum(capacity * len(kept) for capacity, kept in list(self._kept.items()))

    def _oldest(self) -> mmap.mmap | None:
        return next((kept.pop() for kept in list(self._kept.values()) if kept), None)

    def _out_of_memory(self, size_bytes: int) -> MemoryLimitError:
        held = self.held()
        return MemoryLimitError(
            f"the system did not give {size_bytes:,} bytes: {held.live_bytes:,} are in use by "
            f"{held.live_blocks:,} blocks, of {self.capacity_bytes:,} bytes that the machine has. "
            f"Free buffers that are done with."
        )


def machine_bytes() -> int:
    """Returns the memory of this machine, or of its container if that has less."""
    if sys.platform == "win32":
        kilobytes = ctypes.c_ulonglong()
        ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
        return kilobytes.value * 1024
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for control in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = Path("/sys/fs/cgroup", control).read_text().strip()
        except OSError:
            continue
        if limit.isdecimal():
            physical = min(physical, int(limit))
    return physical


def _map_pages(size_bytes: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size_bytes)
    # Private, so that a forked child does not write into its parent's buffers.
    pages = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size_bytes >= HUGE_PAGE_BYTES and sys.platform == "linux":
        # First touch of 8 MiB took 4.2 ms in small pages and 0.28 ms in huge ones.
        with suppress(OSError):  # kernels built without huge pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


# The CPU device's pool, one per process: the machine's memory is shared by all devices and threads,
# so a limit or a count that is not would be meaningless.
HOST = Pool()

if hasattr(os, "register_at_fork"):
    # A forked child must not inherit a lock that another thread held.
    os.register_at_fork(
        before=HOST._lock.acquire,
        after_in_parent=HOST._lock.release,
        after_in_child=HOST._lock.release,
    )
