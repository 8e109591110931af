"""Things found by YOLO: boxes, upright or turned, with masks or key points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.kernels.tensor.gathering import gather
from dala.kernels.tensor.ranking import top_k
from dala.kernels.vision.masks import instance_masks
from dala.kernels.vision.suppression import non_maximum_suppression
from dala.kernels.vision.yolo import BOX, yolo_boxes, yolo_classes, yolo_scores, yolo_values
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Detection, Keypoint, Mask, Pose, Results
from dala.ml.tasks.options import chosen, wanted_classes
from dala.ml.tasks.outputs import Outputs, computed
from dala.ml.tasks.turned_boxes import corners_of, suppress_turned
from dala.ml.tasks.yolo_heads import ENDED, Head, find_head
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.buffers.views import reshaped

CANDIDATES = 1024
"""Of all rows, so many of the best may suppress each other."""


@record
class Found:
    """What was found, the surest first: boxes in pixels of the tensor, and what else rows have."""

    boxes: np.ndarray
    """(count, 4): x0, y0, x1, y1, or of turned boxes center x, center y, width, height."""
    scores: np.ndarray
    classes: np.ndarray
    extra: np.ndarray
    """The columns after those of the classes: coefficients, key points or an angle."""


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Any]:
    """The things found, the surest first; of one class, none overlaps another by more than iou.

    They are in the pixels of the tensor, or in shares of it, as exports through TensorFlow have
    them.
    """
    given = chosen(entry, options, "threshold", "iou", "max_results", "classes")
    head = find_head(outputs, entry, placement.tensor)
    names = entry.names_of(head.form.classes) if head.form.classes else entry.names
    kept = wanted_classes(entry, given["classes"], names)
    height, width = placement.tensor
    unit = np.ones(2) if entry.settings["boxes"] == "pixels" else np.array([width, height])
    kind = entry.settings["head"]
    if head.form.ended:
        found = _ended(head, given, kept)
    elif kind == "obb":
        found = _turned(head, given, kept, unit)
    else:
        found = _suppressed(head, given, kept)
    return _MAKERS[kind](_scaled(found, unit), head, placement, _Named(names), entry)


class _Named:
    """Labels by the numbers of classes; those that have none are called by their numbers."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __getitem__(self, index: int) -> str:
        return self._names[index] if index < len(self._names) else str(index)


# -- rows ------------------------------------------------------------------------------------------


def _candidates(
    head: Head, given: Mapping[str, Any], kept: Sequence[int] | None
) -> tuple[Buffer, Buffer, dict[str, Any]]:
    """The positions of the best rows, their scores, and how rows lie."""
    rows, form = head.rows, head.form
    n = rows.shape[1 if form.planar else 0]
    count = min(n, CANDIDATES)
    lie = {"planar": form.planar, "classes": form.classes, "confidence": form.confident}
    inputs = [rows]
    if kept is not None:
        chosen_ones = np.zeros(form.classes, np.float32)
        chosen_ones[list(kept)] = 1
        inputs.append(from_numpy(chosen_ones))
    # No score is above its confidence: the classes of most rows need not be looked at.
    threshold = {"threshold": given["threshold"]}
    every = computed(yolo_scores, inputs, (n,), params={**lie, **threshold})
    best = computed(top_k, [reshaped(every, (1, n))], (1, count), "s32", {"indices": True})
    positions = reshaped(best, (count,))
    return positions, computed(gather, [every, positions], (count,)), lie


def _suppressed(head: Head, given: Mapping[str, Any], kept: Sequence[int] | None) -> Found:
    positions, scores, lie = _candidates(head, given, kept)
    (count,) = positions.shape
    planar = {"planar": head.form.planar}
    boxes = computed(yolo_boxes, [head.rows, positions], (count, 4), params=planar)
    classes = computed(yolo_classes, [head.rows, positions], (count,), "s32", lie)
    limits = {"iou": given["iou"], "threshold": _least(given)}
    left = computed(
        non_maximum_suppression, [boxes, scores, classes], (given["max_results"],), "s32", limits
    )
    places = np.asarray(left)
    places = places[places >= 0]
    numbers = np.asarray(classes)[places]
    is_class = numbers < head.form.classes
    places = places[is_class]
    extra = _extra(head, np.asarray(positions)[places])
    return Found(np.asarray(boxes)[places], np.asarray(scores)[places], numbers[is_class], extra)


def _turned(
    head: Head, given: Mapping[str, Any], kept: Sequence[int] | None, unit: np.ndarray
) -> Found:
    """Boxes that need not be upright suppress each other on the host: few are left by then."""
    positions, scores, lie = _candidates(head, given, kept)
    sure = np.asarray(scores)
    sure = sure[sure >= _least(given)]
    places = np.asarray(positions)[: len(sure)]
    values = _values(head, places)
    classes = np.asarray(
        computed(yolo_classes, [head.rows, positions], positions.shape, "s32", lie)
    )[: len(sure)]
    boxes, extra = values[:, :BOX], values[:, BOX + head.form.classes :]
    scaled = boxes * np.tile(unit, 2)
    left = suppress_turned(scaled, extra[:, 0], classes, given["iou"])[: given["max_results"]]
    return Found(boxes[left], sure[left], classes[left], extra[left])


def _ended(head: Head, given: Mapping[str, Any], kept: Sequence[int] | None) -> Found:
    """Rows that the model itself has suppressed."""
    rows = np.asarray(head.rows).astype(np.float64)
    rows = rows[np.isfinite(rows).all(1)]
    rows = rows[rows[:, BOX] >= _least(given)]
    if kept is not None:
        rows = rows[np.isin(rows[:, BOX + 1], list(kept))]
    rows = rows[np.argsort(-rows[:, BOX], kind="stable")][: given["max_results"]]
    return Found(rows[:, :BOX], rows[:, BOX], rows[:, BOX + 1].astype(np.int64), rows[:, ENDED:])


def _least(given: Mapping[str, Any]) -> float:
    """The least score: rows of classes that are not wanted have 0, which is none."""
    return max(float(given["threshold"]), float(np.finfo(np.float32).tiny))


def _extra(head: Head, places: np.ndarray) -> np.ndarray:
    form = head.form
    return _values(head, places)[:, BOX + form.confident + form.classes :]


def _values(head: Head, places: np.ndarray) -> np.ndarray:
    columns = head.rows.shape[0 if head.form.planar else 1]
    if not len(places):
        return np.zeros((0, columns), np.float32)
    at = from_numpy(places.astype(np.int32))
    shape = (len(places), columns)
    return np.asarray(
        computed(yolo_values, [head.rows, at], shape, params={"planar": head.form.planar})
    )


def _scaled(found: Found, unit: np.ndarray) -> Found:
    boxes = found.boxes.astype(np.float64) * np.tile(unit, 2)
    return Found(boxes, found.scores, found.classes, found.extra)


# -- results ---------------------------------------------------------------------------------------


def _detections(
    found: Found, head: Head, placement: Placement, names: _Named, entry: Reading
) -> Results[Detection]:
    boxes = [placement.box(corner) for corner in found.boxes]
    masks: Sequence[Mask | None] = [None] * len(boxes)
    if head.prototypes is not None:
        masks = _masks(found, boxes, head.prototypes, placement)
    told = zip(boxes, found.classes.tolist(), found.scores.tolist(), masks, strict=True)
    return Results(
        Detection(box, names[index], score, index, {}, mask)
        for box, index, score, mask in told
        if _has_area(box)
    )


def _masks(
    found: Found, boxes: Sequence[Any], prototypes: Buffer, placement: Placement
) -> list[Mask | None]:
    if not boxes:
        return []
    coefficients = from_numpy(np.ascontiguousarray(found.extra, np.float32))
    around = from_numpy(np.array(boxes, np.float32))
    height, width = prototypes.shape[1:]
    made = computed(
        instance_masks,
        [coefficients, prototypes, around],
        (len(boxes), *placement.image),
        "u8",
        {"area": placement.area((height, width))},
    )
    return [Mask(pixels) for pixels in np.asarray(made).astype(bool)]


def _poses(
    found: Found, head: Head, placement: Placement, names: _Named, entry: Reading
) -> Results[Pose]:
    points = tuple(entry.settings["keypoints"])
    values = found.extra.reshape(len(found.scores), len(points), -1).astype(np.float64)
    unit = placement.tensor[::-1] if entry.settings["boxes"] == "shares" else (1, 1)
    poses = Results[Pose]()
    for box, index, score, marks in zip(
        found.boxes, found.classes.tolist(), found.scores.tolist(), values, strict=True
    ):
        places = placement.points(marks[:, :2] * np.array(unit)).tolist()
        sure = marks[:, 2].tolist() if marks.shape[1] > 2 else [score] * len(points)
        keypoints = {
            name: Keypoint(x, y, own)
            for name, (x, y), own in zip(points, places, sure, strict=True)
        }
        placed = placement.box(box)
        if _has_area(placed):
            poses.append(Pose(keypoints, score, placed, names[index], index))
    return poses


def _turned_detections(
    found: Found, head: Head, placement: Placement, names: _Named, entry: Reading
) -> Results[Detection]:
    things = Results[Detection]()
    for box, angle, index, score in zip(
        found.boxes,
        found.extra[:, 0].tolist(),
        found.classes.tolist(),
        found.scores.tolist(),
        strict=True,
    ):
        corners = corners_of(box, angle)
        upright = placement.box([*corners.min(0), *corners.max(0)])
        if _has_area(upright):
            places = tuple((x, y) for x, y in placement.points(corners).tolist())
            things.append(Detection(upright, names[index], score, index, {}, None, places))
    return things


def _has_area(box: tuple[float, float, float, float]) -> bool:
    return box[0] < box[2] and box[1] < box[3]


_MAKERS: dict[str, Callable[..., Results[Any]]] = {
    "detect": _detections,
    "segment": _detections,
    "pose": _poses,
    "obb": _turned_detections,
}
