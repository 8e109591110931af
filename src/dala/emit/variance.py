"""Uniformity analysis: which values vary along a row of the domain, and which are uniform."""

from __future__ import annotations

from dala.ir.nodes import (
    Apply,
    Block,
    Channel,
    For,
    If,
    Load,
    Position,
    Program,
    Reduce,
    Result,
    Statement,
    Value,
    Variable,
    While,
)

RUNNING = "running"
"""What the names of operations begin with that fold along a row."""


class Variance:
    """Answers `value in variance`: whether the value varies along the last axis."""

    def __init__(self, program: Program) -> None:
        self._last = program.rank - 1
        self._varying: set[object] = set()
        self._grown = True
        while self._grown:
            self._grown = False
            self._block(program.body)

    def __contains__(self, value: Value) -> bool:
        if isinstance(value, Position):
            return value.axis == self._last
        if isinstance(value, Channel):
            return True
        if isinstance(value, Result):
            return (value.node, value.index) in self._varying
        return value in self._varying

    def any(self, values: tuple[Value, ...]) -> bool:
        return any(value in self for value in values)

    def trip_varies(self, loop: For | Reduce) -> bool:
        """Whether positions of a row may run a different number of iterations."""
        return loop.start in self or loop.stop in self

    def condition_varies(self, loop: While) -> bool:
        """Whether positions of a row may leave the loop at different iterations."""
        return loop.condition.results[0] in self or loop in self._varying

    def _mark(self, item: object) -> None:
        if item not in self._varying:
            self._varying.add(item)
            self._grown = True

    def _block(self, block: Block, divergent: bool = False) -> None:
        for statement in block.statements:
            self._statement(statement, divergent)

    def _statement(self, node: Statement, divergent: bool) -> None:
        match node:
            case Apply():
                if self.any(node.args) or node.op.startswith(RUNNING):
                    self._mark(node)
            case Load():
                if node.index is None or self.any(node.index):
                    self._mark(node)
            case Reduce():
                self._block(node.body, divergent)
                if node.start in self:
                    self._mark(node.counter)
                if self.trip_varies(node) or self.any(node.body.results):
                    self._mark(node)
            case If():
                varies = node.condition in self
                self._block(node.then, divergent or varies)
                self._block(node.otherwise, divergent or varies)
                sides = zip(node.then.results, node.otherwise.results, strict=True)
                for i, (then, otherwise) in enumerate(sides):
                    if varies or then in self or otherwise in self:
                        self._mark((node, i))
            case For():
                self._carried(node, node.carried, self.trip_varies(node))
                if node.start in self:
                    self._mark(node.counter)
                self._block(node.body, divergent)
            case While():
                if divergent:
                    self._mark(node)
                self._carried(node, node.carried, self.condition_varies(node))
                self._block(node.condition, divergent)
                self._block(node.body, divergent)

    def _carried(self, node: For | While, carried: tuple[Variable, ...], masked: bool) -> None:
        for i, (variable, first) in enumerate(zip(carried, node.initial, strict=True)):
            if masked or first in self or node.body.results[i] in self:
                self._mark(variable)
                self._mark((node, i))
