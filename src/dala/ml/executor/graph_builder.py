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
from dala.ml.onnx.budget import Budget
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer, scratch
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
        self.targets = targets
        self._given = constants
        self.budget = Budget(
            sum(item.nbytes for item in constants.values())
            + sum(item.size for item in inputs.values())
        )
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
        while isinstance(found, Deferred):
            self._compute(name)
            found = self.values[name]
        assert isinstance(found, Buffer)
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
        return self._upload(key, lambda: make(array.astype(np.float32)))

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

    # -- nodes -----------------------------------------------------------------------------------

    def add(self, node: Node, operator: Operator | None) -> None:
        """Lay out one node, whose results are no larger than values may be."""
        self._lay_out(node, operator)
        self.budget.check_launches(node, len(self.stages))
        for name in filter(None, node.outputs):
            found = self.values.get(name)
            if found is not None:
                self.budget.check_value(node, found.shape, scalar_of(found).size_bytes)

    def _lay_out(self, node: Node, operator: Operator | None) -> None:
        """Fold a node, put it off, or add its stages."""
        if operator is None:
            raise ModelError(f"{node} cannot be computed by kernels.")
        given = [self.values[name] if name else None for name in node.inputs]
        arrays = [item for item in given if isinstance(item, np.ndarray) or item is None]
        if operator.fold is not None and len(arrays) == len(given):
            self.budget.check_fold(node, arrays)
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
            found = self.buffer(name)
            if found.shape != target.shape:
                raise ShapeError(
                    f"output {name!r} of these inputs is {found.shape}, but there is room for "
                    f"{target.shape}."
                )
            if found is not target:
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
        operands = [self.buffer(item) for item in names]
        root = root_of(self.values, roots[0]) if roots else None
        output = self.made(name, deferred.shape, deferred.scalar)
        if root is None:
            self.stages.append(pointwise_stage(epilogue, operands, output))
        else:
            self.stages.extend(root.finish(epilogue, operands, output))
