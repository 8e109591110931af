"""Emits a fusion group as one LLVM module, so that data is still in cache for its consumer.

A chunk of a group is computed a few rows at a time: each program is called for the rows that its
consumers need next. Intermediates that are not materialized live in line buffers on the stack:
rings, which keep only the rows that are still to be read, each new row in the place of an old one.
Where rows are too long for that, a chunk is computed in tiles, one after another.
"""

from __future__ import annotations

from dala.base.record import record
from dala.emit.argument_slots import Slot
from dala.emit.llvm.arguments import RING
from dala.emit.llvm.boxes import functions_of
from dala.emit.llvm.functions import CHUNK, Functions
from dala.emit.llvm.memory import output_pointer
from dala.emit.llvm.module import ENTRY, filled, given, module_text, unpacked
from dala.emit.llvm.row_cuts import LINE_BYTES
from dala.emit.llvm.target import Options, Target
from dala.ir.nodes import Program


@record
class Member:
    """A program of a fusion group.

    `rows` and `columns` are its halo: what its consumers need above and below, and on the left and
    the right; `kept` says of each output whether it is materialized; `line_buffers` maps the inputs
    that are read from line buffers to the index of the member that produces them, and which of its
    outputs that is.
    """

    program: Program
    target: Target
    rows: tuple[int, int]
    columns: tuple[int, int]
    kept: tuple[bool, ...]
    line_buffers: dict[str, tuple[int, int]]

    @property
    def buffered(self) -> list[int]:
        """The outputs that live in line buffers."""
        return [number for number, kept in enumerate(self.kept) if not kept]

    def rings(self, index: int) -> dict[str, str]:
        """Returns the line buffer behind each address, if this is the member of that index."""
        names = [item.name for item in self.program.inputs]
        read = {f"%in.{names.index(at)}": _name(*of) for at, of in self.line_buffers.items()}
        return {
            **{output_pointer(number): _name(index, number) for number in self.buffered},
            **read,
        }


@record
class EmittedGroup:
    """A module as text, and its arguments.

    After the slots of the members come, for each line buffer, what there is to know of a ring (the
    bytes of an element alone if the group is flat); then how many rows to compute at a time, and
    how many columns (how many elements if it is flat).
    """

    text: str
    slots: tuple[tuple[Slot, ...], ...]
    options: Options


def emit_group(members: tuple[Member, ...], *, flat: bool) -> EmittedGroup:
    """Emits the module of a group; a flat one has a single row, a few elements at a time."""
    made = [
        functions_of(
            *(item.program, item.target, f"m{i}."), rings=() if flat else tuple(item.rings(i))
        )
        for i, item in enumerate(members)
    ]
    parts = [text for functions in made for text in functions.texts()]
    declarations = set().union(*(functions.declarations for functions in made))
    entry = (_FlatEntry if flat else _Entry)(members, made).text()
    name = ", ".join(item.program.name for item in members)
    text = module_text(name, declarations, [*parts, entry])
    slots = tuple(functions.slots for functions in made)
    options = Options(
        vectorize=any(functions.options.vectorize for functions in made),
        in_order=any(functions.options.in_order for functions in made),
    )
    return EmittedGroup(text, slots, options)


class _Lines:
    """The lines of an entry function."""

    def __init__(self, members: tuple[Member, ...], made: list[Functions]) -> None:
        self.members = members
        self.made = made
        self.lines: list[str] = []
        self.slots = 0

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def extreme(self, op: str, name: str, a: str, b: str) -> None:
        """Emits the smaller of two numbers (slt), or the larger (sgt)."""
        self.line(f"{name}.test = icmp {op} i64 {a}, {b}")
        self.line(f"{name} = select i1 {name}.test, i64 {a}, i64 {b}")

    def unpack(self) -> None:
        for functions in self.made:
            self.lines += [*unpacked(functions, self.slots), *filled(functions)]
            self.slots += len(functions.slots)

    def next_slot(self, name: str) -> None:
        """Emits the load of the next argument, a number."""
        self.line(f"{name}.slot = getelementptr i64, ptr %slots, i64 {self.slots}")
        self.line(f"{name} = load i64, ptr {name}.slot")
        self.slots += 1

    def call(self, i: int, span: str, rings: tuple[str, ...] = ()) -> None:
        """Emits the call that computes a part of a member."""
        functions, places = self.made[i], self.members[i].rings(i)
        arguments = given(functions)
        for place, slot in enumerate(functions.slots):
            name = places.get(functions.argument(slot))
            if name is not None:
                arguments[place] = f"ptr %view.{name}"
        arguments += [f"i64 %{part}.{name}" for name in places.values() for part in rings]
        self.line(f"%status.{i} = call i32 @m{i}.rows({', '.join(arguments)}, {span})")

    def finished(self) -> str:
        self.begin("over")
        self.line("ret i32 0")
        head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0 {{"
        return "\n".join([head, "entry:", *self.lines, "}"])


class _FlatEntry(_Lines):
    """The entry of a flat group: all members compute the same few elements, then the next ones."""

    def text(self) -> str:
        self.unpack()
        buffers = [name for i, item in enumerate(self.members) for name in _names(i, item)]
        for name in buffers:
            self.next_slot(f"%size.{name}")
        self.next_slot("%step")
        for name in buffers:
            self.line(f"%bytes.{name} = mul i64 %step, %size.{name}")
            self.line(f"%window.{name} = alloca i8, i64 %bytes.{name}, align 64")
        self.line("br label %head")
        self.begin("head")
        self.line("%here = phi i64 [ %x0, %entry ], [ %there, %turn ]")
        self.line("%more = icmp slt i64 %here, %x1")
        self.line("br i1 %more, label %turn, label %over")
        self.begin("turn")
        self.line("%far = add i64 %here, %step")
        self.extreme("slt", "%there", "%far", "%x1")
        for name in buffers:
            self.line(f"%back.{name} = mul i64 %here, %size.{name}")
            self.line(f"%ahead.{name} = sub i64 0, %back.{name}")
            self.line(f"%view.{name} = getelementptr i8, ptr %window.{name}, i64 %ahead.{name}")
        for i in range(len(self.members)):
            self.call(i, "i64 0, i64 1, i64 %here, i64 %there")
        self.line("br label %head")
        return self.finished()


class _Entry(_Lines):
    """The entry of a group: in each tile, members compute a few rows each, time and again."""

    def text(self) -> str:
        self.unpack()
        for i, item in enumerate(self.members):
            for name in _names(i, item):
                for part in RING:
                    self.next_slot(f"%{part}.{name}")
                self.line(f"%rows.{name} = add i64 %mask.{name}, 1")
                self.line(f"%bytes.{name} = mul i64 %rows.{name}, %pitch.{name}")
                self.line(f"%window.{name} = alloca i8, i64 %bytes.{name}, align 64")
        self.next_slot("%step")
        self.next_slot("%width")
        ahead = max(sum(item.rows) for item in self.members)
        self.line(f"%height = add i64 %m{len(self.members) - 1}.size.0, 0")
        self.line(f"%start = sub i64 %row0, {ahead}")
        for i, item in enumerate(self.members):
            self.line(f"%top.{i} = sub i64 %row0, {item.rows[0]}")
            self.extreme("sgt", f"%first.{i}", f"%top.{i}", "0")
        self.line("br label %tile")
        self.begin("tile")
        self.line("%left = phi i64 [ %x0, %entry ], [ %right, %head ]")
        self.line("%some = icmp slt i64 %left, %x1")
        self.line("br i1 %some, label %begin, label %over")
        self.begin("begin")
        self.line("%wide = add i64 %left, %width")
        self.extreme("slt", "%right", "%wide", "%x1")
        self.line("%is.last = icmp eq i64 %right, %x1")
        for i, item in enumerate(self.members):
            self._place(i, item)
        self.line("br label %head")
        self.begin("head")
        self.line("%here = phi i64 [ %start, %begin ], [ %there, %turn ]")
        for i in range(len(self.members)):
            self.line(f"%done.{i} = phi i64 [ %first.{i}, %begin ], [ %need.{i}, %turn ]")
        self.line("%more = icmp slt i64 %here, %row1")
        self.line("br i1 %more, label %turn, label %tile")
        self.begin("turn")
        self.line("%far = add i64 %here, %step")
        self.extreme("slt", "%there", "%far", "%row1")
        for i, item in enumerate(self.members):
            self._turn(i, item)
        self.line("br label %head")
        return self.finished()

    def _place(self, i: int, item: Member) -> None:
        """Emits the columns that a member computes of a tile, and where its line buffers begin."""
        before, after = item.columns
        last = f"%m{i}.size.{item.program.rank - 1}"
        self.line(f"%before.{i} = sub i64 %left, {before}")
        self.extreme("sgt", f"%from.{i}", f"%before.{i}", "0")
        self.line(f"%after.{i} = add i64 %right, {after}")
        self.extreme("slt", f"%until.{i}", f"%after.{i}", last)
        self.line(f"%to.{i} = select i1 %is.last, i64 {last}, i64 %until.{i}")
        for number in item.buffered:
            name, output = _name(i, number), item.program.outputs[number]
            size = output.type.size_bytes * (output.channels or 1)
            self.line(f"%origin.{name} = and i64 %from.{i}, -{LINE_BYTES}")
            self.line(f"%back.{name} = mul i64 %origin.{name}, -{size}")
            self.line(f"%view.{name} = getelementptr i8, ptr %window.{name}, i64 %back.{name}")

    def _turn(self, i: int, item: Member) -> None:
        """Emits the call that computes the rows of one member that are needed next."""
        self.line(f"%reach.{i} = add i64 %there, {item.rows[1]}")
        self.extreme("slt", f"%inside.{i}", f"%reach.{i}", "%height")
        self.extreme("sgt", f"%need.{i}", f"%inside.{i}", f"%done.{i}")
        rows, columns = f"i64 %done.{i}, i64 %need.{i}", f"i64 %from.{i}, i64 %to.{i}"
        self.call(i, f"{rows}, {columns}", RING)


def _names(i: int, item: Member) -> list[str]:
    return [_name(i, number) for number in item.buffered]


def _name(member: int, output: int) -> str:
    """Returns what the values of an output are told apart by."""
    return f"{member}.{output}" if output else f"{member}"
