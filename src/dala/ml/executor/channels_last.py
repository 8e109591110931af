"""Values whose planes lie in memory with channels last, as code for the CPU wants them.

A value keeps the shape (n, c, h, w) that the graph speaks of. Operators that know of the layout
take the buffer (n, h, w, c) as it is; for all others it is brought into the order of its axes.
"""

from __future__ import annotations

from collections.abc import Iterable

from dala.base.record import record
from dala.ir.types import Scalar
from dala.kernels.tensor.matmul import transposed
from dala.ml.executor.epilogue import Shape
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

TO_LAST, TO_PLANES = (0, 2, 3, 1), (0, 3, 1, 2)
"""The axes of one layout in the order of the other."""


@record
class ChannelsLast:
    """A value of four axes in a buffer (n, h, w, c)."""

    buffer: Buffer

    @property
    def shape(self) -> Shape:
        return in_order(self.buffer.shape, TO_PLANES)

    @property
    def scalar(self) -> Scalar:
        return self.buffer.scalar


def in_order(items: Iterable[int], order: Iterable[int]) -> Shape:
    """Returns items in another order."""
    found = tuple(items)
    return tuple(found[place] for place in order)


def lies_alike(shape: Shape) -> bool:
    """Whether planes (n, c, h, w) lie in memory as they do with channels last."""
    return shape[1] == 1 or shape[2] * shape[3] == 1


def four_axes(shape: Shape) -> Shape:
    return (*(1,) * (4 - len(shape)), *shape)


def brought(x: Buffer, order: Shape) -> tuple[Buffer, list[Stage]]:
    """Returns a buffer with its axes in another order, and the stages that make it."""
    shape = in_order(x.shape, order)
    planes = x.shape if order == TO_LAST else shape
    if lies_alike(planes):
        return reshaped(x, shape), []
    made = scratch(shape, x.scalar)
    return made, list(transposed(x, made, order))
