"""A gate for work inside of LLVM, which must not be under way when the process ends.

At the end a process takes its libraries apart. A thread that Python does not wait for, and that is
inside of one of them just then, brings it down. The gate lets one thread in at a time, waits at the
end until it is empty, and then lets nobody in.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time

from dala.errors import DeviceError

WAIT_S = 1.0
"""How long the end of the process waits for who is inside."""
_LOOK_S = 0.05


class ExitGate:
    """A lock that the end of the process takes, and does not give back."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._closed_by: int | None = None

    def __enter__(self) -> None:
        while not self._lock.acquire(timeout=_LOOK_S):
            self._check()
        if self._closed_by != threading.get_ident():
            try:
                self._check()
            except BaseException:
                self._lock.release()
                raise

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def _check(self) -> None:
        if self._closed_by is not None:
            time.sleep(2 * WAIT_S)  # by then the process is gone, unless it waits for this thread
            raise DeviceError("kernels are not compiled any more: the process is about to end.")

    def close(self) -> None:
        """Wait until nobody is inside, and keep everybody else out."""
        self._closed_by = threading.get_ident()
        if self._lock.acquire(timeout=WAIT_S):
            return
        if os.name == "posix" and hasattr(libc := ctypes.CDLL(None), "on_exit"):
            # Called first of all that was registered, with the exit code that was asked for:
            # libraries are not taken apart at all.
            libc.on_exit(libc._exit, None)
        else:
            self._lock.acquire()


GATE = ExitGate()
"""The one gate: LLVM is loaded into a process once."""

atexit.register(GATE.close)
if hasattr(os, "register_at_fork"):
    # A child must not find LLVM in the middle of another thread's work.
    os.register_at_fork(
        before=GATE._lock.acquire,
        after_in_parent=GATE._lock.release,
        after_in_child=GATE._lock.release,
    )
