"""Launches that are made over and over: all that they need is there before."""

from __future__ import annotations

import ctypes
import threading
from functools import partial
from typing import TYPE_CHECKING

from dala.devices.cpu.driver import WATCH
from dala.devices.cpu.threads import Job
from dala.devices.device import Again
from dala.emit.llvm.module import ENTRY
from dala.plan.chunks import Chunks

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu, Executable


def bound_launch(device: Cpu, executable: Executable, slots: bytes, chunks: Chunks) -> Again:
    """Returns what computes every chunk."""
    arguments = ctypes.create_string_buffer(slots)
    function, place = executable.code.addresses[ENTRY], ctypes.addressof(arguments)
    job = Job(function, place, chunks, device.threads)
    alone = partial(device.workers.alone, job.address)
    alone.kept = (job, arguments, executable)  # type: ignore[attr-defined]
    if chunks.count == 1:
        return alone
    return _Shared(device, job, chunks, alone, partial(device.run, executable, slots, chunks))


class _Shared:
    """A launch whose chunks are shared by threads."""

    __slots__ = ("_address", "_alone", "_apart", "_busy", "_job", "_small", "_words", "_workers")

    def __init__(self, device: Cpu, job: Job, chunks: Chunks, alone: Again, apart: Again) -> None:
        self._workers = device.workers
        self._job = job
        self._alone = alone
        self._apart = apart
        self._small = chunks.small
        self._busy = threading.Lock()
        self._words = self._workers.prepared(job)
        self._address = ctypes.addressof(self._words)

    def __call__(self) -> None:
        workers = self._workers
        if self._small and not workers.are_awake():
            self._alone()
        elif not self._busy.acquire(False):  # another thread makes the same call
            self._apart()
        else:
            try:
                self._launch()
            finally:
                self._busy.release()

    def _launch(self) -> None:
        workers = self._workers
        watch = None if self._small else workers.watch()
        look = None if watch is None else watch.address
        self._words[WATCH] = look or 0
        is_done = 0
        try:
            is_done = workers.launch(self._address)
        finally:
            if not is_done:
                workers.complete(self._job, look)
        workers.unwatch(watch)
