"""What wgpu raises or logs, as errors of ours.

What wgpu-native takes for a mistake of its caller at submission ends the process: work is submitted
only under the device's lock, after a look whether the device is there.
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
    """Inside it, what goes wrong in wgpu is raised as an error of ours."""

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
    """What every use of a lost device and of its memory raises."""
    return DeviceLostError(
        f"the device {device.id} ({device.name}) was lost, with all that its buffers held. Make "
        f"them again: what is asked for next opens the device anew."
    )


def translated(error: Exception, device: WebGpu) -> DalaError:
    """The error of ours for what wgpu raised on a device that still works."""
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
    """Looks for the line that wgpu logs when a device is lost, and lets every line pass.

    The line comes out of a callback, in which wgpu must not be called, and does not say which
    device it is about: so each of them is asked when it is used next.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if "device was lost" in record.getMessage():
            for device in list(_watched):
                device.suspect = True
        return True


_watched: weakref.WeakSet[WebGpu] = weakref.WeakSet()
_watch = _LossWatch()


def watch(device: WebGpu) -> None:
    """From now on, a loss that wgpu only logs makes this device look for itself."""
    _watched.add(device)
    logging.getLogger("wgpu").addFilter(_watch)  # a second time does nothing
