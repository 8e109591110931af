"""Recognizes running sums, minima and maxima: folds over all that stands before a position.

`sum(x[i, k] for k in range(j + 1))` at position j of a row adds one term to what the position
before it came to. So its terms are computed once each, as values of the row's positions, and the
row carries the fold on from one vector to the next.
"""

from __future__ import annotations

from dala.base.record import changed, remembered
from dala.emit.variance import RUNNING, Variance
from dala.ir.access import offset_from
from dala.ir.nodes import (
    Apply,
    Const,
    Load,
    Program,
    Reduce,
    Result,
    Statement,
    Value,
    used,
    walk,
)
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import S32

INCLUSIVE, EXCLUSIVE = f"{RUNNING}.with", f"{RUNNING}.before"


@remembered
def with_running_folds(program: Program) -> Program:
    """Returns a program that carries folds along its rows; itself if it has none."""
    found = _running(program)
    if not found or program.sites:
        return program
    rewriter = _Carrying(program.rank - 1, found)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    return changed(program, body=body)


def running_folds(program: Program) -> list[Apply]:
    """Returns the folds that a program carries along its rows."""
    statements = program.body.statements
    return [item for item in statements if isinstance(item, Apply) and is_running(item)]


def is_running(node: Apply) -> bool:
    """Whether an operation folds its operand along the row."""
    return node.op.startswith(RUNNING)


def _running(program: Program) -> set[Reduce]:
    variance, last = Variance(program), program.rank - 1
    return {
        item
        for item in program.body.statements
        if isinstance(item, Reduce)
        and item.counter.type == S32
        and isinstance(item.start, Const)
        and item.start.value == 0
        and offset_from(item.stop, last) in (0, 1)
        and not _depends_on_position(item, variance)
    }


def _depends_on_position(fold: Reduce, variance: Variance) -> bool:
    """Whether terms are others at other positions of a row."""
    inner = walk(fold.body)
    made: set[object] = {fold.counter, *inner}
    if any(isinstance(item, Load) and item.index is None for item in inner):
        return True
    return any(value in variance for value in used(fold.body) if _maker(value) not in made)


def _maker(value: Value) -> object:
    return value.node if isinstance(value, Result) else value


class _Carrying(Rewriter):
    """Computes the terms of running folds at the positions that they are counted by."""

    def __init__(self, last: int, folds: set[Reduce]) -> None:
        super().__init__()
        self._last = last
        self._folds = folds

    def statement(self, old: Statement) -> None:
        if not isinstance(old, Reduce) or old not in self._folds:
            super().statement(old)
            return
        self._new[old.counter] = self.builder.position(self._last)
        (term,) = self.copy(old.body)
        kind = INCLUSIVE if offset_from(old.stop, self._last) else EXCLUSIVE
        fold = Apply(old.type, f"{kind}.{old.op}", (term,))
        self.builder.append(fold)
        self._new[old] = fold
