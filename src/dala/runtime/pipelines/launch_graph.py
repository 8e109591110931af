"""What the stages of a pipeline come down to: programs of the language, and calls of all else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from dala.base.record import changed, record
from dala.devices.device import Memory, Number
from dala.plan.step import Overlaps, Step
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.specialization import Consts, Types, task_for
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import Opaque, Recipe

_serials = itertools.count()


@record
class Primitive:
    """One kernel on its buffers: of the language, or one that can only be called."""

    kernel: Kernel
    inputs: tuple[Buffer, ...]
    output: Buffer
    params: Params

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Its inputs, then its output."""
        return (*self.inputs, self.output)

    @property
    def is_call(self) -> bool:
        return isinstance(self.kernel, Recipe | Opaque | WgslKernel)


def expanded(
    kernel: Kernel, inputs: Sequence[Buffer], output: Buffer, params: Params
) -> Iterator[Primitive]:
    """A stage as primitives; a recipe that writes over its input stays whole."""
    if isinstance(kernel, Recipe) and not any(item.shares_with(output) for item in inputs):
        for stage in kernel.stages(inputs, output, params):
            yield from expanded(stage.kernel, stage.inputs, stage.output, stage.params)
    else:
        yield Primitive(kernel, tuple(inputs), output, params)


class Numbering:
    """A number for each memory, in the order in which they are met."""

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
        """For each number the others that share its memory: overlapping, or of another dtype."""
        found: dict[int, set[int]] = {}
        begun: list[tuple[int, int]] = []
        """Where memories end that are not over yet, and their numbers."""
        for start, end, number in sorted(
            (*item.place.span(), number) for number, item in enumerate(self.buffers)
        ):
            begun = [(stop, other) for stop, other in begun if stop > start]
            for _, other in begun if end > start else ():
                found.setdefault(number, set()).add(other)
                found.setdefault(other, set()).add(number)
            begun.append((end, number))
        return found


@record
class Setting:
    """A primitive with its parameters sorted out, and its buffers as numbers."""

    primitive: Primitive
    consts: Consts
    types: Types
    inputs: tuple[int, ...]
    output: int
    params: tuple[str, ...]
    """What its run-time parameters are called in the pipeline."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those of its inputs, then that of its output."""
        return (*self.inputs, self.output)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What its code depends on."""
        types = tuple((name, scalar.name) for name, scalar in self.types)
        consts = tuple((name, repr(value)) for name, value in self.consts)
        shapes = tuple((item.dtype, item.shape) for item in self.primitive.buffers)
        return (id(self.primitive.kernel), consts, types, shapes, self.inputs, self.output)

    def run(self, memories: Mapping[int, Memory]) -> None:
        """Run the kernel by itself, on the memories of an arrangement, seen as it sees them."""
        seen = [
            Buffer(memories[number], item.scalar, item.shape)
            for number, item in zip(self.numbers, self.primitive.buffers, strict=True)
        ]
        self.primitive.kernel.run(seen[:-1], seen[-1], self.primitive.params)

    def step(self) -> Step:
        """The program, lowered."""
        kernel = self.primitive.kernel
        *inputs, output = [(item.scalar, item.shape) for item in self.primitive.buffers]
        definition = kernel.definition
        task = task_for(kernel.name, definition, tuple(inputs), output, self.consts, self.types)
        kinds = (*inputs, output)
        return Step(kernel.name, task.whole, self.inputs, self.output, kinds, self.params)


class Arrangement:
    """Primitives with numbers for their buffers and values for their parameters.

    Two of the same signature have the same code, and differ in buffers and values only.
    """

    def __init__(self, primitives: Sequence[Primitive | None]) -> None:
        self.primitives = primitives
        self.serial = next(_serials)
        """A number that no other arrangement has: what is called has parameters of its own."""
        self.numbering = Numbering()
        self.values: dict[str, Number] = {}
        self.settings: list[Setting | None] = []
        for place, primitive in enumerate(primitives):
            self.settings.append(None if primitive is None else self._setting(place, primitive))
        kinds = tuple(item.is_scratch for item in self.buffers)
        steps = tuple(item and item.signature for item in self.settings)
        self.overlaps = self.numbering.overlaps()
        shared = frozenset((i, j) for i, others in self.overlaps.items() for j in others)
        self.signature = (kinds, steps, shared)

    @property
    def buffers(self) -> list[Buffer]:
        return self.numbering.buffers

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(item.primitive.kernel for item in self.settings if item is not None)

    def check(self) -> None:
        """Lower every program; refuses dtypes and shapes that do not suit its kernel."""
        for setting in self.settings:
            if setting is not None and not setting.primitive.is_call:
                setting.step()

    def call(self, place: int, memories: Mapping[int, Memory]) -> None:
        """Run by itself what can only be called."""
        setting = self.settings[place]
        assert setting is not None
        setting.run(memories)

    def called(self, place: int) -> str:
        """What is called there, and where it is computed if not on the buffers' own device."""
        setting = self.settings[place]
        assert setting is not None
        primitive = setting.primitive
        where = primitive.kernel.elsewhere(primitive.output)
        return f"{primitive.kernel.name}, called by itself{f'; {where}' if where else ''}"

    def rebound(self, first: int, part: Arrangement) -> Arrangement:
        """The same with another part from a place on, of the signature of the one it replaces."""
        new = copy(self)
        new.serial = next(_serials)
        new.values, new.settings = dict(self.values), list(self.settings)
        new.numbering = copy(self.numbering)
        new.numbering.buffers = list(self.buffers)
        for place, setting in enumerate(part.settings, first):
            old = self.settings[place]
            assert setting is not None
            assert old is not None
            for number, local in zip(old.numbers, setting.numbers, strict=True):
                new.buffers[number] = part.buffers[local]
            for name, local_name in zip(old.params, setting.params, strict=True):
                new.values[name] = part.values[local_name]
            new.settings[place] = changed(old, primitive=setting.primitive)
        return new

    def _setting(self, place: int, primitive: Primitive) -> Setting:
        inputs = tuple(self.numbering.number(item) for item in primitive.inputs)
        output = self.numbering.number(primitive.output)
        if primitive.is_call:
            return Setting(primitive, (), (), inputs, output, ())
        scalars = tuple(item.scalar for item in primitive.buffers)
        consts, types, values = primitive.kernel.arranged(scalars, primitive.params)
        constant = {name for name, _ in consts}
        declared = [item.name for item in primitive.kernel.params if item.name not in constant]
        params = tuple(f"{place}.{name}" for name in declared)
        self.values.update(zip(params, values, strict=True))
        return Setting(primitive, consts, types, inputs, output, params)
