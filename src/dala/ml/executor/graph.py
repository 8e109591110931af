"""ONNX graphs that expand into stages of kernels, for buffers of any device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dala.base.suggestions import hint
from dala.devices import Device, current_device
from dala.devices.device import forget_oldest
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ml.executor.compiled import CompiledGraph
from dala.ml.executor.deferred import scalar_of
from dala.ml.executor.graph_builder import GraphBuilder
from dala.ml.executor.obstacles import obstacles_in
from dala.ml.executor.operators import OPERATORS
from dala.ml.executor.pointwise import STORED
from dala.ml.onnx.contents import Contents, Node
from dala.ml.onnx.signature import Tensor
from dala.runtime.buffers.buffer import Buffer, buffer_zeros, from_numpy, scratch
from dala.runtime.pipelines.composite import Stage

MOST_COMPILED = 8
"""Combinations of shapes and outputs that are remembered for a device, the latest ones."""


class _Placed:
    """What a graph has on one device: its constants, and what was compiled for given shapes."""

    def __init__(self) -> None:
        self.constants: dict[Any, Buffer] = {}
        self.compiled: dict[Any, CompiledGraph] = {}

    def constant(self, key: Any, make: Callable[[], np.ndarray]) -> Buffer:
        if key not in self.constants:
            self.constants[key] = from_numpy(np.asarray(make(), order="C"))
        return self.constants[key]


class Graph:
    """A model whose operators are computed by kernels, on whichever device its buffers are.

    Constants are brought to a device once, and given back with the graph.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._placed: dict[Device, _Placed] = {}
        self._lock = threading.Lock()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self._contents.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self._contents.outputs

    def missing(self) -> list[str]:
        """The nodes that kernels cannot compute, each with the reason; empty if all can be."""
        return obstacles_in(self._contents)

    def compute(self, inputs: Mapping[str, Buffer]) -> dict[str, Buffer]:
        """Returns all outputs, as large as they come out for these inputs."""
        stand_ins = {name: scratch(item.shape, item.scalar) for name, item in inputs.items()}
        constants, nodes = self._contents.constants, self._contents.nodes
        builder = GraphBuilder(nodes, constants, stand_ins, {}, lambda _, make: from_numpy(make()))
        for node in nodes:
            builder.add(node, OPERATORS.get(node.op))
        found = {item.name: builder.values[item.name] for item in self.outputs}
        made = {
            name: buffer_zeros(tuple(item.shape), scalar_of(item)) for name, item in found.items()
        }
        self.run(inputs, made)
        return made

    def run(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Computes these outputs on the current device.

        Only what they need is computed. Integers of 64 bits are s32 on a device; an output may be
        of any dtype, and is converted. No output shares memory with an input.
        """
        self._compiled(inputs, outputs).run((*inputs.values(), *outputs.values()))

    def stages(
        self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]
    ) -> Iterator[Stage]:
        """Returns the stages of a pipeline that does what `run` does."""
        return self._compiled(inputs, outputs).stages((*inputs.values(), *outputs.values()))

    def _compiled(
        self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]
    ) -> CompiledGraph:
        """Returns the graph for buffers of these shapes, compiled when they are first met."""
        self._check(inputs, outputs)
        key = (_kinds(inputs), _kinds(outputs))
        with self._lock:
            self._placed = {known: held for known, held in self._placed.items() if not known.lost}
            placed = self._placed.setdefault(current_device(), _Placed())
            found = placed.compiled.get(key)
            if found is None:
                found = placed.compiled[key] = self._compile(placed, inputs, outputs)
                forget_oldest(placed.compiled, MOST_COMPILED)
        return found

    def _compile(
        self, placed: _Placed, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]
    ) -> CompiledGraph:
        stand_ins, targets = (
            {name: scratch(item.shape, item.scalar) for name, item in group.items()}
            for group in (inputs, outputs)
        )
        nodes = _needed(self._contents.nodes, outputs)
        constants = self._contents.constants
        builder = GraphBuilder(nodes, constants, stand_ins, targets, placed.constant)
        for node in nodes:
            builder.add(node, OPERATORS.get(node.op))
        builder.finish()
        given, made = [*stand_ins.values()], [*targets.values()]
        return CompiledGraph(builder.stages, given, made, builder.budget)

    def _check(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        _check_names("input", inputs, self.inputs)
        _check_names("output", outputs, self.outputs)
        free: dict[str, int] = {}
        for wanted in self.inputs:
            if wanted.name not in inputs:
                raise ArgumentError(f"input {wanted.name!r} of the model is not given.")
            given = inputs[wanted.name]
            scalar = STORED.get(wanted.numpy)
            if given.scalar != scalar:
                raise DtypeError(
                    f"input {wanted.name!r} is {wanted.numpy}, but {given.dtype} was given."
                )
            fits = wanted.accepts(given.shape)
            for axis, size in zip(wanted.shape or (), given.shape, strict=False):
                known = axis if isinstance(axis, int) else free.setdefault(axis or "", size)
                fits = fits and (known == size or axis is None)
            if not fits:
                raise ShapeError(
                    f"input {wanted.name!r} is {wanted.shape}, but {given.shape} was given."
                )


def _check_names(side: str, given: Mapping[str, Buffer], declared: tuple[Tensor, ...]) -> None:
    known = [item.name for item in declared]
    for name in given:
        if name not in known:
            raise ArgumentError(
                f"the model has no {side} {name!r}; it has {', '.join(known)}.{hint(name, known)}"
            )


def _kinds(buffers: Mapping[str, Buffer]) -> tuple[Any, ...]:
    return tuple((name, item.shape, item.dtype) for name, item in buffers.items())


def _needed(nodes: tuple[Node, ...], wanted: Mapping[str, Any]) -> tuple[Node, ...]:
    """Returns the nodes that the wanted values depend on, in their order."""
    needed = set(wanted)
    found = []
    for node in reversed(nodes):
        if needed & set(node.outputs):
            needed |= set(node.inputs)
            found.append(node)
    return tuple(reversed(found))
