"""Launches that are made over and over: all that they need is there before."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dala.devices.cpu.driver import WATCH
from dala.devices.cpu.threads import Job
from dala.devices.device import Again, BriefLaunch, Launches, Number
from dala.emit.argument_slots import SLOT_BYTES
from dala.emit.llvm.module import ENTRY, STATE_BYTES
from dala.ir.level_tables import LEVELS
from dala.plan.chunks import Chunks

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu, Executable
    from dala.devices.cpu.threads import Workers

MOST_TOGETHER = 32
"""Launches of a list between which no signal is heard."""


def bound_launch(
    device: Cpu,
    executable: Executable,
    given: Sequence[Number],
    chunks: Chunks,
    pointers: Iterable[int],
) -> Again:
    """Returns what computes every chunk, given its arguments and which of them are pointers."""
    alone = _Alone(device, executable, executable.pack(*given), chunks, pointers)
    return alone if chunks.count == 1 else _Shared(alone, chunks)


class _Alone:
    """A launch on one thread."""

    def __init__(
        self,
        device: Cpu,
        executable: Executable,
        slots: bytes,
        chunks: Chunks,
        pointers: Iterable[int],
    ) -> None:
        self.workers = device.workers
        self._slots = (ctypes.c_int64 * (len(slots) // SLOT_BYTES)).from_buffer_copy(slots)
        self._pointers = tuple(pointers)
        if executable.tables:  # computed by the first launch, as parameters stay the same
            self._pointers = tuple(place + 1 for place in self._pointers)
            size = STATE_BYTES + LEVELS * executable.tables
            self._tables = device.allocate(size, zeroed=True)
            self._slots[0] = self._tables.address
        self._code = executable.code  # which lives as long as this does
        function, place = executable.code.addresses[ENTRY], ctypes.addressof(self._slots)
        self.job = Job(function, place, chunks, self.workers.count)
        brief = (function, place, chunks.rows, chunks.width)
        self._brief = [brief] if chunks.brief else None
        self._call, self._address = self.workers.alone, self.job.address

    @cached_property
    def words(self) -> Any:
        """The words of this launch among others."""
        return self.workers.prepared(self.job)

    def __call__(self) -> None:
        self._call(self._address)

    def pointers(self) -> Iterable[tuple[Any, int]]:
        """Returns where the addresses of memory are: arrays of words, and places in them."""
        return [(self._slots, place) for place in self._pointers]

    def brief(self) -> list[BriefLaunch] | None:
        """Returns the launch, where it is brief."""
        return self._brief


class _Shared:
    """A launch whose chunks are shared by threads, if others are awake or it is not small."""

    def __init__(self, alone: _Alone, chunks: Chunks) -> None:
        self._alone = alone
        self._small = chunks.small
        self._workers = alone.workers
        self.job, self.words = alone.job, alone.words
        self._address = ctypes.addressof(self.words)
        self.pointers, self.brief = alone.pointers, alone.brief

    def __call__(self) -> None:
        workers = self._workers
        if self._small and not workers.are_awake():
            self._alone()
            return
        watch = None if self._small else workers.watch()
        look = None if watch is None else watch.address
        self.words[WATCH] = look or 0
        is_done = 0
        try:
            is_done = workers.launch(self._address)
        finally:
            if not is_done:
                workers.complete(self._alone.job, look)
        workers.unwatch(watch)


class LaunchList:
    """Launches one after another, without Python between them."""

    def __init__(self, workers: Workers, parts: Sequence[Again]) -> None:
        self._workers = workers
        self._kept = parts  # with what they need beside the memory that they are given
        self._parts = [*_single(parts)]
        addresses = [ctypes.addressof(part.words) for part in self._parts]
        self._launches = (ctypes.c_int64 * len(addresses))(*addresses)
        self._reached = ctypes.c_int64()
        self._places = ctypes.addressof(self._launches), ctypes.addressof(self._reached)

    def __call__(self) -> None:
        first, count = 0, len(self._parts)
        while first < count:
            first = self._make(first, min(count, first + MOST_TOGETHER))

    def _make(self, first: int, end: int) -> int:
        """Makes launches up to one whose workers have to be woken; returns the next after it."""
        self._reached.value = end
        try:
            self._workers.sequence(*self._places, first, end)
        finally:  # of whatever a signal's handler raises: nobody may write anymore
            reached = self._reached.value
            if reached < end:
                self._workers.complete(self._parts[reached].job, None)
        return min(reached + 1, end)

    def pointers(self) -> Iterable[tuple[Any, int]]:
        """Returns where the addresses of memory are: arrays of words, and places in them."""
        return [place for part in self._parts for place in part.pointers()]


def _single(parts: Iterable[Again]) -> Iterable[_Alone | _Shared]:
    """Returns launches, taken out of what makes several of them."""
    for part in parts:
        if isinstance(part, Launches):
            yield from _single(part.parts)
        else:
            assert isinstance(part, _Alone | _Shared)
            yield part
