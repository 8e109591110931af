"""The names of the kernel language; outside a kernel they are inert markers."""

from __future__ import annotations

from typing import Any

from dala.errors import ArgumentError
from dala.ir.types import DTYPES, Scalar


class Marker:
    """A name of the kernel language."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"dala.{self.name}"

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise ArgumentError(
            f"dala.{self.name} means something only inside a kernel: write it in a function "
            f"decorated with @dala.kernel or @dala.function and run that with compute.run_kernel."
        )


class ScalarMarker(Marker):
    """A scalar type: annotates a parameter or converts a value."""

    __slots__ = ("scalar",)

    def __init__(self, scalar: Scalar) -> None:
        super().__init__(scalar.name)
        self.scalar = scalar


class VectorMarker(Marker):
    """A vector type: annotates a parameter or makes a vector."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        super().__init__(f"vec{size}")
        self.size = size


class MatrixMarker(Marker):
    """A matrix type: annotates a parameter or makes a matrix."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        super().__init__(f"mat{size}")
        self.size = size


class Annotation(Marker):
    """An annotation of an argument: `Array`, `Image`, `Out`, `const`, `number`."""

    __slots__ = ()


class ArrayMarker(Annotation):
    """An annotation of an input; `Array[vec3]` is one whose elements are vectors."""

    __slots__ = ("element",)

    def __init__(self, element: Any = None) -> None:
        super().__init__("Array")
        self.element = element

    def __getitem__(self, element: Any) -> ArrayMarker:
        return ArrayMarker(element)


class Intrinsic(Marker):
    """An intrinsic function of the language."""

    __slots__ = ()


SCALARS = {scalar.name: ScalarMarker(scalar) for scalar in DTYPES.values()}
IMAGE, OUT, CONST, NUMBER = (Annotation(name) for name in ("Image", "Out", "const", "number"))
ARRAY = ArrayMarker()
ANNOTATIONS = {mark.name: mark for mark in (ARRAY, IMAGE, OUT, CONST, NUMBER)}

_PYTHON_SCALARS = ((float, "f32"), (int, "s32"), (bool, "bool"))


def meant_by(mark: Any) -> Any:
    """Returns the marker of what Python's own scalar types mean; anything else unchanged."""
    return next((SCALARS[name] for python, name in _PYTHON_SCALARS if mark is python), mark)


VECTORS = {f"vec{size}": VectorMarker(size) for size in (2, 3, 4)}
MATRICES = {f"mat{size}": MatrixMarker(size) for size in (2, 3, 4)}

_PLACES = ("position", "shape", "rgba", "local", "check", "print")
_MATHS = (
    *("abs", "min", "max", "clamp", "floor", "ceil", "trunc", "round", "fract", "sign"),
    *("sqrt", "rsqrt", "cbrt", "hypot", "exp", "exp2", "log", "log2", "log10", "pow"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sigmoid", "erf", "erfc"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fmod", "ldexp", "fma"),
    *("random", "random_normal", "random_int", "random_bits"),
    *("popcount", "clz", "reverse_bits"),
    *("mix", "step", "smoothstep", "luma", "isnan", "isinf", "bits"),
    *("dot", "cross", "length", "distance", "normalize", "reflect"),
    *("identity", "transpose", "determinant", "inverse"),
)
INTRINSICS = {name: Intrinsic(name) for name in (*_PLACES, *_MATHS)}

NAMES: dict[str, Marker] = {**SCALARS, **VECTORS, **MATRICES, **ANNOTATIONS, **INTRINSICS}
"""Every name of the language that is an attribute of `dala`."""
