"""Executables: launches that are planned once and run on other buffers of the same shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dala.devices.device import Again, Device, Memory, one_after_another
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.bound_plan import BoundPlan
from dala.runtime.pipelines.execution_plan import Workspace, plan_for
from dala.runtime.pipelines.launch_graph import Invocation, LaunchGraph
from dala.runtime.profiling.profile import ACTIVE

MOST_BETWEEN_BYTES = 1 << 19
"""The memory between launches that is kept for a run of the same."""


class Executable:
    """A launch graph and its plan; `arguments` stand for the buffers that each run is given.

    Memory between launches, and what the device has recorded, are kept from run to run, unless
    `keep` says otherwise. Runs at the same time have memory of their own.
    """

    def __init__(
        self,
        device: Device,
        invocations: Sequence[Invocation | None],
        arguments: Sequence[Buffer],
        *,
        fuse: bool = True,
        keep: bool = True,
    ) -> None:
        self.graph = LaunchGraph(invocations, arguments)
        self.plan = plan_for(device, self.graph, fuse=fuse)
        self._keep = keep
        self._idle: list[tuple[Workspace, dict[int, Memory]]] = []

    def run(self, buffers: Sequence[Buffer]) -> None:
        """Runs the launches on buffers, each of the dtype and shape of its argument."""
        try:
            workspace, between = self._idle.pop()
        except IndexError:
            workspace = Workspace()
            between = self.plan.memories(self.graph, workspace)
        memories = self._memories(between, buffers)
        try:
            if self._keep and self.plan.device.is_host and not ACTIVE:
                self._run_bound(buffers, memories, workspace)
            else:
                key = tuple([item.memory.identity for item in buffers])
                self.plan.run_on(self.graph, memories, workspace, key)
        finally:
            memories.clear()  # else an error's traceback keeps all of it alive
            if not self._keep:
                between.clear()
                workspace.forget()
            elif not self._idle:  # the memory of one run is enough to keep
                self._idle.append((workspace, between))

    def _run_bound(
        self, buffers: Sequence[Buffer], memories: dict[int, Memory], workspace: Workspace
    ) -> None:
        """Runs what was bound to memory by the second run, on the memory of this one."""
        places = [item.memory.span()[0] for item in buffers]
        bound = workspace.bound
        if bound is not None and bound.take(places):
            bound.run(memories)
            return
        self.plan.run_on(self.graph, memories, workspace, None)
        if workspace.has_run(self.graph.serial):
            workspace.bound = BoundPlan(self.plan, self.graph, memories, places)

    def bound(self, buffers: Sequence[Buffer]) -> Again | None:
        """Returns what runs the launches again on the same memories; None if that is not all."""
        plan = self.plan
        if plan.has_host_calls or sum(plan.memory.sizes) > MOST_BETWEEN_BYTES:
            return None
        between = plan.memories(self.graph, Workspace())
        memories = self._memories(between, buffers)
        given = (memories, self.graph.values)
        calls = [plan.device.bound(unit.runner, *given) for unit in plan.units]
        return one_after_another(calls, between)

    def _memories(
        self, between: Mapping[int, Memory], buffers: Sequence[Buffer]
    ) -> dict[int, Memory]:
        given = {number: buffers[place].memory for number, place in self.graph.arguments.items()}
        return {**between, **given}
