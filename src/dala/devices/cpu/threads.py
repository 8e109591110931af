"""Worker threads that share the chunks of a launch, without the GIL while they compute."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from queue import SimpleQueue
from typing import Any

from dala.devices.cpu.signals import LOOK, Watch
from dala.errors import ArgumentError
from dala.plan.chunks import Chunks
from dala.plan.watchdog import STOPPED

_JOB = struct.Struct("QQqqqqqqqqq")
_SLOTS, _STATUS, _TURNS = 1, 9, 10
_SPINS = 100_000
"""How often the caller polls for the workers' last chunks before it sleeps: about 0.1 ms.

A chunk takes less; any sleep takes 0.1 to 0.2 ms on many systems.
"""
_NAP_S = 50e-6
_NO_LIMIT = 1 << 62

DRIVER = f"""
define void @dala_drive(ptr %job, ptr %look, ptr %own) {{
entry:
  %function = load ptr, ptr %job
  %1 = getelementptr i64, ptr %job, i64 1
  %theirs = load ptr, ptr %1
  %alike = icmp eq ptr %own, null
  %slots = select i1 %alike, ptr %theirs, ptr %own
  %2 = getelementptr i64, ptr %job, i64 2
  %count = load i64, ptr %2
  %3 = getelementptr i64, ptr %job, i64 3
  %size = load i64, ptr %3
  %4 = getelementptr i64, ptr %job, i64 4
  %rows = load i64, ptr %4
  %5 = getelementptr i64, ptr %job, i64 5
  %width = load i64, ptr %5
  %6 = getelementptr i64, ptr %job, i64 6
  %cut = load i64, ptr %6
  %by_rows = icmp ne i64 %cut, 0
  %next = getelementptr i64, ptr %job, i64 7
  %done = getelementptr i64, ptr %job, i64 8
  %status = getelementptr i64, ptr %job, i64 9
  %blind = icmp eq ptr %look, null
  br label %claim
claim:
  %i = atomicrmw add ptr %next, i64 1 monotonic
  %some = icmp slt i64 %i, %count
  br i1 %some, label %strip, label %over
strip:
  %length = select i1 %by_rows, i64 %rows, i64 %width
  %begin = mul i64 %i, %size
  %far = add i64 %begin, %size
  %short = icmp slt i64 %far, %length
  %end = select i1 %short, i64 %far, i64 %length
  %row0 = select i1 %by_rows, i64 %begin, i64 0
  %row1 = select i1 %by_rows, i64 %end, i64 %rows
  %x0 = select i1 %by_rows, i64 0, i64 %begin
  %x1 = select i1 %by_rows, i64 %width, i64 %end
  %failed = load atomic i64, ptr %status monotonic, align 8
  %stop = icmp ne i64 %failed, 0
  br i1 %stop, label %counted, label %run
run:
  %code = call i32 %function(ptr %slots, i64 %row0, i64 %row1, i64 %x0, i64 %x1)
  %wide = zext i32 %code to i64
  %old = atomicrmw or ptr %status, i64 %wide monotonic
  br label %counted
counted:
  %before = atomicrmw add ptr %done, i64 1 release
  br i1 %blind, label %claim, label %seeing
seeing:
  %seen = call i32 @dala_look(ptr %look)
  %calm = icmp eq i32 %seen, 0
  br i1 %calm, label %claim, label %signalled
signalled:
  %known = atomicrmw or ptr %status, i64 {STOPPED} monotonic
  br label %claim
over:
  ret void
}}

define i64 @dala_wait(ptr %job, i64 %spins) {{
entry:
  %2 = getelementptr i64, ptr %job, i64 2
  %count = load i64, ptr %2
  %place = getelementptr i64, ptr %job, i64 8
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %after, %again ]
  %done = load atomic i64, ptr %place acquire, align 8
  %all = icmp sge i64 %done, %count
  br i1 %all, label %yes, label %again
again:
  %after = add i64 %n, 1
  %more = icmp slt i64 %after, %spins
  br i1 %more, label %look, label %no
yes:
  ret i64 1
no:
  ret i64 0
}}
{LOOK}"""


def thread_count() -> int:
    """Returns how many threads a launch may use: `DALA_THREADS`, else the process's CPUs."""
    asked = os.environ.get("DALA_THREADS")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= 1024:
            raise ArgumentError(f"DALA_THREADS is {asked!r}: give a number of threads, 1 to 1024.")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Job:
    """A launch split into chunks; each caller of `drive` takes chunks until none is left.

    `iterations` is the limit for all watched loops together.
    """

    __slots__ = ("address", "memory")

    def __init__(
        self, function: int, slots: int, chunks: Chunks, iterations: int | None = None
    ) -> None:
        count, size, rows, width = chunks.count, chunks.size, chunks.rows, chunks.width
        left = _NO_LIMIT if iterations is None else iterations
        packed = _JOB.pack(function, slots, count, size, rows, width, chunks.by_rows, 0, 0, 0, left)
        self.memory = (ctypes.c_int64 * (_TURNS + 1)).from_buffer_copy(packed)
        self.address = ctypes.addressof(self.memory)

    @property
    def status(self) -> int:
        return int(self.memory[_STATUS])

    @property
    def shared(self) -> int:
        """Returns the address of what watched loops share: the status, and the iterations left."""
        return self.address + 8 * _STATUS

    def take(self, slots: int) -> None:
        """Sets the workers' slots, made once the address of the job is known."""
        self.memory[_SLOTS] = slots

    def stop(self) -> None:
        """Makes all threads skip the remaining chunks, and ends watched loops."""
        self.memory[_STATUS] = STOPPED


class Control:
    """The control block of watched loops: see `emit/llvm/watchdog.py`."""

    __slots__ = ("_memory", "address")

    def __init__(self, iterations: int | None, look: int | None, shared: int | None = None) -> None:
        memory = self._memory = _CONTROL(0, _NO_LIMIT if iterations is None else iterations)
        start = ctypes.addressof(memory)
        memory[2] = start if shared is None else shared
        memory[3] = look or 0
        self.address = start + 16


_CONTROL = ctypes.c_int64 * 5


class Workers:
    """Threads that sleep between launches and help the caller during one."""

    def __init__(self, dala_drive: int, dala_wait: int, dala_look: int) -> None:
        arguments = [ctypes.c_void_p] * 3
        self.drive: Any = ctypes.CFUNCTYPE(None, *arguments)(dala_drive)
        self._wait: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(
            dala_wait
        )
        self._look = dala_look
        self._watches: list[Watch] = []
        self.count = thread_count()
        self._queues: list[SimpleQueue[Job]] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def watch(self) -> Watch | None:
        """Returns a signal watch on the main thread; None on others, which get no signals.

        It is returned with `unwatch`.
        """
        if threading.get_ident() != threading.main_thread().ident:
            return None
        return self._watches.pop() if self._watches else Watch(self._look)

    def unwatch(self, watch: Watch | None) -> None:
        """Raises what a signal handler raised meanwhile, if it did."""
        if watch is not None:
            self._watches.append(watch)
            watch.check()

    def run(self, job: Job, look: int | None, own: int | None = None) -> int:
        """Computes all chunks together and returns their status.

        `look` is the signal watch; `own` are the slots of this thread, if they differ from the
        others'.
        """
        if not self._queues:
            self._start()
        try:
            for queue in self._queues:
                queue.put(job)
            self.drive(job.address, look, own)
        finally:
            self._settle(job, look, own)
        return job.status

    def _settle(self, job: Job, look: int | None, own: int | None) -> None:
        """Waits until nobody writes anymore: memory must not be reused before that."""
        interrupt: BaseException | None = None
        while True:
            try:
                self.drive(job.address, look, own)
                while not self._wait(job.address, _SPINS):
                    time.sleep(_NAP_S)
                break
            except BaseException as raised:  # Ctrl-C, or what another signal's handler raises
                interrupt = raised
                job.stop()
        if interrupt is not None:
            raise interrupt

    def _start(self) -> None:
        with self._lock:
            if self._queues:
                return
            queues: list[SimpleQueue[Job]] = [SimpleQueue() for _ in range(self.count - 1)]
            for i, queue in enumerate(queues):
                name = f"dala-worker-{i + 1}"
                threading.Thread(target=self._work, args=(queue,), name=name, daemon=True).start()
            self._queues = queues

    def _work(self, queue: SimpleQueue[Job]) -> None:
        while True:
            job = queue.get()
            self.drive(job.address, None, None)
            del job  # the queue may stay empty for long, and the job holds memory

    def _forget(self) -> None:
        """Discards the workers in a forked child, which starts its own when needed."""
        self._queues = []
        self._lock = threading.Lock()
