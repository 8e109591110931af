"""Pipelines that are run many times without the host in between: `repeat` and `until`.

Buffers that were given to `pipeline.swap` change roles after each step: what a step wrote is what
the next one reads. On a device that records, many steps are one submission.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dala.base.record import value
from dala.errors import ArgumentError, edge
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.pipeline import Pipeline
from dala.runtime.pipelines.steps import Steps

STEPS_PER_BATCH = 64
"""Steps that are submitted together, so that what is encoded stays small."""
MOST_STEPS = 1_000_000


@value
class Iterations:
    """How many steps were run, and whether the flag was set by then."""

    steps: int
    done: bool


@edge
def repeat(pipeline: Pipeline, count: int) -> None:
    """Runs a pipeline `count` times; of two buffers that swap, the first has the last result.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([1.0, 3.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> doubling = compute.pipeline().add(
    ...     kernel="scale", inputs=[x], output=y, params={"factor": 2.0}
    ... ).swap(x, y)
    >>> compute.repeat(doubling, 5)
    >>> compute.read_list(x)
    [32.0, 96.0]
    """
    _check_count("repeat: count", count, 0)
    with pipeline.iterating() as steps:
        _run(steps, count)


@edge
def until(
    pipeline: Pipeline, flag: Buffer, *, every: int = 16, limit: int = MOST_STEPS
) -> Iterations:
    """Runs a pipeline until it leaves something other than 0 in `flag`, a buffer of one element.

    The flag is read back after `every` so many steps; after `limit` steps it ends in any case.
    """
    _check_count("until: every", every, 1)
    _check_count("until: limit", limit, 1)
    if not isinstance(flag, Buffer) or math.prod(flag.shape) != 1:
        raise ArgumentError(f"until: flag is a buffer of one element, not {flag!r}.")
    if not any(item is flag for entry in pipeline.stages for item in entry.outputs):
        raise ArgumentError(f"until: no stage writes {flag!r}, so it would never be set.")
    done, ran = False, 0
    with pipeline.iterating() as steps:
        while not done and ran < limit:
            count = min(every, limit - ran)
            _run(steps, count)
            ran += count
            done = bool(np.any(read(flag)))
    return Iterations(ran, done)


def _run(steps: Steps, count: int) -> None:
    while count > 0:
        part = min(count, STEPS_PER_BATCH)
        steps.run(part)
        count -= part


def _check_count(what: str, count: Any, least: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise ArgumentError(f"{what} is an integer from {least} on, not {count!r}.")
