"""Worker threads that share the chunks of a launch, without the GIL while they compute."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from queue import SimpleQueue
from typing import Any

from dala.devices.cpu.driver import (
    ASLEEP,
    BOX_WORDS,
    NEED,
    NEXT,
    SLOTS,
    STATUS,
    TO_QUEUE,
)
from dala.devices.cpu.signals import Watch
from dala.errors import ArgumentError
from dala.plan.chunks import Chunks
from dala.plan.watchdog import STOPPED

_SPUN_S = 0.3e-3
"""How long a thread polls for what others do before it sleeps.

A chunk takes less, and so does what most programs do between two launches; any sleep takes 0.1 to
0.2 ms on many systems, and to be woken a worker needs the GIL.
"""
_TRIED = 2000
"""How many polls are timed once: how long one takes depends on the processor."""
_NAP_S = 50e-6
_NO_LIMIT = 1 << 62


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
        self,
        function: int,
        slots: int,
        chunks: Chunks,
        threads: int,
        iterations: int | None = None,
    ) -> None:
        count, size, rows, width = chunks.count, chunks.size, chunks.rows, chunks.width
        left = _NO_LIMIT if iterations is None else iterations
        shares = [i * count // threads for i in range(threads)]
        self.memory = (ctypes.c_int64 * (NEXT + threads))(
            function, slots, count, size, rows, width, chunks.by_rows, threads, 0, 0, left, *shares
        )
        self.address = ctypes.addressof(self.memory)

    @property
    def status(self) -> int:
        return int(self.memory[STATUS])

    @property
    def shared(self) -> int:
        """Returns the address of what watched loops share: the status, and the iterations left."""
        return self.address + 8 * STATUS

    def take(self, slots: int) -> None:
        """Sets the workers' slots, made once the address of the job is known."""
        self.memory[SLOTS] = slots

    def stop(self) -> None:
        """Makes all threads skip the remaining chunks, and ends watched loops."""
        self.memory[STATUS] = STOPPED


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

    def __init__(
        self,
        dala_drive: int,
        dala_post: int,
        dala_serve: int,
        dala_finish: int,
        dala_launch: int,
        dala_alone: int,
        dala_sequence: int,
        dala_look: int,
    ) -> None:
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        self._drive: Any = _native(dala_drive, None, pointer, pointer, pointer, word)
        self._post: Any = _native(dala_post, word, pointer, pointer, word)
        self._serve: Any = _native(dala_serve, None, pointer, word, word)
        self._finish: Any = _native(
            dala_finish, word, pointer, pointer, pointer, pointer, word, word
        )
        # Each argument of a foreign function takes a tenth of a microsecond.
        self.launch: Any = _native(dala_launch, word, pointer)
        self.alone: Any = _native(dala_alone, None, pointer)
        self.sequence: Any = _native(dala_sequence, None, pointer, pointer, word, word)
        self._spins = self._spins_within(_SPUN_S)
        self._look = dala_look
        self._asked_s = 0.0
        self._watches: list[Watch] = []
        self.count = thread_count()
        self._queues: list[SimpleQueue[Job | None]] = []
        self._boxes = (ctypes.c_int64 * (BOX_WORDS * self.count))()
        self._clear()
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def are_awake(self) -> bool:
        """Whether launches follow each other so closely that workers look for the next one.

        The first of them finds the workers asleep, and is not shared if it is small.
        """
        now = time.perf_counter()
        last, self._asked_s = self._asked_s, now
        return now - last < _SPUN_S

    def _spins_within(self, seconds: float) -> int:
        """Returns how often a thread polls in that time."""
        empty = (ctypes.c_int64 * BOX_WORDS)()
        taken = []
        for _ in range(3):  # one may be interrupted
            start = time.perf_counter()
            self._serve(ctypes.addressof(empty), 0, _TRIED)
            taken.append(time.perf_counter() - start)
        return int(_TRIED * seconds / max(min(taken), 1e-6))

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
            self._share(job)
        finally:
            self._settle(job, look, own)
        return job.status

    def prepared(self, job: Job) -> Any:
        """Returns the words of a launch of a job."""
        boxes = ctypes.addressof(self._boxes)
        return (ctypes.c_int64 * 5)(job.address, 0, boxes, self.count - 1, self._spins)

    def complete(self, job: Job, look: int | None) -> None:
        """Computes and waits for what a launch could not do: workers are asleep, or held up."""
        try:
            self._wake(job)
        finally:
            self._settle(job, look, None)

    def _share(self, job: Job) -> None:
        """Hands the job to all workers, and wakes those that sleep."""
        workers = len(self._queues)
        if workers and self._post(job.address, self._boxes, workers):
            self._wake(job)

    def _wake(self, job: Job) -> None:
        """Wakes the workers that a posted job found asleep."""
        if not self._queues:
            self._start()
        for i, queue in enumerate(self._queues):
            need = self._boxes[i * BOX_WORDS + NEED]
            if need:
                queue.put(job if need == TO_QUEUE else None)

    def _settle(self, job: Job, look: int | None, own: int | None) -> None:
        """Computes and waits until nobody writes anymore: memory must not be reused before that."""
        interrupt: BaseException | None = None
        arguments = (job.address, look, own, self._boxes, len(self._queues), self._spins)
        while True:
            try:
                while not self._finish(*arguments):
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
            queues: list[SimpleQueue[Job | None]] = [SimpleQueue() for _ in range(self.count - 1)]
            for i, queue in enumerate(queues):
                name, given = f"dala-worker-{i + 1}", (queue, i)
                threading.Thread(target=self._work, args=given, name=name, daemon=True).start()
            self._queues = queues

    def _work(self, queue: SimpleQueue[Job | None], number: int) -> None:
        box = ctypes.addressof(self._boxes) + 8 * BOX_WORDS * number
        while True:
            job = queue.get()
            if job is not None:
                self._drive(job.address, None, None, number)
            del job  # the queue may stay empty for long, and the job holds memory
            self._serve(box, number, self._spins)

    def _forget(self) -> None:
        """Discards the workers in a forked child, which starts its own when needed."""
        self._queues = []
        self._clear()
        self._lock = threading.Lock()

    def _clear(self) -> None:
        """Empties all boxes, whose workers are not there yet."""
        for first in range(0, len(self._boxes), BOX_WORDS):
            self._boxes[first : first + BOX_WORDS] = [0] * BOX_WORDS
            self._boxes[first + ASLEEP] = 1


def _native(address: int, result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)(address)
