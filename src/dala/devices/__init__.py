"""Finds devices, and keeps the current one, where new buffers go."""

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
    """Returns the device of this context: that of the innermost `with`, else the default."""
    chosen = _here.get() or _default
    if chosen is None:
        return use_device(os.environ.get("DALA_DEVICE") or preferred_listing().open())
    return find_device(chosen.id) if chosen.lost else chosen


def use_device(which: str | Device) -> Device:
    """Makes a device the default: new buffers go there, and kernels on them run there."""
    global _default  # noqa: PLW0603  (a default is global by definition)
    _default = find_device(which)
    return _default


@contextmanager
def using(which: str | Device) -> Iterator[Device]:
    """Sends new buffers to this device in its context; other threads and tasks are unaffected."""
    device = find_device(which)
    token = _here.set(device)
    try:
        yield device
    finally:
        _here.reset(token)


def find_device(which: str | Device) -> Device:
    """Returns the device with this id or "parity", or whose name contains the text."""
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
    """Returns the facts about every available device, the CPU first."""
    return all_infos()
