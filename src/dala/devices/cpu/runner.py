"""Runs a task on the CPU: splits it into chunks, compiles it for its memory access, runs it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from dala.devices.cpu.caches import outgrows_caches
from dala.devices.cpu.launches import bound_launch
from dala.devices.cpu.memory import HostMemory
from dala.devices.cpu.report_block import ReportBlock
from dala.devices.device import Again, Number, check_sizes
from dala.emit.argument_slots import layout_of, sizes_of
from dala.emit.llvm.lookups import COSTS
from dala.emit.llvm.target import Target
from dala.emit.partition import effort_per_position, loops_over_rows
from dala.emit.running_folds import with_running_folds
from dala.errors import KernelTimeoutError
from dala.ir.fixed_point import in_fixed_point
from dala.ir.level_tables import with_tables
from dala.ir.nodes import AtomicUpdate, walk
from dala.plan.chunks import MEMORY_COST, Chunks, cut
from dala.plan.task import InPlace, Task
from dala.plan.watchdog import TIMEOUT, TOO_FAR, TOTAL_TIMEOUT, total_iterations

if TYPE_CHECKING:
    from dala.devices.cpu.device import Cpu, Executable

STREAMED_CACHES = 1.7
"""Outputs bypass the caches where a launch goes through more than so many times what they hold.

Up to there, part of what the launch before read or wrote is still in them.
"""
WIDE_ROW = 256
"""Rows from this length on are computed two vectors at a time."""
_EMPTY_INPUT = (ctypes.c_int64 * 8)()
"""The memory of an empty input, which reads as zeros."""


class CpuRunner:
    """One task; `run` takes memories of exactly its dtypes and shapes."""

    def __init__(self, device: Cpu, task: Task) -> None:
        self.device = device
        self.task = task = _carrying(task)
        self.chunks = self._chunks()
        self.sizes = sizes_of(layout_of(task.program), task.domain, task.shapes)
        self.sizes_bytes = task.sizes_bytes
        self.total_iterations = total_iterations(task.program) if task.may_not_terminate else None
        self.pixel_bytes = pixel_bytes(task)
        bypasses = self.pixel_bytes > 0 and not task.scattered
        self.streaming = bypasses and outgrows_caches(task, STREAMED_CACHES)
        self._executables: dict[tuple[InPlace, bool, bool], Executable] = {}

    def _chunks(self) -> Chunks:
        task = self.task
        *outer, width = task.domain
        updates = any(isinstance(item, AtomicUpdate) for item in walk(task.program.body))
        by_rows = updates and not task.owns_elements
        in_order = task.reports or (by_rows and not task.rows_own_elements)
        # In a fixed order: the same bits and lines every time, and no atomics needed.
        threads = 1 if in_order else self.device.threads
        # Functions of a level that are looked up take little, whatever they compute.
        tabled = with_tables(in_fixed_point(task.program), COSTS[self.device.compiler.permutes])
        program = tabled if tabled.tables else task.program
        effort = effort_per_position(program, task.shapes, width)
        read = max((math.prod(shape) for _, shape in task.inputs), default=0)
        positions = max(1, math.prod(task.domain))
        whole = by_rows or loops_over_rows(task.program)
        effort += MEMORY_COST * (read // positions)
        most = 0 if in_order or task.watched else effort + task.max_iterations
        rows = math.prod(outer)
        return cut(rows, width, effort, threads, whole_rows=whole, most_effort=most)

    def run(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> None:
        """Computes the outputs; on failure they are unchanged."""
        task = self.task
        check_sizes(task.name, (*inputs, *outputs), self.sizes_bytes)
        in_place = self.in_place(inputs, outputs)
        over_inputs = in_place is None or (task.scattered and bool(in_place))
        if task.empty or over_inputs or task.may_not_terminate or task.reports:
            self._run_aside(inputs, outputs, params)
            return
        if task.starts_from_zeros:
            ctypes.memset(outputs[0].address, 0, outputs[0].size_bytes)
        self._run_into(inputs, outputs, params, in_place or frozenset())

    def bound(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> Again | None:
        """Returns the launch that a run comes to; None where there is more to it."""
        task = self.task
        is_more = task.may_not_terminate or task.reports or task.starts_from_zeros or task.watched
        in_place = self.in_place(inputs, outputs)
        if task.empty or is_more or in_place is None or (task.scattered and in_place):
            return None
        executable, given = self._launch(inputs, outputs, params, in_place)
        pointers = range(len(inputs) + len(outputs))
        return bound_launch(self.device, executable, given, self.chunks, pointers)

    def _launch(
        self,
        inputs: Sequence[HostMemory],
        outputs: Sequence[HostMemory],
        params: Sequence[Number],
        in_place: InPlace,
    ) -> tuple[Executable, tuple[Number, ...]]:
        """Returns the code for these memories, and its arguments."""
        written = [memory.address for memory in outputs]
        streaming = self.streaming and streams_to(written, self.pixel_bytes)
        addresses = [
            memory.address if memory.size_bytes else ctypes.addressof(_EMPTY_INPUT)
            for memory in inputs
        ]
        given = (*written, *addresses, *self.sizes, *params)
        return self.executable(in_place, streaming=streaming), given

    def _run_into(
        self,
        inputs: Sequence[HostMemory],
        outputs: Sequence[HostMemory],
        params: Sequence[Number],
        in_place: InPlace = frozenset(),
    ) -> None:
        executable, given = self._launch(inputs, outputs, params, in_place)
        block = ReportBlock(self.task) if self.task.reports else None
        if block is not None:
            given = (*given, block.address)
        if not self.task.watched:
            self.device.run(executable, executable.pack(*given), self.chunks)
        else:
            self._run_watched(executable, given)
        if block is not None:
            block.tell()

    def _run_watched(self, executable: Executable, given: tuple[Number, ...]) -> None:
        pack = partial(executable.pack, *given)
        status = self.device.run_watched(executable, pack, self.chunks, self.total_iterations)
        if status:
            said = TIMEOUT if status & TOO_FAR else TOTAL_TIMEOUT
            raise KernelTimeoutError(f"{self.task.name}: {said}")

    def _run_aside(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory], params: Sequence[Number]
    ) -> None:
        """Computes into temporary memory, then copies: for aliases, and for what may fail."""
        task = self.task
        if task.empty and not task.starts_from_zeros:
            return
        zeroed = task.starts_from_zeros
        aside = [self.device.allocate(memory.size_bytes, zeroed=zeroed) for memory in outputs]
        if task.accumulates:
            self.device.copy(outputs[0], aside[0])
        if not task.empty:
            self._run_into(inputs, aside, params)
        for made, memory in zip(aside, outputs, strict=True):
            self.device.copy(made, memory)

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the LLVM IR, and the assembly if asked for."""
        target = self.target(streaming=self.streaming)
        return self.device.explain(self.task.program, target, assembly=assembly)

    def target(
        self,
        in_place: InPlace = frozenset(),
        *,
        streaming: bool = False,
        tee: bool = False,
    ) -> Target:
        """Returns the target that this task is compiled for."""
        wide = self.task.domain[-1] >= WIDE_ROW
        return self.device.target(
            wide=wide,
            streaming=streaming,
            in_place=in_place,
            tee=tee,
            watched=self.task.watched,
            empty=has_empty_input(self.task),
            covers=self.task.stores_once,
        )

    def executable(
        self, in_place: InPlace, *, streaming: bool = False, tee: bool = False
    ) -> Executable:
        """Returns the code of this task for such memory, compiled when first asked for."""
        key = (in_place, streaming, tee)
        known = self._executables.get(key)
        if known is None:
            target = self.target(in_place, streaming=streaming, tee=tee)
            known = self.device.executable(self.task.program, target)
            self._executables[key] = known
        return known

    def in_place(
        self, inputs: Sequence[HostMemory], outputs: Sequence[HostMemory]
    ) -> InPlace | None:
        """Returns the inputs computed in place, or None if memories alias in another way."""
        shared: list[tuple[str, int]] = []
        for number, output in enumerate(outputs):
            start, end = output.address, output.address + output.size_bytes
            for i, memory in enumerate(inputs):
                if memory.address >= end or start >= memory.address + memory.size_bytes:
                    continue
                name = self.task.program.inputs[i].name
                if self.task.access[name].kind != "unused" and memory.address != start:
                    return None
                if not self.task.fits_in_place(i, number):
                    return None
                shared.append((name, number))
        return frozenset(shared)


def _carrying(task: Task) -> Task:
    """Returns the task whose rows carry running folds on, which takes no loops."""
    program = with_running_folds(task.program)
    if program is task.program:
        return task
    return Task(task.name, program, task.inputs, task.outputs)


def has_empty_input(task: Task) -> bool:
    """Whether one of the inputs has no elements."""
    return any(0 in shape for _, shape in task.inputs)


def pixel_bytes(task: Task) -> int:
    """Returns the bytes of an output's element, or 0 if streaming stores cannot write them.

    They write full cache lines, so elements must divide them; several outputs reach the end of
    their lines together only if their elements are of one size.
    """
    sizes = {
        scalar.size_bytes * (item.channels or 1)
        for item, (scalar, _) in zip(task.program.outputs, task.outputs, strict=True)
    }
    size = sizes.pop()
    return 0 if sizes or 64 % size else size


def streams_to(addresses: Sequence[int], size_bytes: int) -> bool:
    """Whether streaming stores can write elements of a size at these addresses."""
    first = addresses[0] % 64
    return first % size_bytes == 0 and all(address % 64 == first for address in addresses[1:])
