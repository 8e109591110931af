"""The records of operators whose results are as large as their values say, computed by NumPy."""

from __future__ import annotations

import numpy as np

from dala.ml.executor import control_flow
from dala.ml.executor.constant_folding import Arrays, Fold
from dala.ml.executor.operator_record import Operator
from dala.ml.onnx.contents import Node


def non_zero(_: Node, given: Arrays) -> np.ndarray:
    return np.asarray(np.nonzero(np.atleast_1d(np.asarray(given[0]))), np.int64)


def unique(node: Node, given: Arrays) -> tuple[np.ndarray, ...]:
    """Unique elements or slices: themselves, where they first lie, which each is, how many."""
    x, axis = np.asarray(given[0]), node.get("axis")
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not node.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return values, first, inverse, counts


def suppressed(node: Node, given: Arrays) -> np.ndarray:
    """NonMaxSuppression: (batch, class, box) of those that overlap no better one by too much."""
    numbers = [None if item is None else np.asarray(item).reshape(-1) for item in given[2:]]
    most, overlap, least = [
        item[0] if item is not None and item.size else None for item in [*numbers, None, None, None]
    ][:3]
    boxes, scores = np.asarray(given[0], np.float64), np.asarray(given[1])
    corners = _corners(boxes, bool(node.get("center_point_box", 0)))
    found = []
    for batch, kind in np.ndindex(*scores.shape[:2]):
        rated = scores[batch, kind]
        order = np.argsort(-rated, kind="stable")
        order = order if least is None else order[rated[order] > least]
        kept: list[int] = []
        for box in order:
            if len(kept) >= int(most or 0):
                break
            shares = _shared(corners[batch], int(box), kept)
            if not (shares > (overlap or 0.0)).any():
                kept.append(int(box))
        found += [(batch, kind, box) for box in kept]
    return np.asarray(found, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, centered: bool) -> np.ndarray:
    first, second = boxes[..., :2], boxes[..., 2:]
    if centered:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _shared(corners: np.ndarray, box: int, others: list[int]) -> np.ndarray:
    """Returns the share that a box has in common with each of the others, of what both cover."""
    one, many = corners[box], corners[others]
    sides = np.minimum(one[2:], many[:, 2:]) - np.maximum(one[:2], many[:, :2])
    common = np.clip(sides, 0, None).prod(-1)
    covered = (one[2:] - one[:2]).prod() + (many[:, 2:] - many[:, :2]).prod(-1) - common
    return np.asarray(np.divide(common, covered, out=np.zeros_like(common), where=covered > 0))


def on_host(fold: Fold) -> Operator:
    """Returns an operator that NumPy computes, of values read back where they are no constants."""
    return Operator(fold=fold, on_host=True, takes_integers=True)


FLOW: dict[str, Operator] = {
    "If": Operator(parts=control_flow.branch, constants=(0,), takes_integers=True),
    "Loop": Operator(parts=control_flow.loop, constants=(0, 1), takes_integers=True),
    "Scan": Operator(parts=control_flow.scan, takes_integers=True),
}

HOST: dict[str, Operator] = {
    "NonMaxSuppression": on_host(suppressed),
    "NonZero": on_host(non_zero),
    "Unique": on_host(unique),
}
