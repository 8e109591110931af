"""What both emitters do alike: go through statements, and remember what each is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from dala.ir.nodes import (
    Apply,
    AtomicAdd,
    Block,
    Const,
    Extent,
    For,
    If,
    Load,
    Program,
    Reduce,
    Statement,
    Store,
    Value,
    While,
)

Written = TypeVar("Written")
"""What a value is called in the code that is written."""


class Statements(ABC, Generic[Written]):
    """Writes the statements of a program one after another."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.values: dict[object, Written] = {}
        self.bounds: dict[Value, tuple[Value, Value]] = {}
        """Where the counters of loops begin and end."""

    def block(self, block: Block) -> list[Written]:
        """Write a block's statements; what it leaves."""
        for statement in block.statements:
            self.statement(statement)
        return [self.value(value) for value in block.results]

    def statement(self, node: Statement) -> None:
        match node:
            case Apply():
                self.values[node] = self.apply(node)
            case Load():
                self.values[node] = self.load(node)
            case Reduce():
                self.values[node] = self.reduce(node)
            case If():
                self._keep(node, self.branch(node))
            case For():
                self._keep(node, self.for_loop(node))
            case While():
                self._keep(node, self.while_loop(node))
            case Store() | AtomicAdd():
                self.store(node)

    def _keep(self, node: If | For | While, results: list[Written]) -> None:
        for i, result in enumerate(results):
            self.values[(node, i)] = result

    def source(self, name: str) -> str:
        """The number by which the code knows an input: names are the user's, and may be any."""
        names = [item.name for item in self.program.inputs]
        return str(names.index(name)) if name in names else "out"

    def stays_inside(self, node: Load, axis: int, value: Value) -> bool:
        """Whether an index counts from a constant to the input's own size."""
        start, stop = self.bounds.get(value, (None, None))
        return (
            isinstance(start, Const)
            and start.value >= 0
            and isinstance(stop, Extent)
            and (stop.source, stop.axis) == (node.source, axis)
        )

    @abstractmethod
    def value(self, value: Value) -> Written:
        """What an IR value is called here."""

    @abstractmethod
    def apply(self, node: Apply) -> Written:
        """The result of an operation."""

    @abstractmethod
    def load(self, node: Load) -> Written:
        """An element of an input."""

    @abstractmethod
    def reduce(self, node: Reduce) -> Written:
        """The sum, minimum or maximum over a counter."""

    @abstractmethod
    def branch(self, node: If) -> list[Written]:
        """What the side that is taken leaves."""

    @abstractmethod
    def for_loop(self, node: For) -> list[Written]:
        """What a counted loop leaves."""

    @abstractmethod
    def while_loop(self, node: While) -> list[Written]:
        """What a loop on a condition leaves."""

    @abstractmethod
    def store(self, node: Store | AtomicAdd) -> None:
        """Write into a scattered output."""
