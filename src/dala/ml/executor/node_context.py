"""A node where it is laid out: what it is given, and where its results go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.record import record
from dala.ir.types import F32, Scalar
from dala.ml.executor.channels_last import TO_LAST, ChannelsLast
from dala.ml.executor.deferred import Deferred, Finish, Root, Takes, scalar_of
from dala.ml.executor.epilogue import Shape
from dala.ml.executor.sizes import check_count
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

if TYPE_CHECKING:
    from dala.ml.executor.graph_builder import GraphBuilder


@record
class NodeContext:
    """A node, and the builder that lays it out."""

    builder: GraphBuilder
    node: Node

    def shape(self, index: int = 0) -> Shape:
        return self.builder.shape(self.node.inputs[index])

    def dtype(self, index: int = 0) -> Scalar:
        """Returns the type of an input on the device."""
        return scalar_of(self.builder.values[self.node.inputs[index]])

    def input(self, index: int = 0) -> Buffer:
        """Returns an input on the device."""
        return self.builder.buffer(self.node.inputs[index])

    def array(self, index: int) -> np.ndarray | None:
        """Returns the value of an input; None where it was left out.

        One that is not known yet ends the layout: it goes on when the value was computed and read.
        """
        return self.builder.array(self.node.inputs[index]) if self.node.has(index) else None

    def arrays(self) -> list[np.ndarray | None]:
        """Returns the first input left out, and all others as they are known."""
        return [None, *(self.array(i) for i in range(1, len(self.node.inputs)))]

    def is_constant(self, index: int) -> bool:
        return isinstance(self.builder.values[self.node.inputs[index]], np.ndarray)

    def weight(self, index: int, role: Any, make: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """Returns a constant input, arranged in the way that its role asks for."""
        self.array(index)  # known from here on
        return self.builder.weight(self.node.inputs[index], (self.node.op, role), make)

    def bias(
        self, index: int, count: int, role: Any, make: Callable[[np.ndarray], np.ndarray]
    ) -> Buffer:
        """What is added to each channel: a constant input, or zeros where it is left out."""
        if self.node.has(index):
            return self.weight(index, role, make)
        return self.builder.zeros(count, role, make)

    def output(self, shape: Sequence[int], scalar: Scalar = F32, index: int = 0) -> Buffer:
        """Returns where a result goes."""
        return self.builder.made(self.node.outputs[index], tuple(shape), scalar)

    def view(self, shape: Sequence[int]) -> Iterator[Stage]:
        """Returns the first input in another shape of as many elements, as the result."""
        check_count(self.node, self.shape(), shape)
        self.builder.values[self.node.outputs[0]] = reshaped(self.input(), tuple(shape))
        return iter(())

    def order(self, *indices: int) -> Shape:
        """Returns the order in which the axes of inputs lie in memory: channels may be last."""
        found = [self.builder.settled(self.node.inputs[index]) for index in indices or (0,)]
        if any(isinstance(item, ChannelsLast) for item in found):
            return TO_LAST
        return tuple(range(len(found[0].shape)))

    def ordered_input(self, order: Shape, index: int = 0) -> Buffer:
        """Returns an input on the device, with its axes in this order."""
        name = self.node.inputs[index]
        return self.builder.channels_last(name) if order == TO_LAST else self.builder.buffer(name)

    def ordered_output(
        self, shape: Sequence[int], order: Shape, scalar: Scalar = F32, index: int = 0
    ) -> Buffer:
        """Returns where a result of a shape goes, with its axes in this order."""
        if order != TO_LAST:
            return self.output(shape, scalar, index)
        return self.builder.made_last(self.node.outputs[index], tuple(shape), scalar)

    def defer(
        self, shape: Sequence[int], finish: Finish, takes: Takes, *, channels_last: bool = False
    ) -> Iterator[Stage]:
        """Leave the result to be computed when it is known what becomes of it."""
        root = Root(finish, takes, channels_last)
        deferred = Deferred(self.node, tuple(shape), F32, root=root)
        self.builder.values[self.node.outputs[0]] = deferred
        return iter(())
