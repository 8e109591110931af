"""Graphs laid out in segments: as far as shapes and known values lead, then on with values read.

A graph whose sizes follow from those of its inputs is one segment. Where a value decides what is
computed, such as the axes of a reduction or the condition of a branch, a segment ends: the value is
read, and what follows is laid out for it, and remembered by it. Nodes that only the host computes
lie between segments, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import changed, record
from dala.devices.device import forget_oldest
from dala.errors import ModelError
from dala.images.frames import new_buffer
from dala.ir.types import Scalar
from dala.ml.executor.compiled import CompiledGraph
from dala.ml.executor.constant_folding import folded
from dala.ml.executor.dtypes import stored
from dala.ml.executor.graph_builder import GraphBuilder, Upload
from dala.ml.executor.operator_record import Operator
from dala.ml.executor.sizes import as_the_model_says
from dala.ml.executor.value_needed import ValueNeeded
from dala.ml.onnx.budget import Budget
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.access import read
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch

MOST_FOLLOWERS = 8
"""Values after which what follows is remembered, the latest ones."""

Operators = Mapping[str, Operator]


@record
class Plan:
    """What segments of one graph are laid out of: its nodes, its constants, what is wanted."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    wanted: Mapping[str, Scalar | None]
    upload: Upload
    operators: Operators
    budget: Budget
    """What values may take, of all segments."""


class Segment:
    """Stages up to a value that has to be read, or to the end, for buffers of given shapes."""

    def __init__(
        self, plan: Plan, known: Mapping[str, np.ndarray], inputs: Mapping[str, Buffer]
    ) -> None:
        self._plan = plan
        self._known = known
        self._followers: dict[Any, Segment] = {}
        stand_ins = {name: scratch(item.shape, item.scalar) for name, item in inputs.items()}
        self.inputs = tuple(stand_ins)
        builder = GraphBuilder(
            plan.nodes,
            plan.constants,
            known,
            stand_ins,
            tuple(plan.wanted),
            plan.upload,
            plan.budget,
        )
        self.needs: ValueNeeded | None = None
        self._rest: tuple[Node, ...] = ()
        wanted: Mapping[str, Scalar | None] = plan.wanted
        waiting = list(reversed(plan.nodes))
        while waiting:
            try:
                node = waiting[-1]
                with as_the_model_says(node):
                    parts = builder.add(node, plan.operators.get(node.op))
            except ValueNeeded as needs:
                self.needs, self._rest = needs, tuple(reversed(waiting))
                wanted = self._kept(builder, stand_ins)
                break
            waiting[-1:] = reversed(parts)
        self.made = tuple(wanted)
        self.outputs = builder.finished(wanted, [*stand_ins.values()])
        self.compiled = CompiledGraph(
            builder.stages, [*stand_ins.values()], self.outputs, builder.budget
        )

    def _kept(
        self, builder: GraphBuilder, stand_ins: Mapping[str, Buffer]
    ) -> dict[str, Scalar | None]:
        """Returns the values that this segment computes for those after it."""
        later = _needed_by(self._rest, self._plan.wanted)
        made = [name for name in builder.values if name in later and name not in stand_ins]
        self._known = {
            name: item
            for name in made
            if isinstance(item := builder.values[name], np.ndarray)
            and name not in self._plan.constants
        }
        return {name: None for name in made if not isinstance(builder.values[name], np.ndarray)}

    def run(self, inputs: Mapping[str, Buffer], given: Mapping[str, Buffer]) -> dict[str, Buffer]:
        """Returns what is wanted of the graph, in the buffers given for it or in new ones."""
        segment, buffers = self, inputs
        while True:
            is_last = segment.needs is None
            made = {
                name: (given.get(name) if is_last else None) or new_buffer(item.shape, item.dtype)
                for name, item in zip(segment.made, segment.outputs, strict=True)
            }
            segment.compiled.run((*(buffers[name] for name in segment.inputs), *made.values()))
            if is_last:
                return made
            segment, buffers = segment._following({**buffers, **made})

    def _following(self, buffers: Mapping[str, Buffer]) -> tuple[Segment, Mapping[str, Buffer]]:
        """Returns what follows for the values that were waited for, and what it is given."""
        assert self.needs is not None
        rest, node = self._rest, self.needs.on_host
        arrays = {name: read(buffers[name]) for name in self.needs.names}
        buffers = {name: item for name, item in buffers.items() if name not in arrays}
        key: Any = tuple((item.shape, item.tobytes()) for item in arrays.values())
        if node is not None:
            rest = rest[1:]
            operands = [_operand(name, arrays, self._known, self._plan) for name in node.inputs]
            fold = self._plan.operators[node.op].fold
            assert fold is not None
            self._plan.budget.check_fold(node, operands)
            results = folded(fold, node, operands)
            there = {name: from_numpy(stored(name, item)) for name, item in results.items()}
            key = tuple(item.shape for item in there.values())
            read_back = {name: from_numpy(stored(name, item)) for name, item in arrays.items()}
            buffers, arrays = {**buffers, **read_back, **there}, {}
        later = _needed_by(rest, self._plan.wanted)
        buffers = {name: item for name, item in buffers.items() if name in later}
        follower = self._followers.get(key)
        if follower is None:
            plan, known = changed(self._plan, nodes=rest), {**self._known, **arrays}
            follower = self._followers[key] = Segment(plan, known, buffers)
            forget_oldest(self._followers, MOST_FOLLOWERS)
        return follower, buffers

    def require_whole(self) -> None:
        """Refuses a graph that cannot be planned as a whole: values decide what is computed."""
        if self.needs is not None:
            names = " and ".join(repr(name) for name in self.needs.names)
            raise ModelError(
                f"{self._rest[0]}: its input {names} decides what is computed, and is not known "
                f"before the model runs: a stage of a pipeline it cannot be; call predict."
            )


def _needed_by(nodes: Sequence[Node], wanted: Mapping[str, Any]) -> set[str]:
    return {name for node in nodes for name in node.uses}.union(wanted)


def _operand(
    name: str, read_back: Mapping[str, np.ndarray], known: Mapping[str, np.ndarray], plan: Plan
) -> np.ndarray | None:
    if not name:
        return None
    for group in (read_back, known, plan.constants):
        if name in group:
            return group[name]
    raise KeyError(name)
