"""What runs emitted code: this machine's CPU."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dala.devices.cpu import Cpu


@cache
def cpu_device() -> Cpu:
    """The CPU, opened when it is first used: LLVM takes longer to load than all else together."""
    from dala.devices.cpu import Cpu

    return Cpu()
