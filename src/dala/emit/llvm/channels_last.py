"""What the hand-written modules for planes with channels last share: arguments, rows, endings.

A plane's pixels lie one after another, each with all its channels. A launch has a row for each row
of the output's pixels, and a column for each block of output channels. All sizes are arguments, so
one module serves every layer with the same epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.base.record import value
from dala.emit.llvm.element_function import element_function
from dala.emit.llvm.functions import CHUNK
from dala.emit.llvm.module import ENTRY, module_text
from dala.emit.llvm.target import Target
from dala.ir.nodes import Program

SIZES = (
    "plane.rows",
    "width",
    "total",
    "in.height",
    "in.width",
    "in.channels",
    "channels",
    "height.taps",
    "width.taps",
    "down",
    "across",
    "apart.down",
    "apart.across",
    "top",
    "left",
    "first.inside",
    "end.inside",
    "merged",
    "out.first",
    "out.image",
    "out.line",
    "out.pixel",
)
"""The sizes among the arguments, after the pointers.

Rows of output pixels in a plane, pixels in each of them and in all (the last row may be shorter);
the input's plane and channels; the output's channels; taps of a window, its steps, how far taps are
apart, and what lies before the plane; the pixels whose window leaves no row of the input; whether
the taps of a row lie one after another in memory; and where the first pixel of the output lies, and
how far from there the next image, row and pixel are.
"""
POINTERS = ("out", "x", "weight", "bias")


@value
class Ending:
    """What becomes of sums: an elementwise program of them and of operands.

    An operand has an element for each element of the output, or (False) for each channel.
    """

    program: Program
    whole: tuple[bool, ...] = ()


def lanes_of(target: Target) -> int:
    """Returns how many floats a register holds."""
    return target.vector_bits // 32


class Module:
    """Collects the functions of a module."""

    def __init__(self, name: str, ending: Ending, target: Target) -> None:
        self.name = name
        self.ending = ending
        self.lanes = lanes_of(target)
        self.vector = f"<{self.lanes} x float>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f32"
        text, declarations = element_function(ending.program, "ending", self.lanes, target)
        self.parts = [text]
        self.declarations = {
            *declarations,
            f"declare {self.vector} @llvm.fmuladd.{self.suffix}({self.vector}, {self.vector}, "
            f"{self.vector})",
            f"declare {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {self.mask}, "
            f"{self.vector})",
            f"declare void @llvm.masked.store.{self.suffix}.p0({self.vector}, ptr, i32, "
            f"{self.mask})",
            "declare i64 @llvm.smin.i64(i64, i64)",
            "declare i64 @llvm.smax.i64(i64, i64)",
        }

    @property
    def operands(self) -> list[str]:
        return [f"operand.{i}" for i in range(len(self.ending.whole))]

    def define(self, head: str, lines: Sequence[str]) -> None:
        self.parts.append("\n".join([f"{head} {{", "entry:", *lines, "}"]))

    def entry(self, lines: Sequence[str]) -> None:
        """Adds the function that computes a chunk, with its arguments unpacked."""
        names = [*POINTERS, *self.operands]
        unpacked = []
        for i, name in enumerate((*names, *SIZES)):
            type = "ptr" if i < len(names) else "i64"
            unpacked.append(f"  %slot.{i} = getelementptr i64, ptr %slots, i64 {i}")
            unpacked.append(f"  %{name} = load {type}, ptr %slot.{i}")
        head = f"define i32 @{ENTRY}(ptr %slots, {', '.join(CHUNK)}) #0"
        self.define(head, [*unpacked, *lines])

    def text(self) -> str:
        return module_text(self.name, self.declarations, self.parts)

    def below(self, name: str, count: str) -> list[str]:
        """Lines that make a mask of the lanes below an i64."""
        lanes = self.lanes
        limit = f"<{lanes} x i64>"
        numbers = ", ".join(f"i64 {i}" for i in range(lanes))
        return [
            f"  %{name}.one = insertelement {limit} poison, i64 %{count}, i64 0",
            f"  %{name}.all = shufflevector {limit} %{name}.one, {limit} poison, "
            f"<{lanes} x i32> zeroinitializer",
            f"  %{name} = icmp slt {limit} <{numbers}>, %{name}.all",
        ]

    def loaded(self, name: str, pointer: str, mask: str = "") -> str:
        """A line that loads a register, of lanes outside a mask zeros."""
        if not mask:
            return f"  %{name} = load {self.vector}, ptr %{pointer}, align 4"
        given = f"ptr %{pointer}, i32 4, {self.mask} %{mask}, {self.vector} zeroinitializer"
        return f"  %{name} = call {self.vector} @llvm.masked.load.{self.suffix}.p0({given})"

    def ended(self, name: str, sums: str, place: str, channel: str, mask: str = "") -> list[str]:
        """Lines that apply the ending to sums, and store them at a place of the output."""
        lines, given = [], [f"{self.vector} %{sums}"]
        for operand, whole in zip(self.operands, self.ending.whole, strict=True):
            at = f"{name}.{operand}"
            index = place if whole else channel
            lines.append(f"  %{at}.at = getelementptr float, ptr %{operand}, i64 %{index}")
            lines.append(self.loaded(at, f"{at}.at", mask))
            given.append(f"{self.vector} %{at}")
        lines += [
            f"  %{name}.made = call {self.vector} @ending({', '.join(given)})",
            f"  %{name}.at = getelementptr float, ptr %out, i64 %{place}",
        ]
        if not mask:
            lines.append(f"  store {self.vector} %{name}.made, ptr %{name}.at, align 4")
        else:
            given = [f"{self.vector} %{name}.made, ptr %{name}.at, i32 4, {self.mask} %{mask}"]
            lines.append(f"  call void @llvm.masked.store.{self.suffix}.p0({given[0]})")
        return lines


ROW = [
    "  %image = sdiv i64 %row, %plane.rows",
    "  %y = srem i64 %row, %plane.rows",
    "  %row.pixel = mul i64 %row, %width",
    "  %pixels.left = sub i64 %total, %row.pixel",
    "  %pixels = call i64 @llvm.smin.i64(i64 %width, i64 %pixels.left)",
    "  %y.first = mul i64 %y, %down",
    "  %y.above = sub i64 %y.first, %top",
    "  %first.pixel = call i64 @llvm.smin.i64(i64 %first.inside, i64 %pixels)",
    "  %end.pixel = call i64 @llvm.smin.i64(i64 %end.inside, i64 %pixels)",
    "  %image.place = mul i64 %image, %out.image",
    "  %line.place = mul i64 %y, %out.line",
    "  %image.line.place = add i64 %image.place, %line.place",
    "  %row.place = add i64 %image.line.place, %out.first",
]
"""Lines that find where a row of the output is, and its window in the input."""


def taps(name: str, first: str, apart: str, count: str, size: str) -> list[str]:
    """Lines that find the taps, from name.0 to name.1, that lie inside 0 to size."""
    return [
        f"  %{name}.outside = sub i64 0, %{first}",
        f"  %{name}.more = add i64 %{apart}, -1",
        f"  %{name}.up = add i64 %{name}.outside, %{name}.more",
        f"  %{name}.skipped = sdiv i64 %{name}.up, %{apart}",
        f"  %{name}.least = call i64 @llvm.smax.i64(i64 %{name}.skipped, i64 0)",
        f"  %{name}.0 = call i64 @llvm.smin.i64(i64 %{name}.least, i64 %{count})",
        f"  %{name}.room = sub i64 %{size}, %{first}",
        f"  %{name}.rounded = add i64 %{name}.room, %{name}.more",
        f"  %{name}.fit = sdiv i64 %{name}.rounded, %{apart}",
        f"  %{name}.most = call i64 @llvm.smin.i64(i64 %{name}.fit, i64 %{count})",
        f"  %{name}.1 = call i64 @llvm.smax.i64(i64 %{name}.most, i64 %{name}.0)",
    ]
