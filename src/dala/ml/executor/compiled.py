"""Compiled graphs: a graph for inputs of given shapes, run on any buffers of these shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from dala.devices import current_device
from dala.ml.onnx.budget import Budget
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import beginning
from dala.runtime.pipelines.composite import Stage
from dala.runtime.pipelines.executable import Executable
from dala.runtime.pipelines.launch_graph import expand


class CompiledGraph:
    """The invocations of a graph for given shapes: run by a plan of their own, or in a pipeline.

    `inputs` and `outputs` are scratch in the order in which buffers are given in their place.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        budget: Budget,
    ) -> None:
        self._budget = budget
        self._device = current_device()
        self._arguments = (*inputs, *outputs)
        self._invocations = [
            invocation
            for stage in stages
            for invocation in expand(stage.kernel, stage.inputs, stage.output, stage.params)
        ]

    @cached_property
    def _executable(self) -> Executable:
        made = Executable(self._device, self._invocations, self._arguments)
        self._budget.check_total(sum(made.plan.memory.sizes))
        return made

    def run(self, buffers: Sequence[Buffer]) -> None:
        """Computes the outputs among the buffers, which share no memory with the inputs."""
        self._executable.run(buffers)

    def stages(self, buffers: Sequence[Buffer]) -> Iterator[Stage]:
        """Yields the invocations as stages on these buffers, with scratch of their own."""
        places: dict[int, Buffer] = {
            id(argument.place): buffer
            for argument, buffer in zip(self._arguments, buffers, strict=True)
        }
        for invocation in self._invocations:
            *inputs, output = (_bound(places, item) for item in invocation.buffers)
            yield Stage(invocation.kernel, inputs, output, invocation.params)


def _bound(places: dict[int, Buffer], item: Buffer) -> Buffer:
    """Returns the buffer that stands for one of a compiled graph; a constant is itself."""
    if not item.is_scratch:
        return item
    place = id(item.place)
    if place not in places:
        places[place] = scratch(item.size // item.scalar.size_bytes, item.scalar)
    return beginning(places[place], item.shape, item.scalar)
