"""Arguments of composite kernels, checked: numbers, and shapes of as few axes as matter."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.runtime.buffers.buffer import Buffer

Shape = tuple[int, ...]


def integer_of(kernel: str, name: str, value: Any) -> int:
    """The value as an int; an ArgumentError where it is none."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise ArgumentError(f"{kernel}: {name} is an integer, not {value!r}.")


def number_within(
    kernel: str, name: str, value: Any, least: float = -math.inf, most: float = math.inf
) -> float:
    """The value as a finite float; an ArgumentError where it is none, or beyond the bounds."""
    number = _real(value)
    if math.isfinite(number) and least <= number <= most:
        return number
    between = f" from {least:g} to {most:g}" if math.isfinite(most) else f" from {least:g} on"
    bounds = between if math.isfinite(least) else ""
    raise ArgumentError(f"{kernel}: {name} is a finite number{bounds}, not {value!r}.")


def positive_number(kernel: str, name: str, value: Any) -> float:
    """The value as a finite float above 0; an ArgumentError where it is none."""
    number = _real(value)
    if 0 < number < math.inf:
        return number
    raise ArgumentError(f"{kernel}: {name} is a finite number above 0, not {value!r}.")


def _real(value: Any) -> float:
    """The value as a float, NaN where it is no number."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.inf


def pair_of(kernel: str, name: str, value: Any, least: int) -> tuple[int, int]:
    """One number for both axes of a plane, or one for each: (vertical, horizontal)."""
    given = value if isinstance(value, tuple | list) else (value, value)
    if len(given) != 2:
        raise ArgumentError(
            f"{kernel}: {name} is one number or two, (vertical, horizontal), not {value!r}."
        )
    down, across = (integer_of(kernel, name, item) for item in given)
    if min(down, across) < least:
        raise ArgumentError(f"{kernel}: {name} = {value!r}, but it is at least {least}.")
    return down, across


def axis_of(kernel: str, axis: Any, rank: int) -> int:
    """The axis counted from the front; an ArgumentError where the input has no such axis."""
    number = integer_of(kernel, "axis", axis)
    if not -rank <= number < rank:
        allowed = f"give {-rank} to {rank - 1}" if rank else "it is a single number"
        raise ArgumentError(
            f"{kernel}: axis {number} is outside an input of {rank} axes: {allowed}."
        )
    return number % rank


def axes_of(kernel: str, axis: Any, rank: int) -> Shape:
    """The axes in ascending order: of one, several, or all for None."""
    if axis is None:
        return tuple(range(rank))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    axes = [axis_of(kernel, item, rank) for item in given]
    for item in axes:
        if axes.count(item) > 1:
            raise ArgumentError(
                f"{kernel}: axis {item} is given twice in {axis!r}: once is enough."
            )
    return tuple(sorted(axes))


def around(shape: Shape, first: int, last: int) -> tuple[int, int, int]:
    """The shape as (outer, n, inner), where n counts the elements of the axes first to last."""
    return (
        math.prod(shape[:first]),
        math.prod(shape[first : last + 1]),
        math.prod(shape[last + 1 :]),
    )


def runs_of(axes: Shape) -> list[tuple[int, int]]:
    """Ascending axes as the first and last of each run of neighbors."""
    runs: list[tuple[int, int]] = []
    for axis in axes:
        if runs and runs[-1][1] == axis - 1:
            runs[-1] = (runs[-1][0], axis)
        else:
            runs.append((axis, axis))
    return runs


def require_shape(kernel: str, output: Buffer, why: str, *allowed: Shape) -> None:
    """A ShapeError unless the output has one of the shapes."""
    if output.shape not in allowed:
        shown = " or ".join(map(str, dict.fromkeys(allowed)))
        raise ShapeError(f"{kernel}: {why} makes the output {shown}, but it is {output.shape}.")


def require_alike(kernel: str, x: Buffer, output: Buffer) -> None:
    """A ShapeError unless the output has the shape of the input."""
    if output.shape != x.shape:
        raise ShapeError(
            f"{kernel}: the input is {x.shape}, but the output is {output.shape}: give one of the "
            f"input's shape."
        )
