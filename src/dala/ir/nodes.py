"""The nodes of a kernel: structured, typed, in single assignment.

Leaves (constants, parameters, positions, extents, block variables, results) stand by themselves.
Everything else is a statement of exactly one block and is computed there, in order. Nothing in the
language is undefined: every statement may be executed early, or for a position that does not need
it, except `Store`, `AtomicAdd` and `While`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dala.base.record import record, value
from dala.ir.types import Scalar

Border = Literal["clamp", "mirror", "reflect", "wrap", "zero"]
BORDERS: tuple[Border, ...] = ("clamp", "mirror", "reflect", "wrap", "zero")

OUTPUT = "out"
"""The name by which `Extent` asks for the size of the output."""


@record
class Value:
    """A scalar at each position."""

    type: Scalar


@record
class Const(Value):
    """A number known when the kernel is compiled."""

    value: bool | int | float


@record
class Param(Value):
    """A parameter, given at each run."""

    name: str


@record
class Position(Value):
    """The coordinate of this position along one axis of the domain."""

    axis: int


@record
class Extent(Value):
    """The size of an input, or of the output, along one of its axes."""

    source: str
    axis: int


@record
class Variable(Value):
    """A loop's counter, or a value that it carries from one turn to the next."""

    name: str


@record
class Apply(Value):
    """One operation of `ir.ops` on scalars."""

    op: str
    args: tuple[Value, ...]


@record
class Load(Value):
    """An element of an input: here where `index` is None, else there, by the border rule."""

    source: str
    index: tuple[Value, ...] | None
    channel: int | None
    border: Border


@record
class Reduce(Value):
    """The sum, minimum or maximum of a block over a counter; the order of its terms is free."""

    op: Literal["add", "min", "max"]
    counter: Variable
    start: Value
    stop: Value
    body: Block


@record
class Result(Value):
    """One of the values that an `If`, `For` or `While` leaves."""

    node: If | For | While
    index: int


@record
class If:
    """Both branches leave as many values, of the same types."""

    condition: Value
    then: Block
    otherwise: Block


@record
class For:
    """A counted loop; `step` is a constant and not zero."""

    counter: Variable
    start: Value
    stop: Value
    step: int
    carried: tuple[Variable, ...]
    initial: tuple[Value, ...]
    body: Block


@record
class While:
    """A loop on a condition, which is the one result of its own block."""

    carried: tuple[Variable, ...]
    initial: tuple[Value, ...]
    condition: Block
    body: Block


@record
class Store:
    """A write anywhere into the output; outside it, nothing."""

    index: tuple[Value, ...]
    value: Value


@record
class AtomicAdd:
    """An addition to any element of the output; outside it, nothing."""

    index: tuple[Value, ...]
    value: Value


Statement = Apply | Load | Reduce | If | For | While | Store | AtomicAdd
Effect = (Store, AtomicAdd)


@dataclass(eq=False, slots=True)
class Block:
    """Statements in order, and the values that they leave."""

    statements: list[Statement] = field(default_factory=list)
    results: tuple[Value, ...] = ()


@value
class Input:
    """An input: `channels` is None but for images, whose rank is 2 whatever their channels."""

    name: str
    type: Scalar
    rank: int
    channels: int | None = None


@value
class Output:
    """The output; a scattered one is written by `Store` and `AtomicAdd`, wherever they say."""

    type: Scalar
    rank: int
    channels: int | None = None
    scattered: bool = False


@record
class Program:
    """A kernel for given dtypes, ranks and constants; `body` leaves the output's element."""

    name: str
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    output: Output
    rank: int
    body: Block

    def input(self, name: str) -> Input:
        return next(item for item in self.inputs if item.name == name)


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement."""
    match statement:
        case If():
            return (statement.then, statement.otherwise)
        case For() | Reduce():
            return (statement.body,)
        case While():
            return (statement.condition, statement.body)
        case _:
            return ()


def operands_of(statement: Statement) -> tuple[Value, ...]:
    """The values that a statement itself uses, not those inside its blocks."""
    match statement:
        case Apply():
            return statement.args
        case Load():
            return statement.index or ()
        case Reduce():
            return (statement.start, statement.stop)
        case If():
            return (statement.condition,)
        case For():
            return (statement.start, statement.stop, *statement.initial)
        case While():
            return statement.initial
        case Store() | AtomicAdd():
            return (*statement.index, statement.value)


def walk(block: Block) -> list[Statement]:
    """Every statement of a block and of the blocks inside it, outer ones first."""
    found: list[Statement] = []
    for statement in block.statements:
        found.append(statement)
        for inner in blocks_of(statement):
            found.extend(walk(inner))
    return found


def used(block: Block) -> list[Value]:
    """Every value that a block, and the blocks inside it, use or leave."""
    found = list(block.results)
    for statement in block.statements:
        found.extend(operands_of(statement))
        for inner in blocks_of(statement):
            found.extend(used(inner))
    return found
