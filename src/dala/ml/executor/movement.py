"""Operators that move elements, or only see them in another shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from dala.ir.nodes import Border
from dala.kernels.base import language
from dala.kernels.base.builtin import written
from dala.kernels.tensor.gathering import concat as joined
from dala.kernels.tensor.gathering import gather as gathered
from dala.kernels.tensor.matmul import transposed
from dala.lang.lower import Definition
from dala.lang.source import from_text
from dala.ml.executor.constant_folding import axes_of, slices_of
from dala.ml.executor.epilogue import Epilogue, Shape, pointwise_stage
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import (
    axes_in,
    axis_in,
    broadcast,
    check_spatial,
    numbers_of,
    require,
)
from dala.ml.onnx.tensors import LARGEST_RANK
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

BORDERS: dict[str, Border] = {"constant": "zero", "edge": "clamp", "reflect": "mirror"}
"""What each mode of Pad is called as a border rule."""


# -- views -----------------------------------------------------------------------------------------


def reshape(context: NodeContext) -> Iterable[Stage]:
    """Reshape: 0 keeps a size unless it is allowed to mean 0, -1 is what is left."""
    shape, wanted = context.shape(), context.array(1)
    sizes = [int(size) for size in np.asarray(wanted).reshape(-1)]
    require(context.node, len(sizes) <= LARGEST_RANK, f"{len(sizes):,} axes are too many")
    if not context.node.get("allowzero", 0):
        kept = [*shape, *[0] * len(sizes)]
        sizes = [kept[i] if size == 0 else size for i, size in enumerate(sizes)]
    rest = math.prod(size for size in sizes if size != -1)
    left = math.prod(shape) // rest if rest else 0
    require(context.node, sizes.count(-1) <= 1, f"{sizes} leaves more than one size open")
    return context.view([left if size == -1 else size for size in sizes])


def flatten(context: NodeContext) -> Iterable[Stage]:
    shape, axis = context.shape(), context.node.get("axis", 1)
    axis = len(shape) if axis == len(shape) else axis_in(context.node, axis, len(shape))
    return context.view((math.prod(shape[:axis]), math.prod(shape[axis:])))


def squeeze(context: NodeContext) -> Iterable[Stage]:
    shape, axes = context.shape(), axes_of(context.node, context.arrays(), 1)
    gone = None if axes is None else axes_in(context.node, axes, len(shape))
    return context.view(
        [n for i, n in enumerate(shape) if (n != 1 if gone is None else i not in gone)]
    )


def unsqueeze(context: NodeContext) -> Iterable[Stage]:
    axes = axes_of(context.node, context.arrays(), 1) or []
    rank = len(context.shape()) + len(axes)
    added, sizes = axes_in(context.node, axes, rank), iter(context.shape())
    return context.view([1 if axis in added else next(sizes) for axis in range(rank)])


# -- moving ----------------------------------------------------------------------------------------


def transpose(context: NodeContext) -> Iterator[Stage]:
    shape = context.shape()
    order = tuple(context.node.get("perm") or range(len(shape))[::-1])
    fits = sorted(order) == list(range(len(shape)))
    require(context.node, fits, f"{order} is no order of the {len(shape)} axes of {shape}")
    wanted = tuple(shape[axis] for axis in order)
    matter = [axis for axis in order if shape[axis] != 1]
    if matter == sorted(matter):
        yield from context.view(wanted)
    else:
        x = context.input()
        yield from transposed(x, context.output(wanted, x.scalar), order)


def depth_to_space(context: NodeContext) -> Iterator[Stage]:
    check_spatial(context.node, context.shape())
    n, channels, height, width = context.shape()
    (size,) = numbers_of(context.node, "blocksize", context.node.get("blocksize", 0), 1, 1)
    made = channels // size**2
    whole = made * size**2 == channels
    require(context.node, whole, f"{channels} channels are no blocks of {size} × {size}")
    depth_first = context.node.get("mode", "DCR") == "DCR"
    apart = (
        (n, size, size, made, height, width)
        if depth_first
        else (n, made, size, size, height, width)
    )
    order = (0, 3, 4, 1, 5, 2) if depth_first else (0, 1, 4, 2, 5, 3)
    x = context.input()
    out = context.output((n, made, height * size, width * size), x.scalar)
    target = reshaped(out, (n, made, height, size, width, size))
    yield from transposed(reshaped(x, apart), target, order)


def space_to_depth(context: NodeContext) -> Iterator[Stage]:
    check_spatial(context.node, context.shape())
    n, channels, height, width = context.shape()
    (size,) = numbers_of(context.node, "blocksize", context.node.get("blocksize", 0), 1, 1)
    x = context.input()
    down, across = height // size, width // size
    whole = (down * size, across * size) == (height, width)
    require(context.node, whole, f"{height} × {width} are no blocks of {size} × {size}")
    out = context.output((n, channels * size**2, down, across), x.scalar)
    apart = reshaped(x, (n, channels, down, size, across, size))
    target = reshaped(out, (n, size, size, channels, down, across))
    yield from transposed(apart, target, (0, 3, 5, 1, 2, 4))


def concat(context: NodeContext) -> Iterator[Stage]:
    parts = [context.input(i) for i in range(len(context.node.inputs))]
    axis = axis_in(context.node, context.node.get("axis"), len(parts[0].shape))
    shape = list(parts[0].shape)
    alike = all(
        len(item.shape) == len(shape)
        and [*item.shape[:axis], shape[axis], *item.shape[axis + 1 :]] == shape
        for item in parts
    )
    listed = " and ".join(str(item.shape) for item in parts)
    require(context.node, alike, f"{listed} are not the same but for axis {axis}")
    shape[axis] = sum(item.shape[axis] for item in parts)
    yield Stage(joined, parts, context.output(shape, parts[0].scalar), {"axis": axis})


def gather(context: NodeContext) -> Iterator[Stage]:
    x, indices = context.input(0), context.input(1)
    axis = axis_in(context.node, context.node.get("axis", 0), len(x.shape))
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    yield Stage(gathered, [x, indices], context.output(shape, x.scalar), {"axis": axis})


def gather_places(context: NodeContext) -> Iterator[Stage]:
    """GatherND: what lies at places that are named by a row of positions each."""
    x, indices = context.input(0), context.input(1)
    rank = indices.shape[-1] if indices.shape else 0
    fits = 1 <= rank <= len(x.shape)
    require(context.node, fits, f"places of {rank} numbers are none in {x.shape}")
    rest = x.shape[rank:]
    out = context.output((*indices.shape[:-1], *rest), x.scalar)
    count, inner = math.prod(indices.shape[:-1]), math.prod(rest)
    inputs = [
        reshaped(x, (*x.shape[:rank], inner)),
        reshaped(indices, (count, rank)),
    ]
    yield Stage(_gathering_kernel(rank), inputs, reshaped(out, (count, inner)))


@cache
def _gathering_kernel(rank: int) -> Kernel:
    lines = ["i, j = dala.position(2)"]
    for axis in range(rank):
        lines.append(f"p{axis} = indices[i, {axis}]")
        lines.append(f"p{axis} = p{axis} + x.shape[{axis}] if p{axis} < 0 else p{axis}")
    index = ", ".join(f"p{axis}" for axis in range(rank))
    lines.append(f"return x[{index}, j]")
    return written("gather", "def gather(x, indices):\n    " + "\n    ".join(lines))


def expand(context: NodeContext) -> Iterator[Stage]:
    x = context.input()
    wanted = [int(size) for size in np.asarray(context.array(1)).reshape(-1)]
    out = context.output(broadcast(context.node, [x.shape, wanted]), x.scalar)
    yield pointwise_stage(Epilogue((), "x0"), [x], out)


def slice_(context: NodeContext) -> Iterator[Stage]:
    x = context.input()
    taken = [
        given.indices(size)
        for given, size in zip(
            slices_of(context.node, context.arrays(), x.shape), x.shape, strict=True
        )
    ]
    shape = [len(range(*item)) for item in taken]
    out = context.output(shape, x.scalar)
    yield _picked(x, out, [start for start, _, _ in taken], [step for _, _, step in taken])


def split(context: NodeContext) -> Iterator[Stage]:
    node, x = context.node, context.input()
    axis = axis_in(node, node.get("axis", 0), len(x.shape))
    count = len(node.outputs)
    given = context.array(1) if node.has(1) else node.get("split")
    each = -(-x.shape[axis] // count)
    sizes = [each] * (count - 1) + [x.shape[axis] - each * (count - 1)]
    sizes = sizes if given is None else numbers_of(node, "split", given, count, 0)
    fits = min(sizes) >= 0 and sum(sizes) == x.shape[axis]
    require(node, fits, f"parts of {sizes} are not the {x.shape[axis]} of axis {axis}")
    first = 0
    for i, size in enumerate(sizes):
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        starts = [first if j == axis else 0 for j in range(len(shape))]
        first += size
        if node.outputs[i]:
            yield _picked(x, context.output(shape, x.scalar, i), starts, [1] * len(shape))


def pad(context: NodeContext) -> Iterator[Stage]:
    """Pad by a constant, by the edge, or by what lies inside of it."""
    node, x = context.node, context.input()
    rank = len(x.shape)
    pads = node.get("pads") if node.opset < 11 else np.asarray(context.array(1)).tolist()
    named = context.array(3)
    axes = list(range(rank)) if named is None else axes_in(node, named.tolist(), rank)
    pads = numbers_of(node, "pads", pads, 2 * len(axes), None)
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    given = node.get("value", 0.0) if node.opset < 11 else context.array(2)
    fill = 0.0 if given is None else float(np.asarray(given).reshape(()))
    shape = [n + a + b for n, a, b in zip(x.shape, before, after, strict=True)]
    require(node, min(shape, default=0) >= 0, f"pads of {pads} leave nothing of {x.shape}")
    out = context.output(shape, x.scalar)
    mode = node.get("mode", "constant")
    stage = _picked(x, out, [-count for count in before], [1] * rank, BORDERS[mode])
    if mode == "constant" and fill:
        value = fill if x.scalar.is_float else int(fill)
        kernel = _filling_kernel(len(stage.output.shape))
        stage = Stage(kernel, stage.inputs, stage.output, {**stage.params, "fill": value})
    yield stage


def tile(context: NodeContext) -> Iterator[Stage]:
    x = context.input()
    counts = numbers_of(context.node, "repeats", context.array(1), len(x.shape), 0)
    out = context.output([a * b for a, b in zip(x.shape, counts, strict=True)], x.scalar)
    yield _picked(x, out, [0] * len(x.shape), [1] * len(x.shape), "wrap")


def _picked(
    x: Buffer, out: Buffer, starts: Sequence[int], steps: Sequence[int], border: Border = "clamp"
) -> Stage:
    """Returns the stage that reads each element of the output from start + step · position."""
    axes: list[list[int]] = []  # sizes of x and out, start, step
    for size, made, start, step in zip(x.shape, out.shape, starts, steps, strict=True):
        whole = size == made and start == 0 and step == 1
        if axes and whole and axes[-1][0] == axes[-1][1] and axes[-1][2:] == [0, 1]:
            axes[-1][0] *= size
            axes[-1][1] *= size
        else:
            axes.append([size, made, start, step])
    kernel = _picking_kernel(tuple(item[3] for item in axes), border)
    params = {f"s{i}": item[2] for i, item in enumerate(axes)}
    seen = reshaped(x, tuple(item[0] for item in axes))
    return Stage(kernel, [seen], reshaped(out, tuple(item[1] for item in axes)), params)


@cache
def _picking_kernel(steps: Shape, border: Border) -> Kernel:
    terms = [f"p{i} * {by} + s{i}" if by != 1 else f"p{i} + s{i}" for i, by in enumerate(steps)]
    return _moving_kernel(len(steps), "", f"return x[{', '.join(terms)}]", border)


@cache
def _filling_kernel(rank: int) -> Kernel:
    terms = [f"p{i} + s{i}" for i in range(rank)]
    inside = " and ".join(f"{at} >= 0 and {at} < x.shape[{i}]" for i, at in enumerate(terms))
    line = f"return x[{', '.join(terms)}] if {inside} else fill"
    return _moving_kernel(rank, ", fill: dala.number", line, "clamp")


def _moving_kernel(rank: int, more: str, line: str, border: Border) -> Kernel:
    """A kernel of so many axes that reads x at a distance s0, s1 … from its own position."""
    params = ", ".join(f"s{i}: dala.s32" for i in range(rank))
    names = ", ".join(f"p{i}" for i in range(rank))
    text = f"def pick(x, {params}{more}):\n    ({names},) = dala.position({rank})\n    {line}"
    source = from_text(text, {"dala": language}, "<pick>")
    return Kernel("pick", "", lambda: Definition(source, border))


def shape_of(context: NodeContext) -> Iterable[Stage]:
    """Shape: known before anything runs."""
    shape = context.shape()
    start, stop = context.node.get("start", 0), context.node.get("end")
    context.builder.values[context.node.outputs[0]] = np.asarray(shape[start:stop], np.int64)
    return ()
