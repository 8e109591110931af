"""What an operator's translation works with: a node, its tensors in either layout, the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ModelError
from dala.ml.importers.tfjs.onnx_graph import CODES, OnnxGraph, Shape
from dala.ml.importers.tfjs.topology import Node

# TensorFlow.js keeps channels last, ONNX convolves with channels first. A tensor stays in the form
# in which it was made until somebody needs the other one, so that few transposes are ever written.
LAST, FIRST = "channels_last", "channels_first"
TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


@record
class Tensor:
    """A result: its shape with channels last, its dtype, and its name in each form that exists."""

    shape: Shape
    dtype: str
    forms: dict[str, str]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@record
class Operation:
    """A node in translation. `origins` remembers how some results were made, to merge with them."""

    graph: OnnxGraph
    node: Node
    inputs: tuple[Tensor, ...]
    used_once: tuple[bool, ...]
    origins: dict[str, Any]

    def array(self, tensor: Tensor) -> np.ndarray | None:
        """Returns the values of a constant, None for what is only known when the model runs."""
        return self.graph.array(tensor.forms[LAST]) if LAST in tensor.forms else None

    def constant(self, place: int, what: str) -> np.ndarray:
        """Returns the values of an input that has to be constant."""
        values = self.array(self.inputs[place])
        if values is None:
            raise ModelError(
                f"{what} (input {place}, {self.node.inputs[place][0]!r}) has to be constant, but "
                f"depends on what the model is given."
            )
        return values

    def wholes(self, place: int, what: str) -> list[int]:
        """Returns an input that has to be constant, as integers."""
        return [int(each) for each in np.atleast_1d(self.constant(place, what)).ravel()]

    def axes(self, place: int, rank: int) -> list[int]:
        """Returns an input that names axes of a tensor of that rank, counted from the front."""
        return [axis_of(axis, rank) for axis in self.wholes(place, "the axis")]

    def new(self, values: Any, dtype: str = "int64") -> str:
        """Returns the name of a constant that the translation needs."""
        return self.graph.constant(np.array(values, dtype), f"{self.node.name}/constant")

    def tensor(self, values: np.ndarray) -> Tensor:
        """Returns a constant as a tensor."""
        name = self.graph.constant(values, self.node.name)
        return Tensor(values.shape, values.dtype.name, {LAST: name})

    def name(self, tensor: Tensor, layout: str = LAST) -> str:
        """Returns the name of the tensor in that form, which is made where it does not exist."""
        if layout not in tensor.forms:
            (name,) = tensor.forms.values()
            order = TO_FIRST if layout == FIRST else TO_LAST
            tensor.forms[layout] = self._transposed(name, order, f"{name}/{layout}")
        return tensor.forms[layout]

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        layout: str = LAST,
        **attrs: Any,
    ) -> Tensor:
        """Returns the result of a new ONNX node, which is in that form."""
        return self.emit_several(op, inputs, 1, layout, **attrs)[0]

    def emit_several(
        self, op: str, inputs: Sequence[str], count: int, layout: str = LAST, **attrs: Any
    ) -> list[Tensor]:
        """Returns the results of a new ONNX node, which are in that form."""
        names = self.graph.add(op, inputs, self.node.name, count, **attrs)
        return [self.made(name, layout) for name in names]

    def made(self, name: str, layout: str = LAST) -> Tensor:
        """Returns what the graph calls that, as a tensor."""
        shape = self.graph.shape(name)
        if layout == FIRST:
            shape = tuple(shape[axis] for axis in TO_LAST)
        return Tensor(shape, self.graph.dtype(name), {layout: name})

    def layout(self, *tensors: Tensor) -> str:
        """The form in which to compute with these: channels first once one of them is so."""
        if any(tensor.rank > 4 for tensor in tensors):
            return LAST
        return (
            FIRST if any(FIRST in each.forms for each in tensors if not self._fixed(each)) else LAST
        )

    def reshape(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Returns the same values in another shape."""
        if tuple(shape) == tensor.shape:
            return tensor
        if math.prod(shape) != tensor.count or any(size < 0 for size in shape):
            raise ModelError(
                f"{tensor.shape} has {tensor.count:,} elements, and cannot become {tuple(shape)}."
            )
        return self.emit("Reshape", [self.name(tensor), self.new(shape)])

    def broadcast(self, tensors: Sequence[Tensor], layout: str) -> list[str]:
        """Returns the names of the tensors in that form, to meet as they do with channels last."""
        names = []
        for tensor in tensors:
            full = tensor
            if layout == FIRST and tensor.rank != 4 and tensor.count > 1:
                full = self.reshape(tensor, (1,) * (4 - tensor.rank) + tensor.shape)
            names.append(self.name(full, layout if full.rank == 4 else LAST))
        return names

    def cast(self, tensor: Tensor, dtype: str) -> Tensor:
        """Returns the same values in another dtype."""
        if tensor.dtype == dtype:
            return tensor
        layout = self.layout(tensor)
        names = [self.name(tensor, layout)]
        return self.emit("Cast", names, layout, to=CODES[dtype])

    def _fixed(self, tensor: Tensor) -> bool:
        return self.array(tensor) is not None

    def _transposed(self, name: str, order: Shape, hint: str) -> str:
        shape = self.graph.shape(name)
        sizes = [shape[axis] for axis in order]
        if [axis for axis in range(4) if shape[axis] > 1] == [
            axis for axis in order if shape[axis] > 1
        ]:
            # Where only sizes of one move, no value does.
            return self.graph.add("Reshape", [name, self.new(sizes)], hint)[0]
        return self.graph.add("Transpose", [name], hint, perm=order)[0]


Translation = Callable[[Operation], "Tensor | list[Tensor]"]
TRANSLATIONS: dict[str, Translation] = {}


def translates(*operators: str) -> Callable[[Translation], Translation]:
    """Make a function the translation of these operators."""

    def registered(translation: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(operators, translation))
        return translation

    return registered


def axis_of(axis: int, rank: int) -> int:
    """Returns the axis, counted from the front."""
    if not -rank <= axis < rank:
        raise ModelError(f"axis {axis} is not one of a tensor with {rank} axes.")
    return axis % rank


def placed(axis: int, layout: str) -> int:
    """Returns where that axis of a tensor with channels last is in that form."""
    return TO_FIRST.index(axis) if layout == FIRST else axis


def ordered(values: Sequence[int], layout: str) -> list[int]:
    """Returns one value per axis of a tensor with channels last, in the order of that form."""
    return [values[axis] for axis in TO_FIRST] if layout == FIRST else list(values)
