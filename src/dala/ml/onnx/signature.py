"""What a model declares about its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.base.printable import printable
from dala.base.record import record
from dala.errors import DtypeError, ShapeError
from dala.ir.types import DTYPES

_NAMES = {scalar.numpy_name: name for name, scalar in DTYPES.items()}
Axis = int | str | None
"""How long an axis is; free axes have a name, or none."""


@record
class Tensor:
    """A declared input or output: its name, its shape, NumPy's dtype of its elements.

    The shape is None where not even the number of axes is declared.
    """

    name: str
    shape: tuple[Axis, ...] | None
    numpy: np.dtype[Any]

    @property
    def dtype(self) -> str:
        """The name of the dtype: dala's, or NumPy's where buffers cannot have it."""
        return _NAMES.get(self.numpy.name, str(self.numpy))

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The shape, where no axis is free."""
        axes = (None,) if self.shape is None else self.shape
        sizes = tuple(axis for axis in axes if isinstance(axis, int))
        return sizes if len(sizes) == len(axes) else None

    def accepts(self, shape: Sequence[int]) -> bool:
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            given == axis or not isinstance(axis, int)
            for given, axis in zip(shape, self.shape, strict=True)
        )

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype} of any shape"
        axes = ["?" if axis is None else str(axis) for axis in self.shape]
        return printable(f"{self.dtype} ({', '.join(axes)}{',' * (len(axes) == 1)})")


def check_inputs(
    model: str,
    declared: Sequence[Tensor],
    given: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
) -> None:
    """Refuses inputs of other shapes or dtypes than the model's, naming both."""
    for wanted, (shape, dtype) in zip(declared, given, strict=True):
        if dtype != wanted.numpy:
            name = _NAMES.get(dtype.name, str(dtype))
            raise DtypeError(
                f"{model}: input {wanted.name!r} is {wanted}, but {name} {shape} was given: "
                f"convert it to {wanted.dtype} first."
            )
        if not wanted.accepts(shape):
            raise ShapeError(
                f"{model}: input {wanted.name!r} is {wanted}, but {shape} was given: resize it "
                f"first, as ml.preprocess does."
            )


def output_shape(
    model: str, inputs: Sequence[Tensor], shapes: Sequence[tuple[int, ...]], output: Tensor
) -> tuple[int, ...]:
    """Returns the shape of an output for inputs of these shapes, as far as it is declared."""
    known: dict[Any, int | None] = {}
    for item, given in zip(inputs, shapes, strict=True):
        for axis, size in zip(item.shape or (), given, strict=False):
            # Some exporters have one name for axes of several lengths, which then tells nothing.
            known[axis] = size if known.get(axis, size) == size else None
    axes = (None,) if output.shape is None else output.shape
    found = tuple(axis if isinstance(axis, int) else known.get(axis) for axis in axes)
    sizes = tuple(axis for axis in found if axis is not None)
    if None in axes or len(sizes) != len(found):
        raise ShapeError(
            f"{model}: output {output.name!r} is {output}: how large it is for inputs of "
            f"{list(shapes)} is not declared."
        )
    return sizes
