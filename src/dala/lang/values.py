"""What an expression of the kernel language can be while it is being lowered."""

from __future__ import annotations

from typing import Any

from dala.base.record import record, value
from dala.ir.nodes import Input, Output, Value
from dala.ir.types import Scalar


@record
class Literal:
    """A number known now, of no type yet: it takes the type of what it meets."""

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        """Whether both are the same number of the same kind: 0.0 is not -0.0, 1 is not True."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@value
class Number:
    """A typed scalar; a weak one came from literals alone and takes the type of what it meets."""

    value: Value
    weak: bool = False

    @property
    def type(self) -> Scalar:
        return self.value.type


@value
class Tuple:
    """Several values, to unpack or to index."""

    items: tuple[Meaning, ...]


@value
class Pixel:
    """Four channels in 0..1: arithmetic goes channel by channel."""

    channels: tuple[Number, Number, Number, Number]


@value
class InputRef:
    """An input: its element here, unless it is indexed; an image's pixels may be its levels."""

    input: Input
    levels: bool = False


@value
class OutRef:
    """The output of a kernel that writes where it likes, and what the kernel calls it."""

    output: Output
    name: str


@value
class Static:
    """A Python object: a module, a mark, a function."""

    object: Any


@value
class Unset:
    """A variable that some paths leave without a value."""

    why: str


Meaning = Literal | Number | Tuple | Pixel | InputRef | OutRef | Static | Unset


def describe(meaning: Meaning) -> str:
    """The meaning in a few words, for an error."""
    match meaning:
        case Literal():
            return f"the number {meaning.value!r}"
        case Number():
            return f"a {meaning.type} value"
        case Tuple():
            return f"a tuple of {len(meaning.items)}"
        case Pixel():
            return "a pixel"
        case InputRef():
            kind = "image" if meaning.input.channels else "input"
            return f"the {kind} {meaning.input.name}"
        case OutRef():
            return "the output"
        case Static():
            name = getattr(meaning.object, "__name__", None) or repr(meaning.object)
            return f"{type(meaning.object).__name__} {name}"
        case Unset():
            return "a variable without a value"
