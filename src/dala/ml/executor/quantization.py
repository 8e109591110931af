"""Quantized layers: levels of integers, and the scales and zero points that they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dala.errors import ModelError
from dala.ir.types import F32, S8, S16, S32, U8, U16, Scalar
from dala.kernels.base.builtin import written
from dala.kernels.tensor.reductions import reduce_max, reduce_min
from dala.ml.executor.convolutions import windows_of
from dala.ml.executor.epilogue import Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axis_in, broadcast, check_convolution, require
from dala.ml.executor.steps import Steps
from dala.ml.executor.unfolding import convolved
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

LEVELS = {"uint8": U8, "int8": S8, "uint16": U16, "int16": S16}
"""The dtypes of levels that are computed, by NumPy's names."""
ONNX_LEVELS = {2: U8, 3: S8, 4: U16, 5: S16}


def quantize(context: NodeContext) -> Iterable[Stage]:
    """QuantizeLinear: floats as the nearest level, by one scale, one for each place or block."""
    x, steps = context.input(), Steps()
    scalar = _levels(context, 2)
    scale, zero = _spread(context, steps, 1), _spread(context, steps, 2)
    text = "dala.round(dala.f32(x0) / x1)" + ("" if zero is None else " + dala.f32(x2)")
    assert scale is not None
    operands = [x, scale] + ([] if zero is None else [zero])
    steps.elementwise(text, *operands, into=context.output(x.shape, scalar))
    return steps


def dequantize(context: NodeContext) -> Iterable[Stage]:
    """DequantizeLinear: (level - zero point) · scale."""
    x, steps = context.input(), Steps()
    scale, zero = _spread(context, steps, 1), _spread(context, steps, 2)
    assert scale is not None
    level = "dala.s32(x0)" if zero is None else "(dala.s32(x0) - dala.s32(x2))"
    operands = [x, scale] + ([] if zero is None else [zero])
    steps.elementwise(f"dala.f32({level}) * x1", *operands, into=context.output(x.shape, F32))
    return steps


def dequantized(node: Node, given: Sequence[np.ndarray | None]) -> np.ndarray:
    """What DequantizeLinear makes of constants."""
    x, scale, zero = [*given, None][:3]
    assert x is not None
    assert scale is not None
    levels = x.astype(np.int64) if x.dtype.kind != "f" else x
    if zero is not None:
        levels = levels - _over_blocks(node, zero, x.shape).astype(levels.dtype)
    return np.asarray(levels * _over_blocks(node, scale, x.shape), scale.dtype)


def _over_blocks(node: Node, item: np.ndarray, shape: Shape) -> np.ndarray:
    if item.size == 1:
        return item.reshape(())
    axis = axis_in(node, node.get("axis", 1), len(shape))
    if item.ndim == 1 and not node.get("block_size", 0):
        return item.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    repeated = np.repeat(item, int(node.get("block_size", 1)), axis)
    return np.take(repeated, np.arange(shape[axis]), axis)


def _levels(context: NodeContext, index: int) -> Scalar:
    """The dtype of levels, which a zero point tells, or an attribute."""
    node = context.node
    if node.get("output_dtype", 0):
        found = ONNX_LEVELS.get(node.get("output_dtype"))
    elif not node.has(index):
        return U8
    elif context.is_constant(index):
        array = context.array(index)
        found = None if array is None else LEVELS.get(array.dtype.name)
    else:
        found = context.input(index).scalar
    if found is None or found.is_float:
        raise ModelError(f"{node}: levels are of 8 or 16 bits, not of another dtype.")
    return found


def _spread(context: NodeContext, steps: Steps, index: int) -> Buffer | None:
    """A scale or zero point so that it is broadcast to the first input; None if it is left out."""
    node = context.node
    if not node.has(index):
        return None
    item, shape = context.input(index), context.shape()
    if math.prod(item.shape) == 1:
        return reshaped(item, ())
    axis = axis_in(node, node.get("axis", 1), len(shape))
    block = int(node.get("block_size", 0))
    if not block:
        fits = item.shape == (shape[axis],)
        require(node, fits, f"{item.shape} are none for each of {shape[axis]} along axis {axis}")
        return reshaped(item, (shape[axis], *(1,) * (len(shape) - axis - 1)))
    wanted = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
    require(node, item.shape == wanted, f"{item.shape} are none for blocks of {block} of {shape}")
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    text = f"i, k, j = dala.position(3)\n    return x[i, k // {block}, j]"
    seen = reshaped(item, (outer, wanted[axis], inner))
    kernel = written("blocks", f"def blocks(x):\n    {text}")
    made = steps.run(kernel, [seen], (outer, shape[axis], inner), scalar=item.scalar)
    return reshaped(made, shape)


def quantize_by_extremes(context: NodeContext) -> Iterable[Stage]:
    """DynamicQuantizeLinear: levels of u8, by the least and the largest element."""
    x, steps = context.input(), Steps()
    axes = range(len(x.shape))
    ends = []
    for kernel, fold in ((reduce_min, "min"), (reduce_max, "max")):
        found = steps.reduce(kernel, x, axes) if x.shape else x
        ends.append(steps.elementwise(f"{fold}(x0, 0.0)", reshaped(found, ())))
    low, high = ends
    scale = context.output((), F32, 1)
    # Of zeros alone the scale is 1, as in ONNX Runtime.
    steps.elementwise("(x1 - x0) / 255.0 if x1 > x0 else 1.0", low, high, into=scale)
    zero = context.output((), U8, 2)
    steps.elementwise("dala.round(-x0 / x1)", low, scale, into=zero)
    text = "dala.round(x0 / x1) + dala.f32(x2)"
    steps.elementwise(text, x, scale, zero, into=context.output(x.shape, U8))
    return steps


# -- products --------------------------------------------------------------------------------------


def _centered(context: NodeContext, steps: Steps, index: int, zero: int, axis: int) -> Buffer:
    """An input as s32 around its zero point, which is one, or one for each place of an axis."""
    x = context.input(index)
    if not context.node.has(zero):
        return steps.elementwise("dala.s32(x0)", x, scalar=S32)
    point = context.input(zero)
    return steps.elementwise(
        "dala.s32(x0) - dala.s32(x1)", x, _along(context.node, point, x.shape, axis), scalar=S32
    )


def _along(node: Node, item: Buffer, shape: Shape, axis: int) -> Buffer:
    """A number, or one for each place of an axis, so that it is broadcast to a shape."""
    if math.prod(item.shape) == 1:
        return reshaped(item, ())
    axis %= max(len(shape), 1)
    fits = len(shape) > 0 and math.prod(item.shape) == shape[axis]
    if fits:
        return reshaped(item, (shape[axis], *(1,) * (len(shape) - axis - 1)))
    spread = broadcast(node, [item.shape, shape]) == shape
    require(node, spread, f"{item.shape} are none for each place of axis {axis} of {shape}")
    return item


def _product(context: NodeContext, steps: Steps, b: int, zeros: tuple[int, int]) -> Buffer:
    """The product of two inputs around their zero points, in s32."""
    node, a_shape, b_shape = context.node, context.shape(), context.shape(b)
    fits = len(a_shape) > 1 < len(b_shape) and a_shape[-1] == b_shape[-2]
    require(node, fits, f"a is {a_shape} and b is {b_shape}")
    broadcast(node, [a_shape[:-2], b_shape[:-2]])
    left = _centered(context, steps, 0, zeros[0], -2)
    right = _centered(context, steps, b, zeros[1], -1)
    return steps.multiply(left, right)


def multiply_integers(context: NodeContext) -> Iterable[Stage]:
    """MatMulInteger."""
    steps = Steps()
    found = _product(context, steps, 1, (2, 3))
    steps.elementwise("x0", found, into=context.output(found.shape, S32))
    return steps


def multiply_levels(context: NodeContext) -> Iterable[Stage]:
    """QLinearMatMul."""
    steps = Steps()
    found = _product(context, steps, 3, (2, 5))
    _requantized(context, steps, found, (-2, -1))
    return steps


def _requantized(context: NodeContext, steps: Steps, sums: Buffer, axes: tuple[int, int]) -> None:
    """Sums of products of levels as levels again, by the scales of inputs and the result."""
    node = context.node
    scales = [_along(node, context.input(1), sums.shape, axes[0])]
    scales.append(_along(node, context.input(4), sums.shape, axes[1]))
    scales.append(_along(node, context.input(6), sums.shape, axes[1]))
    zero = _along(node, context.input(7), sums.shape, axes[1])
    text = "dala.round(dala.f32(x0) * (x1 * x2 / x3)) + dala.f32(x4)"
    out = context.output(sums.shape, _levels(context, 7))
    steps.elementwise(text, sums, *scales, zero, into=out)


# -- convolutions ----------------------------------------------------------------------------------


def _sums(
    context: NodeContext, steps: Steps, weight: int, zeros: tuple[int, int], bias: int | None
) -> Buffer:
    """The sums of a convolution of levels around their zero points, in s32."""
    node, shape, size = context.node, context.shape(), context.shape(weight)
    groups = node.get("group", 1)
    bias_shape = context.shape(bias) if bias is not None else None
    check_convolution(node, shape, size, bias_shape, groups)
    windows = windows_of(node, size[2:], shape[2:])
    x = _centered(context, steps, 0, zeros[0], 0)
    by = _centered(context, steps, weight, zeros[1], 0)
    found = convolved(steps, x, by, windows, groups)
    if bias is None:
        return found
    row = reshaped(context.input(bias), (size[0], *(1,) * (len(shape) - 2)))
    return steps.elementwise("x0 + x1", found, row)


def convolve_integers(context: NodeContext) -> Iterable[Stage]:
    """ConvInteger."""
    steps = Steps()
    found = _sums(context, steps, 1, (2, 3), None)
    steps.elementwise("x0", found, into=context.output(found.shape, S32))
    return steps


def convolve_levels(context: NodeContext) -> Iterable[Stage]:
    """QLinearConv."""
    steps = Steps()
    found = _sums(context, steps, 3, (2, 5), 8 if context.node.has(8) else None)
    _requantized(context, steps, found, (1, 1))
    return steps
