"""The CPU device: compiles programs, and runs launches as chunks on worker threads."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.record import changed, record
from dala.devices.cpu.exit_gate import GATE
from dala.devices.cpu.memory import HOST, HostMemory
from dala.devices.device import (
    Again,
    Device,
    GroupRunner,
    MemoryStatistics,
    Runner,
    check_sizes,
    forget_oldest,
)
from dala.emit.llvm.module import ENTRY, Emitted, emit
from dala.emit.llvm.target import Options, Target
from dala.ir.dump import dump
from dala.ir.fixed_point import in_fixed_point
from dala.ir.nodes import Program, While, walk
from dala.ir.types import U8
from dala.plan.chunks import Chunks
from dala.plan.fusion import FusionGroup
from dala.plan.task import InPlace, Task

if TYPE_CHECKING:
    from dala.devices.cpu.compiler import Code, Compiler
    from dala.devices.cpu.threads import Workers

MOST_EXECUTABLES = 4096
"""The number of compiled programs kept, the latest ones; tasks keep their own."""
_STRIP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, *[ctypes.c_int64] * 4)


@record
class Executable:
    """A compiled program, and what packs its argument slots.

    If it has `tables`, memory that keeps them may be named before the slots.
    """

    pack: Any
    call: Any
    code: Code
    tables: int = 0


class Cpu(Device):
    """This machine's CPU. LLVM is loaded on the first compilation, as it takes longest of all."""

    id = "cpu"
    backend = "cpu"
    capabilities = frozenset({"f64", "s64", "line_buffers"})
    is_host = True

    def __init__(self) -> None:
        self._executables: dict[tuple[str, str], Executable] = {}

    @cached_property
    def compiler(self) -> Compiler:
        with GATE:  # loading LLVM takes long as well
            from dala.devices.cpu.compiler import Compiler

            return Compiler()

    @cached_property
    def workers(self) -> Workers:
        from dala.devices.cpu.driver import DRIVER, ENTRIES
        from dala.devices.cpu.threads import Workers

        self._driver = self.compiler.compile(DRIVER, *ENTRIES)
        return Workers(**self._driver.addresses)

    @property
    def name(self) -> str:  # type: ignore[override]
        return processor_name()

    @property
    def threads(self) -> int:
        return self.workers.count

    def info(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "backend": self.backend,
            "kind": f"{self.threads} threads",
            "gpu": False,
            "hardware": True,
            "has_f64": True,
            "has_s64": True,
            "threads": self.threads,
            "vector_bits": self.compiler.vector_bits,
            "target": self.compiler.cpu,
            "memory_bytes": HOST.capacity_bytes,
        }

    # -- memory ----------------------------------------------------------------------------------

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> HostMemory:
        return HOST.allocate(size_bytes, zeroed=zeroed)

    def write(self, memory: HostMemory, data: np.ndarray) -> None:
        np.copyto(memory.as_array(data.dtype, data.shape), data)

    def read(self, memory: HostMemory) -> np.ndarray:
        return memory.as_array(U8.numpy, (memory.size_bytes,)).copy()

    def copy(self, source: HostMemory, target: HostMemory) -> None:
        check_sizes("copy", [source], [target.size_bytes])
        ctypes.memmove(target.address, source.address, target.size_bytes)

    def held(self) -> MemoryStatistics:
        return HOST.held()

    def trim(self) -> int:
        return HOST.trim()

    # -- code ------------------------------------------------------------------------------------

    def load(self, task: Task) -> Runner:
        from dala.devices.cpu.runner import CpuRunner
        from dala.devices.cpu.separated import SeparatedRunner, passes_of
        from dala.devices.cpu.tabled import TabledRunner, tables_of

        passes = passes_of(task, self.threads)
        if passes is not None:
            return SeparatedRunner(self, task, passes)
        tables = tables_of(task)
        return CpuRunner(self, task) if tables is None else TabledRunner(self, task, tables)

    def why_not_fuse(self, group: FusionGroup, materialized: set[int]) -> str:
        from dala.devices.cpu.fusion_group import why_not_fuse

        return why_not_fuse(group, materialized, self.threads)

    def load_group(self, group: FusionGroup, materialized: set[int]) -> GroupRunner:
        from dala.devices.cpu.fusion_group import CpuFusionGroup

        if len(group.steps) > 1:
            return CpuFusionGroup(self, group, materialized)
        return super().load_group(group, materialized)

    def synchronize(self) -> None:
        """Returns at once: a run returns only when it is done."""

    def target(
        self,
        *,
        wide: bool = False,
        streaming: bool = False,
        in_place: InPlace = frozenset(),
        tee: bool = False,
        watched: bool = False,
        empty: bool = False,
        covers: bool = False,
    ) -> Target:
        """Returns the code generation target: this CPU, and a launch's memory access and loops."""
        cpu, memory = self.compiler, (streaming, in_place, tee, watched, empty, covers)
        has = (cpu.has_halves, cpu.has_extremes, cpu.has_ranges, cpu.permutes)
        return Target(cpu.vector_bits, wide, *memory, *has)

    def explain(self, program: Program, target: Target, *, assembly: bool = False) -> str:
        """Returns the LLVM IR of a program, and its assembly if asked for."""
        if any(isinstance(item, While) for item in walk(program.body)):
            target = changed(target, watched=True)
        emitted: Emitted = emit(program, target)
        narrow = in_fixed_point(program)
        parts = [] if narrow.body is program.body else ["in fixed point:", dump(narrow)]
        parts += [f"LLVM IR, {emitted.lanes} positions at a time:", emitted.text]
        if assembly:
            text = self.compiler.assembly(emitted.text, emitted.options)
            parts += ["assembly:", text]
        return "\n\n".join(parts)

    def executable(self, program: Program, target: Target) -> Executable:
        """Returns the program's machine code: from memory, from disk, or compiled now."""
        emitted = emit(program, target)
        formats = "".join(slot.format for slot in emitted.slots)
        return self.compiled(emitted.text, formats, emitted.options, emitted.tables)

    def compiled(self, text: str, formats: str, options: Options, tables: int = 0) -> Executable:
        """Returns the machine code of a module with these slot formats."""
        key = (text, formats)  # s32 and u32 are one LLVM type, but are packed differently
        known = self._executables.get(key)
        if known is None:
            code = self.compiler.compile(text, ENTRY, options=options)
            pack = struct.Struct("=" + "Q" * bool(tables) + formats).pack
            if tables:
                pack = partial(pack, 0)
            known = Executable(pack, _STRIP(code.addresses[ENTRY]), code, tables)
            self._executables[key] = known
            forget_oldest(self._executables, MOST_EXECUTABLES)
        return known

    def bound(self, runner: Any, *given: Any) -> Again | None:
        return runner.bound(*given)  # type: ignore[no-any-return]

    def run(self, executable: Executable, slots: bytes, chunks: Chunks) -> int:
        """Computes every chunk; returns 0, or the status of a failure."""
        if chunks.count == 1 or (chunks.small and not self.workers.are_awake()):
            return int(executable.call(slots, 0, chunks.rows, 0, chunks.width))
        from dala.devices.cpu.threads import Job

        arguments = ctypes.create_string_buffer(slots)
        workers = self.workers
        function, slots_at = executable.code.addresses[ENTRY], ctypes.addressof(arguments)
        job = Job(function, slots_at, chunks, workers.count)
        watch = workers.watch()
        status = workers.run(job, None if watch is None else watch.address)
        workers.unwatch(watch)
        return status

    def run_watched(
        self,
        executable: Executable,
        pack: Callable[[int], bytes],
        chunks: Chunks,
        iterations: int | None,
    ) -> int:
        """Runs watched loops; `pack` makes the slots, given the address of their control block.

        `iterations` is the limit for all of them together.
        """
        from dala.devices.cpu.threads import Control, Job

        workers = self.workers
        watch = workers.watch()
        look = None if watch is None else watch.address
        if chunks.count == 1:
            control = Control(iterations, look)
            slots = pack(control.address)
            status = int(executable.call(slots, 0, chunks.rows, 0, chunks.width))
        else:
            job = Job(executable.code.addresses[ENTRY], 0, chunks, workers.count, iterations)
            controls = [Control(iterations, each, job.shared) for each in (None, look)]
            theirs, own = (
                ctypes.create_string_buffer(pack(control.address)) for control in controls
            )
            job.take(ctypes.addressof(theirs))
            status = workers.run(job, look, ctypes.addressof(own))
        workers.unwatch(watch)
        return status


CPU = Cpu()
"""The only CPU device, which owns all host memory."""
HostMemory.device = CPU


@cache
def processor_name() -> str:
    """Returns the processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
