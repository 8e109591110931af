"""Composite types: vectors, matrices and named tuples, as bundles of scalars in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.record import value
from dala.ir.types import F32, Scalar
from dala.lang.arithmetic import Mismatch
from dala.lang.language_names import MatrixMarker, ScalarMarker, VectorMarker
from dala.lang.matrices import matrix
from dala.lang.values import LoweredValue, Matrix, Number, Tuple, Vector, describe
from dala.lang.vectors import vector

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions


@value
class Struct:
    """A class of named tuples: its fields in order; those of any type have None."""

    cls: type
    fields: tuple[tuple[str, FieldType], ...]

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def call(self) -> str:
        """How it is made, for an error message."""
        return f"{self.name}({', '.join(name for name, _ in self.fields)})"


Composite = VectorMarker | MatrixMarker | Struct
FieldType = ScalarMarker | Composite | None


def leaves(type: Composite, name: str) -> list[tuple[str, Scalar]]:
    """Returns the scalars of a parameter of that type: their names in a program, and types."""
    match type:
        case VectorMarker():
            return [(f"{name}.{i}", F32) for i in range(type.size)]
        case MatrixMarker():
            return [(f"{name}.{i}.{j}", F32) for i in range(type.size) for j in range(type.size)]
    found: list[tuple[str, Scalar]] = []
    for field, inner in type.fields:
        assert inner is not None
        own = f"{name}.{field}"
        found += [(own, inner.scalar)] if isinstance(inner, ScalarMarker) else leaves(inner, own)
    return found


def bundled(type: Composite | ScalarMarker, numbers: Iterator[Number]) -> LoweredValue:
    """Returns a value of the type, made of scalars in the order of `leaves`."""
    match type:
        case ScalarMarker():
            return next(numbers)
        case VectorMarker():
            return Vector(tuple(next(numbers) for _ in range(type.size)))
        case MatrixMarker():
            places = range(type.size)
            return Matrix(tuple(Vector(tuple(next(numbers) for _ in places)) for _ in places))
    return Tuple(
        tuple(bundled(inner, numbers) for _, inner in type.fields if inner is not None), type.cls
    )


def flattened(type: Composite | ScalarMarker, given: Any, name: str) -> list[Any]:
    """Returns what is given for the scalars of a parameter; raises Mismatch where it does not fit.

    Sequences and arrays stand for vectors, sequences of rows for matrices, and those of a named
    tuple's fields for it.
    """
    if isinstance(type, ScalarMarker):
        return [given]
    items = given.tolist() if isinstance(given, np.ndarray) else given
    inner: list[tuple[str, Composite | ScalarMarker]]
    match type:
        case VectorMarker():
            inner = [(f"{name}[{i}]", _FLOAT) for i in range(type.size)]
            wanted = f"{type.size} numbers, such as ({', '.join(['1.0'] * type.size)})"
        case MatrixMarker():
            inner = [(f"{name}[{i}]", VectorMarker(type.size)) for i in range(type.size)]
            wanted = f"{type.size} rows of {type.size} numbers, such as np.eye({type.size})"
        case Struct():
            inner = [(f"{name}.{field}", own) for field, own in type.fields if own is not None]
            wanted = f"a {type.call}"
    named = getattr(items, "_fields", None)
    other = named is not None and (
        not isinstance(type, Struct) or named != tuple(field for field, _ in type.fields)
    )
    if not isinstance(items, list | tuple) or len(items) != len(inner) or other:
        raise Mismatch(f"{name} is {wanted}, not {given!r}.", "")
    return [
        number
        for (own, part), item in zip(inner, items, strict=True)
        for number in flattened(part, item, own)
    ]


_FLOAT = ScalarMarker(F32)


def conform(lower: Expressions, type: FieldType, given: LoweredValue, what: str) -> LoweredValue:
    """Returns a value as one of the type: scalars are converted; raises Mismatch for others."""
    match type:
        case None:
            return given
        case ScalarMarker():
            if isinstance(given, Tuple | Vector | Matrix):
                raise _unfit(what, type.name, given)
            return lower.arithmetic.convert(given, type.scalar)
        case VectorMarker():
            if not isinstance(given, Vector | Tuple) or len(given.items) != type.size:
                raise _unfit(what, f"dala.{type.name}", given)
            return vector(lower, type, [given])
        case MatrixMarker():
            count = len(given.rows) if isinstance(given, Matrix) else 0
            count = len(given.items) if isinstance(given, Tuple) else count
            if count != type.size:
                raise _unfit(what, f"dala.{type.name}", given)
            return matrix(lower, type, [given])
    if not isinstance(given, Tuple) or given.named is not type.cls:
        raise _unfit(what, type.name, given)
    return given


def _unfit(what: str, wanted: str, given: LoweredValue) -> Mismatch:
    return Mismatch(f"{what} is a {wanted}, not {describe(given)}.", f"Give it a {wanted}(…).")
