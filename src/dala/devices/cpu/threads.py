"""Worker threads that share the strips of a launch, and hold no GIL while they compute."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from queue import SimpleQueue
from typing import Any

from dala.errors import ArgumentError

_JOB = struct.Struct("QQqqqqqqqq")
_DONE, _STATUS = 8, 9
_SPINS = 100_000
"""How often the caller looks for the workers' last strips before it sleeps: for about 0.1 ms.

A strip takes less; a nap, whatever its length, comes to 0.1 to 0.2 ms on many systems.
"""
_NAP_S = 50e-6
_STOPPED = 2
"""A status that makes the driver pass over the strips that are left."""

DRIVER = """
define void @dala_drive(ptr %job) {
entry:
  %function = load ptr, ptr %job
  %1 = getelementptr i64, ptr %job, i64 1
  %slots = load ptr, ptr %1
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
  br label %claim
over:
  ret void
}

define i64 @dala_wait(ptr %job, i64 %spins) {
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
}
"""


def thread_count() -> int:
    """How many threads a launch may use: `DALA_THREADS`, else the CPUs this process may run on."""
    asked = os.environ.get("DALA_THREADS")
    if asked:
        if not asked.isdecimal() or not 1 <= int(asked) <= 1024:
            raise ArgumentError(f"DALA_THREADS is {asked!r}: give a number of threads, 1 to 1024.")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Job:
    """One launch that is cut into strips; whoever calls `drive` takes strips until none is left."""

    __slots__ = ("address", "memory")

    def __init__(
        self, function: int, slots: int, count: int, size: int, rows: int, width: int, by_rows: bool
    ) -> None:
        packed = _JOB.pack(function, slots, count, size, rows, width, by_rows, 0, 0, 0)
        self.memory = (ctypes.c_int64 * 10).from_buffer_copy(packed)
        self.address = ctypes.addressof(self.memory)

    @property
    def status(self) -> int:
        return int(self.memory[_STATUS])


class Workers:
    """Threads that sleep between launches and help the caller during one."""

    def __init__(self, dala_drive: int, dala_wait: int) -> None:
        self.drive: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(dala_drive)
        self._wait: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(
            dala_wait
        )
        self.count = thread_count()
        self._queues: list[SimpleQueue[Job]] = []
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def run(self, job: Job) -> int:
        """Compute all strips, together; the status that they leave."""
        if not self._queues:
            self._start()
        try:
            for queue in self._queues:
                queue.put(job)
            self.drive(job.address)
        finally:
            self._settle(job)
        return job.status

    def _settle(self, job: Job) -> None:
        """Return when nobody writes any more: memory must not be reused before, come what may."""
        interrupt: BaseException | None = None
        while True:
            try:
                self.drive(job.address)
                while not self._wait(job.address, _SPINS):
                    time.sleep(_NAP_S)
                break
            except BaseException as raised:  # Ctrl-C, or what another signal's handler raises
                interrupt = raised
                job.memory[_STATUS] = _STOPPED
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
            self.drive(job.address)
            del job  # the queue may be silent for long, and the job holds memory

    def _forget(self) -> None:
        """A forked child has none of its parent's threads: it starts its own when it needs them."""
        self._queues = []
        self._lock = threading.Lock()
