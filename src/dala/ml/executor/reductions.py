"""Operators that reduce axes: sums, means, extremes and their places, softmax, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

from dala.ir.types import S64, Scalar
from dala.kernels.base.builtin import written
from dala.kernels.tensor.elementwise import cast, fill
from dala.kernels.tensor.matmul import transposed
from dala.kernels.tensor.normalization import softmax as normalized
from dala.kernels.tensor.ranking import argmax as largest_place
from dala.kernels.tensor.scans import prefix_sum
from dala.ml.executor.constant_folding import axes_of
from dala.ml.executor.dtypes import on_device
from dala.ml.executor.movement import picked
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axes_in, axis_in, require
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

Expand = Callable[[NodeContext], Iterator[Stage]]
Reduce = Callable[[Buffer, Buffer, tuple[int, ...]], Iterator[Stage]]
"""Stages that reduce these axes of a buffer into another, which has 1 in their place."""


def reduce_by(kernel: Kernel, of_nothing: Callable[[Scalar], float] = lambda _: 0) -> Expand:
    """Returns a reduction along axes, or over all of them, and what there is of no elements."""

    def reduce(x: Buffer, out: Buffer, axes: tuple[int, ...]) -> Iterator[Stage]:
        if 0 in x.shape:
            yield Stage(fill, [], out, {"value": of_nothing(x.scalar)})
        else:
            yield Stage(kernel, [x], out, {"axis": axes})

    return _reducing(reduce)


def _reducing(reduce: Reduce) -> Expand:
    def expand(context: NodeContext) -> Iterator[Stage]:
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
        if 0 in out.shape:
            return
        if not axes:
            yield Stage(cast, [x], out)
            return
        yield from reduce(x, reshaped(out, tuple(ones)), tuple(sorted(axes)))

    return expand


def lowest(scalar: Scalar) -> float:
    """What the largest of nothing is."""
    return -math.inf if scalar.is_float else scalar.lowest if scalar.is_integer else 0


def highest(scalar: Scalar) -> float:
    """What the smallest of nothing is."""
    return math.inf if scalar.is_float else scalar.highest if scalar.is_integer else 1


def _multiplied(x: Buffer, out: Buffer, axes: tuple[int, ...]) -> Iterator[Stage]:
    rank = len(x.shape)
    order = (*(i for i in range(rank) if i not in axes), *axes)
    rows = scratch(tuple(x.shape[i] for i in order), x.scalar)
    count, n = math.prod(out.shape), math.prod(x.shape[i] for i in axes)
    if n == 0:
        yield Stage(fill, [], out, {"value": 1})
        return
    yield from transposed(x, rows, order)
    yield Stage(_product, [reshaped(rows, (count, n))], reshaped(out, (count, 1)))


product = _reducing(_multiplied)
_product = written(
    "product",
    "def product(x):\n    i, _ = dala.position(2)\n    v = x[i, 0]\n"
    "    for k in range(1, x.shape[1]):\n        v = v * x[i, k]\n    return v",
)


def softmax(context: NodeContext) -> Iterator[Stage]:
    """Softmax along an axis; before opset 13, over all axes from one on."""
    x, rank = context.input(), len(context.shape())
    out = context.output(x.shape, x.scalar)
    if context.node.opset >= 13:
        axis = axis_in(context.node, context.node.get("axis", -1), rank)
        yield Stage(normalized, [x], out, {"axis": axis})
        return
    axis = axis_in(context.node, context.node.get("axis", 1), rank)
    flat = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    yield Stage(normalized, [reshaped(x, flat)], reshaped(out, flat), {"axis": 1})


def argmax(context: NodeContext) -> Iterator[Stage]:
    """ArgMax and ArgMin along an axis: the first of the extremes, or the last."""
    x, node = context.input(), context.node
    axis = axis_in(node, node.get("axis", 0), len(x.shape))
    ones = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    kept = tuple(size for i, size in enumerate(x.shape) if i != axis)
    out = context.output(ones if node.get("keepdims", 1) else kept, on_device(S64))
    require(node, 0 not in x.shape, f"there is none in {x.shape}")
    last = bool(node.get("select_last_index", 0))
    if node.op == "ArgMax" and not last:
        yield Stage(largest_place, [x], reshaped(out, ones), {"axis": axis})
        return
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    compare = (">" if node.op == "ArgMax" else "<") + "=" * last
    seen = reshaped(x, (outer, x.shape[axis], inner))
    yield Stage(_place_kernel(compare), [seen], reshaped(out, (outer, inner)))


@cache
def _place_kernel(compare: str) -> Kernel:
    return written(
        "place",
        "def place(x):\n    i, j = dala.position(2)\n    best = x[i, 0, j]\n    at = 0\n"
        "    for k in range(1, x.shape[1]):\n        v = x[i, k, j]\n"
        f"        better = v {compare} best\n        at = k if better else at\n"
        "        best = v if better else best\n    return at",
    )


def running_sum(context: NodeContext) -> Iterator[Stage]:
    """CumSum and CumProd along an axis, from either end, with or without the element itself."""
    node, x = context.node, context.input()
    given = context.array(1)
    assert given is not None
    axis = axis_in(node, given.reshape(()), len(x.shape))
    out = context.output(x.shape, x.scalar)
    if 0 in x.shape:
        return
    exclusive, reverse = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
    if node.op == "CumProd":
        outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        flat = (outer, x.shape[axis], inner)
        kernel = _running_kernel(exclusive, reverse)
        yield Stage(kernel, [reshaped(x, flat)], reshaped(out, flat))
        return
    params = {"axis": axis, "exclusive": exclusive}
    if not reverse:
        yield Stage(prefix_sum, [x], out, params)
        return
    turned, summed = (scratch(x.shape, x.scalar) for _ in range(2))
    starts = [x.shape[axis] - 1 if i == axis else 0 for i in range(len(x.shape))]
    steps = [-1 if i == axis else 1 for i in range(len(x.shape))]
    yield picked(x, turned, starts, steps)
    yield Stage(prefix_sum, [turned], summed, params)
    yield picked(summed, out, starts, steps)


@cache
def _running_kernel(exclusive: bool, reverse: bool) -> Kernel:
    """A product of all before a position, one by one: nothing else carries products along."""
    first = "n - 1 - k" if reverse else "k"
    last = "n - 1 - j" if reverse else "j"
    count = f"{last}" if exclusive else f"{last} + 1"
    return written(
        "running",
        "def running(x):\n    i, j, m = dala.position(3)\n    n = x.shape[1]\n"
        "    v = x[i, j, m] * 0 + 1\n"
        f"    for k in range({count}):\n        v = v * x[i, {first}, m]\n    return v",
    )
