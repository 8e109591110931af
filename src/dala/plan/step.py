"""A step: one program of a launch graph, on buffers that are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Set

from dala.base.record import record, remembered
from dala.ir.nodes import Program, domain_of
from dala.plan.task import Kind, Shape, Task

Overlaps = Mapping[int, Set[int]]
"""For each buffer that aliases others, which ones."""


@record
class Step:
    """A program, the buffers it reads, in order, and those it writes.

    `kinds` are the dtypes and shapes in which it sees them, the outputs last: another step may see
    the same buffer in another shape. `params` are the names of its parameters in the graph.
    """

    name: str
    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kinds: tuple[Kind, ...]
    params: tuple[str, ...]

    @property
    def buffers(self) -> tuple[int, ...]:
        """Its inputs, then its outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def output_kinds(self) -> tuple[Kind, ...]:
        """The dtype and shape of each output."""
        return self.kinds[len(self.inputs) :]

    @property
    def read(self) -> tuple[int, ...]:
        """What it reads: its inputs, and its output if it starts from what that holds."""
        return self.buffers if self.program.output.accumulates else self.inputs

    def numbers(self) -> dict[str, int]:
        """Returns the buffer behind each input, by the input's name."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.inputs, strict=True))

    def input_kinds(self) -> dict[str, Kind]:
        """Returns the dtype and shape of each input, by its name."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.kinds, strict=False))

    def task(self) -> Task:
        """Returns its program over its shapes: the same task each time."""
        return _task(self)

    @property
    def moved_bytes(self) -> int:
        """The bytes that it reads and writes by itself, each buffer once."""
        return sum(dict(zip(self.buffers, self.task().sizes_bytes, strict=True)).values())

    @property
    def domain(self) -> Shape:
        """The positions it runs over, not flattened."""
        return domain_of(self.output_kinds[0][1], self.program.output.channels)


def with_aliases(numbers: set[int], overlaps: Overlaps) -> set[int]:
    """Returns the buffers together with those that alias one of them."""
    return numbers.union(*(overlaps.get(number, ()) for number in numbers))


@remembered
def _task(step: Step) -> Task:
    inputs = step.kinds[: len(step.inputs)]
    return Task(step.name, step.program, inputs, step.output_kinds)
