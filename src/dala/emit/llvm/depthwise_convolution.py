"""Convolutions of each channel by itself, a register of channels at a time.

Where a window lies inside the rows of its plane, its weights stay in registers while a register of
channels goes along the row; above and below the plane there are only fewer lines to sum. The few
pixels whose windows leave their row are summed tap by tap.
"""

from __future__ import annotations

import numpy as np

from dala.emit.llvm.channels_last import ROW, Ending, Module, taps
from dala.emit.llvm.target import Target


def lined_up(weight: np.ndarray, lanes: int) -> np.ndarray:
    """Weights (c, kh, kw) as a row of channels for each tap, with zeros up to a whole register."""
    channels, height, width = weight.shape
    made = np.zeros((height * width, channels + -channels % lanes), np.float32)
    made[:, :channels] = weight.reshape(channels, -1).T
    return made


def depthwise_convolution(ending: Ending, size: tuple[int, int], target: Target) -> str:
    """Returns the module of a convolution by windows of a size, with an ending."""
    module = Module("depthwise_convolution", ending, target)
    for masked in (False, True):
        for lines in range(1, size[0] + 1):
            _add_span(module, lines, size[1], masked=masked)
    _add_edge(module)
    _add_entry(module, size)
    return module.text()


def _given(module: Module) -> str:
    operands = "".join(f", ptr %{name}" for name in module.operands)
    return (
        "ptr %x, ptr %w, ptr %bias, i64 %lines, i64 %columns, i64 %count, i64 %apart, "
        "i64 %tap.apart, i64 %line.apart, i64 %w.apart, i64 %w.line, i64 %lanes, ptr %out, "
        f"i64 %place, i64 %channel, i64 %out.pixel{operands}"
    )


def _summed(module: Module, name: str, x: str, w: str, sums: str) -> str:
    given = f"{module.vector} %{x}, {module.vector} %{w}, {module.vector} %{sums}"
    return f"  %{name} = call {module.vector} @llvm.fmuladd.{module.suffix}({given})"


def _add_span(module: Module, lines: int, columns: int, *, masked: bool) -> None:
    """Adds the function for neighboring pixels whose windows have so many taps inside."""
    mask = "mask" if masked else ""
    code = module.below("mask", "lanes") if masked else []
    code.append(module.loaded("b", "bias"))
    cells = [(a, b) for a in range(lines) for b in range(columns)]
    for b in range(1, columns):
        code.append(f"  %by.{b} = mul i64 %tap.apart, {b}")
    for a, b in cells:
        code += [
            f"  %w.{a}.{b}.line = mul i64 %w.line, {a}",
            f"  %w.{a}.{b}.tap = mul i64 %w.apart, {b}",
            f"  %w.{a}.{b}.by = add i64 %w.{a}.{b}.line, %w.{a}.{b}.tap",
            f"  %w.{a}.{b}.at = getelementptr float, ptr %w, i64 %w.{a}.{b}.by",
            module.loaded(f"w.{a}.{b}", f"w.{a}.{b}.at"),
        ]
    for a in range(lines):
        code += [
            f"  %x.{a}.by = mul i64 %line.apart, {a}",
            f"  %x.{a} = getelementptr float, ptr %x, i64 %x.{a}.by",
        ]
    code += [
        "  br label %pixel",
        "pixel:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %pixel ]",
        "  %at = phi i64 [ %place, %entry ], [ %at.next, %pixel ]",
        *(f"  %p.{a} = phi ptr [ %x.{a}, %entry ], [ %p.{a}.next, %pixel ]" for a in range(lines)),
    ]
    sums = "b"
    for a, b in cells:
        at = f"p.{a}"
        if b:
            at = f"x.{a}.{b}.at"
            code.append(f"  %{at} = getelementptr float, ptr %p.{a}, i64 %by.{b}")
        code.append(module.loaded(f"x.{a}.{b}", at, mask))
        code.append(_summed(module, f"s.{a}.{b}", f"x.{a}.{b}", f"w.{a}.{b}", sums))
        sums = f"s.{a}.{b}"
    code += [
        *module.ended("end", sums, "at", "channel", mask),
        *(f"  %p.{a}.next = getelementptr float, ptr %p.{a}, i64 %apart" for a in range(lines)),
        "  %at.next = add i64 %at, %out.pixel",
        "  %i.next = add i64 %i, 1",
        "  %more = icmp slt i64 %i.next, %count",
        "  br i1 %more, label %pixel, label %done",
        "done:",
        "  ret void",
    ]
    name = f"span.{lines}.{'masked' if masked else 'whole'}"
    module.define(f"define internal void @{name}({_given(module)}) #0", code)


def _add_edge(module: Module) -> None:
    """Adds the function for one pixel whose window leaves its row."""
    vector = module.vector
    module.define(
        f"define internal void @edge({_given(module)}) #0",
        [
            *module.below("mask", "lanes"),
            module.loaded("b", "bias"),
            "  %tall = icmp sgt i64 %lines, 0",
            "  %broad = icmp sgt i64 %columns, 0",
            "  %some = and i1 %tall, %broad",
            "  br i1 %some, label %line, label %done",
            "line:",
            "  %i = phi i64 [ 0, %entry ], [ %i.next, %line.end ]",
            "  %x.line = phi ptr [ %x, %entry ], [ %x.line.next, %line.end ]",
            "  %w.line.at = phi ptr [ %w, %entry ], [ %w.line.next, %line.end ]",
            f"  %s.line = phi {vector} [ %b, %entry ], [ %s.next, %line.end ]",
            "  br label %tap",
            "tap:",
            "  %j = phi i64 [ 0, %line ], [ %j.next, %tap ]",
            "  %x.tap = phi ptr [ %x.line, %line ], [ %x.tap.next, %tap ]",
            "  %w.tap = phi ptr [ %w.line.at, %line ], [ %w.tap.next, %tap ]",
            f"  %s = phi {vector} [ %s.line, %line ], [ %s.next, %tap ]",
            module.loaded("w.value", "w.tap"),
            module.loaded("x.value", "x.tap", "mask"),
            _summed(module, "s.next", "x.value", "w.value", "s"),
            "  %x.tap.next = getelementptr float, ptr %x.tap, i64 %tap.apart",
            "  %w.tap.next = getelementptr float, ptr %w.tap, i64 %w.apart",
            "  %j.next = add i64 %j, 1",
            "  %j.more = icmp slt i64 %j.next, %columns",
            "  br i1 %j.more, label %tap, label %line.end",
            "line.end:",
            "  %x.line.next = getelementptr float, ptr %x.line, i64 %line.apart",
            "  %w.line.next = getelementptr float, ptr %w.line.at, i64 %w.line",
            "  %i.next = add i64 %i, 1",
            "  %i.more = icmp slt i64 %i.next, %lines",
            "  br i1 %i.more, label %line, label %done",
            "done:",
            f"  %sums = phi {vector} [ %b, %entry ], [ %s.next, %line.end ]",
            *module.ended("end", "sums", "place", "channel", "mask"),
            "  ret void",
        ],
    )


def _add_entry(module: Module, size: tuple[int, int]) -> None:
    lanes = module.lanes
    operands = "".join(f", ptr %{name}" for name in module.operands)
    given = (
        "ptr %pixel.x, ptr %pixel.w, ptr %own.bias, i64 %lines, i64 %columns, i64 %count, "
        "i64 %apart, i64 %tap.apart, i64 %line.apart, i64 %w.apart, i64 %w.line, i64 %lanes, "
        f"ptr %out, i64 %place, i64 %channel, i64 %out.pixel{operands}"
    )
    whole_inside = [f"i64 {n}, label %span.{n}" for n in range(1, size[0] + 1)]
    lines = [
        f"  %up = add i64 %channels, {lanes - 1}",
        f"  %w.apart = and i64 %up, {-lanes}",
        "  %w.line = mul i64 %w.apart, %width.taps",
        "  %apart = mul i64 %across, %channels",
        "  %line = mul i64 %in.width, %channels",
        "  %line.apart = mul i64 %line, %apart.down",
        "  %tap.apart = mul i64 %apart.across, %channels",
        "  br label %row.head",
        "row.head:",
        "  %row = phi i64 [ %row0, %entry ], [ %row.next, %row.end ]",
        *ROW,
        *taps("a", "y.above", "apart.down", "height.taps", "in.height"),
        "  %lines = sub i64 %a.1, %a.0",
        "  %image.line = mul i64 %image, %in.height",
        "  %a.by = mul i64 %a.0, %apart.down",
        "  %a.y = add i64 %y.above, %a.by",
        "  %a.line = add i64 %image.line, %a.y",
        "  %a.first = mul i64 %a.line, %line",
        "  %a.x = getelementptr float, ptr %x, i64 %a.first",
        "  %a.w.first = mul i64 %a.0, %w.line",
        "  %a.w = getelementptr float, ptr %weight, i64 %a.w.first",
        "  br label %block",
        "block:",
        "  %ob = phi i64 [ %x0, %row.head ], [ %ob.next, %block.end ]",
        f"  %channel = mul i64 %ob, {lanes}",
        "  %lanes.left = sub i64 %channels, %channel",
        f"  %lanes = call i64 @llvm.smin.i64(i64 %lanes.left, i64 {lanes})",
        "  %own.bias = getelementptr float, ptr %bias, i64 %channel",
        "  br label %pixel",
        "pixel:",
        "  %p = phi i64 [ 0, %block ], [ %p.next, %pixel.end ]",
        "  %p.first = mul i64 %p, %across",
        "  %p.left = sub i64 %p.first, %left",
        *taps("b", "p.left", "apart.across", "width.taps", "in.width"),
        "  %columns = sub i64 %b.1, %b.0",
        "  %b.by = mul i64 %b.0, %apart.across",
        "  %b.x = add i64 %p.left, %b.by",
        "  %b.line = mul i64 %b.x, %channels",
        "  %b.first = add i64 %b.line, %channel",
        "  %pixel.x = getelementptr float, ptr %a.x, i64 %b.first",
        "  %b.w.line = mul i64 %b.0, %w.apart",
        "  %b.w = add i64 %b.w.line, %channel",
        "  %pixel.w = getelementptr float, ptr %a.w, i64 %b.w",
        "  %p.by = mul i64 %p, %out.pixel",
        "  %p.place = add i64 %row.place, %p.by",
        "  %place = add i64 %p.place, %channel",
        "  %before = icmp slt i64 %p, %first.pixel",
        "  %behind = icmp sge i64 %p, %end.pixel",
        "  %outside = or i1 %before, %behind",
        "  %inside.left = sub i64 %end.pixel, %p",
        "  %count = select i1 %outside, i64 1, i64 %inside.left",
        "  br i1 %outside, label %edge, label %inside",
        "inside:",
        f"  switch i64 %lines, label %edges [ {' '.join(whole_inside)} ]",
    ]
    for n in range(1, size[0] + 1):
        lines += [
            f"span.{n}:",
            f"  %is.whole.{n} = icmp eq i64 %lanes, {lanes}",
            f"  br i1 %is.whole.{n}, label %span.{n}.whole, label %span.{n}.masked",
            *(
                line
                for kind in ("whole", "masked")
                for line in (
                    f"span.{n}.{kind}:",
                    f"  call void @span.{n}.{kind}({given})",
                    "  br label %pixel.end",
                )
            ),
        ]
    lines += [
        # No line of the window is inside: what is left is the bias.
        "edges:",
        "  br label %edge",
        "edge:",
        f"  call void @edge({given})",
        "  br label %pixel.end",
        "pixel.end:",
        "  %is.empty = icmp eq i64 %lines, 0",
        "  %taken = select i1 %is.empty, i64 1, i64 %count",
        "  %p.next = add i64 %p, %taken",
        "  %p.more = icmp slt i64 %p.next, %pixels",
        "  br i1 %p.more, label %pixel, label %block.end",
        "block.end:",
        "  %ob.next = add i64 %ob, 1",
        "  %ob.more = icmp slt i64 %ob.next, %x1",
        "  br i1 %ob.more, label %block, label %row.end",
        "row.end:",
        "  %row.next = add i64 %row, 1",
        "  %row.more = icmp slt i64 %row.next, %row1",
        "  br i1 %row.more, label %row.head, label %over",
        "over:",
        "  ret i32 0",
    ]
    module.entry(lines)
