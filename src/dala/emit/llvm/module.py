"""Emits a program as one LLVM module: its chunk functions and its entry function."""

from __future__ import annotations

from dala.base.record import record
from dala.emit.argument_slots import Slot
from dala.emit.llvm.boxes import functions_of
from dala.emit.llvm.functions import CHUNK, Functions
from dala.emit.llvm.target import Options, Target
from dala.ir.level_tables import LEVELS
from dala.ir.nodes import Load, Program, walk

ENTRY = "dala_strip"


STATE_BYTES = 64
"""What precedes tables that are kept: a word that says whether they are computed."""


@record
class Emitted:
    """An LLVM module as text, and its argument slots.

    If it has `tables`, the address of memory that keeps them, or 0, comes before the slots.
    """

    text: str
    slots: tuple[Slot, ...]
    lanes: int
    options: Options
    tables: int


def emit(program: Program, target: Target) -> Emitted:
    """Emits the module of a program for a target."""
    made = functions_of(program, target)
    parts = [*made.texts(), _entry(made)]
    text = module_text(program.name, made.declarations, parts)
    return Emitted(text, made.slots, made.lanes, made.options, _tables_kept(made))


def module_text(name: str, declarations: set[str], parts: list[str]) -> str:
    """Returns the text of a module with these functions."""
    head = f"; {name!r}".encode("ascii", "replace").decode().replace("\n", " ")
    return "\n".join([head, *sorted(declarations), *parts, _METADATA])


def unpacked(made: Functions, first: int = 0) -> list[str]:
    """Returns the lines that load a program's arguments from the slots, starting at `first`."""
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
    """Returns the arguments of a program by their names after unpacking, and its tables."""
    tables = [f"ptr %{made.prefix}table.{number}" for number in range(len(made.tables))]
    return [*(_named(made, slot) for slot in made.slots), *tables]


def _named(made: Functions, slot: Slot) -> str:
    return f"{made.argument_type(slot)} %{made.prefix}{made.argument(slot)[1:]}"


def filled(made: Functions) -> list[str]:
    """Returns the lines that compute a program's tables."""
    names = [f"%{made.prefix}table.{number}" for number in range(len(made.tables))]
    places = [f"  {name} = alloca [{LEVELS} x i8], align 64" for name in names]
    return [*places, *_fills(made)]


def _fills(made: Functions) -> list[str]:
    lines = []
    for number, table in enumerate(made.tables):
        name = f"%{made.prefix}table.{number}"
        arguments = [
            {"out": f"ptr {name}", "size": f"i64 {LEVELS}"}.get(slot.kind) or _named(made, slot)
            for slot in table.slots
        ]
        whole = f"i64 0, i64 1, i64 0, i64 {LEVELS}"
        call = f"call i32 @{table.prefix}rows({', '.join(arguments)}, {whole})"
        lines.append(f"  {name}.status = {call}")
    return lines


def _tables_kept(made: Functions) -> int:
    """Returns how many tables may be kept: none if they depend on what inputs hold."""
    statements = (item for table in made.program.tables for item in walk(table.body))
    return 0 if any(isinstance(item, Load) for item in statements) else len(made.tables)


def _kept(made: Functions) -> list[str]:
    """Returns the lines that compute tables, unless they are kept from an earlier launch.

    Threads that compute them at the same time write the same bytes.
    """
    size = STATE_BYTES + LEVELS * len(made.tables)
    places = [
        f"  %{made.prefix}table.{number} = getelementptr i8, ptr %tables, i64 {first}"
        for number, first in enumerate(range(STATE_BYTES, size, LEVELS))
    ]
    return [
        "  %kept = load ptr, ptr %slots",
        f"  %own = alloca [{size} x i8], align 64",
        "  %is.own = icmp eq ptr %kept, null",
        "  %tables = select i1 %is.own, ptr %own, ptr %kept",
        *places,
        "  br i1 %is.own, label %fill, label %look",
        "look:",
        "  %state = load atomic i64, ptr %kept acquire, align 8",
        "  %is.filled = icmp ne i64 %state, 0",
        "  br i1 %is.filled, label %filled, label %fill",
        "fill:",
        *_fills(made),
        "  store atomic i64 1, ptr %tables release, align 8",
        "  br label %filled",
        "filled:",
    ]


def _entry(made: Functions) -> str:
    """Returns the exported function, which unpacks the slots."""
    call = f"  %status = call i32 @{made.prefix}rows({', '.join((*given(made), *CHUNK))})"
    head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0 {{"
    kept = _tables_kept(made) > 0
    lines = [*unpacked(made, first=kept), *(_kept(made) if kept else filled(made)), call]
    return "\n".join([head, "entry:", *lines, "  ret i32 %status", "}"])


_METADATA = """\
attributes #0 = { nounwind }
attributes #1 = { cold noinline nounwind }
attributes #2 = { alwaysinline nounwind }
!0 = !{i32 1}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}"""
