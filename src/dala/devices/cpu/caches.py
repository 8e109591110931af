"""How much the caches of this machine hold."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from dala.plan.task import Task

USUAL_BYTES = 16 << 20
"""What is taken for the last cache where the system does not tell."""
USUAL_CORE_BYTES = 1 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20}


@cache
def last_level_bytes() -> int:
    """Returns the size of the cache that is the last before memory."""
    return max(_sizes().values(), default=0) or USUAL_BYTES


@cache
def core_bytes() -> int:
    """Returns the size of the second cache, which a core mostly has to itself."""
    return _sizes().get(2, 0) or USUAL_CORE_BYTES


def _sizes() -> dict[int, int]:
    """Returns the size of the cache of each level."""
    folders = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")
    return {
        int((folder / "level").read_text()): _bytes((folder / "size").read_text().strip())
        for folder in folders
    }


def outgrows_caches(task: Task, times: float = 1) -> bool:
    """Whether a launch goes through more than so many times what the caches hold.

    What it writes would then only evict what is still to be read.
    """
    kinds = (*task.inputs, *task.outputs)
    moved = sum(math.prod(shape) * scalar.size_bytes for scalar, shape in kinds)
    return moved > times * last_level_bytes()


def _bytes(size: str) -> int:
    number, unit = size[:-1], size[-1:]
    return int(number) * _UNITS[unit] if unit in _UNITS and number.isdecimal() else 0
