"""Runs a fusion group on the CPU: one function computes all steps, a few rows at a time."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dala.devices.cpu.caches import outgrows_caches
from dala.devices.cpu.launches import bound_launch
from dala.devices.cpu.line_buffers import cut_group, pays, plan_line_buffers
from dala.devices.cpu.memory import HostMemory
from dala.devices.cpu.runner import WIDE_ROW, has_empty_input, pixel_bytes
from dala.devices.device import Again, Number, check_sizes
from dala.emit.argument_slots import layout_of, sizes_of
from dala.emit.llvm.fusion_group import EmittedGroup, Member, emit_group
from dala.emit.partition import effort_per_position
from dala.errors import InternalError
from dala.plan.chunks import Chunks, cut
from dala.plan.fusion import FusionGroup, Halo
from dala.plan.step import Step
from dala.plan.task import Task, flattened

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu, Executable

FLAT_BYTES = 256 << 10
"""The stack space for what lies between the steps of a flat group."""
FLAT_STEP = 2048
"""The elements that each step of a flat group computes at a time."""
_EMPTY_INPUT = (ctypes.c_int64 * 8)()


def why_not_fuse(group: FusionGroup, materialized: set[int], threads: int) -> str:
    """Returns why a group is not computed faster than its steps one by one, or an empty string."""
    name = group.steps[-1].name
    too_large = f"the line buffers of {name} would not stay in the cache"
    if group.flat:
        fits = FLAT_STEP * sum(_buffered_bytes(group, materialized)) <= FLAT_BYTES
        return "" if fits else too_large
    buffers = plan_line_buffers(group, materialized)
    if buffers is None:
        return too_large
    if pays(group, buffers, materialized, threads):
        return ""
    return f"{name} would be computed twice around chunks, at a loss"


def _buffered_bytes(group: FusionGroup, materialized: set[int]) -> list[int]:
    """Returns the bytes per position of each output that is not materialized."""
    return [
        size
        for step in group.steps
        for number, size in zip(step.outputs, _element_bytes(step), strict=True)
        if number not in materialized
    ]


class CpuFusionGroup:
    """A fusion group of several steps, compiled as one function."""

    def __init__(self, device: Cpu, group: FusionGroup, materialized: set[int]) -> None:
        self.device = device
        self.group = group
        self.materialized = materialized
        self.steps = group.steps
        self.tasks = [step.task() for step in self.steps]
        self.sizes = [
            self._sizes(step, task) for step, task in zip(self.steps, self.tasks, strict=True)
        ]
        self.columns: tuple[Halo, ...] = ((0, 0),) * len(self.steps)
        self.buffers = self._buffers()
        self.name = ", ".join(step.name for step in self.steps)
        self.used, self.sizes_bytes = self._used()
        self.chunks = self._chunks()
        self.emitted = self._emitted()
        self.executable = self._compiled()

    def needs(self) -> set[int]:
        """Returns the memories that must exist: all but those that stay in line buffers."""
        used = {number for step in self.steps for number in step.buffers}
        made = {number for step in self.steps for number in step.outputs}
        return used - (made - self.materialized)

    def moved_bytes(self) -> int:
        """Returns the bytes of what is not in line buffers, which is read or written once."""
        return sum(dict(zip(self.used, self.sizes_bytes, strict=True)).values())

    def how(self) -> str:
        """Returns nothing: every group is computed a few rows at a time."""
        return ""

    def _used(self) -> tuple[list[int], list[int]]:
        """Returns the memories that steps access, and the size that each step expects."""
        needed = self.needs()
        found = [
            (number, size_bytes)
            for step, task in zip(self.steps, self.tasks, strict=True)
            for number, size_bytes in zip(step.buffers, task.sizes_bytes, strict=True)
            if number in needed
        ]
        return [number for number, _ in found], [size_bytes for _, size_bytes in found]

    def _domain(self, task: Task) -> tuple[int, ...]:
        shape = task.shapes["out"]
        return (math.prod(shape),) if self.group.flat else shape

    def _sizes(self, step: Step, task: Task) -> tuple[int, ...]:
        program = flattened(step.program) if self.group.flat else step.program
        return sizes_of(layout_of(program), self._domain(task), task.shapes)

    def _buffers(self) -> list[int]:
        """Returns the arguments that say how line buffers lie, and how much is done at a time."""
        if self.group.flat:
            return [*_buffered_bytes(self.group, self.materialized), FLAT_STEP]
        plan = plan_line_buffers(self.group, self.materialized)
        if plan is None:
            raise InternalError(f"The line buffers of {self.group.steps} do not fit.")
        self.columns = plan.columns
        rings = zip(plan.rows, plan.pitches, strict=True)
        return [
            *(part for rows, pitch in rings for part in (rows - 1, pitch)),
            plan.step,
            plan.width,
        ]

    def _chunks(self) -> Chunks:
        if not self.group.flat:
            return cut_group(self.group, self.device.threads)
        (width,) = self._domain(self.tasks[-1])
        effort = sum(
            effort_per_position(step.program, task.shapes, width)
            for step, task in zip(self.steps, self.tasks, strict=True)
        )
        return cut(1, width, effort, self.device.threads)

    def _emitted(self) -> EmittedGroup:
        places = {
            number: (i, output)
            for i, step in enumerate(self.steps)
            for output, number in enumerate(step.outputs)
        }
        members = []
        for i, step in enumerate(self.steps):
            line_buffers = {
                name: places[number]
                for name, number in step.numbers().items()
                if number not in self.materialized and places.get(number, (i, 0))[0] < i
            }
            kept = tuple(number in self.materialized for number in step.outputs)
            target = self.device.target(
                wide=self._domain(self.tasks[i])[-1] >= WIDE_ROW,
                streaming=self._streams(step, self.tasks[i]),
                empty=has_empty_input(self.tasks[i]),
            )
            program = flattened(step.program) if self.group.flat else step.program
            halo = (self.group.halo[i], self.columns[i])
            members.append(Member(program, target, *halo, kept, line_buffers))
        return emit_group(tuple(members), flat=self.group.flat)

    def _compiled(self) -> Executable:
        emitted = self.emitted
        formats = "".join(slot.format for slots in emitted.slots for slot in slots)
        formats += "q" * len(self.buffers)
        return self.device.compiled(emitted.text, formats, emitted.options)

    def _streams(self, step: Step, task: Task) -> bool:
        """Whether a step's output bypasses the caches: it is large, and no other step reads it."""
        if len(step.outputs) > 1:  # their lines end together at some addresses only
            return False
        (number,) = step.outputs
        if number not in self.materialized or not outgrows_caches(task):
            return False
        return pixel_bytes(task) > 0 and not any(number in other.inputs for other in self.steps)

    def run(self, memories: Mapping[int, HostMemory], params: Mapping[str, Number]) -> None:
        """Computes every step; memories that stay in line buffers are ignored."""
        self.bound(memories, params)()

    def bound(self, memories: Mapping[int, HostMemory], params: Mapping[str, Number]) -> Again:
        """Returns the launch that a run comes to."""
        check_sizes(self.name, [memories[number] for number in self.used], self.sizes_bytes)
        packed: list[Number] = []
        pointers: list[int] = []
        for step, sizes in zip(self.steps, self.sizes, strict=True):
            for number in (*step.outputs, *step.inputs):
                pointers.append(len(packed))
                packed.append(self._address(memories.get(number)))
            packed += sizes
            packed += [params[name] for name in step.params]
        given = (*packed, *self.buffers)
        return bound_launch(self.device, self.executable, given, self.chunks, pointers)

    def _address(self, memory: HostMemory | None) -> int:
        if memory is None or not memory.size_bytes:
            return ctypes.addressof(_EMPTY_INPUT)
        return memory.address


def _element_bytes(step: Step) -> list[int]:
    """Returns the bytes per position of each output of a step."""
    outputs = zip(step.program.outputs, step.output_kinds, strict=True)
    return [scalar.size_bytes * (item.channels or 1) for item, (scalar, _) in outputs]
