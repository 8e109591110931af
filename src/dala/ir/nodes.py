"""The nodes of the IR: structured, typed, in single-assignment form.

Leaves (constants, parameters, positions, extents, block variables, results) belong to no block.
Every other node is a statement of exactly one block and is computed there, in order. No operation
is undefined: any statement may be executed speculatively, except those of `Effect` and `While`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from dala.base.record import record, value
from dala.ir.types import Scalar

Border = Literal["clamp", "mirror", "reflect", "wrap", "zero"]
BORDERS: tuple[Border, ...] = ("clamp", "mirror", "reflect", "wrap", "zero")

OUTPUT = "out"
"""The source name with which `Extent` refers to the outputs, which have the same size."""
T = TypeVar("T")


@record
class Value:
    """A scalar computed at each position."""

    type: Scalar


@record
class Const(Value):
    """A compile-time constant."""

    value: bool | int | float


@record
class Param(Value):
    """A parameter, passed at each launch."""

    name: str


@record
class Position(Value):
    """The coordinate of the current position along one axis of the domain."""

    axis: int


@record
class Channel(Value):
    """The channel of the current element, in a program over interleaved channels."""

    count: int
    """How many there are."""


@record
class Extent(Value):
    """The size of an input or of the output along one of its axes."""

    source: str
    axis: int


@record
class Variable(Value):
    """A loop counter, or a value carried from one iteration to the next."""

    name: str


@record
class Apply(Value):
    """An operation from `ir.ops` applied to scalars."""

    op: str
    args: tuple[Value, ...]


@record
class Load(Value):
    """An element of an input: at the current position if `index` is None, else at the index."""

    source: str
    index: tuple[Value, ...] | None
    channel: int | None
    border: Border


@record
class Reduce(Value):
    """The sum, minimum or maximum of a block over a counter; its terms may be reordered."""

    op: Literal["add", "min", "max"]
    counter: Variable
    start: Value
    stop: Value
    body: Block


@record
class Result(Value):
    """One of the results of an `If`, `For` or `While`."""

    node: If | For | While
    index: int


@record
class If:
    """A conditional; both branches have results of the same types."""

    condition: Value
    then: Block
    otherwise: Block


@record
class For:
    """A counted loop; `step` is a nonzero constant."""

    counter: Variable
    start: Value
    stop: Value
    step: int
    carried: tuple[Variable, ...]
    initial: tuple[Value, ...]
    body: Block


@record
class While:
    """A loop on a condition, which is the only result of the block `condition`."""

    carried: tuple[Variable, ...]
    initial: tuple[Value, ...]
    condition: Block
    body: Block


@record
class Store:
    """A write to any element of the output; ignored outside of it."""

    index: tuple[Value, ...]
    value: Value


@record
class AtomicUpdate:
    """The sum, minimum or maximum of any element of the output and a value; ignored outside."""

    op: Literal["add", "min", "max"]
    index: tuple[Value, ...]
    value: Value


@record
class Report:
    """Something that a position says at one of the program's sites, with the values in it."""

    site: int
    values: tuple[Value, ...]


Statement = Apply | Load | Reduce | If | For | While | Store | AtomicUpdate | Report
Write = (Store, AtomicUpdate)
Effect = (*Write, Report)


@dataclass(eq=False, slots=True)
class Block:
    """Statements in order, and the values they result in."""

    statements: list[Statement] = field(default_factory=list)
    results: tuple[Value, ...] = ()


@value
class Site:
    """A place in a kernel that says something: a check that fails, or a line to print."""

    kind: Literal["check", "print"]
    parts: tuple[str | Scalar, ...]
    """What it shows; a type stands for a value."""
    text: str
    """What is wrong where a check fails."""
    place: str
    """Its file, line and function."""


@value
class Input:
    """An input; `channels` is None unless its elements have several: pixels, or vectors.

    Those of an image, whose rank is always 2, may be a single one. `most` is the greatest that an
    element can be, where that is known.
    """

    name: str
    type: Scalar
    rank: int
    channels: int | None = None
    most: int | None = None


@value
class Output:
    """An output; a scattered one is written by `Store` and `AtomicUpdate`.

    It starts as zeros, unless it `accumulates`: then from what it holds.
    """

    type: Scalar
    rank: int
    channels: int | None = None
    scattered: bool = False
    accumulates: bool = False


@record
class Program:
    """A kernel specialized for dtypes, ranks and constants; `body` yields the outputs' elements.

    All outputs have the same domain; one that is scattered is the only one. What is `narrowed` has
    been searched for sums of levels (`ir/fixed_point.py`).
    """

    name: str
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    outputs: tuple[Output, ...]
    rank: int
    body: Block
    sites: tuple[Site, ...] = ()
    """Where it checks and prints; such a program runs in the order of its positions."""
    narrowed: bool = False
    tables: tuple[Program, ...] = ()
    """The programs of tables of 256 levels that it looks up (`ir/level_tables.py`)."""

    @property
    def output(self) -> Output:
        """The first output."""
        return self.outputs[0]

    def input(self, name: str) -> Input:
        return next(item for item in self.inputs if item.name == name)


def domain_of(shape: tuple[int, ...], channels: int | None) -> tuple[int, ...]:
    """Returns the axes that are iterated: all but that of channels, one axis for a scalar."""
    return (shape[:-1] if channels is not None and channels > 1 else shape) or (1,)


def by_output(outputs: tuple[Output, ...], items: Sequence[T]) -> list[list[T]]:
    """Returns the results of a body by output: one each, or one for each channel."""
    left = list(items)
    found = []
    for output in outputs:
        count = output.channels or 1
        found.append(left[:count])
        del left[:count]
    return found


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Returns the blocks nested in a statement."""
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
    """Returns the operands of a statement, without those inside its blocks."""
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
        case Store() | AtomicUpdate():
            return (*statement.index, statement.value)
        case Report():
            return statement.values


def walk(block: Block) -> list[Statement]:
    """Returns every statement of a block and of its nested blocks, outer ones first."""
    found: list[Statement] = []
    for statement in block.statements:
        found.append(statement)
        for inner in blocks_of(statement):
            found.extend(walk(inner))
    return found


def used(block: Block) -> list[Value]:
    """Returns every value that a block and its nested blocks use or result in."""
    found = list(block.results)
    for statement in block.statements:
        found.extend(operands_of(statement))
        for inner in blocks_of(statement):
            found.extend(used(inner))
    return found
