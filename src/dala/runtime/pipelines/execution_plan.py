"""Execution plans: scheduled groups loaded onto a device, run on any graph of one signature."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from dala.base.lru_cache import LruCache
from dala.base.record import record
from dala.devices.device import Device, GroupRunner, Memory, forget_oldest
from dala.plan.fusion import FusionGroup
from dala.plan.memory import plan_memory
from dala.plan.schedule import HostCall, Scheduled, schedule
from dala.plan.step import Step
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.bound_plan import BoundPlan
from dala.runtime.pipelines.launch_graph import LaunchGraph
from dala.runtime.profiling.profile import ACTIVE, measure

MOST_RECORDINGS = 8
"""Combinations of buffers and values whose recorded runs a workspace keeps, the latest ones."""
MOST_PLANS = 128
"""Plans that are remembered, those used last."""


@record
class Unit:
    """A fusion group with its runner, or a host call, and the buffers that it needs."""

    work: FusionGroup | HostCall
    runner: GroupRunner | None
    needs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The kernels that it computes, in order."""
        steps = () if isinstance(self.work, HostCall) else self.work.steps
        return " → ".join(step.name.replace(", ", " → ") for step in steps)

    def read_and_written(self) -> tuple[set[int], set[int]]:
        """Returns the buffers read before the unit itself writes them, and those it writes."""
        read: set[int] = set()
        written: set[int] = set()
        for step in () if isinstance(self.work, HostCall) else self.work.steps:
            read |= set(step.read) - written
            written.update(step.outputs)
        needs = set(self.needs)
        return read & needs, written & needs


class ExecutionPlan:
    """The units of a launch graph in order, for all graphs of its signature."""

    def __init__(self, device: Device, graph: LaunchGraph, *, fuse: bool) -> None:
        self.device = device
        self.signature = graph.signature
        scheduled = schedule(
            graph.items(),
            set(graph.visible),
            graph.overlaps,
            enabled=fuse,
            line_buffers=device.supports("line_buffers"),
            why_not_fuse=device.why_not_fuse,
            most_buffers=device.most_buffers,
        )
        self.units = [self._unit(item) for item in scheduled]
        self.sizes = {
            number: _size_bytes(graph, number)
            for unit in self.units
            for number in unit.needs
            if number not in graph.visible
        }
        """The bytes of each buffer between units."""
        self.has_host_calls = any(unit.runner is None for unit in self.units)
        self.has_native_code = any(
            isinstance(unit.work, HostCall) and graph.is_native(unit.work.place)
            for unit in self.units
        )
        self.memory = plan_memory([unit.needs for unit in self.units], self.sizes, graph.overlaps)

    def _unit(self, scheduled: Scheduled) -> Unit:
        work = scheduled.work
        if isinstance(work, HostCall):
            return Unit(work, None, work.buffers)
        runner = self.device.load_group(work, set(scheduled.materialized))
        return Unit(work, runner, tuple(sorted(runner.needs())))

    def run(self, graph: LaunchGraph, workspace: Workspace | None = None) -> None:
        """Runs every unit in order, on the buffers and with the values of a graph.

        A workspace that is passed again is reused, and with it what the device has recorded.
        """
        workspace = workspace or Workspace()
        memories = self.memories(graph, workspace)
        key = None
        if self.device.supports("recording"):
            values = graph.serial if self.has_host_calls else tuple(graph.values.values())
            key = (tuple(item.identity for item in memories.values()), values)
        if self.has_native_code and not ACTIVE:
            self._run_bound(graph, memories, workspace)
        else:
            self.run_on(graph, memories, workspace, key)

    def _run_bound(
        self, graph: LaunchGraph, memories: dict[int, Memory], workspace: Workspace
    ) -> None:
        """Runs what the second run of a graph was bound to, if that was the same memory."""
        places = [item.span()[0] for item in memories.values()]
        bound = workspace.bound
        if bound is not None and bound.is_of(graph, places):
            bound.run(memories)
            return
        self.run_on(graph, memories, workspace, None)
        if workspace.has_run(graph.serial):
            workspace.bound = BoundPlan(self, graph, memories, places)

    def run_on(
        self, graph: LaunchGraph, memories: dict[int, Memory], workspace: Workspace, key: Any
    ) -> None:
        """Runs every unit in order on these memories; `key` tells their recording from others."""
        if ACTIVE:
            self._run_profiled(graph, memories)
            return
        if not self.device.supports("recording"):
            with self.device.batch():
                self._run_units(graph, memories)
            return
        known = workspace.recordings.get(key)
        if known is not None:
            self.device.replay(known, tuple(memories.values()))
            return
        with self.device.record() as recording, self.device.batch():
            self._run_units(graph, memories)
        if recording is not None and recording.is_complete:
            workspace.recordings[key] = recording
            forget_oldest(workspace.recordings, MOST_RECORDINGS)

    def _run_units(self, graph: LaunchGraph, memories: dict[int, Memory]) -> None:
        for unit in self.units:
            if unit.runner is not None:
                unit.runner.run(memories, graph.values)
            elif isinstance(unit.work, HostCall):
                graph.run_on_host(unit.work.place, memories)

    def _run_profiled(self, graph: LaunchGraph, memories: dict[int, Memory]) -> None:
        """Runs and measures each unit by itself; a host call is measured by its own run."""
        for unit in self.units:
            if unit.runner is not None:
                read, written = ([memories[n] for n in each] for each in unit.read_and_written())
                call = partial(unit.runner.run, memories, graph.values)
                measure(unit.name, self.device, read, written, call)
            elif isinstance(unit.work, HostCall):
                graph.run_on_host(unit.work.place, memories)

    def memories(self, graph: LaunchGraph, workspace: Workspace) -> dict[int, Memory]:
        """Returns the memory of each buffer that has to exist, but for the graph's arguments."""
        between = workspace.memories(self)
        found: dict[int, Memory] = {}
        for unit in self.units:
            for number in unit.needs:
                if number not in found and number not in graph.arguments:
                    found[number] = between.get(number) or graph.buffers[number].memory
        return found

    def explain(self, graph: LaunchGraph) -> str:
        """Returns a line for each unit, and one with the bytes moved unfused and fused."""
        lines = []
        before = sum(
            _size_bytes(graph, number)
            for launch in graph.launches
            if launch is not None
            for number in launch.buffers
        )
        after = 0
        for number, unit in enumerate(self.units):
            if isinstance(unit.work, HostCall):
                after += sum(_size_bytes(graph, n) for n in set(unit.needs))
                lines.append(f"{number}: {graph.describe_host_call(unit.work.place)}")
                continue
            assert unit.runner is not None
            moved, how = unit.runner.moved_bytes(), unit.runner.how()
            after += moved
            names = " → ".join(step.name for step in unit.work.steps)
            encoded = any(_is_encoded(graph, step) for step in unit.work.steps)
            exact = "; sums between them in 16 bits" if encoded else ""
            how = f"; {how}" if how else ""
            because = f"because {unit.work.reason}"
            lines.append(f"{number}: {names}, {moved:,} bytes; {because}{exact}{how}")
        lines.append(f"bytes moved: {before:,} stage by stage, {after:,} so")
        return "\n".join(lines)


class Workspace:
    """The memory between the units of a plan, and what the device has recorded of its runs.

    It belongs to whoever runs the plan, one run at a time.
    """

    def __init__(self) -> None:
        self._plan: ExecutionPlan | None = None
        self._memories: dict[int, Memory] = {}
        self.recordings: dict[Any, Any] = {}
        """By the identities of the memories and the values of the parameters."""
        self.bound: BoundPlan | None = None
        """What a run on the host comes to."""
        self._ran: int | None = None

    def forget(self) -> None:
        """Gives the memory back."""
        self._plan, self._memories, self.recordings = None, {}, {}
        self.bound = self._ran = None

    def has_run(self, serial: int) -> bool:
        """Whether the run before was one of the same graph, too."""
        before, self._ran = self._ran, serial
        return before == serial

    def memories(self, plan: ExecutionPlan) -> dict[int, Memory]:
        """Returns memory for every buffer between units, allocated when a plan first runs."""
        if self._plan is not plan:
            self._plan = plan
            self.recordings = {}
            self.bound = self._ran = None
            slots = [plan.device.allocate(size, zeroed=False) for size in plan.memory.sizes]
            self._memories = {
                number: slots[slot].part(plan.sizes[number])
                for number, slot in plan.memory.slots.items()
            }
        return self._memories


_plans: LruCache[tuple[Any, ...], tuple[ExecutionPlan, tuple[Kernel, ...]]] = LruCache(MOST_PLANS)
"""With the kernels of each: a signature names kernels by their identity."""


def plan_for(device: Device, graph: LaunchGraph, *, fuse: bool) -> ExecutionPlan:
    """Returns the plan of a graph: the same one for all graphs of its signature on a device."""

    def make() -> tuple[ExecutionPlan, tuple[Kernel, ...]]:
        return ExecutionPlan(device, graph, fuse=fuse), graph.kernels

    return _plans.find((device, fuse, graph.signature), make)[0]


def _size_bytes(graph: LaunchGraph, number: int) -> int:
    buffer = graph.buffers[number]
    return buffer.scalar.size_bytes * math.prod(buffer.shape)


def _is_encoded(graph: LaunchGraph, step: Step) -> bool:
    """Whether a step writes its floats as integers of 16 bits."""
    number = step.outputs[-1]
    return number >= 0 and step.kinds[-1][0] != graph.buffers[number].scalar
