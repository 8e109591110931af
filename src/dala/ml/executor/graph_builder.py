"""A graph for inputs of given shapes, laid out as stages.

Elementwise operators, and those that can have an epilogue, such as convolutions, are deferred until
somebody needs their result: what hangs together by then is computed by one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.record import changed
from dala.errors import DtypeError, ModelError, ShapeError
from dala.ir.types import F32, Scalar
from dala.kernels.tensor.elementwise import cast
from dala.kernels.tensor.matmul import transposed
from dala.ml.executor.channels_last import (
    TO_LAST,
    TO_PLANES,
    ChannelsLast,
    brought,
    four_axes,
    in_order,
    lies_alike,
)
from dala.ml.executor.constant_folding import folded
from dala.ml.executor.deferred import (
    Deferred,
    Value,
    epilogue_of,
    is_one_kernel,
    largest_part,
    region_of,
    root_of,
    scalar_of,
)
from dala.ml.executor.epilogue import Shape, pointwise_stage
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import broadcast
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

if TYPE_CHECKING:
    from dala.ml.executor.operators import Operator

AFTERWARDS = -1
"""The user of what is wanted of the graph."""

Upload = Callable[[Any, Callable[[], np.ndarray]], Buffer]
"""A constant on the device, known by a key, made if it is not there yet."""


class GraphBuilder:
    """The values of a graph by name, and the stages that compute them so far."""

    def __init__(
        self,
        nodes: Sequence[Node],
        constants: Mapping[str, np.ndarray],
        inputs: Mapping[str, Buffer],
        targets: Mapping[str, Buffer],
        upload: Upload,
    ) -> None:
        self.values: dict[str, Value] = {**constants, **inputs}
        self.stages: list[Stage] = []
        self._planes: dict[str, Buffer] = {}
        self._last: dict[str, Buffer] = {}
        self.targets = targets
        self._given = constants
        self._upload = upload
        self._users: dict[str, set[int]] = {name: {AFTERWARDS} for name in targets}
        self._made_by = {name: i for i, node in enumerate(nodes) for name in node.outputs}
        for i, node in enumerate(nodes):
            for name in node.inputs:
                self._users.setdefault(name, set()).add(i)

    # -- values ----------------------------------------------------------------------------------

    def shape(self, name: str) -> Shape:
        """Returns how large a value is, whether it was computed yet or not."""
        return tuple(self.values[name].shape)

    def buffer(self, name: str) -> Buffer:
        """Returns a value on the device; what was deferred is computed first."""
        found = self.values[name]
        if isinstance(found, np.ndarray):
            return self.uploaded(name, found)
        found = self.settled(name)
        if isinstance(found, ChannelsLast):
            planes = self._planes.get(name)
            if planes is None:
                planes, stages = brought(found.buffer, TO_PLANES)
                self.stages.extend(stages)
                self._planes[name] = planes
            return planes
        assert isinstance(found, Buffer)
        return found

    def settled(self, name: str) -> Value:
        """Returns a value in the layout that it has; what was deferred is computed first."""
        found = self.values[name]
        while isinstance(found, Deferred):
            self._compute(name)
            found = self.values[name]
        return found

    def channels_last(self, name: str) -> Buffer:
        """Returns a value of up to four axes on the device, with channels last."""
        found = self.settled(name)
        if isinstance(found, ChannelsLast):
            return found.buffer
        known = self._last.get(name)
        if known is None:
            if isinstance(found, np.ndarray):
                shape = four_axes(found.shape)
                last = self.weight(name, "last", lambda it: it.reshape(shape).transpose(TO_LAST))
                known = self._last[name] = last
            else:
                planes = self.buffer(name)
                seen = reshaped(planes, four_axes(planes.shape))
                known, stages = brought(seen, TO_LAST)
                self.stages.extend(stages)
                self._last[name] = known
        return known

    def made_last(self, name: str, shape: Shape, scalar: Scalar) -> Buffer:
        """Returns the buffer, with channels last, that planes of a shape go to."""
        target = self.targets.get(name)
        fits = target is not None and target.shape == shape and target.scalar == scalar
        last = in_order(shape, TO_LAST)
        if target is not None and fits and lies_alike(shape):
            self.values[name] = target
            return reshaped(target, last)
        found = scratch(last, scalar)
        self.values[name] = ChannelsLast(found)
        return found

    def uploaded(self, name: str, array: np.ndarray) -> Buffer:
        """Returns a constant on the device, in the type that values of its kind have there."""
        stored = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        fixed = array is self._given.get(name)
        key = name if fixed else (stored.shape, stored.dtype.str, stored.tobytes())
        return self._upload(key, lambda: stored)

    def weight(self, name: str, role: Any, make: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """Returns a constant in another arrangement, by the role that it plays."""
        array = self.values[name]
        assert isinstance(array, np.ndarray)
        fixed = array is self._given.get(name)
        key = (name if fixed else (array.shape, array.tobytes()), role)
        return self._upload(key, lambda: make(array.astype(np.float32, copy=False)))

    def zeros(self, count: int, role: Any, make: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """Returns what stands for a bias that was left out."""
        return self._upload(("zeros", count, role), lambda: make(np.zeros(count, np.float32)))

    def made(self, name: str, shape: Shape, scalar: Scalar) -> Buffer:
        """Returns the buffer that a value goes to: where it is wanted, or one between stages."""
        target = self.targets.get(name)
        fits = target is not None and target.shape == tuple(shape) and target.scalar == scalar
        found = target if target is not None and fits else scratch(shape, scalar)
        self.values[name] = found
        return found

    def _is_last(self, shape: Shape, names: Sequence[str]) -> bool:
        """Whether one of the values that make up a shape has its channels last."""
        found = [self.settled(name) for name in names]
        return len(shape) == 4 and any(
            isinstance(item, ChannelsLast) and item.shape == shape for item in found
        )

    # -- nodes -----------------------------------------------------------------------------------

    def add(self, node: Node, operator: Operator | None) -> None:
        """Lay out one node: fold it, put it off, or add its stages."""
        if operator is None:
            raise ModelError(f"{node} cannot be computed by kernels.")
        given = [self.values[name] if name else None for name in node.inputs]
        arrays = [item for item in given if isinstance(item, np.ndarray) or item is None]
        if operator.fold is not None and len(arrays) == len(given):
            self.values[node.outputs[0]] = folded(operator.fold, node, arrays)
        elif operator.passes_on:
            self.values[node.outputs[0]] = self.values[node.inputs[0]]
        elif operator.write is not None:
            for part in operator.rewrite(NodeContext(self, node)):
                self._defer(part, operator)
        elif operator.expand is None:
            raise ModelError(f"{node} cannot be computed by kernels.")
        else:
            self.stages.extend(operator.expand(NodeContext(self, node)))

    def split_off(self, node: Node, number: int) -> str:
        """Returns a name for a part of what a node makes, which only the node itself needs."""
        made, place = f"{node.outputs[0]} {number}", self._made_by[node.outputs[0]]
        self._made_by[made], self._users[made] = place, {place}
        return made

    def _defer(self, node: Node, operator: Operator) -> None:
        if all(isinstance(self.values[name], np.ndarray) for name in node.inputs if name):
            # What no fold computes is computed on the device, of a constant that is brought there.
            first, *others = node.inputs
            held = f"{node.outputs[0]} of"
            self.values[held] = self.buffer(first)
            node = changed(node, inputs=(held, *others))
        given = [self.values[name] for name in node.inputs if name]
        scalars = [scalar_of(item) for item in given if not isinstance(item, np.ndarray)]
        integers = [item for item in scalars if item != F32]
        if (integers and not operator.takes_integers) or len({*scalars}) > 1:
            raise DtypeError(
                f"{node} of {', '.join(item.name for item in scalars)} is not computed by kernels: "
                f"give it f32."
            )
        write = (operator.write_integers if integers else None) or operator.write
        shape = broadcast(node, [item.shape for item in given])
        result = operator.gives(node) or scalars[0]
        self.values[node.outputs[0]] = Deferred(node, shape, result, write)

    def finish(self) -> None:
        """Have every wanted value where it is wanted."""
        for name, target in self.targets.items():
            value = self.settled(name)
            found = value.buffer if isinstance(value, ChannelsLast) else self.buffer(name)
            if value.shape != target.shape:
                raise ShapeError(
                    f"output {name!r} of these inputs is {value.shape}, but there is room for "
                    f"{target.shape}."
                )
            if isinstance(value, ChannelsLast):
                self.stages.extend(transposed(found, target, TO_PLANES))
            elif found is not target:
                self.stages.append(Stage(cast, [found], target))

    # -- what was deferred ------------------------------------------------------------------------

    def _compute(self, name: str) -> None:
        """Compute a value that was deferred, or one that it has to wait for."""
        region = region_of(self.values, self._made_by, name)
        inside = {self._made_by[item] for item in region}
        for item in region[:-1]:
            if not self._users[item] <= inside:
                self._compute(item)
                return
        roots = [item for item in region if root_of(self.values, item) is not None]
        if not is_one_kernel(self.values, region, roots):
            self._compute(largest_part(self.values, self._made_by, region))
            return
        deferred = self.values[name]
        assert isinstance(deferred, Deferred)
        epilogue, names = epilogue_of(self.values, region, roots)
        root = root_of(self.values, roots[0]) if roots else None
        if root.channels_last if root is not None else self._is_last(deferred.shape, names):
            operands = [self.channels_last(item) for item in names]
            output = self.made_last(name, deferred.shape, deferred.scalar)
        else:
            operands = [self.buffer(item) for item in names]
            output = self.made(name, deferred.shape, deferred.scalar)
        if root is None:
            self.stages.append(pointwise_stage(epilogue, operands, output))
        else:
            self.stages.extend(root.finish(epilogue, operands, output))
