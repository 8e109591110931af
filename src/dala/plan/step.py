"""A step of a pipeline: a program on buffers, which are numbers here."""

from __future__ import annotations

from collections.abc import Mapping, Set

from dala.base.record import record
from dala.ir.nodes import Program
from dala.plan.task import Kind, Shape, Task, plain

Overlaps = Mapping[int, Set[int]]
"""For each buffer that shares memory with others, which they are."""


@record
class Step:
    """A program, the buffers that it reads, in order, and the one that it writes.

    `kinds` are how it sees them, the output last: another step may see one in another shape.
    `params` are what its parameters are called in the pipeline.
    """

    name: str
    program: Program
    inputs: tuple[int, ...]
    output: int
    kinds: tuple[Kind, ...]
    params: tuple[str, ...]

    def numbers(self) -> dict[str, int]:
        """The buffer that each name of an input stands for."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.inputs, strict=True))

    def seen(self) -> dict[str, Kind]:
        """How each input is seen, by its name."""
        names = [item.name for item in self.program.inputs]
        return dict(zip(names, self.kinds, strict=False))

    def task(self) -> Task:
        *inputs, output = self.kinds
        return Task(self.name, self.program, tuple(inputs), output)

    @property
    def domain(self) -> Shape:
        """Its positions, rows told apart."""
        return plain(self.kinds[-1][1], self.program.output.channels)


def touched(numbers: set[int], overlaps: Overlaps) -> set[int]:
    """The buffers, and those that share memory with one of them."""
    return numbers.union(*(overlaps.get(number, ()) for number in numbers))
