"""Builds blocks with loop-invariant code motion: what no iteration changes is computed before.

Nothing can fail, so a statement may run before a loop that takes no iteration at all. It leaves
loop bodies only: what stands in a branch is computed where the branch is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from dala.ir.builder import Builder
from dala.ir.nodes import Apply, Block, Load, Result, Statement, Value, Variable, operands_of


class HoistingBuilder(Builder):
    """Appends to the outermost open block that a statement's operands and loops allow."""

    def __init__(self) -> None:
        super().__init__()
        self._depths: dict[object, int] = {}
        """How many blocks were open around the one that makes a value."""
        self._bodies: set[int] = set()
        """The depths of the open blocks that are bodies of loops."""

    @contextmanager
    def loop_body(self, variables: Iterable[Variable]) -> Iterator[Block]:
        """Opens the body of a counted loop with its counter and carried variables."""
        with self.block() as block:
            depth = len(self._blocks)
            self._depths.update(dict.fromkeys(variables, depth))
            self._bodies.add(depth)
            try:
                yield block
            finally:
                self._bodies.remove(depth)

    def append(self, statement: Statement) -> None:
        super().append(statement)
        self._depths[statement] = len(self._blocks)

    def _known_or(self, key: Hashable, statement: Apply | Load) -> Value:
        for known in reversed(self._known):
            if key in known:
                return known[key]
        needed = max((self._depth(value) for value in operands_of(statement)), default=0)
        depth = len(self._blocks)
        while depth in self._bodies and needed < depth:
            depth -= 1
        self._known[depth][key] = statement
        self._blocks[depth - 1].statements.append(statement)
        self._depths[statement] = depth
        return statement

    def _depth(self, value: Value) -> int:
        maker = value.node if isinstance(value, Result) else value
        return self._depths.get(maker, 0)
