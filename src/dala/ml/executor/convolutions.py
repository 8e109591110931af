"""Convolutions of planes, with the epilogue that follows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import zero_outside
from dala.kernels.tensor.convolution import conv2d
from dala.kernels.tensor.matmul import matmul
from dala.kernels.tensor.windows import Windows, are_single
from dala.ml.executor import native_convolutions as native
from dala.ml.executor import wgsl_convolutions as wgsl
from dala.ml.executor.channels_last import TO_LAST
from dala.ml.executor.epilogue import Epilogue, Shape
from dala.ml.executor.matmul import dense_stage, dense_takes
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.rows import RowContext
from dala.ml.executor.sizes import check_convolution, numbers_of, require
from dala.ml.executor.unfolding import MOST_OPERANDS, ended, unfolded_conv
from dala.ml.executor.wgsl_epilogues import BoundEpilogue, masks_of, takes
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

Pair = tuple[Windows, Windows]
"""The windows down and across."""
Turn = Callable[[np.ndarray], np.ndarray]
"""What makes weights (o, c / groups, kh, kw) of those that a node has."""


def windows_of(
    node: Node, size: Sequence[int], plane: Sequence[int], *, ceiling: bool = False
) -> tuple[Windows, ...]:
    """The windows along each axis that the attributes of a convolution or a pool describe."""
    axes = len(plane)
    require(node, len(size) == axes > 0, f"a window of {tuple(size)} does not fit {tuple(plane)}")
    steps = numbers_of(node, "strides", node.get("strides", [1] * axes), axes, 1)
    apart = numbers_of(node, "dilations", node.get("dilations", [1] * axes), axes, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0] * 2 * axes), 2 * axes, 0)
    auto = node.get("auto_pad", "NOTSET")
    found = []
    for axis in range(axes):
        reach = (size[axis] - 1) * apart[axis] + 1
        before, after, step = pads[axis], pads[axis + axes], steps[axis]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            added = max(0, (-(-plane[axis] // step) - 1) * step + reach - plane[axis])
            before = (added + (auto == "SAME_LOWER")) // 2
            after = added - before
        elif auto == "VALID":
            before = after = 0
        room = plane[axis] + before + after - reach
        count = (-(-room // step) if ceiling else room // step) + 1
        if ceiling and (count - 1) * step >= plane[axis] + before:
            count -= 1  # a window that would begin beyond the plane
        if room < 0:
            raise ShapeError(f"{node}: a window of {size} does not fit a plane of {plane}.")
        found.append(Windows(size[axis], step, apart[axis], before, count))
    return tuple(found)


def conv(context: NodeContext) -> Iterable[Stage]:
    """Conv along any number of axes."""
    node, x, size = context.node, context.shape(), context.shape(1)
    groups = node.get("group", 1)
    check_convolution(node, x, size, context.shape(2) if node.has(2) else None, groups)
    windows = windows_of(node, size[2:], x[2:])
    fixed = context.is_constant(1) and (not node.has(2) or context.is_constant(2))
    if not fixed or len(windows) > 2:
        return unfolded_conv(context, windows, groups)
    if len(windows) == 1:
        row = reshaped(context.input(), (*x[:2], 1, x[2]))
        pair = (Windows(1, 1, 1, 0, 1), windows[0])
        lifted = RowContext(context.builder, node)
        return _convolved(lifted, row, lambda given: given[:, :, None], pair, groups)
    pair = (windows[0], windows[1])
    if native.is_native(x[1], size[0], groups, pair):
        return _by_tiles(context, lambda given: given, pair, groups)
    return _convolved(context, context.input(), lambda given: given, pair, groups)


def _convolved(
    context: NodeContext, x: Buffer, turn: Turn, windows: Pair, groups: int
) -> Iterator[Stage]:
    """Leave a convolution to be computed with what follows it, in the way that suits the device."""
    weight = turn(np.asarray(context.array(1)))
    made = weight.shape[0]
    shape = (x.shape[0], made, windows[0].count, windows[1].count)
    one_place = x.shape[2:] == shape[2:] == weight.shape[2:] == (1, 1)
    if one_place and groups == 1 and not any(item.before for item in windows):
        return _as_product(context, x, turn, shape)
    if current_device().supports("wgsl"):
        return _by_text(context, x, turn, windows, groups, shape)
    return _by_kernels(context, x, turn, windows, groups, shape)


def _as_product(context: NodeContext, x: Buffer, turn: Turn, shape: Shape) -> Iterator[Stage]:
    """Planes of one element are rows of a matrix."""
    made = shape[1]
    by = context.weight(1, "columns", lambda given: turn(given).reshape(made, -1).T)
    bias = context.bias(2, made, "plain", lambda given: given)

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        yield dense_stage(reshaped(x, x.shape[:2]), by, bias, epilogue, operands, out)

    return context.defer(shape, finish, dense_takes(shape))


def _by_tiles(context: NodeContext, turn: Turn, windows: Pair, groups: int) -> Iterator[Stage]:
    """Defers the node to code for the CPU that computes it with its epilogue."""
    weight = turn(np.asarray(context.array(1)))
    made = weight.shape[0]
    shape = (context.shape()[0], made, windows[0].count, windows[1].count)
    x = context.ordered_input(TO_LAST)
    by = context.weight(1, ("tiles", groups), lambda given: native.arranged(turn(given), groups))
    bias = context.bias(2, made, "tiles", native.arranged_bias)

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        yield native.convolution_stage([x, by, bias, *operands], out, windows, groups, epilogue)

    return context.defer(shape, finish, partial(native.takes, shape), channels_last=True)


def _by_text(
    context: NodeContext, x: Buffer, turn: Turn, windows: Pair, groups: int, shape: Shape
) -> Iterator[Stage]:
    """Defers the node to a kernel for devices that run WGSL, with its epilogue."""
    made, lanes = shape[1], current_device().lanes
    product = wgsl.is_product(x.shape[2:], shape, windows, groups)
    if product:
        by = context.weight(1, "rows", lambda given: turn(given).reshape(made, -1))
        bias = context.bias(2, made, "plain", lambda given: given)
    elif wgsl.is_depthwise(x.shape[1], made, groups):
        by = context.weight(1, "plain", turn)
        bias = context.bias(2, made, "plain", lambda given: given)
    else:
        key = ("blocks", groups, lanes)
        by = context.weight(1, key, lambda given: wgsl.arranged(turn(given), groups, lanes))
        bias = context.bias(2, made, key, lambda given: wgsl.arranged_bias(given, groups, lanes))

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        bound = BoundEpilogue(epilogue, masks_of(shape, [item.shape for item in operands]))
        inputs = [x, by, bias, *operands]
        if product:
            yield wgsl.product_stage(inputs, out, bound)
        else:
            yield wgsl.convolution_stage(inputs, out, windows, groups, bound, lanes)

    return context.defer(shape, finish, partial(takes, shape))


def _by_kernels(
    context: NodeContext, x: Buffer, turn: Turn, windows: Pair, groups: int, shape: Shape
) -> Iterator[Stage]:
    """Kernels of the language sum, or a library of the host; another adds bias and epilogue."""
    by = context.weight(1, "plain", turn)
    bias = context.bias(2, shape[1], "plain", lambda given: given)

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        sums = scratch(shape, out.scalar)
        yield from _summed(x, by, sums, windows, groups)
        yield ended(sums, bias, epilogue, operands, out)

    return context.defer(shape, finish, lambda given: len(given) <= MOST_OPERANDS)


def _summed(x: Buffer, weight: Buffer, sums: Buffer, windows: Pair, groups: int) -> Iterator[Stage]:
    """Stages of kernels, or of libraries where they are faster, without bias and epilogue."""
    batch, channels, height, width = x.shape
    made = weight.shape[0]
    if groups == 1 and are_single(windows, (height, width)):
        inputs = [
            reshaped(weight, (1, made, channels)),
            reshaped(x, (batch, channels, height * width)),
        ]
        yield Stage(matmul, inputs, reshaped(sums, (batch, made, height * width)))
        return
    reach = [(w.count - 1) * w.step + (w.size - 1) * w.apart + 1 for w in windows]
    down, across = windows
    if (down.before, across.before, *reach) != (0, 0, height, width):
        planes = scratch((batch * channels, *reach), x.scalar)
        given = {"top": down.before, "left": across.before}
        yield Stage(_rimmed, [reshaped(x, (batch * channels, height, width))], planes, given)
        x = reshaped(planes, (batch, channels, *reach))
    params = {
        "stride": (down.step, across.step),
        "dilation": (down.apart, across.apart),
        "groups": groups,
    }
    yield Stage(conv2d, [x, weight], sums, params)


@zero_outside
def _rimmed(x: Any, top: dala.s32, left: dala.s32) -> Any:
    i, y, z = dala.position(3)
    return x[i, y - top, z - left]
