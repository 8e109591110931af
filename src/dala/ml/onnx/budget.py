"""How much memory a model may ask for: in proportion to what it was given, known before any is had.

A file of 300 bytes can describe a tensor of terabytes. What sizes follow from it is only known when
it is laid out for inputs; each of them comes past here, and so does what NumPy makes of constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dala.errors import LimitError
from dala.ml.onnx.contents import Node
from dala.ml.onnx.tensors import LARGEST_RANK

SMALLEST_BYTES = 1 << 27
"""What any model may have for one value, and twice that for all at a time."""
GROWTH = 256
"""By how much a value may be larger than all inputs and constants of a model together.

The most that was met is 85: 64 channels of floats, of a picture in bytes.
"""

LAUNCHES_LIMIT = 1 << 15
"""Launches that a model may be laid out as, its loops written out."""

Arrays = Sequence[np.ndarray | None]


class Budget:
    """What one value of a model may take, and all that are there at a time."""

    def __init__(self, given_bytes: int) -> None:
        self.each_bytes = SMALLEST_BYTES + GROWTH * given_bytes
        self.total_bytes = 2 * self.each_bytes

    def check_value(self, what: Any, shape: Sequence[int], size_bytes: int) -> None:
        """Refuses a value that would take more than one may; `what` makes or is it."""
        need = math.prod(shape) * size_bytes
        if need > self.each_bytes:
            raise LimitError(
                f"{what}: {tuple(shape)} would take {need:,} bytes, of at most "
                f"{self.each_bytes:,} for inputs and constants of this size: check the sizes that "
                f"the model says, and what it is fed."
            )

    def check_launches(self, what: Any, count: int) -> None:
        """Refuses to lay out more than a model may be; `what` is where it got to."""
        if count > LAUNCHES_LIMIT:
            raise LimitError(
                f"{what}: the model is more than {LAUNCHES_LIMIT:,} launches by now: loops inside "
                f"of it may go on for too long."
            )

    def check_total(self, need: int) -> None:
        """Refuses values that together would take more than they may."""
        if need > self.total_bytes:
            raise LimitError(
                f"what lies between its nodes would take {need:,} bytes, of at most "
                f"{self.total_bytes:,} for inputs and constants of this size: check the sizes that "
                f"the model says, and what it is fed."
            )

    def check_fold(self, node: Node, given: Arrays) -> None:
        """Refuses to compute of constants what would be larger than a value may be."""
        arrays = [np.asarray(item) for item in given if item is not None]
        count = _COUNTS.get(node.op, _spread)(node, arrays)
        size_bytes = max((item.itemsize for item in arrays), default=8)
        self.check_value(node, (count,), max(size_bytes, 8))


def _spread(_: Node, arrays: Sequence[np.ndarray]) -> int:
    """Elements where all are spread over each other, or put one after another."""
    try:
        together = math.prod(np.broadcast_shapes(*(item.shape for item in arrays)))
    except ValueError:
        together = 0
    return max(together, sum(item.size for item in arrays))


def _sizes(array: np.ndarray) -> list[int]:
    """Returns an array of sizes as integers; those that are none are left to whoever uses them."""
    flat = array.reshape(-1)
    if flat.size > LARGEST_RANK:
        raise LimitError(f"a shape of {flat.size:,} axes is given, of at most {LARGEST_RANK}.")
    return [max(int(size), 0) for size in flat] if flat.dtype.kind in "iu" else []


def _filled(_: Node, arrays: Sequence[np.ndarray]) -> int:
    return math.prod(_sizes(arrays[0]))


def _expanded(_: Node, arrays: Sequence[np.ndarray]) -> int:
    try:
        return math.prod(np.broadcast_shapes(arrays[0].shape, _sizes(arrays[1])))
    except ValueError:  # sizes that do not fit, or that no array has
        return math.prod(_sizes(arrays[1]))


def _tiled(_: Node, arrays: Sequence[np.ndarray]) -> int:
    return arrays[0].size * math.prod(_sizes(arrays[1]))


def _ranged(_: Node, arrays: Sequence[np.ndarray]) -> int:
    if any(item.size != 1 for item in arrays):
        return 0
    start, stop, step = (float(item.reshape(())) for item in arrays)
    count = (stop - start) / step if step else 0.0
    return int(count) if math.isfinite(count) and count > 0 else 0


def _gathered(node: Node, arrays: Sequence[np.ndarray]) -> int:
    x, indices = arrays[:2]
    axis = int(node.get("axis", 0))
    length = x.shape[axis] if -x.ndim <= axis < x.ndim else 1
    return indices.size * (x.size // max(length, 1))


_COUNTS: dict[str, Callable[[Node, Sequence[np.ndarray]], int]] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "Gather": _gathered,
    "Range": _ranged,
    "Tile": _tiled,
}
"""Elements that an operator makes of constants, where it is more than their own or their spread."""
