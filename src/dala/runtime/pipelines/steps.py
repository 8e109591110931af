"""Steps of a pipeline, one after another, with buffers that change roles."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import nullcontext

from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.execution_plan import ExecutionPlan, Workspace
from dala.runtime.pipelines.launch_graph import LaunchGraph
from dala.runtime.profiling.profile import ACTIVE, copy


class Steps:
    """Runs steps by the plans of the even and of the odd ones; a context."""

    def __init__(
        self,
        prepared: Sequence[tuple[LaunchGraph, ExecutionPlan]],
        swaps: Sequence[tuple[Buffer, Buffer]],
        read: Container[Buffer],
    ) -> None:
        self._prepared = prepared
        self._swaps = swaps
        self._read = read
        even, odd = (plan for _, plan in prepared)
        first = Workspace()
        self._workspaces = (first, first if even is odd else Workspace())
        self._count = 0

    def run(self, count: int) -> None:
        """Runs so many steps, in one submission where the device has such."""
        device = self._prepared[0][1].device
        with nullcontext() if ACTIVE else device.batch():
            for _ in range(count):
                graph, plan = self._prepared[self._count % 2]
                plan.run(graph, self._workspaces[self._count % 2])
                self._count += 1

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._count % 2:
            for a, b in self._swaps:
                self._hand_over(a, b)

    def _hand_over(self, a: Buffer, b: Buffer) -> None:
        """Gives `a` what `b` has; and the other way, too, where the next step would read it."""
        device = a.memory.device
        before = None
        if b in self._read:
            before = device.allocate(a.size, zeroed=False)
            copy(device, a.memory, before)
        copy(device, b.memory, a.memory)
        if before is not None:
            copy(device, before, b.memory)
