"""Launch graphs: kernels of the language and host calls, with numbers for their buffers.

A stage is expanded into invocations. A graph gives each memory a number and each run-time parameter
a name, so that two graphs of the same signature share their code and their plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from dala.base.record import changed, record
from dala.devices.device import Again, Memory, Number
from dala.plan.schedule import HostCall, Item
from dala.plan.step import Overlaps, Step
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, outputs_of
from dala.runtime.kernels.call import Outputs
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.specialization import Consts, Types, specialized_task
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel
from dala.runtime.pipelines.native import NativeKernel

_serials = itertools.count()


@record
class Invocation:
    """One kernel on its buffers."""

    kernel: Kernel
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    params: Params

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Its inputs, then its outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def is_host_call(self) -> bool:
        """Whether the kernel has no program that a plan could fuse."""
        return isinstance(self.kernel, CompositeKernel | HostCallKernel | WgslKernel)


def expand(
    kernel: Kernel, inputs: Sequence[Buffer], output: Outputs, params: Params
) -> Iterator[Invocation]:
    """Expands composite kernels, all the way down; one that overwrites its input stays whole."""
    outputs = outputs_of(output)
    overwrites = any(item.aliases(made) for item in inputs for made in outputs)
    if isinstance(kernel, CompositeKernel) and not overwrites:
        for stage in kernel.stages(inputs, output, params):
            yield from expand(stage.kernel, stage.inputs, stage.output, stage.params)
    else:
        yield Invocation(kernel, tuple(inputs), outputs, params)


class BufferNumbers:
    """Numbers memories in the order in which they are met."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._known: dict[tuple[int, str], int] = {}

    def number(self, buffer: Buffer) -> int:
        key = (id(buffer.place), buffer.dtype)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.buffers)
            self.buffers.append(buffer)
        return known

    def overlaps(self) -> Overlaps:
        """Returns, for each number, those that alias it: overlapping, or of another dtype."""
        found: dict[int, set[int]] = {}
        open_spans: list[tuple[int, int]] = []
        for start, end, number in sorted(
            (*item.place.span(), number) for number, item in enumerate(self.buffers)
        ):
            open_spans = [(stop, other) for stop, other in open_spans if stop > start]
            for _, other in open_spans if end > start else ():
                found.setdefault(number, set()).add(other)
                found.setdefault(other, set()).add(number)
            open_spans.append((end, number))
        return found


@record
class Launch:
    """An invocation specialized for its buffers, which are numbers."""

    invocation: Invocation
    consts: Consts
    types: Types
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    params: tuple[str, ...]
    """The names of its run-time parameters in the graph."""

    @property
    def buffers(self) -> tuple[int, ...]:
        """Its inputs, then its outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def signature(self) -> tuple[Any, ...]:
        """Everything its code depends on."""
        types = tuple((name, scalar.name) for name, scalar in self.types)
        consts = tuple((name, repr(value)) for name, value in self.consts)
        shapes = tuple((item.dtype, item.shape) for item in self.invocation.buffers)
        return (id(self.invocation.kernel), consts, types, shapes, self.inputs, self.outputs)

    def run_on_host(self, memories: Mapping[int, Memory]) -> None:
        """Runs the kernel by itself, on the memories of a graph."""
        found = [
            Buffer(memories[number], item.scalar, item.shape)
            for number, item in zip(self.buffers, self.invocation.buffers, strict=True)
        ]
        inputs, outputs = found[: len(self.inputs)], found[len(self.inputs) :]
        self.invocation.kernel.run(inputs, outputs, self.invocation.params)

    def step(self) -> Step:
        """Lowers the kernel; raises what is wrong with its dtypes and shapes."""
        kernel = self.invocation.kernel
        kinds = tuple((item.scalar, item.shape) for item in self.invocation.buffers)
        inputs, outputs = kinds[: len(self.inputs)], kinds[len(self.inputs) :]
        task = specialized_task(
            kernel.name, kernel.definition, inputs, outputs, self.consts, self.types
        )
        return Step(kernel.name, task.lowered, self.inputs, self.outputs, kinds, self.params)


class LaunchGraph:
    """Launches in order, the buffers behind their numbers, and the values of their parameters.

    None among the invocations is a barrier. `arguments` are scratch that stands for the buffers of
    each run.
    """

    def __init__(
        self, invocations: Sequence[Invocation | None], arguments: Sequence[Buffer] = ()
    ) -> None:
        self.invocations = invocations
        self.serial = next(_serials)
        """Unique to this graph: host calls have parameters that `values` does not hold."""
        self.numbers = BufferNumbers()
        self.values: dict[str, Number] = {}
        self.launches: list[Launch | None] = []
        for place, invocation in enumerate(invocations):
            self.launches.append(None if invocation is None else self._launch(place, invocation))
        for item in arguments:
            self.numbers.number(item)
        places = {id(item.place): place for place, item in enumerate(arguments)}
        self.arguments = {
            number: places[id(item.place)]
            for number, item in enumerate(self.buffers)
            if id(item.place) in places
        }
        """Which argument stands behind a number: several, where it is seen in other dtypes."""
        hidden = {i for i, item in enumerate(self.buffers) if item.is_scratch}
        self.visible = frozenset(range(len(self.buffers))) - hidden.difference(self.arguments)
        """The buffers that users can read."""
        launches = tuple(item and item.signature for item in self.launches)
        self.overlaps = self.numbers.overlaps()
        aliases = frozenset((i, j) for i, others in self.overlaps.items() for j in others)
        self.signature = (self.visible, launches, aliases)

    @property
    def buffers(self) -> list[Buffer]:
        """The buffer behind each number."""
        return self.numbers.buffers

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(item.invocation.kernel for item in self.launches if item is not None)

    def items(self) -> list[Item]:
        """Returns what the planner schedules: a step, a host call or a barrier for each launch."""
        found: list[Item] = []
        for place, launch in enumerate(self.launches):
            if launch is not None and launch.invocation.is_host_call:
                found.append(HostCall(place, launch.buffers))
            else:
                found.append(None if launch is None else launch.step())
        return found

    def check(self) -> None:
        """Lowers every kernel; raises what is wrong with its dtypes and shapes."""
        for launch in self.launches:
            if launch is not None and not launch.invocation.is_host_call:
                launch.step()

    def run_on_host(self, place: int, memories: Mapping[int, Memory]) -> None:
        """Runs a host call."""
        self._launch_at(place).run_on_host(memories)

    def is_native(self, place: int) -> bool:
        """Whether a host call is a launch of code for the CPU."""
        return isinstance(self._launch_at(place).invocation.kernel, NativeKernel)

    def bound_on_host(self, place: int, memories: Mapping[int, Memory]) -> Again | None:
        """Returns the launch that a host call comes to; None where it takes Python."""
        launch = self._launch_at(place)
        kernel = launch.invocation.kernel
        if not isinstance(kernel, NativeKernel):
            return None
        *inputs, output = (memories[number] for number in launch.buffers)
        return kernel.bound(inputs, output)

    def describe_host_call(self, place: int) -> str:
        """Returns what is called, and where it is computed if not on the buffers' own device."""
        invocation = self._launch_at(place).invocation
        where = invocation.kernel.elsewhere(invocation.outputs[0])
        return f"{invocation.kernel.name}, called by itself{f'; {where}' if where else ''}"

    def rebind(self, first: int, part: LaunchGraph) -> LaunchGraph:
        """Returns the graph with other launches from a place on, of the same signature."""
        new = copy(self)
        new.serial = next(_serials)
        new.values, new.launches = dict(self.values), list(self.launches)
        new.numbers = copy(self.numbers)
        new.numbers.buffers = list(self.buffers)
        for place, launch in enumerate(part.launches, first):
            old = self._launch_at(place)
            assert launch is not None
            for number, local in zip(old.buffers, launch.buffers, strict=True):
                new.buffers[number] = part.buffers[local]
            for name, local_name in zip(old.params, launch.params, strict=True):
                new.values[name] = part.values[local_name]
            new.launches[place] = changed(old, invocation=launch.invocation)
        return new

    def _launch_at(self, place: int) -> Launch:
        launch = self.launches[place]
        assert launch is not None
        return launch

    def _launch(self, place: int, invocation: Invocation) -> Launch:
        inputs = tuple(self.numbers.number(item) for item in invocation.inputs)
        outputs = tuple(self.numbers.number(item) for item in invocation.outputs)
        if invocation.is_host_call:
            return Launch(invocation, (), (), inputs, outputs, ())
        scalars = tuple(item.scalar for item in (*invocation.inputs, invocation.outputs[0]))
        consts, types, values = invocation.kernel.sort_params(scalars, invocation.params)
        constant = {name for name, _ in consts}
        declared = [
            component
            for item in invocation.kernel.params
            if item.name not in constant
            for component in item.components
        ]
        params = tuple(f"{place}.{name}" for name in declared)
        self.values.update(zip(params, values, strict=True))
        return Launch(invocation, consts, types, inputs, outputs, params)
