"""Emits a fusion group as one LLVM module, so that data is still in cache for its consumer.

A chunk of a group is computed a few rows at a time: each program is called for the rows that its
consumers need next. Intermediates that are not materialized live in line buffers on the stack,
which hold only the rows that are still to be read and slide along.
"""

from __future__ import annotations

from dala.base.record import record
from dala.emit.argument_slots import Slot
from dala.emit.llvm.boxes import functions_of
from dala.emit.llvm.functions import CHUNK, Functions
from dala.emit.llvm.module import ENTRY, filled, given, module_text, unpacked
from dala.emit.llvm.target import Options, Target
from dala.ir.nodes import Program


@record
class Member:
    """A program of a fusion group.

    `above` and `below` are its halo: the extra rows its consumers need; `kept` says of each output
    whether it is materialized; `line_buffers` maps the inputs that are read from line buffers to
    the index of the member that produces them, and which of its outputs that is.
    """

    program: Program
    target: Target
    above: int
    below: int
    kept: tuple[bool, ...]
    line_buffers: dict[str, tuple[int, int]]

    @property
    def buffered(self) -> list[int]:
        """The outputs that live in line buffers."""
        return [number for number, kept in enumerate(self.kept) if not kept]


@record
class EmittedGroup:
    """A module as text, and its arguments: slots, the pitch of each output, and the step."""

    text: str
    slots: tuple[tuple[Slot, ...], ...]
    options: Options


def emit_group(members: tuple[Member, ...], *, flat: bool) -> EmittedGroup:
    """Emits the module of a group; a flat one has a single row, a few elements at a time."""
    made = [functions_of(item.program, item.target, f"m{i}.") for i, item in enumerate(members)]
    parts = [text for functions in made for text in functions.texts()]
    declarations = set().union(*(functions.declarations for functions in made))
    declarations.add("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
    entry = _Entry(members, made, flat).text()
    name = ", ".join(item.program.name for item in members)
    text = module_text(name, declarations, [*parts, entry])
    slots = tuple(functions.slots for functions in made)
    options = Options(
        vectorize=any(functions.options.vectorize for functions in made),
        in_order=any(functions.options.in_order for functions in made),
    )
    return EmittedGroup(text, slots, options)


class _Entry:
    """Emits the entry function, which computes a chunk step by step."""

    def __init__(self, members: tuple[Member, ...], made: list[Functions], flat: bool) -> None:
        self.members = members
        self.made = made
        self.flat = flat
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def least(self, name: str, a: str, b: str, test: str = "slt") -> None:
        """Emits the smaller of two numbers, or the larger if `test` is reversed."""
        self.line(f"{name}.test = icmp {test} i64 {a}, {b}")
        self.line(f"{name} = select i1 {name}.test, i64 {a}, i64 {b}")

    def text(self) -> str:
        first, last = ("%x0", "%x1") if self.flat else ("%row0", "%row1")
        count = 0
        for functions in self.made:
            self.lines += [*unpacked(functions, count), *filled(functions)]
            count += len(functions.slots)
        for i, item in enumerate(self.members):
            for number in range(len(item.kept)):
                self._load(f"%pitch.{_name(i, number)}", count)
                count += 1
        self._load("%step", count)
        if not self.flat:
            self.line(f"%height = add i64 %m{len(self.members) - 1}.size.0, 0")
        for i, item in enumerate(self.members):
            self._begin(i, item, first)
        self.line("br label %head")
        self.lines.append("head:")
        self.line(f"%here = phi i64 [ {first}, %entry ], [ %there, %turn ]")
        for i, item in enumerate(self.members):
            self.line(f"%done.{i} = phi i64 [ %first.{i}, %entry ], [ %need.{i}, %turn ]")
            for name in (_name(i, number) for number in item.buffered):
                self.line(f"%base.{name} = phi i64 [ %first.{i}, %entry ], [ %from.{name}, %turn ]")
        self.line(f"%more = icmp slt i64 %here, {last}")
        self.line("br i1 %more, label %turn, label %over")
        self.lines.append("turn:")
        self.line("%far = add i64 %here, %step")
        self.least("%there", "%far", last)
        for i, item in enumerate(self.members):
            self._iteration(i, item)
        self.line("br label %head")
        self.lines += ["over:", "  ret i32 0"]
        head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0 {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    def _load(self, name: str, slot: int) -> None:
        self.line(f"{name}.slot = getelementptr i64, ptr %slots, i64 {slot}")
        self.line(f"{name} = load i64, ptr {name}.slot")

    def _begin(self, i: int, item: Member, first: str) -> None:
        """Emits the first row that is needed, and the allocation of a line buffer."""
        self.line(f"%start.{i} = sub i64 {first}, {item.above}")
        self.least(f"%first.{i}", f"%start.{i}", "0", "sgt")
        for name in (_name(i, number) for number in item.buffered):
            self.line(f"%rows.{name} = add i64 %step, {item.above + item.below}")
            self.line(f"%bytes.{name} = mul i64 %rows.{name}, %pitch.{name}")
            self.line(f"%window.{name} = alloca i8, i64 %bytes.{name}, align 64")

    def _iteration(self, i: int, item: Member) -> None:
        """Emits the call that computes the rows of one member that this step needs."""
        if self.flat:
            self.line(f"%need.{i} = add i64 %there, 0")
        else:
            self.line(f"%reach.{i} = add i64 %there, {item.below}")
            self.least(f"%need.{i}", f"%reach.{i}", "%height")
        for number in item.buffered:
            self._slide(i, item, _name(i, number))
        functions = self.made[i]
        arguments = given(functions)
        for place, slot in enumerate(functions.slots):
            if slot.kind == "out" and not item.kept[slot.axis]:
                arguments[place] = f"ptr %view.{_name(i, slot.axis)}"
            elif slot.kind == "input" and slot.source in item.line_buffers:
                arguments[place] = f"ptr %view.{_name(*item.line_buffers[slot.source])}"
        rows = f"i64 %done.{i}, i64 %need.{i}"
        last = item.program.rank - 1
        span = f"i64 0, i64 1, {rows}" if self.flat else f"{rows}, i64 0, i64 %m{i}.size.{last}"
        self.line(f"%status.{i} = call i32 @m{i}.rows({', '.join(arguments)}, {span})")

    def _slide(self, i: int, item: Member, name: str) -> None:
        """Emits the slide of a line buffer to its start; `view` is the address of its row 0."""
        self.line(f"%keep.{name} = sub i64 %here, {item.above}")
        self.least(f"%from.{name}", f"%keep.{name}", f"%base.{name}", "sgt")
        self.line(f"%left.{name} = sub i64 %done.{i}, %from.{name}")
        self.least(f"%some.{name}", f"%left.{name}", "0", "sgt")
        self.line(f"%moved.{name} = mul i64 %some.{name}, %pitch.{name}")
        self.line(f"%shift.{name} = sub i64 %from.{name}, %base.{name}")
        self.line(f"%shifted.{name} = mul i64 %shift.{name}, %pitch.{name}")
        self.line(f"%old.{name} = getelementptr i8, ptr %window.{name}, i64 %shifted.{name}")
        self.line(
            f"call void @llvm.memmove.p0.p0.i64(ptr %window.{name}, ptr %old.{name}, "
            f"i64 %moved.{name}, i1 false)"
        )
        self.line(f"%back.{name} = mul i64 %from.{name}, %pitch.{name}")
        self.line(f"%ahead.{name} = sub i64 0, %back.{name}")
        self.line(f"%view.{name} = getelementptr i8, ptr %window.{name}, i64 %ahead.{name}")


def _name(member: int, output: int) -> str:
    """Returns what the values of an output are told apart by."""
    return f"{member}.{output}" if output else f"{member}"
