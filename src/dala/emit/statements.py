"""What both emitters share: traversing statements and keeping the emitted name of each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from dala.ir.nodes import (
    Apply,
    AtomicUpdate,
    Block,
    Const,
    Extent,
    For,
    If,
    Load,
    Program,
    Reduce,
    Report,
    Statement,
    Store,
    Value,
    While,
)
from dala.ir.siblings import grouped

Written = TypeVar("Written")
"""An emitted value: its name or operand in the emitted code."""


class Statements(ABC, Generic[Written]):
    """Emits the statements of a program in order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values: dict[object, Written] = {}
        self.bounds: dict[Value, tuple[Value, Value]] = {}
        """The start and stop values of loop counters."""

    def block(self, block: Block) -> list[Written]:
        """Emits a block's statements and returns its results."""
        self.statements(block.statements)
        return [self.value(value) for value in block.results]

    def statements(self, statements: Sequence[Statement]) -> None:
        """Emits statements in order; sibling reductions become one loop."""
        for group in grouped(statements):
            reductions = [item for item in group if isinstance(item, Reduce)]
            if reductions:
                self.values.update(zip(reductions, self.reduce(reductions), strict=True))
            else:
                self.statement(group[0])

    def statement(self, node: Statement) -> None:
        match node:
            case Apply():
                self.values[node] = self.apply(node)
            case Load():
                self.values[node] = self.load(node)
            case Reduce():
                (self.values[node],) = self.reduce([node])
            case If():
                self._keep(node, self.branch(node))
            case For():
                self._keep(node, self.for_loop(node))
            case While():
                self._keep(node, self.while_loop(node))
            case Store() | AtomicUpdate():
                self.store(node)
            case Report():
                self.report(node)

    def _keep(self, node: If | For | While, results: list[Written]) -> None:
        for i, result in enumerate(results):
            self.values[(node, i)] = result

    def source(self, name: str) -> str:
        """Returns the index that stands for an input in the code, since names are the user's."""
        names = [item.name for item in self.program.inputs]
        return str(names.index(name)) if name in names else "out"

    def stays_inside(self, node: Load, axis: int, value: Value) -> bool:
        """Whether an index counts from a constant up to the input's own size."""
        start, stop = self.bounds.get(value, (None, None))
        return (
            isinstance(start, Const)
            and start.value >= 0
            and isinstance(stop, Extent)
            and (stop.source, stop.axis) == (node.source, axis)
        )

    @abstractmethod
    def value(self, value: Value) -> Written:
        """Returns the emitted form of an IR value."""

    @abstractmethod
    def apply(self, node: Apply) -> Written:
        """Emits an operation and returns its result."""

    @abstractmethod
    def load(self, node: Load) -> Written:
        """Emits the read of an element of an input."""

    @abstractmethod
    def reduce(self, nodes: Sequence[Reduce]) -> list[Written]:
        """Emits the sums, minima or maxima over a counter, all in one loop."""

    @abstractmethod
    def branch(self, node: If) -> list[Written]:
        """Emits a conditional and returns its results."""

    @abstractmethod
    def for_loop(self, node: For) -> list[Written]:
        """Emits a counted loop and returns its results."""

    @abstractmethod
    def while_loop(self, node: While) -> list[Written]:
        """Emits a loop on a condition and returns its results."""

    @abstractmethod
    def store(self, node: Store | AtomicUpdate) -> None:
        """Emits a write to a scattered output."""

    @abstractmethod
    def report(self, node: Report) -> None:
        """Emits the record of what a position says."""
