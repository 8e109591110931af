"""A graph for inputs of given shapes, laid out as stages.

Elementwise operators, and those that can have an epilogue, such as convolutions, are deferred until
somebody needs their result: what hangs together by then is computed by one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.record import changed
from dala.errors import DtypeError, ModelError
from dala.ir.types import BF16, F16, F32, F64, Scalar
from dala.kernels.tensor.elementwise import cast
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
from dala.ml.executor.dtypes import NUMBERS, stored
from dala.ml.executor.epilogue import Shape, pointwise_stage
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import Write, conversion
from dala.ml.executor.sizes import broadcast
from dala.ml.executor.value_needed import ValueNeeded
from dala.ml.onnx.budget import Budget
from dala.ml.onnx.contents import Node
from dala.ml.onnx.functions import Kind, function_nodes, has_function
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

if TYPE_CHECKING:
    from dala.ml.executor.operator_record import Operator

Place = tuple[int, ...]
"""A node's place in the order; those that it was written as come after it, before the next."""
MOST_DEFERRED = 64
"""Expressions that follow one another in a kernel."""
AFTERWARDS: Place = ()
"""The user of what is wanted of the graph."""

Upload = Callable[[Any, Callable[[], np.ndarray]], Buffer]
"""A constant on the device, known by a key, made if it is not there yet."""


class GraphBuilder:
    """The values of a graph by name, and the stages that compute them so far."""

    def __init__(
        self,
        nodes: Sequence[Node],
        constants: Mapping[str, np.ndarray],
        known: Mapping[str, np.ndarray],
        inputs: Mapping[str, Buffer],
        wanted: Sequence[str],
        upload: Upload,
        budget: Budget,
    ) -> None:
        self.values: dict[str, Value] = {**constants, **known, **inputs}
        self.stages: list[Stage] = []
        self._planes: dict[str, Buffer] = {}
        self._channels_last: dict[str, Buffer] = {}
        self._given = constants
        self.budget = budget
        self._upload = upload
        self._users: dict[str, set[Place]] = {name: {AFTERWARDS} for name in wanted}
        self._made_by: dict[str, Place] = {}
        self._last: dict[Place, int] = {}
        self._depths: dict[str, int] = {}
        self._arrange(nodes, ())

    # -- values ----------------------------------------------------------------------------------

    def shape(self, name: str) -> Shape:
        """Returns how large a value is, whether it was computed yet or not."""
        return tuple(self.values[name].shape)

    def array(self, name: str) -> np.ndarray:
        """Returns a value that is known already; the layout waits for another."""
        found = self.values[name]
        if not isinstance(found, np.ndarray):
            raise ValueNeeded([name])
        return found

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
        known = self._channels_last.get(name)
        if known is None:
            if isinstance(found, np.ndarray):
                known = self._channels_last[name] = self._constant_last(name, found)
            else:
                planes = self.buffer(name)
                seen = reshaped(planes, four_axes(planes.shape))
                known, stages = brought(seen, TO_LAST)
                self.stages.extend(stages)
                self._channels_last[name] = known
        return known

    def _constant_last(self, name: str, array: np.ndarray) -> Buffer:
        shape, key = four_axes(array.shape), (self._key(name, array), "last")
        what = f"constant {name!r}"
        return self._upload(key, lambda: stored(what, array).reshape(shape).transpose(TO_LAST))

    def made_last(self, name: str, shape: Shape, scalar: Scalar) -> Buffer:
        """Returns the buffer, with channels last, that planes of a shape go to."""
        found = scratch(in_order(shape, TO_LAST), scalar)
        self.values[name] = reshaped(found, shape) if lies_alike(shape) else ChannelsLast(found)
        return found

    def uploaded(self, name: str, array: np.ndarray) -> Buffer:
        """Returns a constant on the device, in the type that values of its kind have there."""
        what = f"constant {name!r}"
        return self._upload(self._key(name, array), lambda: stored(what, array))

    def _key(self, name: str, array: np.ndarray) -> Any:
        """Returns what a constant is known by: its name in the file, or what it holds."""
        fixed = array is self._given.get(name)
        return name if fixed else (array.shape, array.dtype.str, array.tobytes())

    def weight(self, name: str, role: Any, make: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """Returns a constant in another arrangement, by the role that it plays."""
        array = self.array(name)
        key = (self._key(name, array), role)
        return self._upload(key, lambda: make(array.astype(np.float32, copy=False)))

    def zeros(self, count: int, role: Any, make: Callable[[np.ndarray], np.ndarray]) -> Buffer:
        """Returns what stands for a bias that was left out."""
        return self._upload(("zeros", count, role), lambda: make(np.zeros(count, np.float32)))

    def made(self, name: str, shape: Shape, scalar: Scalar) -> Buffer:
        """Returns the buffer that a value goes to."""
        found = scratch(shape, scalar)
        if name:
            self.values[name] = found
        return found

    def _is_last(self, shape: Shape, names: Sequence[str]) -> bool:
        """Whether one of the values that make up a shape has its channels last."""
        found = [self.settled(name) for name in names]
        return len(shape) == 4 and any(
            isinstance(item, ChannelsLast) and item.shape == shape for item in found
        )

    # -- nodes -----------------------------------------------------------------------------------

    def _arrange(self, nodes: Sequence[Node], within: Place, first: int = 0) -> None:
        self._last[within] = first + len(nodes) - 1
        for i, node in enumerate(nodes, first):
            self._made_by.update(dict.fromkeys(node.outputs, (*within, i)))
            for name in node.uses:
                self._users.setdefault(name, set()).add((*within, i))

    def add(self, node: Node, operator: Operator | None) -> Sequence[Node]:
        """Lay out one node, whose results are no larger than values may be.

        Returns the nodes that are to be laid out in its place.
        """
        parts = self._lay_out(node, operator)
        self.budget.check_launches(node, len(self.stages))
        for name in filter(None, node.outputs):
            found = self.values.get(name)
            if found is not None:
                self.budget.check_value(node, found.shape, scalar_of(found).size_bytes)
        return parts

    def _lay_out(self, node: Node, operator: Operator | None) -> Sequence[Node]:
        """Fold a node, put it off, or add its stages."""
        if operator is None:
            return self._written_out(node)
        given = [self.values[name] if name else None for name in node.inputs]
        arrays = [item for item in given if isinstance(item, np.ndarray) or item is None]
        if operator.fold is not None and len(arrays) == len(given):
            self.budget.check_fold(node, arrays)
            self.values.update(folded(operator.fold, node, arrays))
            return ()
        unknown = [i for i in operator.constants if node.has(i) and self._is_unknown(node, i)]
        if unknown:
            raise ValueNeeded([node.inputs[i] for i in unknown])
        if operator.parts is not None:
            return self._in_place_of(node, tuple(operator.parts(NodeContext(self, node))))
        if operator.passes_on:
            self.values[node.outputs[0]] = self.values[node.inputs[0]]
        elif operator.write is not None:
            for part in operator.rewrite(NodeContext(self, node)):
                self._defer(part, operator)
        elif operator.on_host:
            missing = [name for i, name in enumerate(node.inputs) if self._is_unknown(node, i)]
            raise ValueNeeded(missing, node)
        elif operator.expand is None:
            raise ModelError(f"{node} cannot be computed by kernels.")
        else:
            self._expand(node, operator)
        return ()

    def _written_out(self, node: Node) -> Sequence[Node]:
        """Returns the nodes that ONNX itself defines one by, for inputs of these types."""
        if not has_function(node):
            raise ModelError(f"{node} cannot be computed by kernels.")
        kinds = [
            Kind(NUMBERS[scalar_of(self.values[name]).name], self.shape(name)) if name else None
            for name in node.inputs
        ]
        return self._in_place_of(node, tuple(function_nodes(node, kinds)))

    def _in_place_of(self, node: Node, parts: tuple[Node, ...]) -> Sequence[Node]:
        place = self._made_by[next(filter(None, node.outputs))]
        for name in node.uses:
            self._users[name].discard(place)
        # The last of many takes no deeper place: else a loop's would be as deep as it has trips.
        *within, number = place
        is_last = self._last.get(tuple(within)) == number and len(place) > 1
        self._arrange(parts, tuple(within) if is_last else place, number if is_last else 0)
        return parts

    def _is_unknown(self, node: Node, index: int) -> bool:
        return node.has(index) and not isinstance(self.values[node.inputs[index]], np.ndarray)

    def _expand(self, node: Node, operator: Operator) -> None:
        """Add the stages of a node; what they compute in f32 only is converted before and after."""
        assert operator.expand is not None
        narrow: Scalar | None = None
        if not operator.takes_integers:
            floats = {scalar_of(self.values[name]) for name in node.inputs[:1] if name}
            wrong = [item for item in floats if item.kind != "f"]
            doubles = F64 in floats and not operator.takes_doubles
            if wrong or doubles:
                listed = ", ".join(item.name for item in floats)
                raise DtypeError(f"{node} of {listed} is not computed by kernels: give it f32.")
            narrow = next((item for item in floats if item in (F16, BF16)), None)
        if narrow is None:
            self.stages.extend(list(operator.expand(NodeContext(self, node))))
            return
        inputs = [self._converted(node, name, narrow, F32) for name in node.inputs]
        outputs = [self.split_off(node, f"{i} in f32") for i in range(len(node.outputs))]
        wide = changed(node, inputs=tuple(inputs), outputs=tuple(outputs))
        self.stages.extend(list(operator.expand(NodeContext(self, wide))))
        for name, made in zip(node.outputs, outputs, strict=True):
            found = self.values.get(made)
            if found is not None and name:
                self.values[name] = found
                if scalar_of(found) == F32:
                    self.values[name] = self._conversion(node, made, name, narrow)

    def _converted(self, node: Node, name: str, of: Scalar, to: Scalar) -> str:
        """Returns the name of a value that is converted, if it is of the one type."""
        if not name or scalar_of(self.values[name]) != of:
            return name
        made = self.split_off(node, f"{name} as {to.name}")
        self.values[made] = self._conversion(node, name, made, to)
        return made

    def _conversion(self, node: Node, name: str, made: str, to: Scalar) -> Value:
        found = self.values[name]
        if isinstance(found, np.ndarray):
            return found.astype(to.numpy)
        part = changed(node, inputs=(name,), outputs=(made,))
        return Deferred(part, self.shape(name), to, lambda _, given: conversion(to, given[0]))

    def split_off(self, node: Node, part: Any) -> str:
        """Returns a name for a part of what a node makes, which only the node itself needs."""
        made, place = f"{node.outputs[0]} {part}", self._made_by[node.outputs[0]]
        self._made_by[made], self._users[made] = place, {place}
        return made

    def _defer(self, node: Node, operator: Operator) -> None:
        if all(isinstance(self.values[name], np.ndarray) for name in node.inputs if name):
            # What no fold computes is computed on the device, of a constant that is brought there.
            place = operator.like
            held = f"{node.outputs[0]} of"
            self.values[held] = self.buffer(node.inputs[place])
            inputs = (*node.inputs[:place], held, *node.inputs[place + 1 :])
            node = changed(node, inputs=inputs)
        depth = 1 + max((self._depths.get(name, 0) for name in node.inputs), default=0)
        if depth > MOST_DEFERRED:
            for name in filter(None, node.inputs):
                if isinstance(self.values[name], Deferred):
                    self.buffer(name)
            depth = 1
        self._depths[node.outputs[0]] = depth
        given = [self.values[name] for name in node.inputs if name]
        alike = [scalar_of(self.values[name]) for name in node.inputs[operator.like :] if name]
        first = alike[0]
        if (first.kind != "f" and not operator.takes_integers) or (
            len({*alike}) > 1 and not operator.mixed
        ):
            raise DtypeError(
                f"{node} of {', '.join(item.name for item in alike)} is not computed by kernels"
                f"{'' if operator.takes_integers else ': give it f32'}."
            )
        write = (None if first.kind == "f" else operator.write_integers) or operator.write
        shape = broadcast(node, [item.shape for item in given])
        result = operator.gives(node) or first
        if operator.mixed and len({*alike}) > 1:
            write = _converting(write, result)
        self.values[node.outputs[0]] = Deferred(node, shape, result, write)

    def finished(
        self, wanted: Mapping[str, Scalar | None], inputs: Sequence[Buffer]
    ) -> list[Buffer]:
        """Returns a buffer of its own for each wanted value, in these types or those they have."""
        taken = {id(item.place) for item in inputs}
        found = []
        for name, scalar in wanted.items():
            if name not in self.values:
                raise ModelError(f"output {name!r} is not computed by kernels.")
            item = self.buffer(name)
            alone = item.is_scratch and id(item.place) not in taken
            if not alone or scalar not in (None, item.scalar):
                target = scratch(item.shape, scalar or item.scalar)
                self.stages.append(Stage(cast, [item], target))
                item = target
            taken.add(id(item.place))
            found.append(item)
        return found

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


def _converting(write: Write | None, to: Scalar) -> Write:
    """Returns an expression whose inputs meet in another type than its result has."""
    assert write is not None
    return lambda node, given: conversion(to, write(node, given))
