"""A gate around LLVM, which must not be running when the process exits.

At exit, a process unloads its libraries; a thread that Python does not wait for and that is inside
one of them crashes it. The gate admits one thread at a time, waits at exit until it is empty, and
then admits none.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time

from dala.errors import DeviceError

WAIT_S = 1.0
"""How long the exit waits for the thread inside."""
_LOOK_S = 0.05


class ExitGate:
    """A lock that the exit of the process takes and never releases."""

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
        """Waits until nobody is inside, and keeps everybody out from then on."""
        self._closed_by = threading.get_ident()
        if self._lock.acquire(timeout=WAIT_S):
            return
        if os.name == "posix" and hasattr(libc := ctypes.CDLL(None), "on_exit"):
            # Runs before all earlier handlers, with the requested exit code: libraries are not
            # unloaded.
            libc.on_exit(libc._exit, None)
        else:
            self._lock.acquire()


GATE = ExitGate()
"""The only gate: LLVM is loaded once per process."""

atexit.register(GATE.close)
if hasattr(os, "register_at_fork"):
    # A forked child must not find LLVM in the middle of another thread's work.
    os.register_at_fork(
        before=GATE._lock.acquire,
        after_in_parent=GATE._lock.release,
        after_in_child=GATE._lock.release,
    )
