"""Runs a separable stencil on the CPU as two passes, with a line buffer between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from dala.devices.cpu.fusion_group import CpuFusionGroup, why_not_fuse
from dala.devices.cpu.memory import HostMemory
from dala.devices.device import Again, Number, check_sizes
from dala.ir.dump import dump
from dala.plan.fusion import FusionGroup
from dala.plan.separation import split
from dala.plan.step import Step
from dala.plan.task import Task

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu

_BETWEEN = -1


def passes_of(task: Task, threads: int) -> FusionGroup | None:
    """Returns the passes of a task by itself: buffers are numbered as it has them."""
    count = len(task.inputs)
    if task.empty or len(task.outputs) != 1:
        return None
    kinds = (*task.inputs, *task.outputs)
    step = Step(task.name, task.program, tuple(range(count)), (count,), kinds, ())
    return split(step, _BETWEEN, lambda group: why_not_fuse(group, {*step.buffers}, threads))


class SeparatedRunner:
    """One task, computed in two passes."""

    def __init__(self, device: Cpu, task: Task, passes: FusionGroup) -> None:
        self.device = device
        self.task = task
        self._output = len(task.inputs)
        self._passes = passes
        (self._source,) = passes.steps[0].inputs

    @cached_property
    def _group(self) -> CpuFusionGroup:
        return CpuFusionGroup(self.device, self._passes, {self._source, self._output})

    def run(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> None:
        """Computes the output."""
        check_sizes(self.task.name, (*inputs, *outputs), self.task.sizes_bytes)
        (output,), source = outputs, inputs[self._source]
        if not source.overlaps(output):
            self._group.run({self._source: source, self._output: output}, {})
            return
        aside = self.device.allocate(output.size_bytes, zeroed=False)
        self._group.run({self._source: source, self._output: aside}, {})
        self.device.copy(aside, output)

    def bound(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], _: Sequence[Number]
    ) -> Again | None:
        """Returns the launch that a run comes to; None where that is not all."""
        (output,), source = outputs, inputs[self._source]
        if source.overlaps(output):
            return None
        return self._group.bound({self._source: source, self._output: output}, {})

    def explain(self, *, assembly: bool = False) -> str:
        """Returns both passes and the LLVM IR, and the assembly if asked for."""
        emitted = self._group.emitted
        parts = ["in two passes:", *(dump(step.program) for step in self._group.steps)]
        parts += ["LLVM IR:", emitted.text]
        if assembly:
            text = self.device.compiler.assembly(emitted.text, emitted.options)
            parts += ["assembly:", text]
        return "\n\n".join(parts)
