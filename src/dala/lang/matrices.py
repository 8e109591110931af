"""Matrices of the kernel language: how they are made, products with `@`, and their functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dala.lang import matrix_functions
from dala.lang.arithmetic import Mismatch
from dala.lang.bundles import scalars
from dala.lang.language_names import MatrixMarker
from dala.lang.values import Literal, LoweredValue, Matrix, Number, Vector, describe
from dala.lang.vectors import dot, floats_of

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions


def matrix(lower: Expressions, mark: MatrixMarker, args: list[LoweredValue]) -> Matrix:
    """Returns a matrix of numbers, row by row, or of vectors, which are its rows."""
    parts = [part for arg in args for part in scalars(arg)]
    size = mark.size
    if len(parts) != size * size:
        raise Mismatch(
            f"dala.{mark.name} takes {size * size} numbers, or {size} rows of {size}, not "
            f"{len(parts)}.",
            f"Write e.g. dala.{mark.name}({', '.join('abcd'[:size])}) of rows dala.vec{size}(…), "
            f"or dala.identity({size}).",
        )
    return _of_rows(floats_of(lower, parts), size)


def _identity(lower: Expressions, count: LoweredValue) -> Matrix:
    """Returns the matrix with ones on its diagonal."""
    size = count.value if isinstance(count, Literal) else 0
    if type(size) is not int or size not in (2, 3, 4):
        raise Mismatch(
            f"dala.identity takes the size of a matrix, 2 to 4, not {describe(count)}.",
            "Write e.g. dala.identity(3).",
        )
    one, zero = (
        Number(lower.build.const(lower.arithmetic.floats, number), weak=True)
        for number in (1.0, 0.0)
    )
    places = range(size)
    return _of_rows([one if i == j else zero for i in places for j in places], size)


def _of_rows(numbers: list[Number], size: int) -> Matrix:
    starts = range(0, size * size, size)
    return Matrix(tuple(Vector(tuple(numbers[first : first + size])) for first in starts))


def matmul(lower: Expressions, a: LoweredValue, b: LoweredValue) -> LoweredValue:
    """Returns `a @ b`, as NumPy has it: of two vectors their dot product."""
    if _size(a) is None or _size(a) != _size(b):
        raise Mismatch(
            f"`@` does not multiply {describe(a)} and {describe(b)}.",
            "It takes matrices and vectors of one size, dala.mat3 and dala.vec3; numbers are "
            "multiplied with `*`.",
        )
    if isinstance(a, Matrix):
        if isinstance(b, Matrix):
            return Matrix(tuple(_vector(lower, row, transposed(b).rows) for row in a.rows))
        return _vector(lower, b, a.rows)
    return _vector(lower, a, transposed(b).rows) if isinstance(b, Matrix) else dot(lower, a, b)


def transposed(m: Matrix) -> Matrix:
    """Returns the matrix whose rows are the columns of this one."""
    columns = zip(*(row.items for row in m.rows), strict=True)
    return Matrix(tuple(map(Vector, columns)))


def _size(lowered: LoweredValue) -> int | None:
    match lowered:
        case Matrix():
            return len(lowered.rows)
        case Vector():
            return len(lowered.items)
    return None


def _vector(lower: Expressions, v: LoweredValue, rows: tuple[Vector, ...]) -> Vector:
    """Returns the dot products of a vector with each of the rows."""
    return Vector(tuple(lower.arithmetic.typed(dot(lower, row, v)) for row in rows))


def _require(name: str, m: LoweredValue) -> Matrix:
    if isinstance(m, Matrix):
        return m
    raise Mismatch(
        f"dala.{name} takes a matrix, not {describe(m)}.", "Make one with dala.mat3(a, b, c)."
    )


def _transpose(lower: Expressions, m: LoweredValue) -> LoweredValue:
    return transposed(_require("transpose", m))


def _written(name: str) -> Callable[[Expressions, LoweredValue], LoweredValue]:
    """Handles a function written in the language, in the version for its argument's size."""

    def handler(lower: Expressions, m: LoweredValue) -> LoweredValue:
        size = len(_require(name, m).rows)
        return lower.inline_python(getattr(matrix_functions, f"{name}_{size}"), [m])

    return handler


HANDLERS: dict[str, tuple[Callable[..., LoweredValue], tuple[int, ...]]] = {
    "identity": (_identity, (1,)),
    "transpose": (_transpose, (1,)),
    "determinant": (_written("determinant"), (1,)),
    "inverse": (_written("inverse"), (1,)),
}
