"""Operators that move elements, or only see them in another shape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from dala.errors import DtypeError, ModelError
from dala.ir.nodes import Border
from dala.kernels.base import language
from dala.kernels.tensor.elementwise import fill as filled
from dala.kernels.tensor.gathering import concat as joined
from dala.kernels.tensor.gathering import gather as gathered
from dala.kernels.tensor.matmul import transposed
from dala.lang.lower import Definition
from dala.lang.source import from_text
from dala.ml.executor.channels_last import (
    TO_LAST,
    TO_PLANES,
    ChannelsLast,
    in_order,
)
from dala.ml.executor.constant_folding import axes_of, slices_of
from dala.ml.executor.dtypes import CASTS
from dala.ml.executor.epilogue import Epilogue, Shape, pointwise_stage
from dala.ml.executor.native_joins import joined_stage, joins
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.placement import check_places
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
from dala.runtime.buffers.views import reshaped, view
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

BORDERS: dict[str, Border] = {
    "constant": "zero",
    "edge": "clamp",
    "reflect": "mirror",
    "wrap": "wrap",
}
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
    alone = all(shape[axis] == 1 for axis in gone or ())
    require(context.node, alone, f"axes {axes} of {shape} are not all one long")
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
    name, made = context.node.inputs[0], context.node.outputs[0]
    found = context.builder.settled(name)
    if order == TO_LAST and isinstance(found, ChannelsLast):
        context.builder.values[made] = found.buffer
    elif order == TO_PLANES and isinstance(found, Buffer) and found.is_host:
        context.builder.values[made] = ChannelsLast(found)
    elif matter == sorted(matter):
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
    if context.node.get("mode", "DCR") == "DCR":
        target = reshaped(out, (n, size, size, channels, down, across))
        yield from transposed(apart, target, (0, 3, 5, 1, 2, 4))
    else:
        target = reshaped(out, (n, channels, size, size, down, across))
        yield from transposed(apart, target, (0, 1, 3, 5, 2, 4))


def concat(context: NodeContext) -> Iterator[Stage]:
    count = len(context.node.inputs)
    shapes = [context.shape(i) for i in range(count)]
    axis, shape = axis_in(context.node, context.node.get("axis"), len(shapes[0])), [*shapes[0]]
    alike = all(
        len(item) == len(shape) and [*item[:axis], shape[axis], *item[axis + 1 :]] == shape
        for item in shapes
    )
    listed = " and ".join(map(str, shapes))
    require(context.node, alike, f"{listed} are not the same but for axis {axis}")
    dtypes = {context.dtype(i) for i in range(count)}
    if len(dtypes) > 1:
        names = ", ".join(sorted(item.name for item in dtypes))
        raise DtypeError(f"{context.node} of {names}: only values of one dtype are joined.")
    shape[axis] = sum(item[axis] for item in shapes)
    order = context.order(*range(count))
    parts = [context.ordered_input(order, i) for i in range(count)]
    out = context.ordered_output(shape, order, parts[0].scalar)
    place = order.index(axis)
    if out.is_host and joins(out, place):
        yield joined_stage(parts, out, place)
    else:
        yield Stage(joined, parts, out, {"axis": place})


def gather(context: NodeContext) -> Iterator[Stage]:
    x, indices = context.input(0), context.input(1)
    axis = axis_in(context.node, context.node.get("axis", 0), len(x.shape))
    check_places(context, 1, [x.shape[axis]])
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    yield Stage(gathered, [x, indices], context.output(shape, x.scalar), {"axis": axis})


def expand(context: NodeContext) -> Iterator[Stage]:
    x = context.input()
    wanted = [int(size) for size in np.asarray(context.array(1)).reshape(-1)]
    out = context.output(broadcast(context.node, [x.shape, wanted]), x.scalar)
    yield pointwise_stage(Epilogue((), "x0"), [x], out)


def slice_(context: NodeContext) -> Iterator[Stage]:
    given, order = context.shape(), context.order()
    x = context.ordered_input(order)
    taken = [
        item.indices(size)
        for item, size in zip(slices_of(context.node, context.arrays(), given), given, strict=True)
    ]
    shape = [len(range(*item)) for item in taken]
    out = context.ordered_output(shape, order, x.scalar)
    if 0 not in shape:
        starts, steps = ([taken[axis][place] for axis in order] for place in (0, 2))
        yield picked(x, out, starts, steps)


def split(context: NodeContext) -> Iterator[Stage]:
    node, whole, order = context.node, context.shape(), context.order()
    x = context.ordered_input(order)
    axis = axis_in(node, node.get("axis", 0), len(whole))
    count = len(node.outputs)
    given = context.array(1) if node.has(1) else node.get("split")
    each = -(-whole[axis] // count)
    sizes = [each] * (count - 1) + [whole[axis] - each * (count - 1)]
    sizes = sizes if given is None else numbers_of(node, "split", given, count, 0)
    fits = min(sizes) >= 0 and sum(sizes) == whole[axis]
    require(node, fits, f"parts of {sizes} are not the {whole[axis]} of axis {axis}")
    first = 0
    for i, size in enumerate(sizes):
        shape = (*whole[:axis], size, *whole[axis + 1 :])
        starts = [first if j == axis else 0 for j in order]
        first += size
        if node.outputs[i]:
            out = context.ordered_output(shape, order, x.scalar, i)
            yield picked(x, out, starts, [1] * len(shape))


def pad(context: NodeContext) -> Iterator[Stage]:
    """Pad by a constant, by the edge, or by what lies inside of it."""
    node, whole, order = context.node, context.shape(), context.order()
    x, rank = context.ordered_input(order), len(whole)
    pads = node.get("pads") if node.opset < 11 else np.asarray(context.array(1)).tolist()
    named = context.array(3)
    axes = list(range(rank)) if named is None else axes_in(node, named.tolist(), rank)
    pads = numbers_of(node, "pads", pads, 2 * len(axes), None)
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    given = node.get("value", 0.0) if node.opset < 11 else context.array(2)
    fill = 0.0 if given is None or np.size(given) == 0 else np.asarray(given).reshape(()).item()
    shape = [n + a + b for n, a, b in zip(whole, before, after, strict=True)]
    require(node, min(shape, default=0) >= 0, f"pads of {pads} leave nothing of {whole}")
    mode = node.get("mode", "constant")
    check_border(context, mode, before, after)
    out = context.ordered_output(shape, order, x.scalar)
    before = list(in_order(before, order))
    if 0 in out.shape:
        return
    if 0 in x.shape:
        yield Stage(filled, [], out, {"value": fill})
        return
    stage = picked(x, out, [-count for count in before], [1] * rank, BORDERS[mode])
    if mode == "constant" and fill:
        value = float(fill) if x.scalar.is_float else int(fill)
        kernel = _filling_kernel(len(stage.output.shape))
        stage = Stage(kernel, stage.inputs, stage.output, {**stage.params, "fill": value})
    yield stage


def check_border(
    context: NodeContext, mode: str, before: Sequence[int], after: Sequence[int]
) -> None:
    """Refuse to take more from inside than there is."""
    shape = context.shape()
    least = {"constant": None, "edge": 1, "wrap": 1, "reflect": 2}[mode]
    for size, *pads in zip(shape, before, after, strict=True):
        if least is None or max(pads) <= 0:
            continue
        fits = size >= least and (mode != "reflect" or max(pads) < size)
        require(context.node, fits, f"pads of {pads} are more than {size} elements have to {mode}")


def tile(context: NodeContext) -> Iterator[Stage]:
    x = context.input()
    counts = numbers_of(context.node, "repeats", context.array(1), len(x.shape), 0)
    out = context.output([a * b for a, b in zip(x.shape, counts, strict=True)], x.scalar)
    yield picked(x, out, [0] * len(x.shape), [1] * len(x.shape), "wrap")


def picked(
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


def bit_cast(context: NodeContext) -> Iterable[Stage]:
    """BitCast: the same bits as another type."""
    x, to = context.input(), CASTS[context.node.get("to")]
    alike = x.scalar.size_bytes == to.size_bytes
    require(context.node, alike, f"{x.dtype} has other bits than {to.name}")
    context.builder.values[context.node.outputs[0]] = view(x, to, x.shape)
    return ()


def dropout(context: NodeContext) -> Iterator[Stage]:
    """Dropout outside of training, which leaves all as it is; its mask is true everywhere."""
    node, training = context.node, context.array(2)
    ratio = context.array(1)
    dropped = 0.5 if ratio is None else float(ratio.reshape(()))
    if training is not None and training.any() and dropped:
        raise ModelError(
            f"{node} is in training mode, in which it is random: export it for inference."
        )
    yield from context.view(context.shape())
    if len(node.outputs) > 1 and node.outputs[1]:
        mask = np.ones(context.shape(), bool)
        context.builder.values[node.outputs[1]] = mask if node.opset >= 10 else mask.astype("f4")


def eye_like(context: NodeContext) -> Iterable[Stage]:
    """EyeLike: ones on a diagonal, known from the shape alone."""
    node, shape = context.node, context.shape()
    require(node, len(shape) == 2, f"{shape} has not two axes")
    to = node.get("dtype")
    dtype = context.dtype().numpy if to is None else CASTS[to].numpy
    made = np.eye(shape[0], shape[1], node.get("k", 0), np.float32).astype(dtype)
    context.builder.values[node.outputs[0]] = made
    return ()


def size_of(context: NodeContext) -> Iterable[Stage]:
    """Size: known before anything runs."""
    count = np.asarray(math.prod(context.shape()), np.int64)
    context.builder.values[context.node.outputs[0]] = count
    return ()


def shape_of(context: NodeContext) -> Iterable[Stage]:
    """Shape: known before anything runs."""
    shape = context.shape()
    start, stop = context.node.get("start", 0), context.node.get("end")
    context.builder.values[context.node.outputs[0]] = np.asarray(shape[start:stop], np.int64)
    return ()
