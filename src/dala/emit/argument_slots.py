"""The argument layout of an emitted kernel: one 8-byte slot per argument, in a fixed order."""

from __future__ import annotations

from typing import Literal

from dala.base.record import value
from dala.ir.nodes import OUTPUT, Extent, Load, Program, used, walk
from dala.ir.types import Scalar

SLOT_BYTES = 8


@value
class Slot:
    """One argument: the buffer, size or parameter that the slot holds."""

    kind: Literal[
        "out",
        "tee",
        "report",
        "control",
        "input",
        "size",
        "input size",
        "out size",
        "extent",
        "param",
    ]
    source: str = ""
    axis: int = 0
    """The axis of a size, or which of the outputs."""
    scalar: Scalar | None = None

    @property
    def format(self) -> str:
        """Returns its format character for `struct`."""
        if self.scalar is not None:
            padding = SLOT_BYTES - self.scalar.size_bytes
            return self.scalar.code + (f"{padding}x" if padding else "")
        return "Q" if self.kind in ("out", "tee", "report", "control", "input") else "q"


def layout_of(program: Program) -> tuple[Slot, ...]:
    """Returns the slots of a program: pointers, sizes, extents, parameters."""
    statements = walk(program.body)
    indexed = {
        item.source for item in statements if isinstance(item, Load) and item.index is not None
    }
    slots = [Slot("out", axis=number) for number in range(len(program.outputs))]
    slots += [Slot("input", item.name) for item in program.inputs]
    slots += [Slot("size", axis=axis) for axis in range(program.rank)]
    slots += [
        Slot("input size", item.name, axis)
        for item in program.inputs
        if item.name in indexed
        for axis in range(item.rank)
    ]
    if program.output.scattered:
        slots += [Slot("out size", axis=axis) for axis in range(program.output.rank)]
    extents = [item for item in used(program.body) if isinstance(item, Extent)]
    unique = dict.fromkeys((item.source, item.axis) for item in extents)
    slots += [Slot("extent", source, axis) for source, axis in unique]
    slots += [Slot("param", param.name, scalar=param.type) for param in program.params]
    return tuple(slots)


def sizes_of(
    slots: tuple[Slot, ...], domain: tuple[int, ...], shapes: dict[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """Returns the values of the size and extent slots, which the shapes determine."""
    values = []
    for slot in slots:
        shape = shapes.get(slot.source or OUTPUT, ())
        if slot.kind == "size":
            values.append(domain[slot.axis])
        elif slot.kind == "input size":
            values.append(1 if 0 in shape else shape[slot.axis])
        elif slot.kind in ("out size", "extent"):
            values.append(shape[slot.axis])
    return tuple(values)
