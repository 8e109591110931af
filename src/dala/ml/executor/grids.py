"""Planes and blocks sampled between their elements: at places of a grid, or under boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np

from dala.errors import ModelError
from dala.kernels.base.builtin import written
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import axes_in, require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic"}
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}


def grid_sample(context: NodeContext) -> Iterable[Stage]:
    """GridSample of rows, planes and blocks."""
    node, x, grid, steps = context.node, context.input(), context.input(1), Steps()
    axes = len(x.shape) - 2
    fits = axes >= 1 and len(grid.shape) == axes + 2 and grid.shape[-1] == axes
    fits = fits and grid.shape[0] == x.shape[0]
    require(node, fits, f"a grid of {grid.shape} is none for {x.shape}")
    given = node.get("mode", "linear")
    mode, border = MODES.get(given, given), node.get("padding_mode", "zeros")
    if mode not in TAPS or border not in ("zeros", "border", "reflection"):
        raise ModelError(f"{node}: mode is {given!r} and padding_mode {border!r}.")
    places = math.prod(grid.shape[1:-1])
    shape = (*x.shape[:2], places)
    kernel = _sampling_kernel(axes, mode, border, bool(node.get("align_corners", 0)))
    out = context.output((*x.shape[:2], *grid.shape[1:-1]), x.scalar)
    steps.run(kernel, [x, reshaped(grid, (x.shape[0], places, axes))], shape, into=out)
    return steps


@cache
def _sampling_kernel(axes: int, mode: str, border: str, corners: bool) -> Kernel:
    """A kernel that reads (n, c, place) between the elements of x, where a grid says."""
    lines = ["n, c, p = dala.position(3)"]
    for axis in range(axes):
        size = f"s{axis}"
        lines.append(f"{size} = dala.f32(x.shape[{axis + 2}])")
        # The last number of a place counts along the last axis.
        at = f"grid[n, p, {axes - 1 - axis}]"
        scaled = f"({at} + 1.0) / 2.0 * ({size} - 1.0)"
        lines.append(f"g{axis} = {scaled if corners else f'(({at} + 1.0) * {size} - 1.0) / 2.0'}")
        if mode == "nearest":
            lines.append(f"g{axis} = dala.round(g{axis})")
        elif border != "zeros" and mode == "linear":
            lines += _bordered(f"g{axis}", size, border, corners)
        lines.append(f"f{axis} = dala.floor(g{axis})")
        lines.append(f"r{axis} = g{axis} - f{axis}")
    lines.append("total = 0.0")
    taps, first = TAPS[mode], -1 if mode == "cubic" else 0
    for axis in range(axes):
        blank = "    " * axis
        lines.append(f"{blank}for t{axis} in range({taps}):")
        lines.append(f"{blank}    q{axis} = f{axis} + dala.f32(t{axis}) + {float(first)}")
        lines += [f"{blank}    {line}" for line in _weight(axis, mode)]
        if border == "zeros":
            lines.append(f"{blank}    i{axis} = q{axis} >= 0.0 and q{axis} <= s{axis} - 1.0")
        else:
            bordered = _bordered(f"q{axis}", f"s{axis}", border, corners)
            lines += [f"{blank}    {line}" for line in bordered]
    blank = "    " * axes
    index = ", ".join(f"int(q{axis})" for axis in range(axes))
    element = f"x[n, c, {index}]"
    if border == "zeros":
        inside = " and ".join(f"i{axis}" for axis in range(axes))
        element = f"({element} if {inside} else 0.0)"
    weight = " * ".join(f"w{axis}" for axis in range(axes))
    lines += [f"{blank}total += {element} * {weight}", "return total"]
    return written("sample", "def sample(x, grid):\n    " + "\n    ".join(lines))


def _weight(axis: int, mode: str) -> list[str]:
    """Lines for the weight of a tap along an axis."""
    if mode == "nearest":
        return [f"w{axis} = 1.0"]
    far = f"d{axis} = dala.abs(r{axis} - dala.f32(t{axis}){' + 1.0' if mode == 'cubic' else ''})"
    if mode == "linear":
        return [far, f"w{axis} = 1.0 - d{axis}"]
    d = f"d{axis}"
    near = f"(1.25 * {d} - 2.25) * {d} * {d} + 1.0"
    wide = f"((-0.75 * {d} + 3.75) * {d} - 6.0) * {d} + 3.0"
    return [far, f"w{axis} = {near} if {d} <= 1.0 else {wide}"]


def _bordered(name: str, size: str, border: str, corners: bool) -> list[str]:
    """Lines that bring a place outside back inside."""
    if border == "border":
        return [f"{name} = min(max({name}, 0.0), {size} - 1.0)"]
    low = "0.0" if corners else "-0.5"
    span = f"({size} - 1.0)" if corners else size
    return [
        f"u{name} = dala.abs({name} - {low})",
        f"k{name} = dala.floor(u{name} / max({span}, 1.0))",
        f"u{name} = u{name} - k{name} * {span}",
        f"e{name} = k{name} - 2.0 * dala.floor(k{name} / 2.0) < 0.5",
        f"{name} = (u{name} if e{name} else {span} - u{name}) + {low}",
        f"{name} = min(max({name}, 0.0), {size} - 1.0)",
    ]


def affine_grid(context: NodeContext) -> Iterable[Stage]:
    """AffineGrid: the places of a grid, each turned and moved by a matrix."""
    node, theta, steps = context.node, context.input(), Steps()
    sizes = [int(size) for size in np.asarray(context.array(1)).reshape(-1)]
    batch, plane = sizes[0] if sizes else 0, sizes[2:]
    axes = len(plane)
    fits = axes in (2, 3) and min(sizes) > 0 and theta.shape == (batch, axes, axes + 1)
    require(node, fits, f"matrices of {theta.shape} are none for a grid of {sizes}")
    corners = bool(node.get("align_corners", 0))
    names = [f"p{axis}" for axis in range(axes)]
    lines = [f"n, {', '.join(names)}, k = dala.position({axes + 2})"]
    for axis, size in enumerate(plane):
        step, start = 2.0 / size, 1.0 / size - 1.0
        if corners:
            step, start = 2.0 / (size - 1) if size > 1 else 0.0, -1.0 if size > 1 else 0.0
        lines.append(f"v{axis} = dala.f32(p{axis}) * {literal(step)} + {literal(start)}")
    terms = [f"theta[n, k, {axes - 1 - axis}] * v{axis}" for axis in range(axes)]
    lines.append(f"return {' + '.join(terms)} + theta[n, k, {axes}]")
    kernel = written("grid", "def grid(theta):\n    " + "\n    ".join(lines))
    shape = (batch, *plane, axes)
    steps.run(kernel, [theta], shape, into=context.output(shape, theta.scalar))
    return steps


def roi_align(context: NodeContext) -> Iterable[Stage]:
    """RoiAlign: what lies under boxes, as planes of one size."""
    node, x, boxes, which = context.node, context.input(), context.input(1), context.input(2)
    count = boxes.shape[0] if boxes.shape else 0
    fits = len(x.shape) == 4 and boxes.shape == (count, 4) and which.shape == (count,)
    require(node, fits, f"boxes of {boxes.shape} in {which.shape} are none of {x.shape}")
    tall, wide = int(node.get("output_height", 1)), int(node.get("output_width", 1))
    usual = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = node.get("coordinate_transformation_mode", usual) == "half_pixel"
    ratio, mode = int(node.get("sampling_ratio", 0)), node.get("mode", "avg")
    if mode not in ("avg", "max"):
        raise ModelError(f"{node}: mode is {mode!r}, not avg or max.")
    kernel = _aligning_kernel(tall, wide, half, ratio, mode, node.get("spatial_scale", 1.0))
    steps, shape = Steps(), (count, x.shape[1], tall, wide)
    steps.run(kernel, [x, boxes, which], shape, into=context.output(shape, x.scalar))
    return steps


@cache
def _aligning_kernel(
    tall: int, wide: int, half: bool, ratio: int, mode: str, scale: float
) -> Kernel:
    by, shift = literal(scale), "0.5" if half else "0.0"
    least = "" if half else ", 1.0"
    body = [
        "    y = top + (dala.f32(i) + (dala.f32(a) + 0.5) / dala.f32(rows)) * down",
        "    for b in range(columns):",
        "        z = left + (dala.f32(j) + (dala.f32(b) + 0.5) / dala.f32(columns)) * across",
        "        beyond = y < -1.0 or y > h or z < -1.0 or z > w",
        "        u, v = min(max(y, 0.0), h - 1.0), min(max(z, 0.0), w - 1.0)",
        "        m, n = int(dala.floor(u)), int(dala.floor(v))",
        "        f, g = u - dala.floor(u), v - dala.floor(v)",
        "        p, q = x[k, c, m, n] * (1.0 - f) * (1.0 - g), x[k, c, m, n + 1] * (1.0 - f) * g",
        "        s, t = x[k, c, m + 1, n] * f * (1.0 - g), x[k, c, m + 1, n + 1] * f * g",
    ]
    if mode == "avg":
        body.append("        found += 0.0 if beyond else p + q + s + t")
    else:
        body.append("        largest = 0.0 if beyond else max(max(p, q), max(s, t))")
        body.append("        found = largest if a + b == 0 else max(found, largest)")
    sizes = ["down", "across"]
    counts = [f"max(int(dala.ceil({it})), 1)" if ratio <= 0 else str(ratio) for it in sizes]
    lines = [
        "r, c, i, j = dala.position(4)",
        "k = int(which[r])",
        "h, w = dala.f32(x.shape[2]), dala.f32(x.shape[3])",
        f"left, top = boxes[r, 0] * {by} - {shift}, boxes[r, 1] * {by} - {shift}",
        f"right, bottom = boxes[r, 2] * {by} - {shift}, boxes[r, 3] * {by} - {shift}",
        f"down = {f'max(bottom - top{least})' if least else 'bottom - top'}",
        f"across = {f'max(right - left{least})' if least else 'right - left'}",
        f"down, across = down / {float(tall)}, across / {float(wide)}",
        f"rows, columns = {counts[0]}, {counts[1]}",
        "found = 0.0",
        "for a in range(rows):",
        *body,
        "return found / dala.f32(rows * columns)" if mode == "avg" else "return found",
    ]
    return written("align", "def align(x, boxes, which):\n    " + "\n    ".join(lines))


def center_crop_pad(context: NodeContext) -> Iterable[Stage]:
    """CenterCropPad: axes cut or filled up with zeros at both ends."""
    node, x, steps = context.node, context.input(), Steps()
    rank = len(x.shape)
    axes = axes_in(node, node.get("axes") or list(range(rank)), rank)
    wanted = [int(size) for size in np.asarray(context.array(1)).reshape(-1)]
    fits = len(wanted) == len(axes) and min(wanted, default=0) >= 0
    require(node, fits, f"sizes of {wanted} are none for axes {axes}")
    shape, terms, inside = list(x.shape), [f"p{axis}" for axis in range(rank)], []
    for axis, size in zip(axes, wanted, strict=True):
        shape[axis] = size
        more = size - x.shape[axis]
        shift = -(more // 2) if more > 0 else -more // 2
        terms[axis] = f"p{axis} + {shift}"
        if more > 0:
            inside.append(f"{terms[axis]} >= 0 and {terms[axis]} < x.shape[{axis}]")
    names = ", ".join(f"p{axis}" for axis in range(rank))
    element = f"x[{', '.join(terms)}]"
    found = f"{element} if {' and '.join(inside)} else 0" if inside else element
    text = f"def crop(x):\n    ({names},) = dala.position({rank})\n    return {found}"
    out = context.output(shape, x.scalar)
    steps.run(written("crop", text), [x], shape, into=out)
    return steps
