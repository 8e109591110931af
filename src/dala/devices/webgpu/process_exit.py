"""WebGPU at the end of a process, and after a fork.

Releasing a device waits for its work, so that an exit would take as long as whatever is under way.
In a forked child it waits for ever, for threads that were not copied; and the drivers' own exit
handlers crash there for the same reason.
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
    """The exit of this process does not wait for wgpu's device, nor does that of a fork of it."""
    _devices.add(gpu)


def _keep(objects: list[Any]) -> None:
    for each in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))


def _leave_alone() -> None:
    """In a forked child: nothing of wgpu is ever released, and the drivers do not see the exit."""
    if not _devices:
        return
    kinds = (wgpu.GPUObjectBase, wgpu.GPUAdapter)
    _keep([each for each in gc.get_objects() if issubclass(type(each), kinds)])
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        # Called before the handlers that were there earlier, with the exit code that was asked for.
        libc.on_exit(libc._exit, None)


atexit.register(lambda: _keep(list(_devices)))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_alone)
