"""The schedule of a launch graph: fusion groups and host calls, in order.

Steps between two barriers or host calls form a region. Within a region, producers are inlined into
their consumers where nobody else needs them, separable stencils are split, and what is left is
fused into groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from dala.base.record import record
from dala.plan.encoding import encode_between
from dala.plan.fusion import FusionGroup, fuse
from dala.plan.inlining import inline_producers
from dala.plan.separation import split
from dala.plan.step import Overlaps, Step, with_aliases


@record
class HostCall:
    """A launch that only the host can make: its place in the graph, and the buffers it uses."""

    place: int
    buffers: tuple[int, ...]


@record
class Scheduled:
    """A fusion group, or a host call, with the buffers that have to exist while it runs."""

    work: FusionGroup | HostCall
    materialized: frozenset[int]


Item = Step | HostCall | None
"""One launch of a graph; None is a barrier."""


class WhyNotFuse(Protocol):
    """Why a device computes no group faster than its steps, given the buffers it must write."""

    def __call__(self, group: FusionGroup, materialized: set[int]) -> str: ...


def schedule(
    items: Sequence[Item],
    visible: set[int],
    overlaps: Overlaps,
    *,
    enabled: bool,
    line_buffers: bool,
    why_not_fuse: WhyNotFuse,
    most_buffers: int | None = None,
) -> list[Scheduled]:
    """Returns the work for a launch graph, in order.

    `visible` are the buffers that users can read. With `enabled=False` every step stays by itself.
    `line_buffers` says that the device walks through a group row by row, `most_buffers` how many
    buffers it can use at a time.
    """
    regions = _split(items)
    found: list[Scheduled] = []
    for place, region in enumerate(regions):
        if isinstance(region, HostCall):
            found.append(Scheduled(region, frozenset(region.buffers)))
            continue
        live = visible | set(overlaps) | _used_elsewhere(regions, place)
        groups = [FusionGroup((step,), "fusion is off") for step in region]
        if enabled:
            steps = inline_producers(
                *(region, live, overlaps), line_buffers=line_buffers, most_buffers=most_buffers
            )
            obstacle = partial(why_not_fuse, materialized=live)
            units: list[tuple[Step, ...]] = [(step,) for step in steps]
            if line_buffers:
                units = _units(steps, overlaps, obstacle)
            groups = fuse(units, overlaps, obstacle)
        for number, group in enumerate(groups):
            others = groups[:number] + groups[number + 1 :]
            shared = {n for other in others for step in other.steps for n in step.buffers}
            materialized = frozenset(live | shared)
            work = encode_between(group, materialized) if line_buffers else group
            found.append(Scheduled(work, materialized))
    return found


def _units(
    steps: Sequence[Step], overlaps: Overlaps, obstacle: Callable[[FusionGroup], str]
) -> list[tuple[Step, ...]]:
    """Returns each step, or the passes of one that is separable.

    A step that overwrites its own input is left to its runner, which computes it aside.
    """
    units = []
    for place, step in enumerate(steps):
        overwrites = with_aliases(set(step.outputs), overlaps) & set(step.inputs)
        passes = None if overwrites else split(step, -1 - place, obstacle)
        units.append((step,) if passes is None else passes.steps)
    return units


def _split(items: Sequence[Item]) -> list[HostCall | list[Step]]:
    """Splits a graph into regions at its barriers and host calls."""
    regions: list[HostCall | list[Step]] = []
    steps: list[Step] | None = None
    for item in items:
        if isinstance(item, Step):
            if steps is None:
                steps = []
                regions.append(steps)
            steps.append(item)
            continue
        steps = None
        if item is not None:
            regions.append(item)
    return regions


def _used_elsewhere(regions: Sequence[HostCall | list[Step]], here: int) -> set[int]:
    """Returns the buffers that other regions read or write."""
    used: set[int] = set()
    for place, region in enumerate(regions):
        if place == here:
            continue
        if isinstance(region, HostCall):
            used.update(region.buffers)
        else:
            used.update(number for step in region for number in step.buffers)
    return used
