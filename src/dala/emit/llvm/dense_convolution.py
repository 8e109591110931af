"""Convolutions over all channels, and products of matrices, as tiles of registers.

A tile is a few pixels of a row by one or two registers of output channels. Its sums stay in
registers while it goes through the taps and channels of the input: an element of the input is
broadcast and multiplied with registers of weights, which lie in the order in which they are needed.
A product of matrices is a convolution whose windows have one tap.
"""

from __future__ import annotations

import numpy as np

from dala.emit.llvm.channels_last import ROW, Ending, Module, lanes_of, taps
from dala.emit.llvm.target import Target

BLOCK = 2
"""Registers of output channels in a tile."""


def tile_pixels(target: Target) -> tuple[int, ...]:
    """Returns how many pixels the tiles of a module have, the largest first.

    Those of the largest take 24 of 32 registers, or 12 of 16.
    """
    few = target.vector_bits == 256 or (target.vector_bits == 128 and not target.has_extremes)
    return (6, 4, 2, 1) if few else (12, 8, 4, 2, 1)


def packed(weight: np.ndarray, lanes: int) -> np.ndarray:
    """Weights (taps and channels, o) in the order in which tiles need them, with zeros added.

    Blocks of output channels follow each other, the last of one register where that is enough.
    """
    depth, made = weight.shape
    block = BLOCK * lanes
    whole, rest = divmod(made, block)
    narrow = -(-rest // lanes) * lanes
    found = np.zeros(depth * (whole * block + narrow), np.float32)
    blocks = found[: depth * whole * block].reshape(whole, depth, block)
    blocks[:] = weight[:, : whole * block].reshape(depth, whole, block).transpose(1, 0, 2)
    if rest:
        found[depth * whole * block :].reshape(depth, narrow)[:, :rest] = weight[:, -rest:]
    return found


def padded_bias(bias: np.ndarray, lanes: int) -> np.ndarray:
    """A bias with zeros up to a whole register."""
    return np.concatenate([bias, np.zeros(-len(bias) % lanes, np.float32)]).astype(np.float32)


def dense_convolution(ending: Ending, target: Target) -> str:
    """Returns the module of a convolution with an ending."""
    module = Module("dense_convolution", ending, target)
    pixels = tile_pixels(target)
    for vectors in range(1, BLOCK + 1):
        for count in pixels:
            _add_tile(module, count, vectors)
    _add_finish(module)
    _add_entry(module, pixels, lanes_of(target))
    return module.text()


TILE = (
    "ptr %x, ptr %w, ptr %bias, ptr %tile, i64 %runs, i64 %runs.across, i64 %run, "
    "i64 %x.across, i64 %x.down, i64 %w.across, i64 %w.down, i64 %apart"
)
"""The arguments of a tile.

Runs of neighboring elements of the input are summed: `runs` of them, `runs.across` of which lie in
a row of the window; distances are in elements, and `apart` is that from pixel to pixel.
"""


def _add_tile(module: Module, count: int, vectors: int) -> None:
    """Adds the function that leaves the sums of a tile in memory."""
    vector, lanes = module.vector, module.lanes
    cells = [(i, j) for i in range(count) for j in range(vectors)]
    lines = [f"  %o.{i} = mul i64 %apart, {4 * i}" for i in range(1, count)]
    for j in range(vectors):
        lines += [
            f"  %b.{j}.at = getelementptr float, ptr %bias, i64 {j * lanes}",
            module.loaded(f"b.{j}", f"b.{j}.at"),
        ]
    lines += [
        "  %some = icmp sgt i64 %runs, 0",
        "  br i1 %some, label %tap, label %done",
        "tap:",
        "  %t = phi i64 [ 0, %entry ], [ %t.next, %tap.end ]",
        "  %t.across = phi i64 [ 1, %entry ], [ %t.across.next, %tap.end ]",
        "  %xt = phi ptr [ %x, %entry ], [ %xt.next, %tap.end ]",
        "  %wt = phi ptr [ %w, %entry ], [ %wt.next, %tap.end ]",
        *(
            f"  %t.{i}.{j} = phi {vector} [ %b.{j}, %entry ], [ %n.{i}.{j}, %tap.end ]"
            for i, j in cells
        ),
        "  %xt.end = getelementptr float, ptr %xt, i64 %run",
        "  br label %k",
        "k:",
        "  %xk = phi ptr [ %xt, %tap ], [ %xk.next, %k ]",
        "  %wk = phi ptr [ %wt, %tap ], [ %wk.next, %k ]",
        *(
            f"  %k.{i}.{j} = phi {vector} [ %t.{i}.{j}, %tap ], [ %n.{i}.{j}, %k ]"
            for i, j in cells
        ),
    ]
    for j in range(vectors):
        lines += [
            f"  %w.{j}.at = getelementptr float, ptr %wk, i64 {j * lanes}",
            module.loaded(f"w.{j}", f"w.{j}.at"),
        ]
    for i in range(count):
        at = "xk"
        if i:
            at = f"x.{i}.at"
            lines.append(f"  %{at} = getelementptr i8, ptr %xk, i64 %o.{i}")
        lines += [
            f"  %x.{i} = load float, ptr %{at}, align 4",
            f"  %x.{i}.one = insertelement {vector} poison, float %x.{i}, i64 0",
            f"  %x.{i}.all = shufflevector {vector} %x.{i}.one, {vector} poison, "
            f"<{lanes} x i32> zeroinitializer",
        ]
        for j in range(vectors):
            given = f"{vector} %x.{i}.all, {vector} %w.{j}, {vector} %k.{i}.{j}"
            lines.append(f"  %n.{i}.{j} = call {vector} @llvm.fmuladd.{module.suffix}({given})")
    lines += [
        "  %xk.next = getelementptr float, ptr %xk, i64 1",
        f"  %wk.next = getelementptr float, ptr %wk, i64 {vectors * lanes}",
        "  %k.more = icmp ne ptr %xk.next, %xt.end",
        "  br i1 %k.more, label %k, label %tap.end",
        "tap.end:",
        "  %t.next = add i64 %t, 1",
        "  %t.turns = icmp eq i64 %t.across, %runs.across",
        "  %t.across.more = add i64 %t.across, 1",
        "  %t.across.next = select i1 %t.turns, i64 1, i64 %t.across.more",
        "  %x.by = select i1 %t.turns, i64 %x.down, i64 %x.across",
        "  %w.by = select i1 %t.turns, i64 %w.down, i64 %w.across",
        "  %xt.next = getelementptr float, ptr %xt, i64 %x.by",
        "  %wt.next = getelementptr float, ptr %wt, i64 %w.by",
        "  %t.more = icmp slt i64 %t.next, %runs",
        "  br i1 %t.more, label %tap, label %done",
        "done:",
        *(
            f"  %d.{i}.{j} = phi {vector} [ %b.{j}, %entry ], [ %n.{i}.{j}, %tap.end ]"
            for i, j in cells
        ),
    ]
    for i, j in cells:
        lines += [
            f"  %d.{i}.{j}.at = getelementptr {vector}, ptr %tile, i64 {i * vectors + j}",
            f"  store {vector} %d.{i}.{j}, ptr %d.{i}.{j}.at, align 64",
        ]
    module.define(
        f"define internal void @tile.{count}.{vectors}({TILE}) #0", [*lines, "  ret void"]
    )


def _add_finish(module: Module) -> None:
    """Adds the function that applies the ending to the sums of a tile, and stores them."""
    operands = "".join(f", ptr %{name}" for name in module.operands)
    lanes = module.lanes
    lines = [
        "  br label %pixel",
        "pixel:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %pixel.end ]",
        "  %sums = phi ptr [ %tile, %entry ], [ %sums.next, %pixel.end ]",
        "  %pixel.by = mul i64 %i, %out.pixel",
        "  %pixel.at = add i64 %place, %pixel.by",
        "  br label %part",
        "part:",
        "  %j = phi i64 [ 0, %pixel ], [ %j.next, %part.end ]",
        "  %from = phi ptr [ %sums, %pixel ], [ %sums.next, %part.end ]",
        "  %at = add i64 %pixel.at, %j",
        "  %own = add i64 %channel, %j",
        "  %left = sub i64 %valid, %j",
        f"  %v = load {module.vector}, ptr %from, align 64",
        f"  %is.whole = icmp sge i64 %left, {lanes}",
        "  br i1 %is.whole, label %whole, label %short",
        "whole:",
        *module.ended("a", "v", "at", "own"),
        "  br label %part.end",
        "short:",
        *module.below("mask", "left"),
        *module.ended("b", "v", "at", "own", "mask"),
        "  br label %part.end",
        "part.end:",
        f"  %sums.next = getelementptr float, ptr %from, i64 {lanes}",
        f"  %j.next = add i64 %j, {lanes}",
        "  %j.more = icmp slt i64 %j.next, %valid",
        "  br i1 %j.more, label %part, label %pixel.end",
        "pixel.end:",
        "  %i.next = add i64 %i, 1",
        "  %i.more = icmp slt i64 %i.next, %count",
        "  br i1 %i.more, label %pixel, label %done",
        "done:",
        "  ret void",
    ]
    head = (
        f"define internal void @finish(ptr %tile, i64 %count, i64 %valid, ptr %out, i64 %place, "
        f"i64 %channel, i64 %out.pixel{operands}) #0"
    )
    module.define(head, lines)


def _add_entry(module: Module, sizes: tuple[int, ...], lanes: int) -> None:
    block = BLOCK * lanes
    operands = "".join(f", ptr %{name}" for name in module.operands)
    tiled = (
        "ptr %tile.x, ptr %tile.w, ptr %tile.bias, ptr %tile, i64 %runs, i64 %runs.across, "
        "i64 %run, i64 %x.across, i64 %x.down, i64 %w.across, i64 %w.down, i64 %apart"
    )
    lines = [
        f"  %tile = alloca [{sizes[0] * BLOCK} x {module.vector}], align 64",
        "  %taps = mul i64 %height.taps, %width.taps",
        "  %depth = mul i64 %taps, %in.channels",
        "  %apart = mul i64 %across, %in.channels",
        "  %is.merged = icmp ne i64 %merged, 0",
        "  %line = mul i64 %in.width, %in.channels",
        "  %line.apart = mul i64 %line, %apart.down",
        "  %tap.apart = mul i64 %apart.across, %in.channels",
        "  br label %block",
        "block:",
        "  %ob = phi i64 [ %x0, %entry ], [ %ob.next, %block.end ]",
        f"  %channel = mul i64 %ob, {block}",
        "  %channels.left = sub i64 %channels, %channel",
        f"  %valid = call i64 @llvm.smin.i64(i64 %channels.left, i64 {block})",
        f"  %is.wide = icmp sgt i64 %valid, {lanes}",
        f"  %pitch = select i1 %is.wide, i64 {block}, i64 {lanes}",
        "  %w.first = mul i64 %channel, %depth",
        "  %w = getelementptr float, ptr %weight, i64 %w.first",
        "  %tile.bias = getelementptr float, ptr %bias, i64 %channel",
        "  %w.tap = mul i64 %in.channels, %pitch",
        "  %w.line = mul i64 %w.tap, %width.taps",
        "  %w.across = add i64 %w.tap, 0",
        "  br label %row.head",
        "row.head:",
        "  %row = phi i64 [ %row0, %block ], [ %row.next, %row.end ]",
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
        "  %a.w = getelementptr float, ptr %w, i64 %a.w.first",
        "  %block.place = add i64 %row.place, %channel",
        "  br label %pixel",
        "pixel:",
        "  %p = phi i64 [ 0, %row.head ], [ %p.next, %pixel.end ]",
        "  %p.first = mul i64 %p, %across",
        "  %p.left = sub i64 %p.first, %left",
        *taps("b", "p.left", "apart.across", "width.taps", "in.width"),
        "  %before = icmp slt i64 %p, %first.pixel",
        "  %behind = icmp sge i64 %p, %end.pixel",
        "  %is.edge = or i1 %before, %behind",
        "  %inside.left = sub i64 %end.pixel, %p",
        "  %room = select i1 %is.edge, i64 1, i64 %inside.left",
        "  %columns = sub i64 %b.1, %b.0",
        "  %merged.run = mul i64 %columns, %in.channels",
        "  %run = select i1 %is.merged, i64 %merged.run, i64 %in.channels",
        "  %runs.across = select i1 %is.merged, i64 1, i64 %columns",
        "  %none = icmp eq i64 %columns, 0",
        "  %runs.all = mul i64 %lines, %runs.across",
        "  %runs = select i1 %none, i64 0, i64 %runs.all",
        "  %b.by = mul i64 %b.0, %apart.across",
        "  %b.x = add i64 %p.left, %b.by",
        "  %b.first = mul i64 %b.x, %in.channels",
        "  %tile.x = getelementptr float, ptr %a.x, i64 %b.first",
        "  %b.w = mul i64 %b.0, %w.tap",
        "  %tile.w = getelementptr float, ptr %a.w, i64 %b.w",
        "  %x.across = add i64 %tap.apart, 0",
        # From the last run of a row of the window to the first one of the next.
        "  %runs.before = add i64 %runs.across, -1",
        "  %x.back = mul i64 %runs.before, %tap.apart",
        "  %x.down = sub i64 %line.apart, %x.back",
        "  %w.back = mul i64 %runs.before, %w.tap",
        "  %w.down = sub i64 %w.line, %w.back",
        "  %p.by = mul i64 %p, %out.pixel",
        "  %place = add i64 %block.place, %p.by",
    ]
    for n, size in enumerate(sizes):
        following = f"try.{sizes[n + 1]}" if n + 1 < len(sizes) else f"take.{size}"
        if n:
            lines.append(f"try.{size}:")
        lines += [
            f"  %fits.{size} = icmp sge i64 %room, {size}",
            f"  br i1 %fits.{size}, label %take.{size}, label %{following}",
        ]
    for size in sizes:
        lines += [
            f"take.{size}:",
            f"  br i1 %is.wide, label %take.{size}.2, label %take.{size}.1",
        ]
        for vectors in range(1, BLOCK + 1):
            lines += [
                f"take.{size}.{vectors}:",
                f"  call void @tile.{size}.{vectors}({tiled})",
                "  br label %finish",
            ]
    chosen = ", ".join(
        f"[ {size}, %take.{size}.{vectors} ]" for size in sizes for vectors in range(1, BLOCK + 1)
    )
    lines += [
        "finish:",
        f"  %count = phi i64 {chosen}",
        "  call void @finish(ptr %tile, i64 %count, i64 %valid, ptr %out, i64 %place, "
        f"i64 %channel, i64 %out.pixel{operands})",
        "  br label %pixel.end",
        "pixel.end:",
        "  %p.next = add i64 %p, %count",
        "  %p.more = icmp slt i64 %p.next, %pixels",
        "  br i1 %p.more, label %pixel, label %row.end",
        "row.end:",
        "  %row.next = add i64 %row, 1",
        "  %row.more = icmp slt i64 %row.next, %row1",
        "  br i1 %row.more, label %row.head, label %block.end",
        "block.end:",
        "  %ob.next = add i64 %ob, 1",
        "  %ob.more = icmp slt i64 %ob.next, %x1",
        "  br i1 %ob.more, label %block, label %over",
        "over:",
        "  ret i32 0",
    ]
    module.entry(lines)
