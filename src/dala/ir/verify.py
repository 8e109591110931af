"""Checks that a program is well formed; a failure is a bug in dala, never a user's mistake."""

from __future__ import annotations

from dala.errors import InternalError
from dala.ir.nodes import (
    Apply,
    AtomicUpdate,
    Block,
    Const,
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
    operands_of,
)
from dala.ir.ops import problem_with
from dala.ir.types import BOOL, Scalar


def verify(program: Program) -> Program:
    """Returns the program; raises InternalError if it is malformed."""
    checker = _Checker(program)
    checker.block(program.body, frozenset())
    left = [value.type for value in program.body.results]
    wanted = [
        item.type
        for item in program.outputs
        if not item.scattered
        for _ in range(item.channels or 1)
    ]
    checker.require(left == wanted, f"the body leaves {left}, the outputs take {wanted}")
    alone = len(program.outputs) == 1 or not any(item.scattered for item in program.outputs)
    checker.require(alone, "a scattered output is one of several")
    return program


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs = {item.name: item for item in program.inputs}
        self.params = {item.name: item.type for item in program.params}

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            raise InternalError(f"the IR of kernel {self.program.name!r} is malformed: {message}.")

    def block(self, block: Block, outer: frozenset[object]) -> None:
        seen = set(outer)
        for statement in block.statements:
            self.require(statement not in seen, "a statement stands twice")
            self.values(operands_of(statement), seen)
            self.statement(statement, frozenset(seen))
            seen.add(statement)
        self.values(block.results, seen)

    def values(self, values: tuple[Value, ...], seen: set[object] | frozenset[object]) -> None:
        for value in values:
            match value:
                case Const():
                    pass
                case Param():
                    self.require(
                        self.params.get(value.name) == value.type, f"parameter {value.name}"
                    )
                case Position():
                    self.require(0 <= value.axis < self.program.rank, f"position {value.axis}")
                case Extent():
                    known = value.source in self.inputs or value.source == "out"
                    self.require(known, f"extent of {value.source}")
                case Result():
                    self.require(value.node in seen, "a result is used before its statement")
                case _:
                    self.require(value in seen, f"{type(value).__name__} is used before it is made")

    def statement(self, statement: Statement, seen: frozenset[object]) -> None:
        match statement:
            case Apply():
                types = tuple(arg.type for arg in statement.args)
                problem = problem_with(statement.op, statement.type, types)
                self.require(problem is None, problem or "")
            case Load():
                self.load(statement)
            case Reduce():
                self.counter(statement.counter, statement.start, statement.stop)
                self.block(statement.body, seen | {statement.counter})
                self.results(statement.body, (statement.type,))
            case If():
                self.require(statement.condition.type == BOOL, "a condition is a bool")
                self.block(statement.then, seen)
                self.block(statement.otherwise, seen)
                self.results(statement.otherwise, _types(statement.then.results))
            case For():
                self.counter(statement.counter, statement.start, statement.stop)
                self.require(statement.step != 0, "a loop's step is not zero")
                self.require(
                    _types(statement.initial) == _types(statement.carried), "what a loop carries"
                )
                self.block(statement.body, seen | {statement.counter, *statement.carried})
                self.results(statement.body, _types(statement.carried))
            case While():
                self.require(
                    _types(statement.initial) == _types(statement.carried), "what a loop carries"
                )
                self.block(statement.condition, seen | set(statement.carried))
                self.results(statement.condition, (BOOL,))
                self.block(statement.body, seen | set(statement.carried))
                self.results(statement.body, _types(statement.carried))
            case Store() | AtomicUpdate():
                output = self.program.output
                self.require(output.scattered, "a write into an output that is returned")
                self.require(len(statement.index) == output.rank, "a write has the output's rank")
                updates = isinstance(statement, AtomicUpdate)
                wanted = output.type.computed if updates else output.type
                self.require(statement.value.type == wanted, "a write has the output's type")
            case Report():
                self.report(statement)

    def report(self, report: Report) -> None:
        self.require(report.site < len(self.program.sites), "a report has a site")
        holes = [part for part in self.program.sites[report.site].parts if isinstance(part, Scalar)]
        self.require(len(holes) == len(report.values), "a report has as many values as its site")
        self.require(all(v.type.bits >= 32 for v in report.values), "a report carries words")

    def load(self, load: Load) -> None:
        source = self.inputs.get(load.source)
        if source is None:
            raise InternalError(f"the IR of {self.program.name!r} reads {load.source}: no input.")
        self.require(load.type == source.type, f"a read of {load.source} has its type")
        channels = source.channels
        channel_fits = (
            (load.channel is None) if channels is None else load.channel in range(channels)
        )
        self.require(channel_fits, f"channel {load.channel} of {load.source}")
        if load.index is not None:
            self.require(len(load.index) == source.rank, f"an index of {load.source} has its rank")
            self.require(all(i.type.is_integer for i in load.index), "an index is an integer")
        else:
            self.require(source.rank == self.program.rank, f"{load.source} has the domain's rank")

    def counter(self, counter: Variable, start: Value, stop: Value) -> None:
        self.require(
            counter.type.is_integer and counter.type == start.type == stop.type,
            "a counter, its start and its stop are one integer type",
        )

    def results(self, block: Block, wanted: tuple[Scalar, ...]) -> None:
        self.require(_types(block.results) == wanted, f"a block leaves {_types(block.results)}")


def _types(values: tuple[Value, ...]) -> tuple[Scalar, ...]:
    return tuple(value.type for value in values)
