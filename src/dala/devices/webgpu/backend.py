"""The WebGPU backend: one device per adapter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dala.devices.registry import Listing
from dala.devices.webgpu import adapters
from dala.devices.webgpu.adapters import Adapter
from dala.errors import DeviceError


def listings() -> Sequence[Listing]:
    found = [_listing(adapter) for adapter in adapters.CATALOG.adapters()]
    if not found:
        raise DeviceError("WebGPU found no adapter: a Vulkan driver may be missing.")
    return found


def preferred() -> Listing | None:
    """Returns the best hardware adapter: software ones are not chosen by default."""
    if not adapters.may_have_gpu():
        return None
    try:
        found = adapters.CATALOG.adapters()
    except DeviceError:  # without a working wgpu there is still the CPU
        return None
    return next((_listing(adapter) for adapter in found if adapter.hardware), None)


def _listing(adapter: Adapter) -> Listing:
    name = f"{adapter.name}, {adapter.api}"
    return Listing(adapter.id, name, adapter.info, partial(adapters.CATALOG.device, adapter))
