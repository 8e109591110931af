"""The CPU backend, which has one device."""

from __future__ import annotations

from collections.abc import Sequence

from dala.devices.cpu.device import CPU
from dala.devices.registry import Listing


def listings() -> Sequence[Listing]:
    return [Listing(CPU.id, CPU.name, CPU.info, lambda: CPU)]


def preferred() -> Listing | None:
    return listings()[0]
