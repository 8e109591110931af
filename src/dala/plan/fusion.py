"""Fusion groups: runs of steps that a device may compute together, a few rows of each at a time.

The reason why a group begins where it does is kept, for `explain()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy

from dala.base.record import record
from dala.ir.access import Access, accesses, is_elementwise
from dala.ir.nodes import Load, Program, walk
from dala.plan.step import Overlaps, Step, with_aliases
from dala.plan.watchdog import STEP_LIMIT, max_iterations

LARGEST_ROW_OFFSET = 64
"""Rows up or down that a step may read of another step of its group."""

Halo = tuple[int, int]
"""Rows above and below, or columns on the left and the right."""


@record
class FusionGroup:
    """Steps that are computed together, and why they begin here.

    `halo` has, for each step, the rows above and below those of the last step that it must compute.
    A `flat` group is elementwise: its rows are not told apart.
    """

    steps: tuple[Step, ...]
    reason: str
    flat: bool = False
    halo: tuple[Halo, ...] = ((0, 0),)


def fuse(
    units: Sequence[Sequence[Step]],
    overlaps: Overlaps,
    why_not_fuse: Callable[[FusionGroup], str],
) -> list[FusionGroup]:
    """Returns the steps in groups; no step writes memory that another of its group sees otherwise.

    The steps of a unit stay together. `why_not_fuse` says why a device would not compute a group
    faster than its units by themselves, if so.
    """
    groups: list[_OpenGroup] = []
    for unit in units:
        reason = "it is the first"
        if groups:
            extended, reason = groups[-1].extended_by(unit)
            reason = reason or why_not_fuse(extended.closed())
            if not reason:
                groups[-1] = extended
        if reason:
            groups.append(_OpenGroup(reason, overlaps))
            for step in unit:
                groups[-1].add(step)
    return [group.closed() for group in groups]


class _OpenGroup:
    """A group that may still grow."""

    def __init__(self, reason: str, overlaps: Overlaps) -> None:
        self.reason = reason
        self.overlaps = overlaps
        self.steps: list[Step] = []
        self.written: set[int] = set()
        self.read: set[int] = set()
        self.cannot_fuse = ""
        self.is_flat = True

    def add(self, step: Step) -> None:
        self.is_flat = self._stays_flat(step)
        self.cannot_fuse = _why_alone(step, self.overlaps)
        self.steps.append(step)
        self.written.update(step.outputs)
        self.read.update(step.read)

    def closed(self) -> FusionGroup:
        if len(self.steps) == 1:
            return FusionGroup(tuple(self.steps), self.reason)
        halo = ((0, 0),) * len(self.steps) if self.is_flat else halos(self.steps)
        return FusionGroup(tuple(self.steps), self.reason, self.is_flat, halo)

    def extended_by(self, unit: Sequence[Step]) -> tuple[_OpenGroup, str]:
        """Returns the group with a unit added to it, and why it cannot be, if so."""
        made = copy(self)
        made.steps, made.written, made.read = [*self.steps], {*self.written}, {*self.read}
        for step in unit:
            reason = made.obstacle(step, self.overlaps)
            if reason:
                return made, reason
            made.add(step)
        return made, ""

    def _stays_flat(self, step: Step) -> bool:
        """Returns whether all steps are elementwise, over as many elements."""
        return (
            self.is_flat
            and is_elementwise(step.program)
            and (not self.steps or math.prod(step.domain) == math.prod(self.steps[-1].domain))
        )

    def obstacle(self, step: Step, overlaps: Overlaps) -> str:
        """Returns why a step cannot join the group, or an empty string if it can."""
        if self.cannot_fuse:
            return f"{self.steps[-1].name} {self.cannot_fuse}"
        reason = _why_alone(step, overlaps)
        if reason:
            return f"{step.name} {reason}"
        used = self.written | self.read
        if used.intersection(step.outputs):
            return f"{step.name} writes what a step before it uses"
        if used & with_aliases(set(step.outputs), overlaps) or any(
            overlaps.get(number, set()) & self.written for number in step.inputs
        ):
            return f"{step.name} shares memory with a step before it"
        found = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            if number in self.written and not _is_near(found[item.name], step.program, item.name):
                return f"{step.name} reads far from its own position"
        if self._stays_flat(step) or _has_common_rows((*self.steps, step)):
            return ""
        return f"{step.name} has another shape"


def _why_alone(step: Step, overlaps: Overlaps) -> str:
    """Returns why a step cannot be fused with any other, or an empty string."""
    if step.program.output.scattered:
        return "writes anywhere"
    if step.program.sites:
        return "checks or prints"
    if max_iterations(step.program, step.task().shapes) > STEP_LIMIT:
        return "has a loop that may not end"
    if with_aliases(set(step.outputs), overlaps) & set(step.inputs):
        return "writes over its own input"
    if any(0 in shape for _, shape in step.output_kinds):
        return "has nothing to compute"
    return ""


def _is_near(access: Access, program: Program, source: str) -> bool:
    """Returns whether an input is read within a few rows of the position."""
    if access.kind in ("own", "unused"):
        return True
    if access.kind != "offsets" or program.rank != 2:
        return False
    borders = {
        item.border
        for item in walk(program.body)
        if isinstance(item, Load) and item.source == source and item.index is not None
    }
    rows = [offset[0] for offset in access.offsets]
    far = max(map(abs, rows)) > LARGEST_ROW_OFFSET
    return not far and ("wrap" not in borders or not any(rows))


def _has_common_rows(steps: Sequence[Step]) -> bool:
    """Returns whether all steps have the same rows, enough of them for borders to stay near."""
    domains = [step.domain for step in steps]
    if any(len(domain) != 2 for domain in domains) or len({d[0] for d in domains}) != 1:
        return False
    if not all(_reads_row_by_row(step, domains[0][0]) for step in steps):
        return False
    return domains[0][0] > 2 * max(sum(halo) for halo in halos(steps))


def _reads_row_by_row(step: Step, height: int) -> bool:
    """Returns whether what a step reads at offsets has a row for each of its own."""
    found = accesses(step.program)
    return all(
        kind[1][:1] == (height,)
        for name, kind in step.input_kinds().items()
        if found[name].kind in ("own", "offsets")
    )


def halos(steps: Sequence[Step], axis: int = 0) -> tuple[Halo, ...]:
    """Returns the halo along an axis that each producer must compute for the steps after it.

    It is counted in positions of the step with the fewest: others see several elements in each.
    """
    made = [(0, 0)] * len(steps)
    fewest = min(step.domain[axis] for step in steps)
    places = {number: i for i, step in enumerate(steps) for number in step.outputs}
    for i in range(len(steps) - 1, -1, -1):
        step = steps[i]
        read = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            place = places.get(number)
            if place is None or place >= i:
                continue
            reached = reach(read[item.name], step.program, item.name, axis)
            before, after = (-(-each * fewest // step.domain[axis]) for each in reached)
            above, below = made[place]
            made[place] = (max(above, made[i][0] + before), max(below, made[i][1] + after))
    return tuple(made)


def reach(access: Access, program: Program, source: str, axis: int) -> Halo:
    """Returns how far before and after its own position a program reads an input along an axis."""
    places = [offset[axis] for offset in access.offsets] or [0]
    up, down = max(0, -min(places)), max(0, *places)
    mirrors = any(
        isinstance(item, Load) and item.source == source and item.border in ("mirror", "reflect")
        for item in walk(program.body)
    )
    # At an edge these borders answer with what lies on the other side.
    return (max(up, down), max(up, down)) if mirrors else (up, down)
