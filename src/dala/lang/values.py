"""The kinds of values that an expression can have while it is lowered."""

from __future__ import annotations

from typing import Any

from dala.base.record import record, value
from dala.ir.nodes import Input, Output, Value
from dala.ir.types import Scalar


@record
class Literal:
    """An untyped number known at compile time: it takes the type of its other operand."""

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        """Whether both are the same number of the same kind: 0.0 is not -0.0, 1 is not True."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@value
class Number:
    """A typed scalar; a weak one comes from literals alone and takes the other operand's type."""

    value: Value
    weak: bool = False

    @property
    def type(self) -> Scalar:
        return self.value.type


@value
class Tuple:
    """Several values, to be unpacked or indexed; those of a named tuple have its class."""

    items: tuple[LoweredValue, ...]
    named: type | None = None


@value
class Pixel:
    """Four channels in 0..1; arithmetic is per channel."""

    channels: tuple[Number, Number, Number, Number]


@value
class Vector:
    """Two to four numbers of one type; arithmetic is component by component."""

    items: tuple[Number, ...]


@value
class Matrix:
    """Two to four vectors of as many floats, its rows; arithmetic is element by element."""

    rows: tuple[Vector, ...]


@value
class Local:
    """A small array of a position's own; its elements change one by one."""

    items: tuple[Number, ...]
    type: Scalar


@value
class InputRef:
    """An input: its element at this position, unless indexed; image pixels may be u8 levels."""

    input: Input
    levels: bool = False
    vectors: bool = False

    @property
    def is_image(self) -> bool:
        """Whether its elements are pixels."""
        return self.input.channels is not None and not self.vectors


@value
class OutRef:
    """The output of a scattering kernel, and its name in the kernel."""

    output: Output
    name: str


@value
class Static:
    """A Python object: a module, a marker, a function."""

    object: Any


@value
class Unset:
    """A variable that is unassigned on some paths."""

    why: str


LoweredValue = (
    Literal | Number | Tuple | Pixel | Vector | Matrix | Local | InputRef | OutRef | Static | Unset
)
Componentwise = Pixel | Vector | Matrix
"""What arithmetic goes through component by component."""


def describe(lowered: LoweredValue) -> str:
    """Returns a short description of the value for an error message."""
    match lowered:
        case Literal():
            return f"the number {lowered.value!r}"
        case Number():
            return f"a {lowered.type} value"
        case Tuple(named=type() as cls):
            return f"a named tuple {cls.__name__}"
        case Tuple():
            return f"a tuple of {len(lowered.items)}"
        case Pixel():
            return "a pixel"
        case Local():
            return f"a local array of {len(lowered.items)}"
        case Vector():
            return f"a vector of {len(lowered.items)}"
        case Matrix():
            return f"a matrix of {len(lowered.rows)}×{len(lowered.rows)}"
        case InputRef():
            kind = "image" if lowered.is_image else "input"
            return f"the {kind} {lowered.input.name}"
        case OutRef():
            return "the output"
        case Static():
            name = getattr(lowered.object, "__name__", None) or repr(lowered.object)
            return f"{type(lowered.object).__name__} {name}"
        case Unset():
            return "a variable without a value"
