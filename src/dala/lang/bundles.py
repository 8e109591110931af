"""Values that bundle several scalars: what they consist of, and the same of other scalars."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from dala.lang.arithmetic import Mismatch
from dala.lang.values import (
    Literal,
    Local,
    LoweredValue,
    Matrix,
    Number,
    Pixel,
    Tuple,
    Vector,
    describe,
)


def scalars(lowered: LoweredValue) -> tuple[LoweredValue, ...]:
    """Returns the scalars that a value consists of."""
    match lowered:
        case Tuple():
            return tuple(part for item in lowered.items for part in scalars(item))
        case Pixel():
            return lowered.channels
        case Vector() | Local():
            return lowered.items
        case Matrix():
            return tuple(item for row in lowered.rows for item in row.items)
        case Literal() | Number():
            return (lowered,)
    raise Mismatch(f"{describe(lowered)} cannot change in a branch or a loop.", "Keep it as it is.")


def rebuilt(like: LoweredValue, numbers: Iterable[Number]) -> LoweredValue:
    """Returns a value of the same kind with other scalars, in the order of `scalars`."""
    return _built(like, iter(numbers))


def _built(like: LoweredValue, pending: Iterator[Number]) -> LoweredValue:
    match like:
        case Tuple():
            return Tuple(tuple(_built(item, pending) for item in like.items), like.named)
        case Pixel():
            return Pixel((next(pending), next(pending), next(pending), next(pending)))
        case Vector():
            return Vector(tuple(next(pending) for _ in like.items))
        case Matrix():
            size = range(len(like.rows))
            return Matrix(tuple(Vector(tuple(next(pending) for _ in size)) for _ in size))
        case Local():
            return Local(tuple(next(pending) for _ in like.items), like.type)
    return next(pending)


def kind_of(lowered: LoweredValue) -> Hashable:
    """Returns what values on two paths have to have in common: all but the types of scalars."""
    match lowered:
        case Tuple():
            return (Tuple, lowered.named, *map(kind_of, lowered.items))
        case Literal() | Number():
            return Number
    return (type(lowered), len(scalars(lowered)))
