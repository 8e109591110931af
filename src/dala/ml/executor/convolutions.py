"""Convolutions of planes, with the epilogue that follows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ModelError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import zero_outside
from dala.kernels.tensor.convolution import conv2d
from dala.kernels.tensor.matmul import matmul
from dala.kernels.tensor.windows import Windows
from dala.ml.executor import native_convolutions as native
from dala.ml.executor import wgsl_convolutions as wgsl
from dala.ml.executor.channels_last import TO_LAST
from dala.ml.executor.epilogue import Epilogue, Shape, pointwise_stage
from dala.ml.executor.matmul import dense_stage, dense_takes
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import check_convolution, check_spatial, numbers_of, require
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

MOST_OPERANDS = 4
"""Operands of an epilogue beside the sums and the bias."""

Pair = tuple[Windows, Windows]
"""The windows down and across."""
Turn = Callable[[np.ndarray], np.ndarray]
"""What makes weights (o, c / groups, kh, kw) of those that a node has."""


def windows_of(
    node: Node, size: Sequence[int], plane: Sequence[int], *, ceiling: bool = False
) -> tuple[Windows, Windows]:
    """The windows down and across that the attributes of a convolution or a pool describe."""
    check_spatial(node, (1, 1, *plane))
    steps = numbers_of(node, "strides", node.get("strides", [1, 1]), 2, 1)
    apart = numbers_of(node, "dilations", node.get("dilations", [1, 1]), 2, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0, 0, 0, 0]), 4, 0)
    auto = node.get("auto_pad", "NOTSET")
    found = []
    for axis in range(2):
        reach = (size[axis] - 1) * apart[axis] + 1
        before, after, step = pads[axis], pads[axis + 2], steps[axis]
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
    return found[0], found[1]


def conv(context: NodeContext) -> Iterable[Stage]:
    """Conv in two axes."""
    shape, weight = context.shape(), _weight(context)
    groups = context.node.get("group", 1)
    check_convolution(context.node, shape, weight.shape, _bias_shape(context), groups)
    windows = windows_of(context.node, weight.shape[2:], shape[2:])
    if native.is_native(shape[1], weight.shape[0], groups, windows):
        return _by_tiles(context, lambda given: given, windows, groups)
    return _convolved(context, context.input(), lambda given: given, windows, groups)


def _weight(context: NodeContext) -> np.ndarray:
    weight = np.asarray(context.array(1))
    if weight.ndim != 4:
        raise ModelError(
            f"{context.node}: its weights are {weight.shape}, but planes have two axes."
        )
    return weight


def _bias_shape(context: NodeContext) -> Shape | None:
    bias = context.array(2)
    return None if bias is None else bias.shape


def transposed_conv(context: NodeContext) -> Iterator[Stage]:
    """ConvTranspose in two axes: a convolution of planes with zeros between their elements."""
    given, weight, node = context.shape(), _weight(context), context.node
    groups = node.get("group", 1)
    check_convolution(node, given, weight.shape, _bias_shape(context), groups, turned=True)
    steps = numbers_of(node, "strides", node.get("strides", [1, 1]), 2, 1)
    apart = numbers_of(node, "dilations", node.get("dilations", [1, 1]), 2, 1)
    pads = numbers_of(node, "pads", node.get("pads", [0, 0, 0, 0]), 4, 0)
    more = numbers_of(node, "output_padding", node.get("output_padding", [0, 0]), 2, 0)
    auto, wanted = node.get("auto_pad", "NOTSET"), node.get("output_shape")
    windows = []
    for axis in range(2):
        size, reach = weight.shape[2 + axis], (weight.shape[2 + axis] - 1) * apart[axis]
        whole = (given[2 + axis] - 1) * steps[axis] + reach + more[axis] + 1
        before, after = pads[axis], pads[axis + 2]
        if wanted is not None or auto.startswith("SAME"):
            count = wanted[axis - 2] if wanted else given[2 + axis] * steps[axis]
            cut = max(0, whole - count)
            before = (cut + (auto == "SAME_LOWER")) // 2 if wanted is None else cut // 2
            if wanted is not None and auto != "SAME_UPPER":
                before = cut - cut // 2
            after = cut - before
        left = whole - before - after
        require(node, left > 0, f"pads of {pads} leave nothing of {whole}")
        windows.append(Windows(size, 1, apart[axis], reach - before, left))
    turn, pair = partial(_turned, groups=groups), (windows[0], windows[1])
    if current_device().is_host and groups == 1 and list(apart) == [1, 1]:
        yield from _in_phases(context, turn, pair, (steps[0], steps[1]))
        return
    x = context.input()
    shape = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], steps, strict=True)]
    planes = scratch((*x.shape[:2], *shape), x.scalar)
    yield Stage(_spread, [x], planes, {"down": steps[0], "across": steps[1]})
    yield from _convolved(context, planes, turn, pair, groups)


def _in_phases(
    context: NodeContext, turn: Turn, windows: Pair, steps: tuple[int, int]
) -> Iterator[Stage]:
    """Defers a convolution of planes with zeros between their elements, without the zeros.

    Every so many pixels of the output meet the same taps with elements: those are a convolution.
    """
    made = turn(np.asarray(context.array(1))).shape[0]
    shape = (context.shape()[0], made, windows[0].count, windows[1].count)
    x, bias = context.ordered_input(TO_LAST), context.bias(2, made, "tiles", native.arranged_bias)
    phases = []
    for at in np.ndindex(*steps):
        found = [_met(item, step, n) for item, step, n in zip(windows, steps, at, strict=True)]
        starts = [first for first, _ in found]
        taps = tuple(slice(first, None, by) for first, by in zip(starts, steps, strict=True))
        role = ("phase", at, steps, *starts)
        by = context.weight(1, role, partial(_arranged_part, turn, taps))
        phase = native.Phase((int(at[0]), int(at[1])), steps)
        phases.append((by, (found[0][1], found[1][1]), phase))

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        for by, parts, phase in phases:
            if parts[0].count > 0 and parts[1].count > 0:
                given = [x, by, bias, *operands]
                yield native.convolution_stage(given, out, parts, 1, epilogue, phase)

    return context.defer(shape, finish, partial(native.takes, shape), channels_last=True)


def _met(windows: Windows, step: int, phase: int) -> tuple[int, Windows]:
    """Returns the first tap that meets an element, and the windows over elements alone."""
    first = (windows.before - phase) % step
    size = len(range(first, windows.size, step))
    before = (windows.before - phase - first) // step
    return first, Windows(size, 1, 1, before, len(range(phase, windows.count, step)))


def _arranged_part(turn: Turn, taps: tuple[slice, ...], weight: np.ndarray) -> np.ndarray:
    return native.arranged(turn(weight)[(slice(None), slice(None), *taps)], 1)


def _turned(weight: np.ndarray, groups: int) -> np.ndarray:
    """Weights (c, o / groups, kh, kw) as those of the convolution that does the same."""
    channels, made, *size = weight.shape
    apart = weight.reshape(groups, channels // groups, made, *size)[..., ::-1, ::-1]
    return apart.transpose(0, 2, 1, 3, 4).reshape(groups * made, channels // groups, *size)


@zero_outside
def _spread(x: Any, down: dala.const, across: dala.const) -> Any:
    n, c, i, j = dala.position(4)
    element = x[n, c, i // down, j // across]
    return element if i % down == 0 and j % across == 0 else 0


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
    """Defers the node to a WGSL kernel that computes it with its epilogue."""
    made = shape[1]
    if wgsl.is_depthwise(x.shape[1], made, groups):
        by = context.weight(1, "plain", turn)
        bias = context.bias(2, made, "plain", lambda given: given)
    else:
        by = context.weight(1, ("blocks", groups), lambda given: wgsl.arranged(turn(given), groups))
        bias = context.bias(
            2, made, ("blocks", groups), lambda given: wgsl.arranged_bias(given, groups)
        )

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        masks = wgsl.masks_of(shape, [item.shape for item in operands])
        inputs = [x, by, bias, *operands]
        yield wgsl.convolution_stage(
            inputs, out, windows, groups, wgsl.BoundEpilogue(epilogue, masks)
        )

    return context.defer(shape, finish, partial(wgsl.takes, shape))


def _by_kernels(
    context: NodeContext, x: Buffer, turn: Turn, windows: Pair, groups: int, shape: Shape
) -> Iterator[Stage]:
    """Kernels of the language sum, or a library of the host; another adds bias and epilogue."""
    by = context.weight(1, "plain", turn)
    bias = context.bias(2, shape[1], "plain", lambda given: given)

    def finish(epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer) -> Iterator[Stage]:
        sums = scratch(shape, out.scalar)
        yield from _summed(x, by, sums, windows, groups)
        yield _ended(sums, bias, epilogue, operands, out)

    return context.defer(shape, finish, lambda given: len(given) <= MOST_OPERANDS)


def _summed(x: Buffer, weight: Buffer, sums: Buffer, windows: Pair, groups: int) -> Iterator[Stage]:
    """Stages of kernels, or of libraries where they are faster, without bias and epilogue."""
    batch, channels, height, width = x.shape
    made = weight.shape[0]
    if groups == 1 and all(item == Windows(1, 1, 1, 0, item.count) for item in windows):
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


def _ended(
    sums: Buffer, bias: Buffer, epilogue: Epilogue, operands: Sequence[Buffer], out: Buffer
) -> Stage:
    """Returns the stage that adds the bias to sums and applies the epilogue."""
    own = [sums, reshaped(bias, (bias.shape[0], 1, 1))]
    moved = [
        re.sub(r"\bx(\d+)\b", lambda it: f"x{int(it[1]) + len(own)}", line)
        for line in epilogue.lines
    ]
    whole = Epilogue(("v0 = x0 + x1", *moved), epilogue.result)
    return pointwise_stage(whole, [*own, *operands], out)
