"""Things of many classes, with boxes around them: the rows of YOLO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.kernels.tensor.gathering import gather
from dala.kernels.tensor.ranking import top_k
from dala.kernels.vision.detection import BEFORE_CLASSES, yolo_boxes, yolo_classes, yolo_scores
from dala.kernels.vision.suppression import non_maximum_suppression
from dala.ml.catalog.entries import Entry
from dala.ml.catalog.labels import labels
from dala.ml.results.placement import Placement
from dala.ml.results.results import Detection, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, computed, require_output, without_batch
from dala.runtime.buffers.views import reshaped

CANDIDATES = 1024
"""Of all rows, so many of the best may suppress each other."""


def decode(
    outputs: Outputs, placement: Placement, entry: Entry, options: Mapping[str, Any]
) -> Results[Detection]:
    """The things found, the surest first; of one class, none overlaps another by more than iou.

    Rows are boxes in 0..1 of the tensor, (center x, center y, width, height), a confidence, and the
    probability of each class.
    """
    given = chosen(entry, options, "threshold", "iou", "max_results")
    names = labels(entry.labels)
    shape = (1, None, BEFORE_CLASSES + len(names))
    rows = without_batch(require_output(outputs, entry, "rows", shape))
    n = rows.shape[0]
    count = min(n, CANDIDATES)
    # No score is above its confidence: the classes of most rows need not be looked at.
    sure = {"threshold": given["threshold"]}
    all_scores = computed(yolo_scores, [rows], (n,), params=sure)
    best = computed(top_k, [reshaped(all_scores, (1, n))], (1, count), "s32", {"indices": True})
    positions = reshaped(best, (count,))
    scores = computed(gather, [all_scores, positions], (count,))
    boxes = computed(yolo_boxes, [rows, positions], (count, 4))
    classes = computed(yolo_classes, [rows, positions], (count,), "s32")
    kept = computed(
        non_maximum_suppression,
        [boxes, scores, classes],
        (given["max_results"],),
        "s32",
        {"iou": given["iou"], **sure},
    )
    left = [place for place in np.asarray(kept).tolist() if place >= 0]
    height, width = placement.tensor
    corners = np.asarray(boxes)[left] * np.array([width, height, width, height])
    found = zip(corners, np.asarray(classes)[left], np.asarray(scores)[left], strict=True)
    return Results(
        Detection(box, names[index], float(score), int(index), {})
        for box, index, score in ((placement.box(corner), i, s) for corner, i, s in found)
        if index < len(names) and box[0] < box[2] and box[1] < box[3]
    )
