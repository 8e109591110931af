"""Operators that reduce axes: sums and means, extremes, softmax, the place of the largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dala.ir.types import S32
from dala.kernels.tensor.normalization import softmax as normalised
from dala.kernels.tensor.ranking import argmax as largest_place
from dala.ml.executor.constant_folding import axes_of
from dala.ml.executor.node_context import Site
from dala.ml.executor.sizes import axes_in, axis_in
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

Expand = Callable[[Site], Iterator[Stage]]


def reduce_by(kernel: Kernel) -> Expand:
    """A reduction along axes, or over all of them."""

    def reduce(site: Site) -> Iterator[Stage]:
        node, shape = site.node, site.shape()
        given = axes_of(node, site.arrays(), 1)
        if not given and node.get("noop_with_empty_axes", 0):
            yield from site.view(shape)
            return
        axes = axes_in(node, given, len(shape)) if given else list(range(len(shape)))
        ones = [1 if axis in axes else size for axis, size in enumerate(shape)]
        left = [size for axis, size in enumerate(shape) if axis not in axes]
        x = site.input()
        out = site.output(ones if node.get("keepdims", 1) else left, x.scalar)
        params = {"axis": tuple(sorted(axes))}
        yield Stage(kernel, [x], reshaped(out, tuple(ones)), params)

    return reduce


def softmax(site: Site) -> Iterator[Stage]:
    """Softmax along an axis; before opset 13, over all axes from one on."""
    x, rank = site.input(), len(site.shape())
    out = site.output(x.shape)
    if site.node.opset >= 13:
        axis = axis_in(site.node, site.node.get("axis", -1), rank)
        yield Stage(normalised, [x], out, {"axis": axis})
        return
    axis = axis_in(site.node, site.node.get("axis", 1), rank)
    flat = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    yield Stage(normalised, [reshaped(x, flat)], reshaped(out, flat), {"axis": 1})


def argmax(site: Site) -> Iterator[Stage]:
    """ArgMax along an axis: the first of the largest."""
    x, node = site.input(), site.node
    axis = axis_in(node, node.get("axis", 0), len(x.shape))
    ones = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    kept = tuple(size for i, size in enumerate(x.shape) if i != axis)
    out = site.output(ones if node.get("keepdims", 1) else kept, S32)
    yield Stage(largest_place, [x], reshaped(out, ones), {"axis": axis})
