"""A program as one LLVM module: the functions of its chunks, and the entry that is called."""

from __future__ import annotations

from dala.base.record import record
from dala.emit.llvm.functions import CHUNK, Functions, Options, Target
from dala.emit.slots import Slot
from dala.ir.nodes import Program

ENTRY = "dala_strip"


@record
class Emitted:
    """An LLVM module as text, and the slots of its arguments."""

    text: str
    slots: tuple[Slot, ...]
    lanes: int
    options: Options


def emit(program: Program, target: Target) -> Emitted:
    """The module of a program for a target."""
    made = Functions(program, target)
    parts = [*made.texts(), _entry(made)]
    text = module_text(program.name, made.declarations, parts)
    return Emitted(text, made.slots, made.lanes, made.options)


def module_text(name: str, declarations: set[str], parts: list[str]) -> str:
    """Functions as a module."""
    head = f"; {name!r}".encode("ascii", "replace").decode().replace("\n", " ")
    return "\n".join([head, *sorted(declarations), *parts, _METADATA])


def unpacked(made: Functions, first: int = 0) -> list[str]:
    """Lines that load the arguments of a program from the slots, from a first one on."""
    lines = []
    for i, slot in enumerate(made.slots, first):
        name, type = made.argument(slot), made.argument_type(slot)
        name = f"%{made.prefix}{name[1:]}"
        lines.append(f"  %slot.{i} = getelementptr i64, ptr %slots, i64 {i}")
        if type == "i1":
            lines.append(f"  %byte.{i} = load i8, ptr %slot.{i}")
            lines.append(f"  {name} = icmp ne i8 %byte.{i}, 0")
        else:
            lines.append(f"  {name} = load {type}, ptr %slot.{i}")
    return lines


def given(made: Functions) -> list[str]:
    """The arguments of a program as they are called once unpacked."""
    return [
        f"{made.argument_type(slot)} %{made.prefix}{made.argument(slot)[1:]}" for slot in made.slots
    ]


def _entry(made: Functions) -> str:
    """The one function that is called from outside: it unpacks the slots."""
    call = f"  %status = call i32 @{made.prefix}rows({', '.join((*given(made), *CHUNK))})"
    head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0 {{"
    return "\n".join([head, "entry:", *unpacked(made), call, "  ret i32 %status", "}"])


_METADATA = """\
attributes #0 = { nounwind }
attributes #1 = { cold noinline nounwind }
!0 = !{i32 1}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}"""
