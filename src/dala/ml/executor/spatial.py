"""Pools over planes, and planes of another size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper, zero_outside
from dala.kernels.tensor.reductions import reduce_max, reduce_mean
from dala.kernels.tensor.windows import Windows
from dala.ml.executor.convolutions import windows_of
from dala.ml.executor.epilogue import Shape
from dala.ml.executor.node_context import NodeContext
from dala.ml.executor.sizes import axes_in, check_spatial, numbers_of, require
from dala.ml.onnx.contents import Node
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.pipelines.composite import Stage

LOWEST = -math.inf


# -- pools -----------------------------------------------------------------------------------------


def pool(context: NodeContext) -> Iterator[Stage]:
    """MaxPool and AveragePool in two axes."""
    x, node = context.input(), context.node
    check_spatial(node, x.shape)
    size = numbers_of(node, "kernel_shape", node.get("kernel_shape", ()), 2, 1)
    plane = x.shape[2:]
    ceiling = bool(node.get("ceil_mode", 0))
    down, across = windows_of(node, size, plane, ceiling=ceiling)
    out = context.output((*x.shape[:2], down.count, across.count))
    planes = math.prod(x.shape[:2])
    windows = (down, across)
    if all(w == Windows(n, w.step, 1, 0, 1) for n, w in zip(plane, windows, strict=True)):
        yield _whole(node.op == "MaxPool", x, out)
        return
    params = {
        "height": down.size,
        "width": across.size,
        "down": down.step,
        "across": across.step,
        "apart_down": down.apart,
        "apart_across": across.apart,
        "top": down.before,
        "left": across.before,
    }
    kernel = _largest
    if node.op == "AveragePool":
        kernel = _mean
        params |= _counted(node, plane, windows)
    target = reshaped(out, (planes, down.count, across.count))
    yield Stage(kernel, [reshaped(x, (planes, *plane))], target, params)


def _counted(node: Node, plane: Shape, windows: tuple[Windows, Windows]) -> dict[str, int]:
    """Returns the rows and columns that a mean is over: those of the plane, or of its padding, too.

    What lies beyond the padding, where the last window is rounded up, never counts.
    """
    starts, ends = [0, 0], list(plane)
    if node.get("count_include_pad", 0):
        starts = [-w.before for w in windows]
        pads = node.get("pads", [0, 0, 0, 0])
        ends = [size + after for size, after in zip(plane, pads[2:], strict=True)]
        if node.get("auto_pad", "NOTSET").startswith("SAME"):
            ends = [(w.count - 1) * w.step + (w.size - 1) * w.apart + 1 - w.before for w in windows]
    return {
        "first_row": starts[0],
        "first_column": starts[1],
        "end_row": ends[0],
        "end_column": ends[1],
    }


def global_pool(context: NodeContext) -> Iterator[Stage]:
    """GlobalAveragePool and GlobalMaxPool."""
    x = context.input()
    require(context.node, len(x.shape) > 2, f"there are no planes in {x.shape}")
    out = context.output((*x.shape[:2], *(1,) * (len(x.shape) - 2)))
    yield _whole(context.node.op == "GlobalMaxPool", x, out)


def _whole(largest: bool, x: Buffer, out: Buffer) -> Stage:
    planes = math.prod(x.shape[:2])
    seen = reshaped(x, (planes, math.prod(x.shape[2:])))
    kernel = reduce_max if largest else reduce_mean
    return Stage(kernel, [seen], reshaped(out, (planes,)), {"axis": 1})


@helper
def _largest(
    x: Any,
    height: dala.const,
    width: dala.const,
    down: dala.const,
    across: dala.const,
    apart_down: dala.const,
    apart_across: dala.const,
    top: dala.const,
    left: dala.const,
) -> Any:
    i, y, z = dala.position(3)
    largest = dala.f32(LOWEST)
    for a in range(height):
        row = y * down - top + a * apart_down
        for b in range(width):
            column = z * across - left + b * apart_across
            inside = row >= 0 and row < x.shape[1] and column >= 0 and column < x.shape[2]
            largest = max(largest, x[i, row, column] if inside else LOWEST)
    return largest


@zero_outside
def _mean(
    x: Any,
    height: dala.const,
    width: dala.const,
    down: dala.const,
    across: dala.const,
    apart_down: dala.const,
    apart_across: dala.const,
    top: dala.const,
    left: dala.const,
    first_row: dala.const,
    first_column: dala.const,
    end_row: dala.const,
    end_column: dala.const,
) -> Any:
    i, y, z = dala.position(3)
    total, count = dala.f32(0), dala.f32(0)
    for a in range(height):
        row = y * down - top + a * apart_down
        for b in range(width):
            column = z * across - left + b * apart_across
            total += x[i, row, column]
            in_rows = row >= first_row and row < end_row
            in_columns = column >= first_column and column < end_column
            count += 1.0 if in_rows and in_columns else 0.0
    return total / count


# -- sizes -----------------------------------------------------------------------------------------


def resize(context: NodeContext) -> Iterator[Stage]:
    """Resize along one axis or two that are neighbors, linear or nearest."""
    node, shape = context.node, context.shape()
    sizes, scales = _sizes(context)
    axes = [axis for axis in range(len(shape)) if sizes[axis] != shape[axis] or scales[axis] != 1]
    if not axes:
        yield from context.view(shape)
        return
    first = min(axes[0], len(shape) - 2)
    if axes[-1] - first > 1:
        raise ModelError(f"{node}: {shape} to {sizes}: only two neighboring axes are resized.")
    x, out = context.input(), context.output(sizes)
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
