"""Planes of another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.ml.executor.channels_last import TO_LAST, in_order
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axes_in, numbers_of, require
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage


def resize(context: NodeContext) -> Iterator[Stage]:
    """Resize along one axis or two that are neighbors, linear or nearest."""
    node, shape = context.node, context.shape()
    sizes, scales = _sizes(context)
    axes = [axis for axis in range(len(shape)) if sizes[axis] != shape[axis] or scales[axis] != 1]
    if not axes:
        yield from context.view(shape)
        return
    order = context.order()
    x, out = context.ordered_input(order), context.ordered_output(sizes, order)
    if order == TO_LAST:
        shape, sizes = in_order(shape, order), in_order(sizes, order)
        scales, axes = [scales[axis] for axis in order], sorted(map(order.index, axes))
    first = min(axes[0], len(shape) - 2)
    if axes[-1] - first > 1:
        raise ModelError(f"{node}: {shape} to {sizes}: only two neighboring axes are resized.")
    linear = node.get("mode", "nearest") == "linear"
    outer, inner = math.prod(shape[:first]), math.prod(shape[first + 2 :])
    tables: list[Buffer] = []
    for axis in (first, first + 1):
        places = _places(node, shape[axis], sizes[axis], scales[axis])
        if linear:
            low = np.clip(np.floor(places), 0, shape[axis] - 1)
            tables += [
                _table(context, low, np.int32),
                _table(context, np.clip(places, 0, shape[axis] - 1) - low, np.float32),
            ]
        else:
            tables.append(_table(context, _nearest(node, places, shape[axis]), np.int32))
    seen = reshaped(x, (outer, *shape[first : first + 2], inner))
    target = reshaped(out, (outer, *sizes[first : first + 2], inner))
    if inner == 1:
        seen, target = reshaped(seen, seen.shape[:3]), reshaped(target, target.shape[:3])
    kernels = (_linear, _linear_rows) if linear else (_closest, _closest_rows)
    yield Stage(kernels[inner > 1], [seen, *tables], target)


def _table(context: NodeContext, values: np.ndarray, dtype: Any) -> Buffer:
    return context.builder.uploaded("", values.astype(dtype))


def _sizes(context: NodeContext) -> tuple[tuple[int, ...], list[float]]:
    """Returns the size of each axis of the result, and how many times the size before that is."""
    node, shape = context.node, context.shape()
    scales = context.array(1 if node.opset < 11 else 2)
    require(node, 0 not in shape and len(shape) > 1, f"there is nothing to resize in {shape}")
    named = node.get("axes")
    axes = axes_in(node, range(len(shape)) if named is None else named, len(shape))
    if scales is not None and scales.size:
        fits = scales.size == len(axes) and bool((np.isfinite(scales) & (scales > 0)).all())
        require(node, fits, f"scales of {scales.tolist()} are none for {len(axes)} axes")
        found = [1.0] * len(shape)
        for axis, scale in zip(axes, scales, strict=True):
            found[axis] = float(scale)
        return tuple(math.floor(n * by) for n, by in zip(shape, found, strict=True)), found
    wanted = context.array(3)
    if wanted is None:
        raise ModelError(f"{node} says neither sizes nor scales.")
    sizes = list(shape)
    for axis, size in zip(axes, numbers_of(node, "sizes", wanted, len(axes), 0), strict=True):
        sizes[axis] = size
    return tuple(sizes), [made / size for made, size in zip(sizes, shape, strict=True)]


def _places(node: Node, length: int, made: int, scale: float) -> np.ndarray:
    """Returns where each element of the result lies in the input, in elements from its first."""
    at = np.arange(made, dtype=np.float64)
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    if node.opset < 11 or mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * (length - 1) / (made - 1) if made > 1 else at * 0
    if mode == "pytorch_half_pixel" and made == 1:
        return at * 0
    return (at + 0.5) / scale - 0.5


def _nearest(node: Node, places: np.ndarray, length: int) -> np.ndarray:
    how = node.get("nearest_mode", "round_prefer_floor") if node.opset >= 11 else "floor"
    rounded: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda at: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    }
    return np.asarray(np.clip(rounded[how](places), 0, length - 1))


@helper
def _linear(x: Any, top: Any, down: Any, left: Any, across: Any) -> Any:
    n, i, j = dala.position(3)
    y, z, by = top[i], left[j], across[j]
    above = dala.mix(x[n, y, z], x[n, y, z + 1], by)
    below = dala.mix(x[n, y + 1, z], x[n, y + 1, z + 1], by)
    return dala.mix(above, below, down[i])


@helper
def _linear_rows(x: Any, top: Any, down: Any, left: Any, across: Any) -> Any:
    n, i, j, c = dala.position(4)
    y, z, by = top[i], left[j], across[j]
    above = dala.mix(x[n, y, z, c], x[n, y, z + 1, c], by)
    below = dala.mix(x[n, y + 1, z, c], x[n, y + 1, z + 1, c], by)
    return dala.mix(above, below, down[i])


@helper
def _closest(x: Any, top: Any, left: Any) -> Any:
    n, i, j = dala.position(3)
    return x[n, top[i], left[j]]


@helper
def _closest_rows(x: Any, top: Any, left: Any) -> Any:
    n, i, j, c = dala.position(4)
    return x[n, top[i], left[j], c]
