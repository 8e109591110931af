"""The arguments of the functions that compute a program: their names and types."""

from __future__ import annotations

from dala.emit.argument_slots import Slot
from dala.emit.llvm.ir_writer import llvm_type
from dala.emit.llvm.memory import output_pointer
from dala.ir.nodes import Program

RING = ("mask", "pitch")
"""What there is to know of a ring: its rows, a power of two, less 1, and the bytes of each."""


class Arguments:
    """What functions of a program take."""

    program: Program
    slots: tuple[Slot, ...]
    rings: tuple[str, ...]

    def argument(self, slot: Slot) -> str:
        """Returns the name of a slot's argument."""
        names = [item.name for item in self.program.inputs]
        source = names.index(slot.source) if slot.source in names else "out"
        params = [param.name for param in self.program.params]
        return {
            "out": output_pointer(slot.axis),
            "tee": "%twin",
            "control": "%control",
            "report": "%report",
            "input": f"%in.{source}",
            "size": f"%size.{slot.axis}",
            "input size": f"%in.{source}.size.{slot.axis}",
            "out size": f"%out.size.{slot.axis}",
            "extent": f"%extent.{source}.{slot.axis}",
            "param": f"%param.{params.index(slot.source) if slot.source in params else 0}",
        }[slot.kind]

    def argument_type(self, slot: Slot) -> str:
        if slot.scalar is not None:
            return llvm_type(slot.scalar)
        if slot.kind in ("out", "tee", "input", "report", "control"):
            return "ptr"
        return "i32" if slot.kind == "extent" else "i64"

    def arguments(self, *, declare: bool) -> list[str]:
        parts = []
        for slot in self.slots:
            attributes = ""
            if declare and slot.kind in ("out", "tee", "input"):
                attributes = " noalias" + (" readonly" if slot.kind == "input" else "")
            parts.append(f"{self.argument_type(slot)}{attributes} {self.argument(slot)}")
        return [*parts, *self.more_arguments]

    @property
    def more_arguments(self) -> list[str]:
        """The arguments beyond the slots: tables, and how rows lie in rings."""
        tables = [f"ptr %table.{number}" for number in range(len(self.program.tables))]
        return [*tables, *(f"i64 {name}.{part}" for name in self.rings for part in RING)]
