"""Convolution of planes, (batch, channels, height, width)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.ir.types import Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper, zero_outside
from dala.kernels.base.parameters import integer
from dala.kernels.base.results import common_dtype
from dala.kernels.base.shapes import Shape, require_shape
from dala.kernels.tensor import patches
from dala.kernels.tensor.reductions import accumulator
from dala.kernels.tensor.windows import STEPS, Windows, padded, windows_of
from dala.lang.language_names import SCALARS
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

FEW_TAPS, MOST_TAPS = 16, 64
"""Taps that may read outside of planes, and those that a kernel has written out.

More taps read planes with zeros around them, split into phases by the stride, each of which holds
the elements that one tap meets; still more are looped over, channel by channel.
"""
DEEP, MANY = 64, 32
"""Elements of a window and channels of an output from which on BLAS is the faster."""


@composite(
    "x",
    "*weight_and_bias",
    group="",
    **STEPS,
    groups=integer("how many parts the channels are split into, each convolved by itself", 1),
)
def conv2d(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The convolution of planes x (n, c, h, w) with weight (o, c / groups, kh, kw), plus bias (o,)

    Stride, padding and dilation are one number or (vertical, horizontal). Padding is by zeros;
    "same" pads so that a stride of 1 keeps the size. The window is not flipped. Bias may be left
    out. Integers wrap in the output's dtype. On the CPU, BLAS multiplies many channels of floats.
    """
    groups = params["groups"]
    yield from _convolution("conv2d", inputs, output, params, groups)


@composite("x", "*weight_and_bias", group="", **STEPS)
def depthwise_conv2d(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The convolution of each channel of x (n, c, h, w) with a window of its own, (c, 1, kh, kw)

    Otherwise as conv2d, which it is with as many groups as there are channels.
    """
    groups = inputs[0].shape[1] if len(inputs[0].shape) == 4 else 1
    yield from _convolution("depthwise_conv2d", inputs, output, params, groups)


conv2d.typed(common_dtype)
depthwise_conv2d.typed(common_dtype)


@conv2d.sized
def _convolved_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    down, across = _windows("conv2d", shapes, params, params["groups"])
    return (shapes[0][0], shapes[1][0], down.count, across.count)


@depthwise_conv2d.sized
def _depthwise_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    groups = shapes[0][1] if len(shapes[0]) == 4 else 1
    down, across = _windows("depthwise_conv2d", shapes, params, groups)
    return (shapes[0][0], shapes[1][0], down.count, across.count)


def _windows(
    kernel: str, shapes: Sequence[Shape], params: Given, groups: int
) -> tuple[Windows, Windows]:
    """The windows down and across a plane of x; an error where the shapes do not fit."""
    _check(kernel, shapes, groups)
    x, weight = shapes[:2]
    given = (params["stride"], params["padding"], params["dilation"])
    return windows_of(kernel, (x[2], x[3]), (weight[2], weight[3]), *given)


def _convolution(
    kernel: str, inputs: Inputs, output: Buffer, params: Given, groups: int
) -> Iterator[Stage]:
    x, weight = inputs[:2]
    down, across = _windows(kernel, [item.shape for item in inputs], params, groups)
    wanted = (x.shape[0], weight.shape[0], down.count, across.count)
    require_shape(kernel, output, f"x {x.shape} with weight {weight.shape}", wanted)
    if 0 in output.shape:
        return
    scalars = {item.scalar for item in (*inputs, output)}
    scalar = accumulator(output.scalar, *scalars)
    sums = output if len(inputs) == 2 else scratch(wanted, scalar)
    depth, made = math.prod(weight.shape[1:]), weight.shape[0]
    large = depth >= DEEP and made // groups >= MANY
    if large and scalars == {scalar} and scalar.is_float and output.is_host:
        yield from patches.convolved(x, weight, sums, down, across, groups)
    else:
        yield from _convolved(x, weight, sums, scalar, down, across, groups)
    if len(inputs) == 3:
        yield Stage(_add_bias, [sums, inputs[2]], output)


def _check(kernel: str, shapes: Sequence[Shape], groups: int) -> None:
    if len(shapes) > 3:
        raise ArgumentError(
            f"{kernel} takes x and weight, or x, weight and bias; {len(shapes)} inputs were given."
        )
    x, weight = shapes[:2]
    for name, shape, axes in (
        ("x", x, "(batch, channels, height, width)"),
        ("weight", weight, "(channels out, channels in a group, height, width)"),
    ):
        if len(shape) != 4:
            raise ShapeError(f"{kernel}: {name} is {shape}, but it has four axes, {axes}.")
    channels, made = x[1], weight[0]
    if groups < 1 or channels % groups or made % groups:
        raise ArgumentError(
            f"{kernel}: groups = {groups} does not divide the {channels} channels of x and the "
            f"{made} of weight: it divides both."
        )
    if weight[1] != channels // groups:
        raise ShapeError(
            f"{kernel}: weight is {weight}, but x {x} in {groups} groups has "
            f"{channels // groups} channels in each: that is its second size."
        )
    if 0 in weight[2:]:
        raise ShapeError(f"{kernel}: weight is {weight}: a window has at least one element.")
    if len(shapes) == 3 and shapes[2] != (made,):
        raise ShapeError(
            f"{kernel}: bias is {shapes[2]}, but weight {weight} makes {made} "
            f"channels: give ({made},)."
        )


def _convolved(
    x: Buffer,
    weight: Buffer,
    output: Buffer,
    scalar: Scalar,
    down: Windows,
    across: Windows,
    groups: int,
) -> Iterator[Stage]:
    """Stages that convolve by a kernel, computing in a type."""
    made, channels, height, width = weight.shape
    batch = x.shape[0]
    count = math.prod(weight.shape[1:])
    few = count <= FEW_TAPS
    reach = down.count + down.far, across.count + across.far
    phases = 1 if few else down.step * across.step
    if not few and (phases > 1 or down.before or across.before or reach != x.shape[2:]):
        yield (stage := padded(x, down, across, *reach, in_phases=True))
        x = stage.output
    planes = reshaped(x, (batch, groups, channels, phases, *x.shape[-2:]))
    taps = reshaped(weight, (groups, made // groups, channels, height * width))
    params = {
        "channels": channels if count <= MOST_TAPS else 0,
        "height": height,
        "width": width,
        "down": down.step,
        "across": across.step,
        "apart_down": down.apart,
        "apart_across": across.apart,
        "top": down.before,
        "left": across.before,
    }
    kernel = _convolution_kernel(SCALARS[scalar.name], scalar.is_float, few)
    target = reshaped(output, (batch, groups, made // groups, down.count, across.count))
    yield Stage(kernel, [planes, taps], target, params)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _convolution_kernel(to: Any, floats: bool, few: bool) -> Kernel:
    def convolve(
        planes: Any,
        weight: Any,
        channels: dala.const,
        height: dala.const,
        width: dala.const,
        down: dala.const,
        across: dala.const,
        apart_down: dala.const,
        apart_across: dala.const,
        top: dala.const,
        left: dala.const,
    ) -> Any:
        n, group, o, y, z = dala.position(5)
        total = to(0)
        for c in range(channels if channels > 0 else planes.shape[2]):
            for a in range(height):
                down_by = a * apart_down
                line = y * down + (down_by - top) if few else y + down_by // down
                # A sum for each row of the window: additions that need not wait for each other.
                row = to(0)
                for b in range(width):
                    by = b * apart_across
                    phase = 0 if few else down_by % down * across + by % across
                    place = z * across + (by - left) if few else z + by // across
                    element = to(planes[n, group, c, phase, line, place])
                    factor = to(weight[group, o, c, a * width + b])
                    row = dala.fma(element, factor, row) if floats else row + element * factor
                total += row
        return total

    # To ask for many taps whether they are outside would take longer than to copy the planes.
    return zero_outside(convolve) if few else helper(convolve)


@helper
def _add_bias(sums: Any, bias: Any) -> Any:
    _, o, _, _ = dala.position(4)
    return sums + bias[o]
