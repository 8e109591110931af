"""What the stages of a pipeline come down to: programs of the language, and calls of all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dala.devices.device import Number
from dala.ir.inline import renamed
from dala.ir.record import record
from dala.plan.fuse import Overlaps, Step
from dala.runtime.arguments import Params
from dala.runtime.buffer import Buffer
from dala.runtime.kernel import Kernel
from dala.runtime.launch import Consts, Types, task_for
from dala.runtime.recipe import Opaque, Recipe, beginning
from dala.runtime.wgsl_kernel import WgslKernel


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
    if isinstance(kernel, Recipe) and not any(_share(item, output) for item in inputs):
        for stage in kernel.stages(inputs, output, params):
            yield from expanded(stage.kernel, stage.inputs, stage.output, stage.params)
    else:
        yield Primitive(kernel, tuple(inputs), output, params)


def _share(a: Buffer, b: Buffer) -> bool:
    if a.is_scratch or b.is_scratch:
        return a.place is b.place
    return a.memory.overlaps(b.memory)


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
        for i, a in enumerate(self.buffers):
            for j in range(i):
                if _share(a, self.buffers[j]):
                    found.setdefault(i, set()).add(j)
                    found.setdefault(j, set()).add(i)
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
    def signature(self) -> tuple[Any, ...]:
        """What its code depends on."""
        types = tuple((name, scalar.name) for name, scalar in self.types)
        consts = tuple((name, repr(value)) for name, value in self.consts)
        shapes = tuple((item.dtype, item.shape) for item in self.primitive.buffers)
        return (id(self.primitive.kernel), consts, types, shapes, self.inputs, self.output)

    def run(self, buffers: Sequence[Buffer]) -> None:
        """Run the kernel by itself, on the buffers of an arrangement, seen as it sees them."""
        seen = [
            beginning(buffers[number], item.shape)
            for number, item in zip(
                (*self.inputs, self.output), self.primitive.buffers, strict=True
            )
        ]
        self.primitive.kernel.run(seen[:-1], seen[-1], self.primitive.params)

    def step(self) -> Step:
        """The program, lowered, with names that are its own in the pipeline."""
        kernel = self.primitive.kernel
        *inputs, output = [(item.scalar, item.shape) for item in self.primitive.buffers]
        definition = kernel.definition
        task = task_for(kernel.name, definition, tuple(inputs), output, self.consts, self.types)
        names = {
            item.name: _view_name(number, shape, item.channels)
            for item, number, (_, shape) in zip(task.whole.inputs, self.inputs, inputs, strict=True)
        }
        params = dict(zip([item.name for item in task.whole.params], self.params, strict=True))
        program = renamed(task.whole, names, params)
        numbers = dict(zip(names.values(), self.inputs, strict=True))
        kinds = dict(zip(names.values(), inputs, strict=True))
        bound = [item.name for item in program.inputs]
        return Step(
            kernel.name,
            program,
            tuple(numbers[name] for name in bound),
            self.output,
            (*(kinds[name] for name in bound), output),
        )


def _view_name(number: int, shape: tuple[int, ...], channels: int | None) -> str:
    """What an input is called: the same for the same view of the same memory."""
    return f"b{number} {shape} {channels}"


class Arrangement:
    """Primitives with numbers for their buffers and values for their parameters.

    Two of the same signature have the same code, and differ in buffers and values only.
    """

    def __init__(self, primitives: Sequence[Primitive | None]) -> None:
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

    def call(self, place: int) -> None:
        """Run by itself what can only be called."""
        setting = self.settings[place]
        assert setting is not None
        setting.run(self.buffers)

    def called(self, place: int) -> str:
        """What is called there, and where it is computed if not on the buffers' own device."""
        setting = self.settings[place]
        assert setting is not None
        primitive = setting.primitive
        where = primitive.kernel.elsewhere(primitive.output)
        return f"{primitive.kernel.name}, called by itself{f'; {where}' if where else ''}"

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
