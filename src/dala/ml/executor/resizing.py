"""Where each element of a resized axis comes from: neighbors and their weights, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dala.base.record import record
from dala.errors import ModelError
from dala.ml.onnx.contents import Node

TRANSFORMATIONS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@record
class Axis:
    """An axis that is resized: how long it is and becomes, by which scale, and what part of it."""

    length: int
    made: int
    scale: float
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def is_same(self) -> bool:
        return self.length == self.made and self.scale == 1 and self.span == (0.0, 1.0)


def transformation_of(node: Node) -> str:
    """How places of the result are turned into places of the input."""
    if node.opset < 11:
        return "asymmetric"
    found: str = node.get("coordinate_transformation_mode", "half_pixel")
    if found not in TRANSFORMATIONS:
        raise ModelError(
            f"{node}: coordinate_transformation_mode is {found!r}, not one of "
            f"{', '.join(TRANSFORMATIONS)}."
        )
    return found


def places_of(node: Node, axis: Axis) -> np.ndarray:
    """Returns where each element of the result lies in the input, in elements from its first."""
    at, length, made, scale = np.arange(axis.made, dtype=np.float64), *_numbers(axis)
    match transformation_of(node):
        case "asymmetric":
            return at / scale
        case "align_corners":
            # ONNX counts the length before it is rounded down, where ONNX Runtime counts it after.
            whole = scale * length
            return at * (length - 1) / (whole - 1) if made > 1 else at * 0
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        case "tf_crop_and_resize":
            first, last = axis.span
            if made > 1:
                return first * (length - 1) + at * (last - first) * (length - 1) / (made - 1)
            return at * 0 + 0.5 * (first + last) * (length - 1)
        case "pytorch_half_pixel" if made == 1:
            return at * 0
        case "half_pixel_symmetric":
            shift = length / 2 * (1 - made / (scale * length))
            return shift + (at + 0.5) / scale - 0.5
    return (at + 0.5) / scale - 0.5


def _numbers(axis: Axis) -> tuple[int, int, float]:
    return axis.length, axis.made, axis.scale


def nearest(node: Node, axis: Axis) -> np.ndarray:
    """Returns the one element that each of the result is."""
    how = node.get("nearest_mode", "round_prefer_floor") if node.opset >= 11 else "floor"
    rounded: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda at: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    }
    if how not in rounded:
        raise ModelError(f"{node}: nearest_mode is {how!r}, not one of {', '.join(rounded)}.")
    return np.asarray(np.clip(rounded[how](places_of(node, axis)), 0, axis.length - 1))


def tables(node: Node, axis: Axis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The elements that each of the result is made of, their weights, and what is added."""
    places, mode = places_of(node, axis), node.get("mode", "nearest")
    if mode == "nearest":
        taken, weights = nearest(node, axis)[:, None], np.ones((axis.made, 1))
    else:
        # Of a place on an element, that element is the last one rather than the first.
        low = np.ceil(places) - 1
        taken, weights = _neighbors(node, axis, places - low)
        taken = taken + low[:, None]
        if node.get("exclude_outside", 0):
            weights = np.where((taken < 0) | (taken >= axis.length), 0, weights)
            weights /= weights.sum(1, keepdims=True)
    added = np.zeros(axis.made)
    if transformation_of(node) == "tf_crop_and_resize":
        outside = (places < 0) | (places > axis.length - 1)
        weights = np.where(outside[:, None], 0, weights)
        added[outside] = node.get("extrapolation_value", 0.0)
    return np.clip(taken, 0, axis.length - 1), weights, added


def _neighbors(node: Node, axis: Axis, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements counted from the one before each place, and their weights."""
    mode = node.get("mode", "nearest")
    if mode not in ("linear", "cubic"):
        raise ModelError(f"{node}: mode is {mode!r}, not nearest, linear or cubic.")
    reach = 1 if mode == "linear" else 2
    scale = min(axis.scale, 1.0) if node.get("antialias", 0) else 1.0
    first = int(np.floor(-reach / scale)) + 1
    taken = np.arange(first, 2 - first)
    far = np.abs(taken[None] - share[:, None]) * scale
    if mode == "linear":
        weights = np.clip(1 - far, 0, 1)
    else:
        a = node.get("cubic_coeff_a", -0.75)
        near = ((a + 2) * far - (a + 3)) * far * far + 1
        wide = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
        weights = np.where(far <= 1, near, np.where(far < 2, wide, 0))
    if scale < 1:
        weights = weights / weights.sum(1, keepdims=True)
    return np.broadcast_to(taken, weights.shape), weights


def sizes_by_policy(
    node: Node, shape: Sequence[int], axes: Sequence[int], wanted: Sequence[int]
) -> tuple[list[int], float | None]:
    """The sizes of axes, and the scale of all of them where proportions are kept."""
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(wanted), None
    ratios = [size / shape[axis] for axis, size in zip(axes, wanted, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise ModelError(
            f"{node}: keep_aspect_ratio_policy is {policy!r}, not stretch, not_larger or "
            f"not_smaller."
        )
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [int(scale * shape[axis] + 0.5) for axis in axes], scale
