"""Bit-exact simplification: loop unrolling, branch elimination and dead code elimination."""

from __future__ import annotations

from dala.base.record import changed
from dala.ir.hoisting import HoistingBuilder
from dala.ir.nodes import (
    Apply,
    AtomicUpdate,
    Block,
    Channel,
    Const,
    Effect,
    Extent,
    For,
    If,
    Load,
    Param,
    Position,
    Program,
    Reduce,
    Report,
    Result,
    Statement,
    Store,
    Value,
    Variable,
    While,
    blocks_of,
    operands_of,
    walk,
)
from dala.ir.siblings import gather_siblings

MOST_UNROLLED = 2048
"""The most statements that one unrolled loop may expand to."""


def simplify(program: Program) -> Program:
    """Returns an equivalent program with constants folded and short constant loops unrolled."""
    rewriter = Rewriter()
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    gather_siblings(body)
    return changed(program, body=body)


class Rewriter:
    """Copies blocks with folding; subclasses override how values and loads are copied."""

    def __init__(self) -> None:
        self.builder = HoistingBuilder()
        self._new: dict[Value, Value] = {}
        self._results: dict[If | For | While, tuple[Value, ...]] = {}
        self._unrolled = 0

    def copy(self, block: Block) -> tuple[Value, ...]:
        """Copies a block's statements into the open block and returns its results."""
        for statement in block.statements:
            self.statement(statement)
        return self._values(block.results)

    def value(self, old: Value) -> Value:
        match old:
            case Const():
                return self.builder.const(old.type, old.value)
            case Param():
                return self.builder.param(old.type, old.name)
            case Position():
                return self.builder.position(old.axis)
            case Extent():
                return self.builder.extent(old.source, old.axis)
            case Channel():
                return old
            case Result():
                return self._results[old.node][old.index]
            case _:
                return self._new[old]

    def _values(self, old: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(self.value(value) for value in old)

    def _block(self, block: Block) -> Block:
        with self.builder.block() as new:
            new.results = self.copy(block)
        return new

    def _loop_body(self, block: Block, *variables: Variable) -> Block:
        with self.builder.loop_body(variables) as new:
            new.results = self.copy(block)
        return new

    def _fresh(self, variable: Variable) -> Variable:
        fresh = Variable(variable.type, variable.name)
        self._new[variable] = fresh
        return fresh

    def statement(self, old: Statement) -> None:
        build = self.builder
        match old:
            case Apply():
                self._new[old] = build.rebuild(old, self._values(old.args))
            case Load():
                self._new[old] = self.load(old)
            case Reduce():
                start, stop = self._values((old.start, old.stop))
                counter = self._fresh(old.counter)
                body = self._loop_body(old.body, counter)
                node = Reduce(old.type, old.op, counter, start, stop, body)
                self._new[old] = build.reduce(node)
            case If():
                self._if(old)
            case For():
                self._for(old)
            case While():
                initial = self._values(old.initial)
                carried = tuple(self._fresh(variable) for variable in old.carried)
                node_ = While(carried, initial, self._block(old.condition), self._block(old.body))
                self._results[old] = build.results(node_)
            case Store():
                build.append(Store(self._values(old.index), self.value(old.value)))
            case AtomicUpdate():
                index, value = self._values(old.index), self.value(old.value)
                build.append(AtomicUpdate(old.op, index, value))
            case Report():
                build.append(Report(old.site, self._values(old.values)))

    def load(self, old: Load) -> Value:
        index = None if old.index is None else self._values(old.index)
        return self.builder.load(old.type, old.source, index, old.channel, old.border)

    def _if(self, old: If) -> None:
        condition = self.value(old.condition)
        if isinstance(condition, Const):
            self._results[old] = self.copy(old.then if condition.value else old.otherwise)
            return
        node = If(condition, self._block(old.then), self._block(old.otherwise))
        self._results[old] = self.builder.results(node)

    def _for(self, old: For) -> None:
        start, stop = self._values((old.start, old.stop))
        values = self._values(old.initial)
        if isinstance(start, Const) and isinstance(stop, Const):
            first, last = int(start.value), int(stop.value)
            size = _unrolled_size(old.body, {old.counter})
            if self._unrolls(old, count_iterations(first, last, old.step) * size):
                for number in range(first, last, old.step):
                    self._new[old.counter] = self.builder.const(old.counter.type, number)
                    self._new.update(zip(old.carried, values, strict=True))
                    values = self.copy(old.body)
                self._results[old] = values
                return
        counter = self._fresh(old.counter)
        carried = tuple(self._fresh(variable) for variable in old.carried)
        body = self._loop_body(old.body, counter, *carried)
        node = For(counter, start, stop, old.step, carried, values, body)
        self._results[old] = self.builder.results(node)

    def _unrolls(self, loop: For, size: int) -> bool:
        """Whether a loop is unrolled; those of which only others make the bounds share a limit."""
        if size > MOST_UNROLLED:
            return False
        if not isinstance(loop.start, Const) or not isinstance(loop.stop, Const):
            self._unrolled += size
        return self._unrolled <= MOST_UNROLLED


def count_iterations(start: int, stop: int, step: int) -> int:
    """Returns the number of iterations of a range; `len` of a range cannot exceed 64 bits."""
    return max(0, -((start - stop) // step))


def _unrolled_size(block: Block, folded: set[Value]) -> int:
    """Returns the number of statements in a block once its constant loops are unrolled.

    What is computed of constants and of counters in `folded` alone is none of them.
    """
    size = 1
    for item in block.statements:
        if isinstance(item, Apply) and all(isinstance(a, Const) or a in folded for a in item.args):
            folded.add(item)
            continue
        iterations = 1
        if isinstance(item, For) and isinstance(item.start, Const) and isinstance(item.stop, Const):
            folded.add(item.counter)
            iterations = count_iterations(int(item.start.value), int(item.stop.value), item.step)
        size += 1 + iterations * sum(_unrolled_size(part, folded) for part in blocks_of(item))
    return size


def drop_dead(block: Block) -> None:
    """Removes the statements that have no side effects and that nothing uses."""
    _drop_dead(block, set())


def _drop_dead(block: Block, live: set[object]) -> None:
    """Removes dead statements; adds the operands of those that stay to `live`."""
    _use(block.results, live)
    kept: list[Statement] = []
    for statement in reversed(block.statements):
        if statement not in live and not _has_effect(statement):
            continue
        kept.append(statement)
        for inner in reversed(blocks_of(statement)):
            _drop_dead(inner, live)
        _use(operands_of(statement), live)
    block.statements[:] = reversed(kept)


def _use(values: tuple[Value, ...], live: set[object]) -> None:
    for value in values:
        live.add(value.node if isinstance(value, Result) else value)


def _has_effect(statement: Statement) -> bool:
    return isinstance(statement, Effect) or any(
        isinstance(inner, Effect) for block in blocks_of(statement) for inner in walk(block)
    )
