"""Sizes as users write them, (width, height), and shapes as arrays have them, (height, width)."""

from __future__ import annotations

from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.kernels.builtin import Given
from dala.kernels.shapes import Shape, whole_number

Size = tuple[int, int]
"""Width and height."""


def size_of(what: str, given: Any, least: int = 1) -> Size:
    """A width and a height; an ArgumentError that says what is allowed."""
    return _pair(what, "size", "(width, height)", given, least)


def shape_of(what: str, given: Any, least: int = 1) -> tuple[int, int]:
    """The height and width of an array; an ArgumentError that says what is allowed."""
    return _pair(what, "shape", "(height, width)", given, least)


def rows_and_columns(kernel: str, params: Given, least: int = 0) -> tuple[int, int] | None:
    """Height and width of the output, of `size` or of `shape`; None where neither is given."""
    size, shape = params["size"], params["shape"]
    if size is not None and shape is not None:
        raise ArgumentError(
            f"{kernel}: size {size!r} is (width, height), shape {shape!r} is (height, width): give "
            f"one of them."
        )
    if shape is not None:
        return shape_of(kernel, shape, least)
    if size is None:
        return None
    width, height = size_of(kernel, size, least)
    return height, width


def require_room(kernel: str, params: Given, output: Shape, found: Shape) -> None:
    """A ShapeError unless an output whose height and width these are has the size, if one is given.

    `output` is its whole shape.
    """
    wanted = rows_and_columns(kernel, params)
    if wanted is None or wanted == found:
        return
    name = "size" if params["size"] is not None else "shape"
    order = {"size": "(width, height)", "shape": "(height, width)"}[name]
    meant = f": {name} is {order}" if wanted == found[::-1] else ""
    raise ShapeError(
        f"{kernel}: {name} is {params[name]!r}, which makes {wanted[1]} × {wanted[0]}, but the "
        f"output {output} has room for {found[1]} × {found[0]}{meant}."
    )


def _pair(what: str, name: str, order: str, given: Any, least: int) -> tuple[int, int]:
    both = given if isinstance(given, tuple | list) else (given, given)
    if len(both) != 2:
        raise ArgumentError(f"{what}: {name} is one number or two, {order}, not {given!r}.")
    first, second = (whole_number(what, name, item) for item in both)
    if min(first, second) < least:
        raise ArgumentError(f"{what}: {name} = {given!r}, but it is at least {least}.")
    return first, second
