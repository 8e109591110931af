"""Steps of a pipeline in groups: a group is a run of steps that a device may compute side by side.

It goes through a few rows of each at a time. What breaks it off is written down, to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dala.base.record import record
from dala.ir.access import Access, accesses, is_elementwise
from dala.ir.nodes import Load, Program, walk
from dala.plan.limits import STEP_LIMIT, most_turns
from dala.plan.step import Overlaps, Step, touched

FARTHEST_ROW = 64
"""Rows up or down that a step of a group may read of another."""


@record
class Group:
    """Steps that are computed together, and why they begin here.

    `reach` has, for each step, the rows above and below that its readers need.
    """

    steps: tuple[Step, ...]
    reason: str
    flat: bool = False
    reach: tuple[tuple[int, int], ...] = ((0, 0),)


def group_all(
    steps: Sequence[Step], overlaps: Overlaps, gains: Callable[[Group], bool]
) -> list[Group]:
    """The steps in groups; none writes memory that another step of its group sees otherwise.

    `gains` says whether a device gains by computing the steps of a group together.
    """
    groups: list[_Open] = []
    for step in steps:
        reason = "it is the first"
        if groups:
            last = groups[-1]
            reason = last.obstacle(step, overlaps) or ""
            if not reason and not gains(last.joined_by(step)):
                reason = f"the rows that {step.name} needs at a time would not stay in the cache"
        if reason:
            groups.append(_Open(reason, overlaps))
        groups[-1].add(step)
    return [group.closed() for group in groups]


class _Open:
    """A group that may grow."""

    def __init__(self, reason: str, overlaps: Overlaps) -> None:
        self.reason = reason
        self.overlaps = overlaps
        self.steps: list[Step] = []
        self.written: set[int] = set()
        self.read: set[int] = set()
        self.alone = ""
        self.is_flat = True

    def add(self, step: Step) -> None:
        self.is_flat = self._stays_flat(step)
        self.alone = _loneliness(step, self.overlaps)
        self.steps.append(step)
        self.written.add(step.output)
        self.read.update(step.inputs)

    def closed(self) -> Group:
        return self._group(self.steps, flat=self.is_flat)

    def joined_by(self, step: Step) -> Group:
        return self._group([*self.steps, step], flat=self._stays_flat(step))

    def _group(self, steps: Sequence[Step], *, flat: bool) -> Group:
        if len(steps) == 1:
            return Group(tuple(steps), self.reason)
        reach = ((0, 0),) * len(steps) if flat else _reach(steps)
        return Group(tuple(steps), self.reason, flat, reach)

    def _stays_flat(self, step: Step) -> bool:
        """Whether all are elementwise, over as many elements."""
        return (
            self.is_flat
            and is_elementwise(step.program)
            and (not self.steps or math.prod(step.domain) == math.prod(self.steps[-1].domain))
        )

    def obstacle(self, step: Step, overlaps: Overlaps) -> str:
        """Why a step cannot be computed together with the group; empty if it can."""
        if self.alone:
            return f"{self.steps[-1].name} {self.alone}"
        alone = _loneliness(step, overlaps)
        if alone:
            return f"{step.name} {alone}"
        others = self.written | self.read
        if step.output in others:
            return f"{step.name} writes what a step before it uses"
        if others & set(overlaps.get(step.output, ())) or any(
            overlaps.get(number, set()) & self.written for number in step.inputs
        ):
            return f"{step.name} shares memory with a step before it"
        found = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            if number in self.written and not _is_near(found[item.name], step.program, item.name):
                return f"{step.name} reads far from its own position"
        if self._stays_flat(step) or _is_by_rows((*self.steps, step)):
            return ""
        return f"{step.name} has another shape"


def _loneliness(step: Step, overlaps: Overlaps) -> str:
    if step.program.output.scattered:
        return "writes anywhere"
    if most_turns(step.program, step.task().shapes) > STEP_LIMIT:
        return "has a loop that may not end"
    if touched({step.output}, overlaps) & set(step.inputs):
        return "writes over its own input"
    if 0 in step.kinds[-1][1]:
        return "has nothing to compute"
    return ""


def _is_near(access: Access, program: Program, source: str) -> bool:
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
    far = max(map(abs, rows)) > FARTHEST_ROW
    return not far and ("wrap" not in borders or not any(rows))


def _is_by_rows(steps: Sequence[Step]) -> bool:
    """Whether all have as many rows, enough of them for borders to stay near."""
    domains = [step.domain for step in steps]
    if any(len(domain) != 2 for domain in domains) or len({d[0] for d in domains}) != 1:
        return False
    if not all(_rows_are_rows(step, domains[0][0]) for step in steps):
        return False
    reach = _reach(steps)
    return domains[0][0] > 2 * max(sum(rows) for rows in reach)


def _rows_are_rows(step: Step, height: int) -> bool:
    """Whether what the step reads at offsets has a row for each of its own."""
    found = accesses(step.program)
    return all(
        kind[1][:1] == (height,)
        for name, kind in step.seen().items()
        if found[name].kind in ("own", "offsets")
    )


def _reach(steps: Sequence[Step]) -> tuple[tuple[int, int], ...]:
    """The rows above and below those of the last step that each has to compute."""
    reach = [(0, 0)] * len(steps)
    places = {step.output: i for i, step in enumerate(steps)}
    for i in range(len(steps) - 1, -1, -1):
        step = steps[i]
        found = accesses(step.program)
        for item, number in zip(step.program.inputs, step.inputs, strict=True):
            place = places.get(number)
            if place is None or place >= i:
                continue
            up, down = _rows_read(found[item.name], step.program, item.name)
            above, below = reach[place]
            reach[place] = (max(above, reach[i][0] + up), max(below, reach[i][1] + down))
    return tuple(reach)


def _rows_read(access: Access, program: Program, source: str) -> tuple[int, int]:
    rows = [offset[0] for offset in access.offsets] or [0]
    up, down = max(0, -min(rows)), max(0, *rows)
    turns_back = any(
        isinstance(item, Load) and item.source == source and item.border in ("mirror", "reflect")
        for item in walk(program.body)
    )
    # At an edge these rules answer with rows on the other side.
    return (max(up, down), max(up, down)) if turns_back else (up, down)
