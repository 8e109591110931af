"""WebGPU at process exit and after a fork.

Releasing a device waits for its work, so an exit would take as long as whatever is in flight. In a
forked child it waits forever, for threads that were not copied; and the drivers' exit handlers
crash there for the same reason.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import weakref
from typing import Any

import wgpu

_devices: weakref.WeakSet[Any] = weakref.WeakSet()


def keep_at_exit(gpu: Any) -> None:
    """Makes the exit of this process and of its forks not wait for wgpu's device."""
    _devices.add(gpu)


def _keep(objects: list[Any]) -> None:
    for each in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def _leave_alone() -> None:
    """Prevents any release by wgpu and exit handlers of drivers in a forked child."""
    if not _devices:
        return
    kinds = (wgpu.GPUObjectBase, wgpu.GPUAdapter)
    _keep([each for each in gc.get_objects() if issubclass(type(each), kinds)])
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        # Runs before the handlers registered earlier, with the requested exit code.
        libc.on_exit(libc._exit, None)


atexit.register(lambda: _keep(list(_devices)))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_alone)
