"""Transposed convolutions along any number of axes: products, of which windows are summed.

Nothing is multiplied with zeros between elements, so NaN stays where windows reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from dala.kernels.tensor.windows import Windows
from dala.ml.executor.epilogue import Epilogue, Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.phases import has_phases, in_phases
from dala.ml.executor.sizes import check_convolution, numbers_of, require
from dala.ml.executor.steps import Steps
from dala.ml.executor.unfolding import MOST_OPERANDS, ended, kernel_of
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage


def transposed_conv(context: NodeContext) -> Iterator[Stage]:
    """ConvTranspose along any number of axes."""
    node, given, size = context.node, context.shape(), context.shape(1)
    groups = node.get("group", 1)
    bias_shape = context.shape(2) if node.has(2) else None
    check_convolution(node, given, size, bias_shape, groups, turned=True)
    windows = _windows(node, given[2:], size[2:])
    constant = context.is_constant(1) and (not node.has(2) or context.is_constant(2))
    if constant and has_phases(windows, groups):
        return in_phases(context, windows)
    x = context.input()
    bias = context.input(2) if node.has(2) else None
    turned = (groups, size[1] * math.prod(size[2:]), size[0] // groups)
    fixed = None
    if context.is_constant(1):
        fixed = context.weight(
            1, ("turned", groups), lambda it: it.reshape(groups, turned[2], -1).transpose(0, 2, 1)
        )
    weight = None if fixed else reshaped(context.input(1), (groups, turned[2], turned[1]))
    shape = (x.shape[0], size[1] * groups, *(item.count for item in windows))

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        steps = Steps()
        by = fixed if weight is None else steps.transpose(weight, (0, 2, 1))
        assert by is not None
        sums = _spread(steps, x, by, windows)
        return iter([*steps, ended(sums, bias, epilogue, operands, out)])

    return context.defer(shape, finish, lambda given: len(given) <= MOST_OPERANDS)


def _windows(node: Node, plane: Shape, size: Shape) -> list[Windows]:
    """Where windows lie in the result; `count` is its size along an axis."""
    axes = len(plane)
    steps = numbers_of(node, "strides", node.get("strides", [1] * axes), axes, 1)
    apart = numbers_of(node, "dilations", node.get("dilations", [1] * axes), axes, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0] * 2 * axes), 2 * axes, 0)
    more = numbers_of(node, "output_padding", node.get("output_padding", [0] * axes), axes, 0)
    auto, given = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    wanted = None if given is None else numbers_of(node, "output_shape", given[-axes:], axes, 1)
    found = []
    for axis in range(axes):
        whole = (plane[axis] - 1) * steps[axis] + (size[axis] - 1) * apart[axis] + 1 + more[axis]
        before = 0 if auto == "VALID" else pads[axis]
        count = whole - before - (0 if auto == "VALID" else pads[axis + axes])
        if wanted is not None or auto.startswith("SAME"):
            count = plane[axis] * steps[axis] if wanted is None else wanted[axis]
            cut = max(0, whole - count)
            before = (cut if auto == "SAME_UPPER" else cut + 1) // 2
        require(node, count > 0, f"pads of {pads} leave nothing of {whole}")
        found.append(Windows(size[axis], steps[axis], apart[axis], before, count))
    return found


def _spread(steps: Steps, x: Buffer, by: Buffer, windows: Sequence[Windows]) -> Buffer:
    """The sums of a transposed convolution with weights (groups, made · taps, channels)."""
    batch, channels, *plane = x.shape
    groups, made, own = by.shape
    count = math.prod(plane)
    inside = groups > 1 and batch > 1
    if inside:
        x = steps.transpose(reshaped(x, (batch, channels, count)), (1, 0, 2))
        columns = steps.multiply(by, reshaped(x, (groups, own, batch * count)))
    else:
        columns = steps.multiply(by, reshaped(x, (batch * groups, own, count)))
    made = made * groups // math.prod(item.size for item in windows)
    return folded(steps, columns, windows, (batch, made, *plane), inside=inside)


def folded(
    steps: Steps,
    columns: Buffer,
    windows: Sequence[Windows],
    shape: Sequence[int],
    *,
    inside: bool = False,
    into: Buffer | None = None,
) -> Buffer:
    """Columns (batch, channels, taps, …) summed where their windows lie in the result.

    `shape` are batch, channels and the windows along each axis. The batch lies `inside` where it
    stands behind the taps.
    """
    batch, channels, *plane = shape
    taps = math.prod(item.size for item in windows)
    sizes = (channels, taps, batch, *plane) if inside else (batch, channels, taps, *plane)
    kernel = _folding_kernel(tuple(windows), tuple(plane), inside)
    made = (batch, channels, *(item.count for item in windows))
    return steps.run(kernel, [reshaped(columns, sizes)], made, into=into, scalar=columns.scalar)


@cache
def _folding_kernel(windows: tuple[Windows, ...], plane: Shape, inside: bool) -> Kernel:
    names = ", ".join(f"p{axis}" for axis in range(len(windows)))
    lines = [f"n, c, {names} = dala.position({2 + len(windows)})", "total = 0.0"]
    fits, tap = [], "0"
    for axis, item in enumerate(windows):
        blank = "    " * axis
        lines.append(f"{blank}for t{axis} in range({item.size}):")
        lines.append(f"{blank}    a{axis} = p{axis} + {item.before} - t{axis} * {item.apart}")
        fits.append(f"a{axis} >= 0 and a{axis} < {plane[axis] * item.step}")
        if item.step > 1:
            fits.append(f"a{axis} % {item.step} == 0")
        tap = f"({tap}) * {item.size} + t{axis}" if axis else f"t{axis}"
    at = ", ".join(f"a{axis} // {item.step}" for axis, item in enumerate(windows))
    index = f"c, {tap}, n, {at}" if inside else f"n, c, {tap}, {at}"
    blank = "    " * len(windows)
    lines.append(f"{blank}total += x[{index}] if {' and '.join(fits)} else 0.0")
    lines.append("return total")
    return kernel_of("fold", "def fold(x):\n    " + "\n    ".join(lines), "zero")


def columns_to_image(context: NodeContext) -> Iterator[Stage]:
    """Col2Im: columns of windows, summed where they lie in an image."""
    node, x = context.node, context.input()
    sizes = [int(size) for size in np.asarray(context.array(1)).reshape(-1)]
    block = [int(size) for size in np.asarray(context.array(2)).reshape(-1)]
    axes = len(sizes)
    require(node, len(block) == axes >= 1, f"blocks of {block} are none of an image of {sizes}")
    steps = numbers_of(node, "strides", node.get("strides", [1] * axes), axes, 1)
    apart = numbers_of(node, "dilations", node.get("dilations", [1] * axes), axes, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0] * 2 * axes), 2 * axes, 0)
    windows, plane = [], []
    for axis in range(axes):
        room = sizes[axis] + pads[axis] + pads[axis + axes] - (block[axis] - 1) * apart[axis] - 1
        require(node, room >= 0, f"a block of {block} does not fit an image of {sizes}")
        plane.append(room // steps[axis] + 1)
        windows.append(Windows(block[axis], steps[axis], apart[axis], pads[axis], sizes[axis]))
    taps, count = math.prod(block), math.prod(plane)
    fits = len(x.shape) == 3 and x.shape[1] % taps == 0 and x.shape[2] == count
    require(node, fits, f"{x.shape} are no {count} columns of blocks of {taps}")
    channels = x.shape[1] // taps
    made, out = Steps(), context.output((x.shape[0], channels, *sizes), x.scalar)
    folded(made, x, windows, (x.shape[0], channels, *plane), into=out)
    return iter(made)
