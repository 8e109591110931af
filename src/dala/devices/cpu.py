"""The CPU as a device: programs become machine code, launches become strips on its threads."""

from __future__ import annotations

import ctypes
import platform
import struct
from functools import cache
from pathlib import Path
from typing import Any

from dala.devices.compiler import Code, Compiler
from dala.devices.threads import DRIVER, Job, Workers
from dala.emit.layout import Slot
from dala.emit.llvm import ENTRY, Target, emit
from dala.ir.nodes import Program
from dala.ir.record import record
from dala.plan.strips import Strips

_STRIP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, *[ctypes.c_int64] * 4)


@record
class Executable:
    """A program as machine code, and how its arguments are packed."""

    slots: tuple[Slot, ...]
    pack: Any
    call: Any
    code: Code


class Cpu:
    """This machine's CPU."""

    backend = "cpu"

    def __init__(self) -> None:
        self.compiler = Compiler()
        self._driver = self.compiler.compile(DRIVER, "dala_drive", "dala_wait")
        self.workers = Workers(**self._driver.addresses)
        self._executables: dict[str, Executable] = {}

    @property
    def name(self) -> str:
        return processor_name()

    @property
    def threads(self) -> int:
        return self.workers.count

    def target(
        self,
        *,
        wide: bool = False,
        streaming: bool = False,
        in_place: frozenset[str] = frozenset(),
    ) -> Target:
        """This CPU, and how a launch goes about memory."""
        return Target(self.compiler.vector_bits, wide, streaming, in_place)

    def executable(self, program: Program, target: Target) -> Executable:
        """The program's machine code: from memory, from disk, or compiled now."""
        emitted = emit(program, target)
        known = self._executables.get(emitted.text)
        if known is None:
            code = self.compiler.compile(emitted.text, ENTRY, vectorise=emitted.vectorise)
            packer = struct.Struct("=" + "".join(slot.format for slot in emitted.slots))
            known = Executable(emitted.slots, packer.pack, _STRIP(code.addresses[ENTRY]), code)
            self._executables[emitted.text] = known
        return known

    def run(self, executable: Executable, slots: bytes, strips: Strips) -> int:
        """Compute every strip; 0, or a status that says what went wrong."""
        if strips.count == 1:
            return int(executable.call(slots, 0, strips.rows, 0, strips.width))
        arguments = ctypes.create_string_buffer(slots)
        job = Job(
            executable.code.addresses[ENTRY],
            ctypes.addressof(arguments),
            strips.count,
            strips.size,
            strips.rows,
            strips.width,
            strips.by_rows,
        )
        return self.workers.run(job)


@cache
def processor_name() -> str:
    """What the processor calls itself."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
