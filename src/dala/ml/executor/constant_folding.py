"""What follows from constants and shapes alone, computed by NumPy before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from dala.errors import ModelError
from dala.ml.executor.sizes import axes_in
from dala.ml.onnx.contents import Node
from dala.ml.onnx.tensors import NUMPY_DTYPES

MOST_FOLDED_BYTES = 1 << 31
"""How large a constant may become that is made of others."""

Arrays = Sequence[np.ndarray | None]
Folded = np.ndarray | tuple[np.ndarray, ...]
Fold = Callable[[Node, Arrays], Folded]
"""What NumPy makes of a node: its result, or several."""


def applied(function: Callable[..., Any]) -> Fold:
    """Returns a function of NumPy, on all inputs."""
    return lambda _, given: np.asarray(function(*given))


def accumulated(function: np.ufunc) -> Fold:
    """Of any number of arrays: a third one given to NumPy would be written over."""
    return lambda _, given: np.asarray(reduce(function, given))


def constant(node: Node, _: Arrays) -> np.ndarray:
    ((name, value),) = node.attributes.items()
    dtype = {"value_fl": np.float32, "value_in": np.int64}.get(name[:8])
    return np.asarray(value, dtype)


def cast(node: Node, given: Arrays) -> np.ndarray:
    return np.asarray(given[0]).astype(NUMPY_DTYPES[node.get("to")])


def cast_like(_: Node, given: Arrays) -> np.ndarray:
    return np.asarray(given[0]).astype(np.asarray(given[1]).dtype)


def clipped(node: Node, given: Arrays) -> np.ndarray:
    low, high = [*given[1:], None, None][:2]
    if node.opset < 11:
        low, high = node.get("min"), node.get("max")
    x = np.asarray(given[0])
    x = x if low is None else np.maximum(x, np.asarray(low, x.dtype))
    return x if high is None else np.minimum(x, np.asarray(high, x.dtype))


def raised(_: Node, given: Arrays) -> np.ndarray:
    x, by = (np.asarray(item) for item in given)
    return np.asarray(np.power(x, by), x.dtype)


def shifted(node: Node, given: Arrays) -> np.ndarray:
    shift = np.left_shift if node.get("direction") == "LEFT" else np.right_shift
    return np.asarray(shift(*(np.asarray(item) for item in given)))


def divided(_: Node, given: Arrays) -> np.ndarray:
    a, b = (np.asarray(item) for item in given)
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    # ONNX cuts off, where NumPy rounds down.
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(quotient * np.sign(a) * np.sign(b), a.dtype)


def remainder(node: Node, given: Arrays) -> np.ndarray:
    a, b = (np.asarray(item) for item in given)
    return np.asarray(np.fmod(a, b) if node.get("fmod", 0) else np.mod(a, b))


def squeezed(node: Node, given: Arrays) -> np.ndarray:
    axes = axes_of(node, given, 1)
    return np.squeeze(np.asarray(given[0]), None if axes is None else tuple(axes))


def unsqueezed(node: Node, given: Arrays) -> np.ndarray:
    axes = axes_of(node, given, 1) or []
    x = np.asarray(given[0])
    return np.expand_dims(x, tuple(axis % (x.ndim + len(axes)) for axis in axes))


def reshaped(node: Node, given: Arrays) -> np.ndarray:
    x = np.asarray(given[0])
    wanted = np.asarray(given[1]).reshape(-1).tolist()
    if node.get("allowzero", 0):
        return x.reshape(wanted)
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(wanted)])


def sliced(node: Node, given: Arrays) -> np.ndarray:
    x = np.asarray(given[0])
    return x[slices_of(node, given, x.shape)]


def filled(node: Node, given: Arrays) -> np.ndarray:
    value = np.asarray(node.get("value", np.zeros(1, np.float32)))
    sizes = np.asarray(given[0]).tolist()
    _check_size(sizes, value.itemsize)
    return np.full(sizes, value.reshape(()), value.dtype)


def _check_size(sizes: Sequence[int], item_bytes: int) -> None:
    """Refuse a result that no memory should be asked for."""
    count = math.prod(sizes)
    if count * item_bytes > MOST_FOLDED_BYTES:
        raise ValueError(f"{count:,} elements are more than {MOST_FOLDED_BYTES:,} bytes")


def expanded(_: Node, given: Arrays) -> np.ndarray:
    x = np.asarray(given[0])
    _check_size(np.broadcast_shapes(x.shape, np.asarray(given[1]).tolist()), x.itemsize)
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, np.asarray(given[1]).tolist())).copy()


def reduced(function: np.ufunc) -> Fold:
    """Returns a reduction along axes, or over all of them."""

    def fold(node: Node, given: Arrays) -> np.ndarray:
        axes = axes_of(node, given, 1)
        x = np.asarray(given[0])
        if not axes and node.get("noop_with_empty_axes", 0):
            return x
        over = tuple(axes) if axes else tuple(range(x.ndim))
        keep = bool(node.get("keepdims", 1))
        return np.asarray(function.reduce(x, over, x.dtype, keepdims=keep))

    return fold


def concatenated(node: Node, given: Arrays) -> np.ndarray:
    return np.concatenate([np.asarray(x) for x in given], node.get("axis"))


def flattened(node: Node, given: Arrays) -> np.ndarray:
    x, axis = np.asarray(given[0]), node.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def gathered(node: Node, given: Arrays) -> np.ndarray:
    return np.take(np.asarray(given[0]), np.asarray(given[1]), node.get("axis", 0))


def ranged(_: Node, given: Arrays) -> np.ndarray:
    first, end, step = (np.asarray(x).item() for x in given)
    _check_size([max(math.ceil((end - first) / step), 0)], 8)
    return np.arange(first, end, step).astype(np.asarray(given[0]).dtype)


def tiled(_: Node, given: Arrays) -> np.ndarray:
    x, counts = np.asarray(given[0]), np.asarray(given[1]).tolist()
    _check_size([*x.shape, *counts], x.itemsize)
    return np.tile(x, counts)


def transposed(node: Node, given: Arrays) -> np.ndarray:
    return np.transpose(np.asarray(given[0]), node.get("perm"))


def folded(fold: Fold, node: Node, given: Arrays) -> dict[str, np.ndarray]:
    """What a node makes of arrays, by name; a ModelError where they do not fit it or each other."""
    try:
        with np.errstate(all="ignore"):
            made = fold(node, given)
        results = made if isinstance(made, tuple) else (made,)
        return {
            name: np.asarray(it) for name, it in zip(node.outputs, results, strict=False) if name
        }
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        shapes = ", ".join(str(np.shape(item)) for item in given if item is not None)
        raise ModelError(f"{node} of constants {shapes} cannot be computed: {error}.") from error


def accumulating(node: Node, given: Arrays) -> np.ndarray:
    """CumSum."""
    x, axis = np.asarray(given[0]), int(np.asarray(given[1]).reshape(()))
    turned = np.flip(x, axis) if node.get("reverse", 0) else x
    made = np.cumsum(turned, axis, x.dtype)
    made = made - turned if node.get("exclusive", 0) else made
    return np.flip(made, axis) if node.get("reverse", 0) else made


def split(node: Node, given: Arrays) -> tuple[np.ndarray, ...]:
    x, axis = np.asarray(given[0]), node.get("axis", 0)
    sizes = node.get("split") if len(given) < 2 or given[1] is None else np.asarray(given[1])
    count = len(node.outputs)
    each = -(-x.shape[axis] // count)
    ends = [each * i for i in range(1, count)] if sizes is None else np.cumsum(sizes)[:-1]
    return tuple(np.split(x, ends, axis))


def axes_of(node: Node, given: Arrays, index: int) -> list[int] | None:
    """Returns the axes that a node names, as an input or, in older files, as an attribute."""
    if index < len(given) and given[index] is not None:
        return [int(axis) for axis in np.asarray(given[index]).reshape(-1)]
    named = node.get("axes")
    return None if named is None else [int(axis) for axis in named]


def slices_of(node: Node, given: Arrays, shape: Sequence[int]) -> tuple[slice, ...]:
    """Returns what a Slice takes of each axis, as slices of Python."""
    if node.opset < 10:
        starts, stops = node.get("starts"), node.get("ends")
        axes, steps = node.get("axes"), None
    else:
        held = [None if item is None else np.asarray(item).tolist() for item in given]
        starts, stops, axes, steps = [*held[1:], None, None][:4]
    axes = axes_in(node, range(len(starts)) if axes is None else axes, len(shape))
    steps = [1] * len(starts) if steps is None else steps
    if any(isinstance(number, float) for given in (starts, stops, steps) for number in given):
        raise ModelError(f"{node}: from {starts} to {stops} by {steps}: positions are integers.")
    if not len(starts) == len(stops) == len(axes) == len(steps) or 0 in steps:
        raise ModelError(f"{node}: from {starts} to {stops} by {steps} of axes {axes} is nothing.")
    found = [slice(None)] * len(shape)
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        found[axis] = slice(start, stop, step)
    return tuple(found)
