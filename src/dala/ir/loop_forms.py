"""Recognizes loops that add up weighted levels, without unrolling them.

A loop is run once on what its values mean: numbers, places beside the position, and sums of levels.
Each sum is a node of a graph; the weights of its levels are found as derivatives are, from the sum
back to the levels, so that a window of thousands of elements takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dala.base.record import value
from dala.ir.access import offset_from
from dala.ir.level_forms import EVERYTHING, Form, Level
from dala.ir.nodes import (
    Apply,
    Block,
    Const,
    For,
    Load,
    Position,
    Reduce,
    Result,
    Statement,
    Value,
)

MOST_STEPS = 1 << 17
"""The most statements that are run."""


@value
class Place:
    """The position along an axis, and a number of elements from there."""

    axis: int
    offset: int


@value
class Sum:
    """A node of the graph."""

    number: int


Meaning = float | Place | Sum


class _Unknown(Exception):
    """Something is no sum of levels."""


def loop_forms(
    loop: For | Reduce,
    known: Callable[[Value], Form | None],
    level: Callable[[Load, tuple[Place, ...] | None], Level | None],
) -> list[Form] | None:
    """Returns the forms of a loop's results, or None if one has none.

    `known` gives the forms of values from outside of it; `level` the level that a read at some
    places gives.
    """
    run = _Run(known, level)
    try:
        if isinstance(loop, Reduce):
            return [run.form(run.reduce(loop))]
        return [run.form(item) for item in run.loop(loop)]
    except _Unknown:
        return None


class _Run:
    def __init__(
        self,
        known: Callable[[Value], Form | None],
        level: Callable[[Load, tuple[Place, ...] | None], Level | None],
    ) -> None:
        self._known = known
        self._level = level
        self._meanings: dict[object, Meaning] = {}
        self._outer: dict[Value, Meaning] = {}
        self._leaves: dict[int, Form] = {}
        self._parts: list[tuple[tuple[int, float], ...]] = []
        """What each node adds up: other nodes, and their factors."""
        self._levels: dict[object, Sum] = {}
        self._steps = 0

    # -- running ---------------------------------------------------------------------------------

    def loop(self, node: For) -> list[Meaning]:
        values = [self._meaning(item) for item in node.initial]
        for number in self._range(node.start, node.stop, node.step):
            self._meanings[node.counter] = number
            self._meanings.update(zip(node.carried, values, strict=True))
            values = self._block(node.body)
        return values

    def reduce(self, node: Reduce) -> Meaning:
        if node.op != "add" or not node.type.is_float:
            raise _Unknown
        total: Meaning = 0.0
        for number in self._range(node.start, node.stop, 1):
            self._meanings[node.counter] = number
            (term,) = self._block(node.body)
            total = self._sum(total, term, 1.0)
        return total

    def _range(self, start: Value, stop: Value, step: int) -> Iterator[int]:
        first, last = self._meaning(start), self._meaning(stop)
        if not isinstance(first, int) or not isinstance(last, int):
            raise _Unknown
        yield from range(first, last, step)

    def _block(self, block: Block) -> list[Meaning]:
        self._steps += len(block.statements)
        if self._steps > MOST_STEPS:
            raise _Unknown
        for item in block.statements:
            self._statement(item)
        return [self._meaning(item) for item in block.results]

    def _statement(self, item: Statement) -> None:
        match item:
            case Apply():
                self._meanings[item] = self._apply(item, [self._meaning(arg) for arg in item.args])
            case Load():
                self._meanings[item] = self._load(item)
            case Reduce():
                self._meanings[item] = self.reduce(item)
            case For():
                for i, result in enumerate(self.loop(item)):
                    self._meanings[item, i] = result
            case _:
                raise _Unknown

    def _meaning(self, item: Value) -> Meaning:
        key = (item.node, item.index) if isinstance(item, Result) else item
        found = self._meanings.get(key)
        if found is None:
            found = self._outer.get(item)
        if found is None:
            found = self._outer[item] = self._from_outside(item)
        return found

    def _from_outside(self, item: Value) -> Meaning:
        if isinstance(item, Const) and item.type.is_integer:
            return int(item.value)
        beside = item.args[0] if isinstance(item, Apply) else item
        if isinstance(beside, Position) and (far := offset_from(item, beside.axis)) is not None:
            return Place(beside.axis, far)
        form = self._known(item)
        if form is None or form.limits != EVERYTHING:
            raise _Unknown
        return form.constant if form.is_constant else self._leaf(form)

    def _apply(self, node: Apply, args: list[Meaning]) -> Meaning:
        a, b = args[0], args[-1]
        if node.type.is_float and not node.type.is_storage:
            match node.op:
                case "convert" if not isinstance(a, Place):
                    return float(a) if isinstance(a, int) else a
                case "neg":
                    return self._scaled(a, -1.0)
                case "add":
                    return self._sum(a, b, 1.0)
                case "sub":
                    return self._sum(a, b, -1.0)
                case "mul" if isinstance(b, int | float):
                    return self._scaled(a, b)
                case "mul" if isinstance(a, int | float):
                    return self._scaled(b, a)
                case "div" if isinstance(b, int | float) and b:
                    return self._scaled(a, 1.0 / b)
        elif isinstance(b, int):
            match node.op, a:
                case "add", Place():
                    return Place(a.axis, a.offset + b)
                case "add", int():
                    return a + b
                case "mul", int():
                    return a * b
                case "neg", int():
                    return -a
        elif isinstance(b, Place) and isinstance(a, int) and node.op == "add":
            return Place(b.axis, b.offset + a)
        raise _Unknown

    def _load(self, node: Load) -> Sum:
        places: tuple[Place, ...] | None = None
        if node.index is not None:
            found = [self._meaning(item) for item in node.index]
            places = tuple(item for item in found if isinstance(item, Place))
            if len(places) != len(found):
                raise _Unknown
        key = (node.source, places, node.channel, node.border)
        known = self._levels.get(key)
        if known is None:
            level = self._level(node, places)
            if level is None:
                raise _Unknown
            known = self._levels[key] = self._leaf(Form({level: 1.0}, {}, 0.0))
        return known

    # -- the graph -------------------------------------------------------------------------------

    def _leaf(self, form: Form) -> Sum:
        made = self._node()
        self._leaves[made.number] = form
        return made

    def _node(self, *parts: tuple[int, float]) -> Sum:
        self._parts.append(parts)
        return Sum(len(self._parts) - 1)

    def _scaled(self, a: Meaning, factor: float) -> Meaning:
        if isinstance(a, Sum):
            return self._node((a.number, factor))
        if isinstance(a, Place):
            raise _Unknown
        return a * factor

    def _sum(self, a: Meaning, b: Meaning, sign: float) -> Meaning:
        if isinstance(a, int | float) and isinstance(b, int | float):
            return a + sign * b
        parts = [(self._numbered(item), factor) for item, factor in ((a, 1.0), (b, sign))]
        return self._node(*parts)

    def _numbered(self, item: Meaning) -> int:
        if isinstance(item, Sum):
            return item.number
        if isinstance(item, Place):
            raise _Unknown
        return self._leaf(Form({}, {}, float(item))).number

    def form(self, item: Meaning) -> Form:
        """Returns the form of a result."""
        if not isinstance(item, Sum):
            return Form({}, {}, float(item)) if isinstance(item, int | float) else _refuse()
        shares = [0.0] * (item.number + 1)
        shares[item.number] = 1.0
        levels: dict[Level, float] = {}
        uniforms: dict[Value, float] = {}
        constant = 0.0
        for number in range(item.number, -1, -1):
            share = shares[number]
            if not share:
                continue
            for part, factor in self._parts[number]:
                shares[part] += share * factor
            leaf = self._leaves.get(number)
            if leaf is not None:
                scaled = leaf.scaled(share)
                for level, weight in scaled.levels.items():
                    levels[level] = levels.get(level, 0.0) + weight
                for uniform, weight in scaled.uniforms.items():
                    uniforms[uniform] = uniforms.get(uniform, 0.0) + weight
                constant += scaled.constant
        return Form(levels, uniforms, constant)


def _refuse() -> Form:
    raise _Unknown
