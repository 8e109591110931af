"""Translates what wgpu raises or logs into errors of ours.

wgpu-native aborts the process on what it takes for its caller's mistake at submission: work is
submitted only under the device's lock, after checking that the device exists.
"""

from __future__ import annotations

import logging
import weakref
from types import TracebackType
from typing import TYPE_CHECKING

import wgpu

from dala.errors import DalaError, DeviceError, DeviceLostError, InternalError, MemoryLimitError

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu


class Guard:
    """Translates wgpu's errors that are raised inside it."""

    __slots__ = ("_device",)

    def __init__(self, device: WebGpu) -> None:
        self._device = device

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, DalaError) or not isinstance(error, Exception):
            return
        if self._device.is_lost():
            raise lost_error(self._device) from error
        if isinstance(error, (wgpu.GPUError, RuntimeError)):
            raise translated(error, self._device) from error


def lost_error(device: WebGpu) -> DeviceLostError:
    """Returns the error that every use of a lost device and of its memory raises."""
    return DeviceLostError(
        f"the device {device.id} ({device.name}) was lost, with all that its buffers held. Make "
        f"them again: what is asked for next opens the device anew."
    )


def translated(error: Exception, device: WebGpu) -> DalaError:
    """Returns our error for what wgpu raised on a device that still works."""
    said = " ".join(str(error).split())
    if isinstance(error, wgpu.GPUOutOfMemoryError) or "memory left" in said:
        held = device.held()
        return MemoryLimitError(
            f"{device.id} ({device.name}) has no memory left: {held.live_bytes:,} bytes are in use "
            f"by {held.live_blocks:,} buffers. Free those that are done with."
        )
    if isinstance(error, wgpu.GPUValidationError):
        return InternalError(f"{device.id} ({device.name}) refused what dala asked for: {said}")
    return DeviceError(f"{device.id} ({device.name}) failed: {said}")


class _LossWatch(logging.Filter):
    """Looks for the line that wgpu logs when a device is lost; lets every line pass.

    The line comes from a callback, in which wgpu must not be called, and does not name the device:
    so each device is checked on its next use.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if "device was lost" in record.getMessage():
            for device in list(_watched):
                device.suspect = True
        return True


_watched: weakref.WeakSet[WebGpu] = weakref.WeakSet()
_watch = _LossWatch()


def watch(device: WebGpu) -> None:
    """Makes this device check itself after a loss that wgpu only logs."""
    _watched.add(device)
    logging.getLogger("wgpu").addFilter(_watch)  # adding it twice has no effect
