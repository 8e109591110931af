"""Faces and their key points: offsets from the anchors of BlazeFace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ModelError
from dala.kernels.vision.detection import anchor_scores, decode_anchors, merge_overlapping
from dala.kernels.vision.suppression import non_maximum_suppression
from dala.ml.catalog.labels import labels
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement, Shape
from dala.ml.results.results import Detection, Keypoint, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, find_output, listed, shown, without_batch
from dala.runtime.buffers.buffer import Buffer, from_numpy

CANDIDATES = 256
"""Of all anchors, so many of the best may suppress each other."""

Anchors = tuple[tuple[int, int], ...]
"""How far the cells of each grid are apart, and how many anchors are in the middle of each."""


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Detection]:
    """Returns the faces found, the surest first.

    A face is the mean of all boxes and points that overlap the best one by more than iou, weighed
    by their scores: it moves less from frame to frame than the best one alone.
    """
    given = chosen(entry, options, "threshold", "iou", "max_results")
    limits = {"iou": given["iou"], "threshold": given["threshold"]}
    (name,), points = entry.names, labels(entry.settings["keypoints"])
    grids = tuple(zip(entry.settings["strides"], entry.settings["anchors"], strict=True))
    anchors = anchor_buffer(grids, placement.tensor, current_device())
    n, columns = anchors.shape[0], 4 + 2 * len(points)
    logits, values, column = _found(outputs, entry, n, columns)
    offsets = {"column": column, "scale": placement.tensor[1]}
    scores = computed(anchor_scores, [logits], (n,))
    boxes = computed(decode_anchors, [values, anchors], (n, 4), params=offsets)
    rows = computed(decode_anchors, [values, anchors], (n, columns), params=offsets)
    count = given["max_results"]
    kept = computed(
        non_maximum_suppression,
        [boxes, scores],
        (count,),
        "s32",
        {**limits, "candidates": CANDIDATES},
    )
    merged = computed(merge_overlapping, [rows, scores, kept], (count, columns), params=limits)
    left = [place for place in np.asarray(kept).tolist() if place >= 0]
    places = np.asarray(merged)[: len(left)].reshape(len(left), columns // 2, 2)
    places = places * np.array(placement.tensor[::-1])
    faces = Results[Detection]()
    for face, score in zip(places, np.asarray(scores)[left].tolist(), strict=True):
        marks = placement.points(face[2:]).tolist()
        keypoints = {p: Keypoint(x, y, score) for p, (x, y) in zip(points, marks, strict=True)}
        box = placement.box(face[:2])
        if box[0] < box[2] and box[1] < box[3]:
            faces.append(Detection(box, name, score, 0, keypoints))
    return faces


def _found(outputs: Outputs, entry: Reading, n: int, columns: int) -> tuple[Buffer, Buffer, int]:
    """Returns the logits, the offsets, and the column at which these begin."""
    together = (1, n, 1 + columns)
    both = find_output(outputs, "objects", together)
    if both is not None:
        rows = without_batch(both)
        return rows, rows, 1
    logits = find_output(outputs, "classificators", (1, n, 1))
    values = find_output(outputs, "regressors", (1, n, columns))
    if logits is None or values is None:
        raise ModelError(
            f"{entry.name}: expected 'regressors' {shown((1, n, columns))} and 'classificators' "
            f"{shown((1, n, 1))}, or both in one {shown(together)}, but {listed(outputs)}."
        )
    return without_batch(logits), without_batch(values), 0


@lru_cache(8)
def anchor_buffer(grids: Anchors, shape: Shape, device: Device) -> Buffer:
    """Returns the anchors of a tensor of (height, width) as x and y in 0..1, on a device."""
    height, width = shape
    parts = []
    for stride, count in grids:
        rows, columns = -(-height // stride), -(-width // stride)
        y, x = np.mgrid[:rows, :columns]
        centres = np.stack([(x + 0.5) / columns, (y + 0.5) / rows], -1).reshape(-1, 2)
        parts.append(np.repeat(centres, count, 0))
    with using(device):
        return from_numpy(np.concatenate(parts).astype(np.float32))
