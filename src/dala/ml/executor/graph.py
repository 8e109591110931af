"""ONNX graphs that expand into stages of kernels, for buffers of any device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from dala.base.suggestions import hint
from dala.devices import Device, current_device
from dala.devices.device import forget_oldest
from dala.errors import ArgumentError, DtypeError, LimitError, ModelError, ShapeError
from dala.ir.types import Scalar, dtype_of
from dala.kernels.tensor.elementwise import cast
from dala.ml.executor.dtypes import on_device
from dala.ml.executor.obstacles import obstacles_in
from dala.ml.executor.operators import OPERATORS
from dala.ml.executor.segments import Plan, Segment
from dala.ml.onnx.budget import Budget
from dala.ml.onnx.contents import Contents, Node
from dala.ml.onnx.signature import Tensor
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.pipelines.composite import Stage

MOST_COMPILED = 8
"""Combinations of shapes and outputs that are remembered for a device, the latest ones."""


class _Placed:
    """What a graph has on one device: its constants, and what was compiled for given shapes."""

    def __init__(self) -> None:
        self.constants: dict[Any, Buffer] = {}
        self.shared: WeakValueDictionary[Any, Buffer] = WeakValueDictionary()
        """Constants that follow from shapes or values: kept by those who use them."""
        self.compiled: dict[Any, Segment] = {}

    def constant(self, key: Any, make: Callable[[], np.ndarray]) -> Buffer:
        fixed = isinstance(key, str) or isinstance(key[0], str)
        held = self.constants if fixed else self.shared
        found = held.get(key)
        if found is None:
            found = held[key] = from_numpy(np.asarray(make(), order="C"))
        return found


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

    def lays_out(self) -> bool:
        """Returns whether the nodes can be laid out for inputs of the declared, fixed sizes."""
        try:
            inputs = {
                item.name: scratch(item.fixed or (), on_device(dtype_of(item.numpy)))
                for item in self.inputs
            }
            self._segment(inputs, self._declared())
        except (DtypeError, LimitError, ModelError, ShapeError):
            return False
        return True

    def _declared(self) -> dict[str, Scalar]:
        return {item.name: on_device(dtype_of(item.numpy)) for item in self.outputs}

    def compute(self, inputs: Mapping[str, Buffer]) -> dict[str, Buffer]:
        """Returns all outputs, as large as they come out for these inputs.

        They have the declared dtypes; where a device has no integers of 64 bits, s32 and u32.
        """
        wanted = self._declared()
        made = self._segment(inputs, wanted).run(inputs, {})
        return {name: made[name] for name in wanted}

    def run(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Computes these outputs on the current device.

        Only what they need is computed. An output may be of any dtype, and is converted. No output
        shares memory with an input.
        """
        segment = self._segment_for(inputs, outputs)
        if segment.needs is None:
            segment.run(inputs, outputs)
            return
        made = segment.run(inputs, {})
        for name, target in outputs.items():
            _check_room(name, made[name], target)
            cast.run([made[name]], target)

    def stages(
        self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]
    ) -> Iterator[Stage]:
        """Returns the stages of a pipeline that does what `run` does."""
        segment = self._segment_for(inputs, outputs)
        segment.require_whole()
        ordered = [inputs[name] for name in segment.inputs]
        return segment.compiled.stages((*ordered, *(outputs[name] for name in segment.made)))

    def _segment_for(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> Segment:
        """Returns the first segment for these buffers, whose outputs have room for the results."""
        _check_names("output", outputs, self.outputs)
        segment = self._segment(inputs, {name: item.scalar for name, item in outputs.items()})
        if segment.needs is None:
            for name, made in zip(segment.made, segment.outputs, strict=True):
                _check_room(name, made, outputs[name])
        return segment

    def _segment(self, inputs: Mapping[str, Buffer], wanted: Mapping[str, Scalar]) -> Segment:
        """Returns the graph for inputs of these shapes, laid out when they are first met."""
        self._check(inputs)
        kinds = tuple((name, item.shape, item.dtype) for name, item in inputs.items())
        key = (kinds, tuple((name, scalar.name) for name, scalar in wanted.items()))
        with self._lock:
            self._placed = {known: held for known, held in self._placed.items() if not known.lost}
            placed = self._placed.setdefault(current_device(), _Placed())
            found = placed.compiled.get(key)
            if found is None:
                nodes = _needed(self._contents.nodes, wanted)
                constants = self._contents.constants
                given = sum(item.nbytes for item in constants.values())
                budget = Budget(given + sum(item.size for item in inputs.values()))
                plan = Plan(nodes, constants, wanted, placed.constant, OPERATORS, budget)
                found = placed.compiled[key] = Segment(plan, {}, inputs)
                forget_oldest(placed.compiled, MOST_COMPILED)
        return found

    def _check(self, inputs: Mapping[str, Buffer]) -> None:
        _check_names("input", inputs, self.inputs)
        for wanted in self.inputs:
            if wanted.name not in inputs:
                raise ArgumentError(f"input {wanted.name!r} of the model is not given.")
            given = inputs[wanted.name]
            if given.scalar != on_device(dtype_of(wanted.numpy)):
                raise DtypeError(
                    f"input {wanted.name!r} is {wanted.numpy}, but {given.dtype} was given."
                )
            # Names of free axes are not held to one size: exporters name every open axis "?",
            # or the axes of all inputs alike. Nodes check the sizes that have to be equal.
            if not wanted.accepts(given.shape):
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


def _check_room(name: str, made: Buffer, target: Buffer) -> None:
    if made.shape != target.shape:
        raise ShapeError(
            f"output {name!r} of these inputs is {made.shape}, but there is room for "
            f"{target.shape}."
        )


def _needed(nodes: tuple[Node, ...], wanted: Mapping[str, Any]) -> tuple[Node, ...]:
    """Returns the nodes that the wanted values depend on, in their order."""
    needed = set(wanted)
    found = []
    for node in reversed(nodes):
        if needed & set(node.outputs):
            needed |= set(node.uses)
            found.append(node)
    return tuple(reversed(found))
