"""The CPU as a device: programs become machine code, launches become strips on its threads."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.devices.device import Device, GroupRunner, Held, check_sizes, forget_oldest
from dala.devices.exit_gate import GATE
from dala.devices.memory import HOST, HostMemory
from dala.emit.llvm import ENTRY, Emitted, emit
from dala.emit.llvm_functions import Target
from dala.ir.nodes import Program, While, walk
from dala.ir.record import changed, record
from dala.ir.types import U8
from dala.plan.fuse import Group
from dala.plan.strips import Strips
from dala.plan.task import Task

if TYPE_CHECKING:
    from dala.devices.compiler import Code, Compiler
    from dala.devices.cpu_runner import CpuRunner
    from dala.devices.threads import Workers

MOST_EXECUTABLES = 4096
"""Compiled programs that are remembered, the latest ones; tasks keep their own."""
_STRIP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, *[ctypes.c_int64] * 4)


@record
class Executable:
    """A program as machine code, and how its arguments are packed."""

    pack: Any
    call: Any
    code: Code


class Cpu(Device):
    """This machine's CPU. LLVM is loaded when it first compiles: nothing else takes as long."""

    id = "cpu"
    backend = "cpu"
    goes_by_rows = True

    def __init__(self) -> None:
        self._executables: dict[str, Executable] = {}

    @cached_property
    def compiler(self) -> Compiler:
        with GATE:  # loading LLVM takes long, too
            from dala.devices.compiler import Compiler

            return Compiler()

    @cached_property
    def workers(self) -> Workers:
        from dala.devices.threads import DRIVER, Workers

        self._driver = self.compiler.compile(DRIVER, "dala_drive", "dala_wait", "dala_look")
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

    def held(self) -> Held:
        return HOST.held()

    def trim(self) -> int:
        return HOST.trim()

    # -- code ------------------------------------------------------------------------------------

    def load(self, task: Task) -> CpuRunner:
        from dala.devices.cpu_runner import CpuRunner

        return CpuRunner(self, task)

    def load_group(self, group: Group, kept: set[int]) -> GroupRunner:
        from dala.devices.cpu_group import CpuGroup, suits

        if len(group.steps) > 1 and suits(group, kept):
            return CpuGroup(self, group, kept)
        return super().load_group(group, kept)

    def synchronize(self) -> None:
        """Nothing is ever under way: a run returns when it is done."""

    def target(
        self,
        *,
        wide: bool = False,
        streaming: bool = False,
        in_place: frozenset[str] = frozenset(),
        twin: bool = False,
        watched: bool = False,
    ) -> Target:
        """This CPU, and how a launch goes about memory and loops."""
        return Target(self.compiler.vector_bits, wide, streaming, in_place, twin, watched)

    def explain(self, program: Program, target: Target, *, assembly: bool = False) -> str:
        """The LLVM IR of a program, and its assembly if asked for."""
        if any(isinstance(item, While) for item in walk(program.body)):
            target = changed(target, watched=True)
        emitted: Emitted = emit(program, target)
        parts = [f"LLVM IR, {emitted.lanes} positions at a time:", emitted.text]
        if assembly:
            text = self.compiler.assembly(emitted.text, vectorise=emitted.vectorise)
            parts += ["assembly:", text]
        return "\n\n".join(parts)

    def executable(self, program: Program, target: Target) -> Executable:
        """The program's machine code: from memory, from disk, or compiled now."""
        emitted = emit(program, target)
        formats = "".join(slot.format for slot in emitted.slots)
        return self.compiled(emitted.text, formats, vectorise=emitted.vectorise)

    def compiled(self, text: str, formats: str, *, vectorise: bool) -> Executable:
        """The machine code of a module whose slots are packed so."""
        known = self._executables.get(text)
        if known is None:
            code = self.compiler.compile(text, ENTRY, vectorise=vectorise)
            packer = struct.Struct("=" + formats)
            known = Executable(packer.pack, _STRIP(code.addresses[ENTRY]), code)
            self._executables[text] = known
            forget_oldest(self._executables, MOST_EXECUTABLES)
        return known

    def run(self, executable: Executable, slots: bytes, strips: Strips) -> int:
        """Compute every strip; 0, or a status that says what went wrong."""
        if strips.count == 1:
            return int(executable.call(slots, 0, strips.rows, 0, strips.width))
        from dala.devices.threads import Job

        arguments = ctypes.create_string_buffer(slots)
        job = Job(executable.code.addresses[ENTRY], ctypes.addressof(arguments), strips)
        workers = self.workers
        watch = workers.watch()
        status = workers.run(job, None if watch is None else watch.address)
        workers.unwatch(watch)
        return status

    def run_watched(
        self,
        executable: Executable,
        pack: Callable[[int], bytes],
        strips: Strips,
        turns: int | None,
    ) -> int:
        """The same for loops that are watched; `pack` makes slots of the address of their control.

        `turns` are those that they may take in all.
        """
        from dala.devices.threads import Control, Job

        workers = self.workers
        watch = workers.watch()
        look = None if watch is None else watch.address
        if strips.count == 1:
            control = Control(turns, look)
            slots = pack(control.address)
            status = int(executable.call(slots, 0, strips.rows, 0, strips.width))
        else:
            job = Job(executable.code.addresses[ENTRY], 0, strips, turns)
            controls = [Control(turns, each, job.shared) for each in (None, look)]
            theirs, own = (
                ctypes.create_string_buffer(pack(control.address)) for control in controls
            )
            job.take(ctypes.addressof(theirs))
            status = workers.run(job, look, ctypes.addressof(own))
        workers.unwatch(watch)
        return status


CPU = Cpu()
"""The one CPU device: memory that is the host's belongs to it."""
HostMemory.device = CPU


@cache
def processor_name() -> str:
    """What the processor calls itself."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
