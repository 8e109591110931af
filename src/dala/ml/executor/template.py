"""Stages that were made once, bound to other buffers of the same shapes at each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dala.base.record import record
from dala.ir.types import Scalar
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import beginning
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage
from dala.runtime.pipelines.launch_graph import Invocation, expand

Spot = int | Buffer
"""Memory between stages by a number, or a constant itself."""
View = tuple[Spot, tuple[int, ...]]
Side = tuple[str, str]
"""An input or an output, by its name."""


@record
class _Step:
    kernel: Kernel
    views: tuple[View, ...]
    params: Params


class Template:
    """The stages of a graph for given shapes; memory between them is shared by those that can.

    Values of the same size that are not needed at the same time lie in the same memory.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        inputs: Mapping[str, Buffer],
        outputs: Mapping[str, Buffer],
    ) -> None:
        primitives = [
            primitive
            for stage in stages
            for primitive in expand(stage.kernel, stage.inputs, stage.output, stage.params)
        ]
        self._kinds: list[tuple[int, Scalar]] = []
        fixed = {id(item.place): ("in", name) for name, item in inputs.items()}
        fixed.update({id(item.place): ("out", name) for name, item in outputs.items()})
        self._given: dict[int, Side] = {}
        spots = self._spots(primitives, fixed)
        self._steps = [
            _Step(
                item.kernel,
                tuple((spots.get(id(b.place), b), b.shape) for b in item.buffers),
                item.params,
            )
            for item in primitives
        ]

    def _spots(self, primitives: Sequence[Invocation], fixed: dict[int, Side]) -> dict[int, int]:
        """The number of the memory that each place between stages is given."""
        last: dict[int, int] = {}
        for step, primitive in enumerate(primitives):
            last.update({id(item.place): step for item in primitive.buffers if item.is_scratch})
        spots: dict[int, int] = {}
        free: dict[tuple[int, Scalar], list[int]] = {}
        for step, primitive in enumerate(primitives):
            for item in primitive.buffers:
                place = id(item.place)
                if item.is_scratch and place not in spots:
                    name = fixed.get(place)
                    again = free.get((item.size, item.scalar)) if name is None else None
                    spots[place] = again.pop() if again else len(self._kinds)
                    if spots[place] == len(self._kinds):
                        self._kinds.append((item.size // item.scalar.size_bytes, item.scalar))
                    if name is not None:
                        self._given[spots[place]] = name
            ended = {id(item.place): item for item in primitive.buffers if item.is_scratch}
            for place, item in ended.items():
                if last[place] == step and place not in fixed:
                    free.setdefault((item.size, item.scalar), []).append(spots[place])
        return spots

    def bound(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> Iterator[Stage]:
        """The stages on these buffers, with memory of their own between them."""
        given = {"in": inputs, "out": outputs}
        places = [
            given[self._given[spot][0]][self._given[spot][1]]
            if spot in self._given
            else scratch(count, scalar)
            for spot, (count, scalar) in enumerate(self._kinds)
        ]
        for step in self._steps:
            *taken, output = (
                beginning(places[spot] if isinstance(spot, int) else spot, shape)
                for spot, shape in step.views
            )
            yield Stage(step.kernel, taken, output, step.params)
