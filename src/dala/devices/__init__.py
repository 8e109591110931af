"""Which devices there are, and which one new buffers go to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dala.devices.cpu.device import CPU
from dala.devices.device import Device
from dala.devices.registry import (
    all_infos,
    find_listing,
    preferred_listing,
    register_backend,
    unregister_backend,
)
from dala.errors import ArgumentError

__all__ = [
    "CPU",
    "Device",
    "current_device",
    "devices",
    "find_device",
    "register_backend",
    "unregister_backend",
    "use_device",
    "using",
]

_here: ContextVar[Device | None] = ContextVar("dala_device", default=None)
_default: Device | None = None


def current_device() -> Device:
    """The device of this context: of the innermost `with`, else the default one."""
    chosen = _here.get() or _default
    if chosen is None:
        return use_device(os.environ.get("DALA_DEVICE") or preferred_listing().open())
    return find_device(chosen.id) if chosen.lost else chosen


def use_device(which: str | Device) -> Device:
    """Make a device the default one: where new buffers go, and what runs the kernels on them."""
    global _default  # noqa: PLW0603  (what a default is)
    _default = find_device(which)
    return _default


@contextmanager
def using(which: str | Device) -> Iterator[Device]:
    """Inside, new buffers go to this device; other threads and tasks are not concerned."""
    device = find_device(which)
    token = _here.set(device)
    try:
        yield device
    finally:
        _here.reset(token)


def find_device(which: str | Device) -> Device:
    """The device that a name stands for: its id, "parity", or part of what it calls itself."""
    if isinstance(which, Device):
        return which
    if not isinstance(which, str) or not which:
        raise ArgumentError(
            f"a device is named by a text such as 'cpu' or 'webgpu', not {which!r}."
        )
    if which.lower() == CPU.id:
        return CPU
    return find_listing(which).open()


def devices() -> list[dict[str, Any]]:
    """Every device that there is, the CPU first: what it is and what it has."""
    return all_infos()
