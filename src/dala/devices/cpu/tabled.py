"""Runs a task on the CPU that reads functions of 16-bit levels from tables, computed first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dala.devices.cpu.memory import HostMemory
from dala.devices.cpu.runner import CpuRunner
from dala.devices.device import Again, Number, one_after_another
from dala.ir.gathered_tables import LEVELS, Tabled, tabled
from dala.ir.nodes import Program
from dala.plan.task import Task

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu

LEAST_USES = 8
"""How many times as many positions as levels a task must have for tables to pay."""


def tables_of(task: Task) -> Tabled | None:
    """Returns the task's program with tables, or None if they would not pay."""
    if math.prod(task.domain) < LEAST_USES * LEVELS or task.watched:
        return None
    return tabled(task.lowered)


class TabledRunner:
    """One task: its tables, then what reads them."""

    def __init__(self, device: Cpu, task: Task, made: Tabled) -> None:
        self.device = device
        self.task = task
        self._tables = [self._table(program) for program in made.tables]
        kinds = tuple(runner.task.outputs[0] for runner in self._tables)
        reading = Task(task.name, made.program, (*task.inputs, *kinds), task.outputs)
        self._reading = CpuRunner(device, reading)

    def _table(self, program: Program) -> CpuRunner:
        kinds = dict(zip(self._names, self.task.inputs, strict=True))
        inputs = tuple(kinds[item.name] for item in program.inputs)
        output = (program.output.type, (LEVELS,))
        return CpuRunner(self.device, Task(program.name, program, inputs, (output,)))

    @property
    def _names(self) -> list[str]:
        return [item.name for item in self.task.program.inputs]

    def _memories(self) -> list[HostMemory]:
        sizes = [runner.task.sizes_bytes[-1] for runner in self._tables]
        return [self.device.allocate(size, zeroed=False) for size in sizes]

    def _given(self, runner: CpuRunner, inputs: Sequence[HostMemory]) -> list[HostMemory]:
        memories = dict(zip(self._names, inputs, strict=True))
        return [memories[item.name] for item in runner.task.program.inputs]

    def run(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> None:
        """Computes the outputs; on failure they are unchanged."""
        tables = self._memories()
        for runner, memory in zip(self._tables, tables, strict=True):
            runner.run(self._given(runner, inputs), [memory], params)
        self._reading.run([*inputs, *tables], outputs, params)

    def bound(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> Again | None:
        """Returns the launches that a run comes to; None where there is more to it."""
        tables = self._memories()
        launches = []
        for runner, memory in zip(self._tables, tables, strict=True):
            if runner.task.inputs:
                given = self._given(runner, inputs)
                launches.append(runner.bound(given, [memory], params))
            else:  # it is the same every time
                runner.run([], [memory], params)
        launches.append(self._reading.bound([*inputs, *tables], outputs, params))
        return one_after_another(launches, tables)

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the code of the tables and of what reads them."""
        parts = [runner.explain(assembly=assembly) for runner in (*self._tables, self._reading)]
        return "\n\n".join([f"{len(self._tables)} tables of {LEVELS:,} levels, then:", *parts])
