"""Planes of another size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.resizing import (
    Axis,
    nearest,
    places_of,
    sizes_by_policy,
    tables,
    transformation_of,
)
from dala.ml.executor.sizes import axes_in, numbers_of, require
from dala.ml.executor.steps import Steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage


def resize(context: NodeContext) -> Iterable[Stage]:
    """Resize and Upsample, along any axes."""
    node, shape = context.node, context.shape()
    axes, order = _axes(context), context.order()
    moved = [i for i, axis in enumerate(axes) if not axis.is_same]
    if not moved:
        return context.view(shape)
    mode, shares = node.get("mode", "nearest"), node.get("exclude_outside", 0)
    special = node.get("antialias", 0) or shares or transformation_of(node) == "tf_crop_and_resize"
    ordered, made = [axes[place] for place in order], [axis.made for axis in axes]
    places = [i for i, axis in enumerate(ordered) if not axis.is_same]
    first = min(places[0], len(shape) - 2)
    if places[-1] - first <= 1 and first >= 0 and mode in ("linear", "nearest") and not special:
        x = context.ordered_input(order)
        out = context.ordered_output(made, order, x.scalar)
        return [_in_two_axes(context, x, ordered, first, out)]
    return _axis_by_axis(context, axes, moved, context.output(made, context.input().scalar))


def _in_two_axes(
    context: NodeContext, x: Buffer, axes: Sequence[Axis], first: int, out: Buffer
) -> Stage:
    """The stage that resizes two neighboring axes at once."""
    node = context.node
    linear = node.get("mode", "nearest") == "linear"
    outer, inner = math.prod(x.shape[:first]), math.prod(x.shape[first + 2 :])
    held: list[Buffer] = []
    for axis in axes[first : first + 2]:
        if linear:
            places = places_of(node, axis)
            low = np.clip(np.floor(places), 0, axis.length - 1)
            held += [
                _table(context, low, np.int32),
                _table(context, np.clip(places, 0, axis.length - 1) - low, np.float32),
            ]
        else:
            held.append(_table(context, nearest(node, axis), np.int32))
    seen = reshaped(x, (outer, *x.shape[first : first + 2], inner))
    target = reshaped(out, (outer, *(axis.made for axis in axes[first : first + 2]), inner))
    if inner == 1:
        seen, target = reshaped(seen, seen.shape[:3]), reshaped(target, target.shape[:3])
    kernels = (_linear, _linear_rows) if linear else (_closest, _closest_rows)
    return Stage(kernels[inner > 1], [seen, *held], target)


def _axis_by_axis(
    context: NodeContext, axes: Sequence[Axis], moved: Sequence[int], out: Buffer
) -> Steps:
    """Stages that each resize one axis, the last of them first, into less memory."""
    x, steps, shape = context.input(), Steps(), list(context.shape())
    for i in reversed(moved):
        taken, weights, added = tables(context.node, axes[i])
        before = (math.prod(shape[:i]), shape[i], math.prod(shape[i + 1 :]))
        shape[i] = axes[i].made
        given = [
            reshaped(x, before),
            _table(context, taken, np.int32),
            _table(context, weights, np.float32),
            _table(context, added, np.float32),
        ]
        after = (before[0], shape[i], before[2])
        x = steps.run(_weighed, given, after, into=out if i == moved[0] else None)
    return steps


def _table(context: NodeContext, values: np.ndarray, dtype: Any) -> Buffer:
    return context.builder.uploaded("", values.astype(dtype))


def _axes(context: NodeContext) -> list[Axis]:
    """Returns for each axis how long it is and becomes, and by which scale."""
    node, shape = context.node, context.shape()
    require(node, 0 not in shape and len(shape) > 0, f"there is nothing to resize in {shape}")
    named = node.get("axes")
    axes = axes_in(node, range(len(shape)) if named is None else named, len(shape))
    spans = _spans(context, axes)
    scales = context.array(1 if node.opset < 11 else 2)
    if node.get("scales") is not None:  # as the first versions of Upsample have them
        scales = np.asarray(node.get("scales"))
    found = [Axis(length, length, 1.0, spans[i]) for i, length in enumerate(shape)]
    if scales is not None and scales.size:
        fits = scales.size == len(axes) and bool((np.isfinite(scales) & (scales > 0)).all())
        require(node, fits, f"scales of {scales.tolist()} are none for {len(axes)} axes")
        for i, scale in zip(axes, scales, strict=True):
            part = (spans[i][1] - spans[i][0]) * shape[i]
            made = math.floor(float(scale) * part)
            found[i] = Axis(shape[i], made, float(scale), spans[i])
        return found
    given = context.array(3)
    if given is None:
        raise ModelError(f"{node} says neither sizes nor scales.")
    wanted = numbers_of(node, "sizes", given, len(axes), 0)
    sizes, scale = sizes_by_policy(node, shape, axes, wanted)
    for i, size in zip(axes, sizes, strict=True):
        found[i] = Axis(shape[i], size, scale or size / shape[i], spans[i])
    return found


def _spans(context: NodeContext, axes: Sequence[int]) -> list[tuple[float, float]]:
    """The part of each axis that is resized, as shares of it."""
    node, found = context.node, [(0.0, 1.0)] * len(context.shape())
    if node.opset < 11 or transformation_of(node) != "tf_crop_and_resize":
        return found
    roi = np.asarray(context.array(1)).reshape(-1)
    require(
        node, roi.size == 2 * len(axes), f"a part of {roi.tolist()} is none of {len(axes)} axes"
    )
    for i, first, last in zip(axes, roi[: len(axes)], roi[len(axes) :], strict=True):
        found[i] = (float(first), float(last))
    return found


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


@helper
def _weighed(x: Any, taken: Any, weights: Any, added: Any) -> Any:
    n, i, c = dala.position(3)
    taps = weights.shape[1]
    return sum(x[n, taken[i, k], c] * weights[i, k] for k in range(taps)) + added[i]
