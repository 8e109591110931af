"""Values of a kernel that runs as plain Python: NumPy scalars that compute as the language does.

An operation on them is lowered as any other; on constants, lowering computes the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dala.errors import KernelTypeError
from dala.ir.builder import Builder
from dala.ir.nodes import Border, Const
from dala.ir.ops import neutral_of
from dala.ir.types import BOOL, F64, SCALARS, Scalar
from dala.lang.arithmetic import Arithmetic, Mismatch
from dala.lang.intrinsics import call_intrinsic
from dala.lang.language_names import ScalarMarker
from dala.lang.loops import Lowering
from dala.lang.matrices import matmul
from dala.lang.powers import power
from dala.lang.python_composites import Components, Rows, struct_class
from dala.lang.source import Source
from dala.lang.structs import is_struct
from dala.lang.values import (
    Componentwise,
    Literal,
    LoweredValue,
    Matrix,
    Number,
    Pixel,
    Static,
    Tuple,
    Vector,
)

_BINARY = {
    **{name: name for name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor")},
    **{"truediv": "div", "lshift": "shl", "rshift": "shr"},
}
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


class Conversion:
    """A scalar type as a function."""

    def __init__(self, evaluator: Evaluator, marker: ScalarMarker) -> None:
        self.evaluator, self.marker = evaluator, marker

    def __call__(self, value: Any) -> Any:
        return self.evaluator.convert(value, self.marker.scalar)


class Neutral(float):
    """The least or the largest of nothing: it takes the type of what it meets."""

    def __new__(cls, op: str) -> Neutral:
        made = super().__new__(cls, neutral_of(op, F64))
        made.op = op
        return made

    op: str


class Truth(int):
    """A bool with attributes, as an input has; NumPy's and Python's own have no subclasses."""

    def item(self) -> bool:
        """Returns Python's own bool."""
        return bool(self)

    def __repr__(self) -> str:
        return repr(self.item())


class Channels:
    """A pixel: four numbers, and arithmetic on each."""

    def __init__(self, evaluator: Evaluator, channels: tuple[Any, ...]) -> None:
        self.evaluator = evaluator
        self.r, self.g, self.b, self.a = self.channels = channels

    def __iter__(self) -> Iterator[Any]:
        return iter(self.channels)

    def __getitem__(self, index: Any) -> Any:
        return self.channels[index]

    def __repr__(self) -> str:
        return f"rgba({', '.join(map(str, self.channels))})"


class LocalList(list[Any]):
    """A local array: its elements keep their type, and an index outside of it changes none."""

    def __init__(self, evaluator: Evaluator, count: int, scalar: Scalar) -> None:
        super().__init__(evaluator.convert(0, scalar) for _ in range(count))
        self.evaluator, self.scalar = evaluator, scalar

    def __getitem__(self, index: Any) -> Any:
        if self.evaluator.scalar_of(index) is not None:
            index = min(max(int(index), 0), len(self) - 1)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        computed = self.evaluator.scalar_of(index) is not None
        if not computed or 0 <= int(index) < len(self):
            super().__setitem__(int(index), self.evaluator.convert(value, self.scalar))


class Evaluator(ABC):
    """Computes with values by lowering operations on constants."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.scalars: dict[type, Scalar] = {}
        self.classes: dict[Scalar, type] = {}
        operators = _operators(self)
        for scalar in SCALARS.values():
            if not scalar.is_storage:
                own = Truth if scalar == BOOL else scalar.numpy.type
                made = type(scalar.name, (own,), operators)
                self.classes[scalar], self.scalars[made] = made, scalar
        self.pixel_class = type("pixel", (Channels,), operators)
        self.vector_class = type("vector", (Components,), operators)
        self.matrix_class = type("matrix", (Rows,), operators)
        self.structs: dict[type, Any] = {}
        """The classes of named tuples, by those that users define."""

    @abstractmethod
    def rebuilt(self, source: Source) -> Any:
        """Returns a function of the same code, whose names mean what kernels mean."""

    def struct(self, cls: type) -> Any:
        """Returns a class of named tuples as kernels see it."""
        if cls not in self.structs:
            self.structs[cls] = struct_class(self, cls, self.rebuilt)
        return self.structs[cls]

    def _named(self, kind: type) -> type | None:
        """Returns the class that a user defined for tuples of this class, or None."""
        if not is_struct(kind):
            return None
        return next((cls for cls, own in self.structs.items() if own is kind), kind)

    def restart(self) -> None:
        """Forgets the constants of the position before."""
        build, floats = Builder(), self.lowering.arithmetic.floats
        self.lowering.build, self.lowering.arithmetic = build, Arithmetic(build, floats)

    def scalar_of(self, value: Any) -> Scalar | None:
        """Returns the type of a number; that of a literal is None."""
        return next(
            (self.scalars[kind] for kind in type(value).__mro__ if kind in self.scalars), None
        )

    def vector(self, items: tuple[Any, ...]) -> Vector:
        """Returns numbers as a vector that lowering knows."""
        return Vector(tuple(self.lowering.arithmetic.typed(self.lowered(item)) for item in items))

    def lowered(self, value: Any) -> LoweredValue:
        """Returns a value as lowering knows it."""
        scalar = self.scalar_of(value)
        if scalar is not None:
            return Number(self.lowering.build.const(scalar, value.item()))
        if isinstance(value, Channels):
            red, green, blue, alpha = (
                self.lowering.arithmetic.typed(self.lowered(item)) for item in value.channels
            )
            return Pixel((red, green, blue, alpha))
        if isinstance(value, Components):
            return self.vector(value.items)
        if isinstance(value, Rows):
            return Matrix(tuple(self.vector(row.items) for row in value))
        if isinstance(value, tuple | list):
            items = tuple(self.lowered(item) for item in value)
            return Tuple(items, self._named(type(value)))
        return Static(value.marker) if isinstance(value, Conversion) else Literal(value)

    def raised(self, lowered: LoweredValue) -> Any:
        """Returns a value as Python sees it."""
        match lowered:
            case Number():
                return self.number(lowered)
            case Tuple():
                items = tuple(self.raised(item) for item in lowered.items)
                return items if lowered.named is None else self.struct(lowered.named)._make(items)
            case Pixel():
                return self.pixel_class(self, tuple(map(self.number, lowered.channels)))
            case Vector():
                return self.vector_class(self, tuple(map(self.number, lowered.items)))
            case Matrix():
                return self.matrix_class(self, tuple(map(self.raised, lowered.rows)))
        assert isinstance(lowered, Literal)
        return lowered.value

    def attempt(self, lower: Callable[[Lowering], LoweredValue]) -> Any:
        """Returns what lowering gives; raises KernelTypeError for values that do not fit."""
        try:
            return self.raised(lower(self.lowering))
        except Mismatch as mismatch:
            raise KernelTypeError(f"{mismatch.what} {mismatch.instead}") from None

    def number(self, lowered: Number) -> Any:
        """Returns a number; one that is made of literals alone is one of Python's own."""
        const = lowered.value
        assert isinstance(const, Const)
        known = lowered.weak or const.type == BOOL
        return const.value if known else self.classes[const.type](const.value)

    def call(self, name: str, *args: Any) -> Any:
        """Returns the result of an intrinsic."""
        given = [self.lowered(arg) for arg in args]
        try:
            if name == "fmod" and not all(isinstance(item, Literal) for item in given):
                # In the language it is a loop, which lowering does not run.
                x, y = (self.number(item) for item in self.lowering.arithmetic.floats_alike(*given))
                with np.errstate(all="ignore"):
                    return type(x)(np.fmod(x.item(), y.item(), dtype=type(x).__mro__[1]))
            return self.raised(call_intrinsic(self.lowering, name, given))
        except Mismatch as mismatch:
            raise KernelTypeError(f"{mismatch.what} {mismatch.instead}") from None

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """Returns the result of an operation or a comparison."""
        left, right = self._met(a, b), self._met(b, a)
        if op == "pow":
            return self.attempt(lambda lower: power(lower, left, right))
        if op == "matmul":
            return self.attempt(lambda lower: matmul(lower, left, right))
        return self.attempt(lambda lower: lower.arithmetic.binary(op, left, right))

    def choose(self, condition: bool, then: Any, otherwise: Any) -> Any:
        """Returns one of two values, in the type that both have in common."""
        sides = self._met(then, otherwise), self._met(otherwise, then)
        known = Number(self.lowering.build.const(BOOL, condition))
        return self.raised(self.lowering.arithmetic.choose(known, *sides))

    def item(self, owner: Any, index: Any) -> Any:
        """Returns an element of an input or a tuple, inside of which a computed index is held."""
        if isinstance(owner, Components) and type(owner) is self.vector_class:
            owner = owner.items
        if not isinstance(owner, tuple | list) or self.scalar_of(index) is None or not owner:
            return owner[index]
        chosen = owner[0]
        for number, item in enumerate(owner):
            chosen = self.choose(int(index) >= number > 0, item, chosen)
        return chosen

    def _met(self, value: Any, other: Any) -> LoweredValue:
        """Returns a value as lowering knows it beside another."""
        scalar = self.scalar_of(other)
        if isinstance(value, Neutral) and scalar is not None:
            return Number(self.lowering.build.const(scalar, neutral_of(value.op, scalar)))
        return self.lowered(value)

    def unary(self, op: str, a: Any) -> Any:
        """Returns the result of an operation on one value."""
        return self.raised(self.lowering.arithmetic.unary(op, self.lowered(a)))

    def convert(self, value: Any, scalar: Scalar) -> Any:
        """Returns the value, or each component of it, as another type."""
        arithmetic, lowered = self.lowering.arithmetic, self.lowered(value)
        if isinstance(lowered, Componentwise):
            return self.raised(
                arithmetic.by_component(lambda item: arithmetic.convert(item, scalar), lowered)
            )
        return self.raised(arithmetic.convert(lowered, scalar))


def _operators(evaluator: Evaluator) -> dict[str, Any]:
    """Returns the methods of values."""

    def forward(op: str) -> Any:
        return lambda self, other: evaluator.binary(op, self, other)

    def reflected(op: str) -> Any:
        return lambda self, other: evaluator.binary(op, other, self)

    methods: dict[str, Any] = {f"__{name}__": forward(name) for name in _COMPARED}
    for name, op in {**_BINARY, "pow": "pow", "matmul": "matmul"}.items():
        methods |= {f"__{name}__": forward(op), f"__r{name}__": reflected(op)}
    return {
        **methods,
        "__pos__": lambda self: evaluator.raised(evaluator.lowered(self)),
        "__neg__": lambda self: evaluator.unary("neg", self),
        "__invert__": lambda self: evaluator.unary("not", self),
        "__abs__": lambda self: evaluator.call("abs", self),
        "__hash__": lambda self: hash(repr(self)),
    }


def inside(border: Border, index: int, size: int) -> int:
    """Returns the index that a border rule reads for one outside of an axis of `size` ≥ 1."""
    match border:
        case "wrap":
            return index % size
        case "mirror":
            period = max(1, 2 * (size - 1))
            return min(index % period, period - index % period)
        case "reflect":
            return min(index % (2 * size), 2 * size - 1 - index % (2 * size))
    return min(max(index, 0), size - 1)
