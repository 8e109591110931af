"""Operators that reduce axes: sums and means, extremes, softmax, the place of the largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dala.ir.types import S32
from dala.kernels.tensor.normalization import softmax as normalized
from dala.kernels.tensor.ranking import argmax as largest_place
from dala.ml.executor.constant_folding import axes_of
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axes_in, axis_in
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

Expand = Callable[[NodeContext], Iterator[Stage]]


def reduce_by(kernel: Kernel) -> Expand:
    """Returns a reduction along axes, or over all of them."""

    def reduce(context: NodeContext) -> Iterator[Stage]:
        node, shape = context.node, context.shape()
        given = axes_of(node, context.arrays(), 1)
        if not given and node.get("noop_with_empty_axes", 0):
            yield from context.view(shape)
            return
        axes = axes_in(node, given, len(shape)) if given else list(range(len(shape)))
        ones = [1 if axis in axes else size for axis, size in enumerate(shape)]
        left = [size for axis, size in enumerate(shape) if axis not in axes]
        x = context.input()
        out = context.output(ones if node.get("keepdims", 1) else left, x.scalar)
        params = {"axis": tuple(sorted(axes))}
        yield Stage(kernel, [x], reshaped(out, tuple(ones)), params)

    return reduce


def softmax(context: NodeContext) -> Iterator[Stage]:
    """Softmax along an axis; before opset 13, over all axes from one on."""
    x, rank = context.input(), len(context.shape())
    out = context.output(x.shape)
    if context.node.opset >= 13:
        axis = axis_in(context.node, context.node.get("axis", -1), rank)
        yield Stage(normalized, [x], out, {"axis": axis})
        return
    axis = axis_in(context.node, context.node.get("axis", 1), rank)
    flat = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    yield Stage(normalized, [reshaped(x, flat)], reshaped(out, flat), {"axis": 1})


def argmax(context: NodeContext) -> Iterator[Stage]:
    """ArgMax along an axis: the first of the largest."""
    x, node = context.input(), context.node
    axis = axis_in(node, node.get("axis", 0), len(x.shape))
    ones = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    kept = tuple(size for i, size in enumerate(x.shape) if i != axis)
    out = context.output(ones if node.get("keepdims", 1) else kept, S32)
    yield Stage(largest_place, [x], reshaped(out, ones), {"axis": axis})
