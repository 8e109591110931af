"""Pools along any number of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from dala.ir.types import S64
from dala.kernels.base.builtin import written
from dala.kernels.tensor.reductions import reduce_max, reduce_mean, reduce_sum
from dala.kernels.tensor.windows import Windows
from dala.ml.executor.channels_last import TO_LAST
from dala.ml.executor.convolutions import windows_of
from dala.ml.executor.dtypes import on_device
from dala.ml.executor.epilogue import Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import numbers_of, require
from dala.ml.executor.steps import Steps
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

Spans = tuple[tuple[int, int], ...]
"""Along each axis, from where up to where elements count."""


def pool(context: NodeContext) -> Iterable[Stage]:
    """MaxPool, AveragePool and LpPool."""
    given, node, steps = context.shape(), context.node, Steps()
    require(node, len(given) > 2, f"there are no planes in {given}")
    plane = given[2:]
    size = numbers_of(node, "kernel_shape", node.get("kernel_shape", ()), len(plane), 1)
    windows = windows_of(node, size, plane, ceiling=bool(node.get("ceil_mode", 0)))
    counts = tuple(item.count for item in windows)
    if node.outputs[0]:
        order = context.order()
        x, last = context.ordered_input(order), order == TO_LAST
        out = context.ordered_output((*given[:2], *counts), order, x.scalar)
        whole = all(w == Windows(n, w.step, 1, 0, 1) for n, w in zip(plane, windows, strict=True))
        seen, shape = (x, out.shape) if last else (_planes(x), (math.prod(given[:2]), *counts))
        if whole and node.op != "LpPool":
            _whole(steps, node.op, x, out, last)
        elif node.op == "MaxPool":
            steps.run(_largest_kernel(windows, last), [seen], shape, into=out)
        elif node.op == "LpPool":
            steps.run(_norm_kernel(windows, node.get("p", 2), last), [seen], shape, into=out)
        else:
            spans = _counted(node, plane, windows)
            steps.run(_mean_kernel(windows, spans, last), [seen], shape, into=out)
    if len(node.outputs) > 1 and node.outputs[1]:
        strides = [math.prod(plane[axis + 1 :]) for axis in range(len(plane))]
        if node.get("storage_order", 0):
            strides = [math.prod(plane[:axis]) for axis in range(len(plane))]
        places = context.output((*given[:2], *counts), on_device(S64), 1)
        seen = _planes(context.input())
        shape = (math.prod(given[:2]), *counts)
        steps.run(_place_kernel(windows, tuple(strides)), [seen], shape, into=places)
    return steps


def _planes(x: Buffer) -> Buffer:
    """Returns planes as they lie, one after another."""
    return reshaped(x, (math.prod(x.shape[:2]), *x.shape[2:]))


def _counted(node: Node, plane: Shape, windows: Sequence[Windows]) -> Spans:
    """Returns what a mean is over: the elements of the plane, or those of its padding, too.

    What lies beyond the padding, where the last window is rounded up, never counts.
    """
    if not node.get("count_include_pad", 0):
        return tuple((0, size) for size in plane)
    after = node.get("pads", [0] * 2 * len(plane))[len(plane) :]
    ends = [size + more for size, more in zip(plane, after, strict=True)]
    if node.get("auto_pad", "NOTSET").startswith("SAME"):
        ends = [(w.count - 1) * w.step + (w.size - 1) * w.apart + 1 - w.before for w in windows]
    return tuple((-w.before, end) for w, end in zip(windows, ends, strict=True))


def global_pool(context: NodeContext) -> Iterable[Stage]:
    """GlobalAveragePool, GlobalMaxPool and GlobalLpPool."""
    given, node, steps = context.shape(), context.node, Steps()
    require(node, len(given) > 2, f"there are no planes in {given}")
    shape = (*given[:2], *(1,) * (len(given) - 2))
    if node.op != "GlobalLpPool":
        order = context.order()
        x = context.ordered_input(order)
        out = context.ordered_output(shape, order, x.scalar)
        _whole(steps, node.op, x, out, order == TO_LAST)
        return steps
    x = context.input()
    out = context.output(shape, x.scalar)
    powers = steps.elementwise(_power_of("x0", node.get("p", 2)), x)
    total = steps.reduce(reduce_sum, powers, range(2, len(x.shape)))
    steps.elementwise(_root_of("x0", node.get("p", 2)), total, into=out)
    return steps


def _whole(steps: Steps, op: str, x: Buffer, out: Buffer, last: bool) -> None:
    """The largest or the mean of each plane, whose channels may be last."""
    kernel = reduce_max if "Max" in op else reduce_mean
    seen = (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1])
    if not last:
        seen = (math.prod(x.shape[:2]), math.prod(x.shape[2:]), 1)
    target = reshaped(out, (seen[0], seen[2]))
    steps.append(Stage(kernel, [reshaped(x, seen)], target, {"axis": 1}))


def _power_of(x: str, p: int) -> str:
    plain = {1: f"dala.abs({x})", 2: f"{x} * {x}"}
    return plain.get(p, f"dala.pow(dala.abs({x}), {literal(float(p))})")


def _root_of(x: str, p: int) -> str:
    return {1: x, 2: f"dala.sqrt({x})"}.get(p, f"dala.pow({x}, {literal(1.0 / p)})")


# -- kernels ---------------------------------------------------------------------------------------


def _taps(windows: Sequence[Windows]) -> tuple[list[str], str, str]:
    """Lines of loops that give each tap's place q0, q1 …; what indents their body; the places."""
    lines = []
    for axis, item in enumerate(windows):
        blank = "    " * axis
        at = f"p{axis} * {item.step} - {item.before} + t{axis} * {item.apart}"
        lines += [f"{blank}for t{axis} in range({item.size}):", f"{blank}    q{axis} = {at}"]
    return lines, "    " * len(windows), ", ".join(f"q{axis}" for axis in range(len(windows)))


def _first(windows: Sequence[Windows]) -> tuple[list[str], str]:
    """Lines that find the first tap of a window that lies inside, and its place."""
    lines = []
    for axis, item in enumerate(windows):
        start = f"(p{axis} * {item.step} - {item.before})"
        skipped = f"max(0, -{start} + {item.apart - 1}) // {item.apart}"
        lines.append(f"f{axis} = {start} + {skipped} * {item.apart}")
    return lines, ", ".join(f"f{axis}" for axis in range(len(windows)))


def _inside(windows: Sequence[Windows]) -> str:
    axes = range(len(windows))
    return " and ".join(f"q{axis} >= 0 and q{axis} < x.shape[{axis + 1}]" for axis in axes)


def _pooling(
    name: str, windows: Sequence[Windows], lines: Sequence[str], *, last: bool = False
) -> Kernel:
    """A kernel over planes, or over pixels whose channels are last."""
    names = ["i", *(f"p{axis}" for axis in range(len(windows))), *["c"] * last]
    head = f"def {name}(x):\n    {', '.join(names)} = dala.position({len(names)})\n    "
    return written(name, head + "\n    ".join(lines))


@cache
def _largest_kernel(windows: tuple[Windows, ...], last: bool) -> Kernel:
    # What a tap outside stands for is one inside, so that no number has to be less than all.
    (first, start), (loops, blank, at) = _first(windows), _taps(windows)
    start, at = start + ", c" * last, at + ", c" * last
    if all(item.apart == 1 for item in windows):
        inside = f"largest = max(largest, x[i, {at}])"
    else:
        inside = f"largest = max(largest, x[i, {at}] if {_inside(windows)} else begun)"
    lines = [*first, f"begun = x[i, {start}]", "largest = begun", *loops, blank + inside]
    return _pooling("max_pool", windows, [*lines, "return largest"], last=last)


@cache
def _place_kernel(windows: tuple[Windows, ...], strides: Shape) -> Kernel:
    """A kernel for where the first of the largest lies, counted through all planes."""
    (first, start), (loops, blank, at) = _first(windows), _taps(windows)
    sizes = " * ".join(f"x.shape[{axis + 1}]" for axis in range(len(windows)))
    place, begun = (
        " + ".join(f"{name}{axis} * {by}" for axis, by in enumerate(strides)) for name in "qf"
    )
    lines = [*first, f"largest, place = x[i, {start}], {begun}", *loops]
    lines += [
        f"{blank}larger = {_inside(windows)} and x[i, {at}] > largest",
        f"{blank}place = {place} if larger else place",
        f"{blank}largest = x[i, {at}] if larger else largest",
        f"return i * ({sizes}) + place",
    ]
    return _pooling("max_place", windows, lines)


@cache
def _mean_kernel(windows: tuple[Windows, ...], spans: Spans, last: bool) -> Kernel:
    loops, blank, at = _taps(windows)
    at += ", c" * last
    counts = " and ".join(
        f"q{axis} >= {low} and q{axis} < {high}" for axis, (low, high) in enumerate(spans)
    )
    lines = ["total, count = 0.0, 0.0", *loops]
    lines += [
        f"{blank}total += x[i, {at}] if {_inside(windows)} else 0.0",
        f"{blank}count += 1.0 if {counts} else 0.0",
        "return total / count",
    ]
    return _pooling("mean_pool", windows, lines, last=last)


@cache
def _norm_kernel(windows: tuple[Windows, ...], p: int, last: bool) -> Kernel:
    loops, blank, at = _taps(windows)
    at += ", c" * last
    power = _power_of("element", p)
    lines = ["total = 0.0", *loops]
    lines += [
        f"{blank}element = x[i, {at}] if {_inside(windows)} else 0.0",
        f"{blank}total += {power}",
        f"return {_root_of('total', p)}",
    ]
    return _pooling("norm_pool", windows, lines, last=last)


# -- back ------------------------------------------------------------------------------------------


def unpool(context: NodeContext) -> Iterable[Stage]:
    """MaxUnpool: each element where it was the largest, and zeros elsewhere."""
    x, places, node = context.input(), context.input(1), context.node
    axes = len(x.shape) - 2
    require(node, axes > 0, f"there are no planes in {x.shape}")
    size = numbers_of(node, "kernel_shape", node.get("kernel_shape", ()), axes, 1)
    steps_of = numbers_of(node, "strides", node.get("strides", [1] * axes), axes, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0] * 2 * axes), 2 * axes, 0)
    natural = [
        (x.shape[2 + axis] - 1) * steps_of[axis] + size[axis] - pads[axis] - pads[axis + axes]
        for axis in range(axes)
    ]
    wanted, given = [*x.shape[:2], *natural], context.array(2)
    if given is not None:
        wanted = [int(length) for length in np.asarray(given).reshape(-1)]
    fits = len(wanted) == axes + 2 and min(wanted) > 0 and places.shape == x.shape
    require(node, fits, f"{x.shape} at places of {places.shape} do not make {wanted}")
    strides = [math.prod(wanted[axis + 1 :]) for axis in range(axes + 2)]
    sizes = [*x.shape[:2], *natural]
    terms, steps = [], Steps()
    for axis, stride in enumerate(strides):
        rest = math.prod(sizes[axis + 1 :])
        terms.append(f"at // {rest} % {sizes[axis]} * {stride}")
    text = (
        "def unpool(x, places, out: dala.Out):\n    (i,) = dala.position(1)\n"
        f"    at = dala.s32(places[i])\n    out[{' + '.join(terms)}] = x[i]"
    )
    flat = [reshaped(item, (math.prod(x.shape),)) for item in (x, places)]
    out = context.output(wanted, x.scalar)
    steps.run(written("unpool", text), flat, (math.prod(wanted),), into=out)
    return steps
