"""A pipeline's stages as groups that a device runs, made once and bound to buffers at each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from dala.base.latest import Latest
from dala.base.record import record
from dala.devices.device import Device, GroupRunner, Memory, forget_oldest
from dala.plan.fusion import Group, group_all
from dala.plan.inlining import inline_all
from dala.plan.memory import plan_memory
from dala.plan.step import Step
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.launch_graph import Arrangement
from dala.runtime.profiling.profile import ACTIVE, measure


@record
class Call:
    """What can only be called: where it stands in an arrangement, and the buffers it uses."""

    place: int
    needs: tuple[int, ...]


@record
class Unit:
    """A group with what runs it on which buffers, or a call."""

    group: Group | None
    runner: GroupRunner | None
    needs: tuple[int, ...]
    call: int | None
    """The place of its setting in an arrangement."""

    @property
    def steps(self) -> tuple[Step, ...]:
        return () if self.group is None else self.group.steps

    @property
    def name(self) -> str:
        """The kernels that it computes, in order."""
        return " → ".join(step.name.replace(", ", " → ") for step in self.steps)

    def read_and_written(self) -> tuple[set[int], set[int]]:
        """The memories that it reads before it has written them itself, and those it writes."""
        read: set[int] = set()
        written: set[int] = set()
        for step in self.steps:
            read |= set(step.inputs) - written
            written.add(step.output)
        needs = set(self.needs)
        return read & needs, written & needs


class Plan:
    """Units in order, for all arrangements of one signature."""

    def __init__(self, device: Device, arranged: Arrangement, *, fuse: bool) -> None:
        self.device = device
        self.fuse = fuse
        self.signature = arranged.signature
        self.overlaps = arranged.overlaps
        self.kept = {i for i, item in enumerate(arranged.buffers) if not item.is_scratch}
        self.units: list[Unit] = []
        self._build(arranged)
        self.sizes = {
            number: _bytes(arranged, number)
            for unit in self.units
            for number in unit.needs
            if number not in self.kept
        }
        """The bytes of what lies between units."""
        self.has_calls = any(unit.call is not None for unit in self.units)
        self.memory = plan_memory([unit.needs for unit in self.units], self.sizes, self.overlaps)

    def _build(self, arranged: Arrangement) -> None:
        segments = self._segments(arranged)
        for i, segment in enumerate(segments):
            if isinstance(segment, Call):
                self.units.append(Unit(None, None, segment.needs, segment.place))
            else:
                self._add(segment, self._kept(segments, i))

    def _segments(self, arranged: Arrangement) -> list[Call | list[Step]]:
        """Runs of steps, cut at barriers and at what can only be called."""
        segments: list[Call | list[Step]] = []
        steps: list[Step] | None = None
        for place, setting in enumerate(arranged.settings):
            if setting is None:
                steps = None
            elif setting.primitive.is_call:
                segments.append(Call(place, (*setting.inputs, setting.output)))
                steps = None
            else:
                if steps is None:
                    steps = []
                    segments.append(steps)
                steps.append(setting.step())
        return segments

    def _kept(self, segments: Sequence[Call | list[Step]], here: int) -> set[int]:
        """The buffers that users can read, that another segment uses, or that share memory."""
        kept = self.kept | set(self.overlaps)
        for i, segment in enumerate(segments):
            if i != here:
                if isinstance(segment, Call):
                    kept |= set(segment.needs)
                else:
                    kept |= {n for step in segment for n in (*step.inputs, step.output)}
        return kept

    def _add(self, steps: list[Step], kept: set[int]) -> None:
        if self.fuse:
            by_rows = self.device.supports("line_buffers")
            left = inline_all(steps, kept, self.overlaps, by_rows=by_rows)
            groups = group_all(left, self.overlaps, partial(self.device.gains_by, kept=kept))
        else:
            groups = [Group((step,), "fusion is off") for step in steps]
        for i, group in enumerate(groups):
            others = [step for j, other in enumerate(groups) if j != i for step in other.steps]
            shared = {n for step in others for n in (*step.inputs, step.output)}
            runner = self.device.load_group(group, kept | shared)
            self.units.append(Unit(group, runner, tuple(sorted(runner.needs())), None))

    def run(self, arranged: Arrangement, workspace: Workspace | None = None) -> None:
        """Compute every unit in order, on the buffers and with the values of an arrangement.

        A workspace that is given again is used again, and with it what the device has recorded.
        """
        workspace = workspace or Workspace()
        memories = self._memories(arranged, workspace)
        if ACTIVE:
            self._run_measured(arranged, memories)
            return
        if not self.device.supports("recording"):
            with self.device.batch():
                self._run_units(arranged, memories)
            return
        used = tuple(memories.values())
        values = arranged.serial if self.has_calls else tuple(arranged.values.values())
        key = (tuple(item.identity for item in used), values)
        known = workspace.recordings.get(key)
        if known is not None:
            self.device.replay(known, used)
            return
        with self.device.record() as recording, self.device.batch():
            self._run_units(arranged, memories)
        if recording is not None and recording.is_complete:
            workspace.recordings[key] = recording
            forget_oldest(workspace.recordings, MOST_RECORDINGS)

    def _run_units(self, arranged: Arrangement, memories: dict[int, Memory]) -> None:
        for unit in self.units:
            if unit.runner is not None:
                unit.runner.run(memories, arranged.values)
            elif unit.call is not None:
                arranged.call(unit.call, memories)

    def _run_measured(self, arranged: Arrangement, memories: dict[int, Memory]) -> None:
        """Compute every unit by itself, seen by profiles; what is called is seen in its own run."""
        for unit in self.units:
            if unit.runner is not None:
                read, written = ([memories[n] for n in each] for each in unit.read_and_written())
                call = partial(unit.runner.run, memories, arranged.values)
                measure(unit.name, self.device, read, written, call)
            elif unit.call is not None:
                arranged.call(unit.call, memories)

    def _memories(self, arranged: Arrangement, workspace: Workspace) -> dict[int, Memory]:
        """The memory of each buffer that has to be there."""
        between = workspace.between(self)
        found: dict[int, Memory] = {}
        for unit in self.units:
            for number in unit.needs:
                if number not in found:
                    found[number] = between.get(number) or arranged.buffers[number].memory
        return found

    def explained(self, arranged: Arrangement) -> str:
        """A line for each unit, and one with the bytes moved stage by stage and so."""
        lines = []
        before = after = 0
        for setting in arranged.settings:
            if setting is not None:
                before += sum(_bytes(arranged, n) for n in (*setting.inputs, setting.output))
        for number, unit in enumerate(self.units):
            moved = sum(_bytes(arranged, n) for n in set(unit.needs))
            after += moved
            if unit.group is None:
                assert unit.call is not None
                lines.append(f"{number}: {arranged.called(unit.call)}")
                continue
            names = " → ".join(step.name for step in unit.group.steps)
            lines.append(f"{number}: {names}, {moved:,} bytes; because {unit.group.reason}")
        lines.append(f"bytes moved: {before:,} stage by stage, {after:,} so")
        return "\n".join(lines)


class Workspace:
    """The memory between the units of a plan, and what the device has recorded of its runs.

    It belongs to whoever runs the plan, one run at a time.
    """

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._between: dict[int, Memory] = {}
        self.recordings: dict[Any, Any] = {}
        """By the memories that were used and the values of parameters."""

    def between(self, plan: Plan) -> dict[int, Memory]:
        """Memory for every buffer between units, by its number, asked for when it is first run."""
        if self._plan is not plan:
            self._plan = plan
            self.recordings = {}
            slots = [plan.device.allocate(size, zeroed=False) for size in plan.memory.sizes]
            self._between = {
                number: slots[slot].part(plan.sizes[number])
                for number, slot in plan.memory.slots.items()
            }
        return self._between


MOST_RECORDINGS = 8
"""Combinations of buffers and values whose runs a workspace remembers, the latest ones."""
MOST_PLANS = 128
"""Plans that are remembered, those used last."""

_plans: Latest[tuple[Any, ...], tuple[Plan, tuple[Kernel, ...]]] = Latest(MOST_PLANS)
"""With what each was made for: a signature names kernels by what is theirs while they live."""


def plan_for(device: Device, arranged: Arrangement, *, fuse: bool) -> Plan:
    """The plan of an arrangement: the same one for all of its signature on a device."""

    def make() -> tuple[Plan, tuple[Kernel, ...]]:
        return Plan(device, arranged, fuse=fuse), arranged.kernels

    return _plans.find((device, fuse, arranged.signature), make)[0]


def _bytes(arranged: Arrangement, number: int) -> int:
    buffer = arranged.buffers[number]
    return buffer.scalar.size_bytes * math.prod(buffer.shape)
