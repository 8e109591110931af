"""Runs a task that checks or prints: once to count what positions say, once more to have it.

So the lines are the first ones by position, whatever the order in which a GPU computes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dala.devices.device import Device
from dala.devices.webgpu.memory import GpuMemory
from dala.emit.wgsl.reports import AGAIN, FAILED, HEAD, ROOM, WRONG
from dala.plan.reports import MOST_LINES, Said, record_words, tell
from dala.plan.task import Task

_WORD_BYTES = 4


def run_reporting(
    device: Device, task: Task, launch: Callable[[GpuMemory], list[GpuMemory]]
) -> list[GpuMemory]:
    """Returns what the task computed, once its lines are printed and its checks have held.

    `launch` runs it with a memory for what positions say, and returns its output.
    """
    count = math.prod(task.domain)
    size = record_words(task.program)
    words = np.zeros(HEAD + count, np.uint32)
    found, outputs = _run(device, words, launch)
    places = found[HEAD:]
    lines = places & (FAILED - 1)
    failed = np.flatnonzero(places & FAILED)
    total = int(lines.sum(dtype=np.uint64))
    if not total and not len(failed):
        return outputs
    room = min(total, MOST_LINES)
    starts = np.cumsum(lines, dtype=np.uint64) - lines
    again = np.zeros(HEAD + count + (1 + room) * size, np.uint32)
    again[[AGAIN, ROOM]] = 1, room
    again[WRONG] = failed[0] if len(failed) else 0xFFFF_FFFF
    again[HEAD : HEAD + count] = np.minimum(starts, room)
    found, outputs = _run(device, again, launch)
    records = found[HEAD + count :].reshape(-1, size)
    said = Said(list(records[1:]), total, records[0] if len(failed) else None)
    tell(task.name, task.program, task.positions, said)
    return outputs


def _run(
    device: Device, words: np.ndarray, launch: Callable[[GpuMemory], list[GpuMemory]]
) -> tuple[np.ndarray, list[GpuMemory]]:
    memory = device.allocate(words.nbytes, zeroed=False)
    assert isinstance(memory, GpuMemory)
    device.write(memory, words)
    outputs = launch(memory)
    return device.read(memory).view(np.uint32)[: len(words)], outputs
