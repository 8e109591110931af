"""Reads that go along a row: neighboring positions read elements at a constant distance.

Such elements are loaded as vectors: forwards, backwards, every second to fourth of them, or each of
them several times, as `x // 2` and `3 * x // 2` do.
"""

from __future__ import annotations

from collections.abc import Iterable

from dala.base.record import record
from dala.emit.variance import Variance
from dala.ir.nodes import (
    Apply,
    Const,
    Extent,
    Load,
    Param,
    Position,
    Program,
    Statement,
    Value,
    blocks_of,
    operands_of,
    walk,
)
from dala.ir.types import S32

DEEPEST = 32
"""The most operations, one after another, that an address is computed by."""
MOST_STEP = 4
"""The largest distance at which whole vectors are loaded for a part of their elements."""


@record
class Step:
    """How far apart the elements are that neighbors read: `by` places for every `over` of them."""

    by: int
    over: int = 1
    dividend: Value | None = None
    """What is divided by `over`, and rounded down: its rest says where the first one stands."""
    phase: int = 0
    """Which of every `by` elements is read: `2 * x + 1` reads vectors that `2 * x` does, too."""

    def count(self, lanes: int) -> int:
        """Returns how many elements there are from the first lane's to the last one's, at most."""
        return -(-abs(self.by) * (lanes - 1) // self.over) + 1


class RowReads:
    """The reads of a program along its rows."""

    def __init__(self, program: Program, variance: Variance) -> None:
        self._last = program.rank - 1
        self._variance = variance
        self._slopes: dict[Value, int] = {}
        self._starts: dict[Value, int] = {}
        self._depths: dict[Value, int] = {}
        self._quotients: dict[Value, Step] = {}
        statements = walk(program.body)
        for item in statements:
            if isinstance(item, Apply) and (slope := self._found_slope(item)) is not None:
                self._slopes[item] = slope
                if (start := self._found_start(item)) is not None:
                    self._starts[item] = start
            elif isinstance(item, Apply) and (step := self._found_quotient(item)) is not None:
                self._quotients[item] = step
        found = {item: self._step(item) for item in statements if isinstance(item, Load)}
        self.steps = {load: step for load, step in found.items() if step is not None}
        """The distance of the elements that neighbors read, for each such read."""
        self.addresses = self._addresses(program)
        """What varies along a row but is only an address of such reads."""

    def slope(self, value: Value) -> int | None:
        """Returns how much a value grows along the row, None if that is not always the same."""
        if value not in self._variance:
            return 0
        return 1 if isinstance(value, Position) else self._slopes.get(value)

    def _found_slope(self, value: Apply) -> int | None:
        slopes = [self.slope(arg) for arg in value.args]
        depth = 1 + max((self._depths.get(arg, 0) for arg in value.args), default=0)
        if value.type != S32 or value not in self._variance or None in slopes:
            return None
        if depth > DEEPEST:
            return None
        self._depths[value] = depth
        a, b = slopes[0] or 0, slopes[-1] or 0
        match value.op:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "neg":
                return -a
            case "mul" if isinstance(value.args[1], Const):
                return a * int(value.args[1].value)
        return None

    def _start(self, value: Value) -> int | None:
        """Returns what a value is at the first position of a row, None if that is not known."""
        if isinstance(value, Const):
            return int(value.value)
        return (
            0
            if value in self._variance and isinstance(value, Position)
            else self._starts.get(value)
        )

    def _found_start(self, value: Apply) -> int | None:
        starts = [self._start(arg) for arg in value.args]
        if None in starts:
            return None
        a, b = starts[0] or 0, starts[-1] or 0
        return {"add": a + b, "sub": a - b, "neg": -a, "mul": a * b}[value.op]

    def _found_quotient(self, value: Apply) -> Step | None:
        """Returns the step of a quotient, or of one that is moved by what is uniform."""
        if value.type != S32 or value not in self._variance or len(value.args) != 2:
            return None
        first, last = value.args
        if value.op == "floordiv" and isinstance(last, Const):
            slope = self.slope(first) or 0
            is_small = 0 < slope <= MOST_STEP and 1 < last.value <= MOST_STEP
            return Step(slope, int(last.value), first) if is_small else None
        if value.op == "add" and first not in self._variance:
            return self._quotients.get(last)
        if value.op in ("add", "sub") and last not in self._variance:
            return self._quotients.get(first)
        return None

    def _step(self, load: Load) -> Step | None:
        if load.index is None or load not in self._variance:
            return None
        if self._variance.any(load.index[:-1]):
            return None
        step = self.slope(load.index[-1])
        if step is None:
            return self._quotients.get(load.index[-1])
        if 0 < step <= MOST_STEP:
            has_pixels = load.channel is not None  # whose vectors are too many to be kept
            start = 0 if has_pixels else self._start(load.index[-1]) or 0
            return Step(step, phase=start % step)
        return Step(step) if step == -1 else None

    def _addresses(self, program: Program) -> set[Value]:
        """Returns the values that nothing but reads along the row use, and other addresses."""
        users: dict[Value, list[Statement]] = {}
        statements = walk(program.body)
        for item in statements:
            for value in operands_of(item):
                users.setdefault(value, []).append(item)
        kept = _results(program)
        found: set[Value] = set()
        for item in reversed(statements):
            if isinstance(item, Apply) and item in self._variance and item not in kept:
                uses = users.get(item, [])
                goes_along = self.slope(item) is not None or item in self._quotients
                if goes_along and all(
                    user in found or (isinstance(user, Load) and user in self.steps)
                    for user in uses
                ):
                    found.add(item)
        return found

    def bounded(self, of_row: Iterable[Statement]) -> list[Load]:
        """Returns the reads whose place is known once what is uniform along a row is computed."""
        rows = set(of_row)
        return [load for load in self.steps if load.index and self.is_known(load.index[-1], rows)]

    def is_known(self, value: Value, rows: set[Statement]) -> bool:
        """Whether a value follows from the position and from what is computed once for a row."""
        if isinstance(value, Const | Extent | Param | Position):
            return True
        if isinstance(value, Apply) and value in self._variance:
            return all(self.is_known(arg, rows) for arg in value.args)
        return value in rows


def _results(program: Program) -> set[Value]:
    """Returns what the blocks of a program result in."""
    inner = [block for item in walk(program.body) for block in blocks_of(item)]
    return {value for block in (program.body, *inner) for value in block.results}
