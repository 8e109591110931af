"""Normalizations: by the mean and the variance of some axes, by norms, by neighboring channels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dala.ir.types import F32
from dala.kernels.tensor.normalization import layer_norm
from dala.kernels.tensor.reductions import reduce_mean, reduce_sum
from dala.ml.executor.epilogue import Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.pointwise import literal
from dala.ml.executor.sizes import axes_in, axis_in, broadcast, require
from dala.ml.executor.steps import Steps
from dala.ml.executor.unfolding import kernel_of
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage


def layer(context: NodeContext) -> Iterable[Stage]:
    """LayerNormalization: all axes from one on; mean and 1 / deviation as further outputs."""
    node, x, steps = context.node, context.input(), Steps()
    axis = axis_in(node, node.get("axis", -1), len(x.shape))
    scale, bias = context.input(1), context.input(2) if node.has(2) else None
    for item in (scale, bias):
        if item is not None:
            fits = broadcast(node, [x.shape[axis:], item.shape]) == x.shape[axis:]
            require(node, fits, f"{item.shape} is not spread to the axes {x.shape[axis:]}")
    epsilon = node.get("epsilon", 1e-5)
    wanted = [i for i, name in enumerate(node.outputs) if name and i > 0]
    plain = not wanted and bias is not None and scale.shape == bias.shape == x.shape[axis:]
    out = context.output(x.shape, x.scalar)
    if plain and bias is not None:
        axes = tuple(range(axis, len(x.shape)))
        given = {"axis": axes, "epsilon": epsilon}
        return [Stage(layer_norm, [x, scale, bias], out, given)]
    axes = tuple(range(axis, len(x.shape)))
    mean, inverse = _moments(steps, x, axes, epsilon)
    operands = [x, mean, inverse, scale] + ([] if bias is None else [bias])
    text = "(x0 - x1) * x2 * x3" + ("" if bias is None else " + x4")
    steps.elementwise(text, *operands, into=out)
    for index, found in ((1, mean), (2, inverse)):
        if index in wanted:
            steps.elementwise("x0", found, into=context.output(found.shape, F32, index))
    return steps


def _moments(steps: Steps, x: Buffer, axes: Sequence[int], epsilon: float) -> tuple[Buffer, Buffer]:
    """The mean along axes, and 1 / √(variance + epsilon)."""
    mean = steps.reduce(reduce_mean, x, axes)
    squares = steps.elementwise("(x0 - x1) * (x0 - x1)", x, mean)
    variance = steps.reduce(reduce_mean, squares, axes)
    return mean, steps.elementwise(f"1.0 / dala.sqrt(x0 + {literal(epsilon)})", variance)


def root_mean_square(context: NodeContext) -> Iterable[Stage]:
    """RMSNormalization: all axes from one on, divided by the root of the mean of their squares."""
    node, x, scale, steps = context.node, context.input(), context.input(1), Steps()
    axis = axis_in(node, node.get("axis", -1), len(x.shape))
    fits = broadcast(node, [x.shape, scale.shape]) == x.shape
    require(node, fits, f"a scale of {scale.shape} is not spread to {x.shape}")
    squares = steps.elementwise("x0 * x0", x)
    mean = steps.reduce(reduce_mean, squares, range(axis, len(x.shape)))
    text = f"x0 / dala.sqrt(x1 + {literal(node.get('epsilon', 1e-5))}) * x2"
    steps.elementwise(text, x, mean, scale, into=context.output(x.shape, x.scalar))
    return steps


def group(context: NodeContext) -> Iterable[Stage]:
    """GroupNormalization; before opset 21 scale and bias are given for groups, not channels."""
    node, x = context.node, context.input()
    require(node, len(x.shape) > 1, f"there are no channels in {x.shape}")
    channels, groups = x.shape[1], int(node.get("num_groups", 1))
    whole = groups > 0 and channels % groups == 0
    require(node, whole, f"{channels} channels are no {groups} groups")
    count = groups if node.opset < 21 else channels
    return _by_groups(context, groups, count)


def instance(context: NodeContext) -> Iterable[Stage]:
    """InstanceNormalization: each plane by itself."""
    shape = context.shape()
    require(context.node, len(shape) > 2, f"there are no planes in {shape}")
    return _by_groups(context, shape[1], shape[1])


def _by_groups(context: NodeContext, groups: int, count: int) -> Iterable[Stage]:
    """Normalize groups of channels, with a scale and a bias for each of `count`."""
    node, x, steps = context.node, context.input(), Steps()
    batch, channels = x.shape[:2]
    scale, bias = context.input(1), context.input(2)
    for item in (scale, bias):
        require(node, item.shape == (count,), f"{item.shape} are none for each of {count}")
    seen = reshaped(x, (batch, groups, math.prod(x.shape[1:]) // groups))
    mean, inverse = _moments(steps, seen, [2], node.get("epsilon", 1e-5))
    per = (groups, 1, 1) if count == groups else (groups, channels // groups, 1)
    inner = (batch, groups, channels // groups, math.prod(x.shape[2:]))
    out = context.output(x.shape, x.scalar)
    ones = (batch, groups, 1, 1)
    operands = [reshaped(x, inner), reshaped(mean, ones), reshaped(inverse, ones)]
    operands += [reshaped(scale, per), reshaped(bias, per)]
    steps.elementwise("(x0 - x1) * x2 * x3 + x4", *operands, into=reshaped(out, inner))
    return steps


def by_norm(context: NodeContext) -> Iterable[Stage]:
    """LpNormalization: divided by the sum of magnitudes, or the root of that of squares."""
    node, x, steps = context.node, context.input(), Steps()
    axis, p = axis_in(node, node.get("axis", -1), len(x.shape)), node.get("p", 2)
    require(node, p in (1, 2), f"p is {p}, not 1 or 2")
    total = steps.reduce(
        reduce_sum, steps.elementwise("dala.abs(x0)" if p == 1 else "x0 * x0", x), [axis]
    )
    norm = "x1" if p == 1 else "dala.sqrt(x1)"
    # Where all are zero, they stay so.
    text = f"x0 / ({norm} if x1 > 0.0 else 1.0)"
    steps.elementwise(text, x, total, into=context.output(x.shape, x.scalar))
    return steps


def mean_variance(context: NodeContext) -> Iterable[Stage]:
    """MeanVarianceNormalization: (x - mean) / deviation along axes."""
    node, x, steps = context.node, context.input(), Steps()
    axes = axes_in(node, node.get("axes", [0, 2, 3]), len(x.shape))
    mean = steps.reduce(reduce_mean, x, axes)
    squares = steps.elementwise("(x0 - x1) * (x0 - x1)", x, mean)
    variance = steps.reduce(reduce_mean, squares, axes)
    text = "(x0 - x1) / (dala.sqrt(x2) + 1e-09)"
    steps.elementwise(text, x, mean, variance, into=context.output(x.shape, x.scalar))
    return steps


def local_response(context: NodeContext) -> Iterable[Stage]:
    """LRN: divided by a power of the squares of neighboring channels."""
    node, x, steps = context.node, context.input(), Steps()
    require(node, len(x.shape) > 1, f"there are no channels in {x.shape}")
    size = int(node.get("size", 1))
    require(node, size > 0, f"a size of {size} is none")
    alpha, beta, bias = (
        literal(node.get(name, it)) for name, it in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    text = (
        "def neighbors(x):\n    n, c, i = dala.position(3)\n    total = 0.0\n"
        f"    for k in range({size}):\n"
        f"        element = x[n, c + k - {(size - 1) // 2}, i]\n"
        "        total += element * element\n"
        f"    return x[n, c, i] / dala.pow({bias} + {alpha} / {size}.0 * total, {beta})"
    )
    flat: Shape = (*x.shape[:2], math.prod(x.shape[2:]))
    out = context.output(x.shape, x.scalar)
    steps.run(kernel_of("neighbors", text, "zero"), [reshaped(x, flat)], flat, into=out)
    return steps
