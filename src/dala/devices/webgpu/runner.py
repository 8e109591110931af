"""Runs a task on a WebGPU device: its shader, its bind groups, its dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dala.base.record import record
from dala.devices.device import Capability, Number, check_sizes
from dala.devices.webgpu.bindings import WORD_BYTES, Bindings, Compiled, compiled, empty_input
from dala.devices.webgpu.reports import run_reporting
from dala.emit.argument_slots import layout_of, sizes_of
from dala.emit.wgsl.body import Loops
from dala.emit.wgsl.grid import SERIAL, grid_for
from dala.emit.wgsl.shader import Shader, emit
from dala.errors import DtypeError, KernelTimeoutError, LimitError
from dala.ir.nodes import Program, Value, used, walk
from dala.ir.types import F32, F64, S32, S64, U32, U64, Scalar
from dala.plan.task import InPlace, Task
from dala.plan.watchdog import ALL_TOO_FAR, TIMEOUT, TOTAL_TIMEOUT, max_iterations

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu
    from dala.devices.webgpu.memory import GpuMemory

RETRIES = 64
"""How often an atomic addition is retried while others add to the same word."""
_NOT_EVERYWHERE: tuple[tuple[Scalar, Capability, Scalar], ...] = (
    (F64, "f64", F32),
    (S64, "s64", S32),
    (U64, "s64", U32),
)
"""Types that adapters may lack, and their replacements."""


@record
class Code:
    """A shader and its pipeline."""

    shader: Shader
    compiled: Compiled


class WebGpuRunner(Bindings):
    """One task; `run` takes memories of exactly its dtypes and shapes."""

    def __init__(self, device: WebGpu, task: Task) -> None:
        super().__init__(device)
        self.task = task
        check_dtypes(device, task.name, task.program)
        self.grid = grid_for(task, device.products)
        self.groups = (0, 0, 0) if task.empty else self.grid.dispatch(task.domain)
        self.sizes = sizes_of(layout_of(task.program), task.domain, task.shapes)
        self.sizes_bytes = task.sizes_bytes
        self.loops: Loops = self._loops()
        self._compiled: dict[InPlace, Code] = {}

    def run(
        self, inputs: Sequence[GpuMemory], outputs: Sequence[GpuMemory], params: Sequence[Number]
    ) -> None:
        """Computes the outputs; a kernel that fails leaves them unchanged."""
        task, device = self.task, self.device
        device.check()
        check_sizes(task.name, (*inputs, *outputs), self.sizes_bytes)
        if task.empty:
            for output in outputs if task.starts_from_zeros else ():
                if output.size_bytes:
                    device.copy(device.allocate(output.size_bytes), output)
            return
        if task.reports:
            launch = partial(self._run_aside, inputs, outputs, params)
            self._copy(run_reporting(device, task, launch), outputs)
            return
        in_place = self._in_place(inputs, outputs)
        directly = not task.scattered or not (task.starts_from_zeros or in_place)
        if in_place is not None and self.loops == "free" and directly:
            self._dispatch(inputs, outputs, params, in_place)
            return
        self._copy(self._run_aside(inputs, outputs, params), outputs)

    def _copy(self, made: Sequence[GpuMemory], outputs: Sequence[GpuMemory]) -> None:
        for memory, output in zip(made, outputs, strict=True):
            self.device.copy(memory, output)

    def _run_aside(
        self,
        inputs: Sequence[GpuMemory],
        outputs: Sequence[GpuMemory],
        params: Sequence[Number],
        said: GpuMemory | None = None,
    ) -> list[GpuMemory]:
        """Returns memory with the results, which are not written to the outputs yet."""
        task, device = self.task, self.device
        zeroed = task.starts_from_zeros
        aside = [device.allocate(item.size_bytes, zeroed=zeroed) for item in outputs]
        if task.accumulates:
            device.copy(outputs[0], aside[0])
        self._dispatch(inputs, aside, params, frozenset(), said)
        return aside

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the WGSL; what a driver makes of it is not accessible."""
        size = f"{self.grid.columns}×{self.grid.rows}" if self.grid.rows > 1 else self.grid.columns
        groups = " × ".join(map(str, self.groups))
        head = f"WGSL, {groups} workgroups of {size} invocations ({self.grid.kind}):"
        return f"{head}\n\n{self.shader().text}"

    def _in_place(
        self, inputs: Sequence[GpuMemory], outputs: Sequence[GpuMemory]
    ) -> InPlace | None:
        """Returns the inputs computed in place, or None if memories alias in another way."""
        shared = []
        for number, output in enumerate(outputs):
            for i, memory in enumerate(inputs):
                if memory is output and memory.size_bytes:
                    if not self.task.fits_in_place(i, number) or self.grid.kind == "rows":
                        return None
                    shared.append((self.task.program.inputs[i].name, number))
        return frozenset(shared)

    # -- code ------------------------------------------------------------------------------------

    def shader(self, in_place: InPlace = frozenset()) -> Shader:
        """Emits the shader; inputs named in `in_place` share an output's memory."""
        return emit(self.task.program, self.grid, in_place, self.loops)

    def _code(self, in_place: InPlace) -> Code:
        known = self._compiled.get(in_place)
        if known is None:
            shader = self.shader(in_place)
            bound = shader.outputs + len(shader.inputs) + shader.reports + shader.says
            most = self.device.limits["max-storage-buffers-per-shader-stage"]
            if bound > most:
                raise LimitError(
                    f"{self.task.name}: {bound} buffers are bound at a time ({shader.outputs} "
                    f"written, {len(shader.inputs)} read), but {most} is the most for "
                    f"{self.device.name}: split the kernel."
                )
            more = shader.reports + shader.says
            made = compiled(self.device, shader.text, shader.outputs, len(shader.inputs), more)
            known = self._compiled[in_place] = Code(shader, made)
        return known

    # -- running ---------------------------------------------------------------------------------

    def _dispatch(
        self,
        inputs: Sequence[GpuMemory],
        targets: Sequence[GpuMemory],
        params: Sequence[Number],
        in_place: InPlace,
        said: GpuMemory | None = None,
    ) -> None:
        device = self.device
        with device.lock, device.guard():
            code = self._code(in_place)
            bound = list(targets)
            for i in code.shader.inputs:
                bound.append(inputs[i] if inputs[i].size_bytes else empty_input(device))
            status = device.allocate(2 * WORD_BYTES) if code.shader.reports else None
            if status is not None:
                bound.append(status)
            if said is not None:
                bound.append(said)
            firsts = self.grid.first_positions(self.task.domain)
            if len(firsts) > 1:
                device.not_recorded()  # each dispatch has its own arguments
            for first in firsts:
                self._set_arguments(code.shader, params, first)
                self.dispatch(code.compiled, bound, self.groups)
        if status is not None:
            device.synchronize()  # responds to Ctrl-C; another submission could block on this one
            found = int(device.read(status).view(np.uint32)[0])
            if found:
                raise self._timeout(found)

    def _loops(self) -> Loops:
        most = loop_limit(self.device)
        if most is None:
            return "counted" if self.task.may_not_terminate else "free"
        iterations = max_iterations(self.task.program, self.task.shapes)
        if self.grid.kind == "serial":
            iterations = SERIAL * (1 + iterations)
        elif self.grid.kind == "rows":
            iterations = -(-self.task.domain[-1] // self.grid.columns) * (1 + iterations)
        else:
            iterations = self.grid.step * iterations
        if self.task.scattered and iterations:
            iterations *= RETRIES
        return "free" if iterations <= most else "checked"

    def _timeout(self, status: int) -> KernelTimeoutError:
        if self.loops == "counted":
            said = TOTAL_TIMEOUT if status & ALL_TOO_FAR else TIMEOUT
            return KernelTimeoutError(f"{self.task.name}: {said}")
        return KernelTimeoutError(
            f"{self.task.name}: {self.device.name} stops the loops of a position after "
            f"{loop_limit(self.device):,} iterations in all. Do less at a time, or use the CPU "
            f"device (buffer.to('cpu')). The output is as it was before."
        )

    def _set_arguments(self, shader: Shader, params: Sequence[Number], first: int) -> None:
        """Writes sizes and parameters for the shader; they are kept from run to run."""
        if self.packed and not params and self.grid.kind != "serial":
            return
        packed = shader.arguments.pack(self.task.domain, self.sizes, params, first)
        if packed != self.packed:
            self.write_arguments(packed)


def loop_limit(device: WebGpu) -> int | None:
    """Returns the iterations after which a device silently ends an invocation's loops, if any.

    Mesa's software GPU does, together with those of neighboring invocations.
    """
    return 65_000 if "llvmpipe" in device.name else None


def check_dtypes(device: WebGpu, kernel: str, program: Program) -> None:
    """Raises for types that the adapter lacks: they would have to be narrowed silently."""
    types: set[Scalar] = {item.type for item in program.inputs}
    types |= {item.type for item in program.outputs}
    types |= {item.type for item in program.params}
    types |= {item.type for item in used(program.body)}
    types |= {item.type for item in walk(program.body) if isinstance(item, Value)}
    for scalar, capability, instead in _NOT_EVERYWHERE:
        if scalar in types and not device.supports(capability):
            raise DtypeError(
                f"{kernel} computes with {scalar}, which {device.id} ({device.name}) does not "
                f"have: use {instead}, or the CPU device (buffer.to('cpu'))."
            )
