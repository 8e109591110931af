"""What the sizes of a node have to be: an error that names the node, and both numbers, if not.

A model's own words about sizes are not trusted: they come from a file, and inputs of other sizes
may be fed to it than it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.errors import DalaError, ModelError, ShapeError
from dala.ml.executor.epilogue import Shape
from dala.ml.onnx.contents import Node


def check_count(node: Node, shape: Sequence[int], wanted: Sequence[int]) -> None:
    """Refuse to see elements in a shape that has more or fewer of them."""
    have, need = math.prod(shape), math.prod(wanted)
    if have != need or min(wanted, default=0) < 0:
        raise ShapeError(
            f"{node}: {tuple(shape)} has {have:,} elements, but {tuple(wanted)} would have "
            f"{need:,}: sizes are fixed in the model, so feed it inputs of the sizes that it was "
            f"made for."
        )


@contextmanager
def as_the_model_says(node: Node) -> Iterator[None]:
    """Inside, an attribute that is missing or of another kind than it has to be is refused.

    Files are checked for operators and their inputs, not for what attributes hold.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, DalaError):
            raise
        said = f"{type(error).__name__}: {error}"
        raise ModelError(f"{node} does not say what ONNX asks of it ({said}).") from error


def require(node: Node, fits: bool, complaint: str) -> None:
    """Refuse sizes that do not fit each other."""
    if not fits:
        raise ShapeError(f"{node}: {complaint}.")


def axis_in(node: Node, axis: Any, rank: int) -> int:
    """Returns an axis counted from the first one; negative ones are given from the end."""
    if not -rank <= int(axis) < rank:
        raise ShapeError(f"{node}: there is no axis {axis} among {rank}.")
    return int(axis) % rank


def axes_in(node: Node, axes: Sequence[Any], rank: int) -> list[int]:
    """Axes counted from the first one, none of them twice."""
    found = [axis_in(node, axis, rank) for axis in axes]
    if len(set(found)) < len(found):
        raise ShapeError(f"{node}: axes {list(axes)} name one of them twice.")
    return found


def numbers_of(node: Node, name: str, given: Any, count: int, least: int | None) -> list[int]:
    """Returns an attribute or a constant of so many integers, none of them less than the least."""
    numbers = [int(number) for number in np.asarray(given).reshape(-1)]
    if len(numbers) != count:
        raise ModelError(f"{node}: {name} is {numbers}, but {count} numbers are needed.")
    if least is not None and min(numbers, default=least) < least:
        raise ModelError(f"{node}: {name} is {numbers}, but none may be less than {least}.")
    return numbers


def broadcast(node: Node, shapes: Sequence[Sequence[int]]) -> Shape:
    """Returns the shape that all of them are spread to."""
    try:
        return np.broadcast_shapes(*(tuple(shape) for shape in shapes))
    except ValueError:
        listed = " and ".join(str(tuple(shape)) for shape in shapes)
        raise ShapeError(
            f"{node} of {listed}: along each axis sizes are the same, or one."
        ) from None


def check_spatial(node: Node, shape: Sequence[int]) -> None:
    """Refuse what is not planes, (batch, channels, height, width)."""
    require(node, len(shape) == 4, f"it takes two spatial axes, not {tuple(shape)}")


def check_convolution(
    node: Node, x: Shape, weight: Shape, bias: Shape | None, groups: int, *, turned: bool = False
) -> None:
    """Refuse weights and a bias that are not for as many channels as x has.

    Weights are (o, c / groups, kh, kw), and if `turned` (c, o / groups, kh, kw); there may be other
    than two axes behind the channels.
    """
    axes = len(x) == len(weight) > 2
    require(node, axes, f"x is {x}, weights are {weight}: both have channels and the same axes")
    given = f"x is {x}, weights are {weight}, in {groups} groups"
    require(node, min(weight) > 0 and groups > 0, f"there is no window: {given}")
    taken = weight[0] if turned else weight[1] * groups
    made = weight[1] * groups if turned else weight[0]
    require(
        node,
        x[1] == taken and taken % groups == 0 == made % groups,
        f"the weights are for {taken} channels and make {made}: {given}",
    )
    require(
        node,
        bias is None or bias == (made,),
        f"the bias is {bias}, but there are {made} channels to add it to",
    )
