"""Things found by PicoDet and its kin: for each cell, how far away the sides of a box are.

Each distance is a distribution over whole numbers of cells, of which the mean counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.kernels.vision.suppression import non_maximum_suppression
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Detection, Results
from dala.ml.tasks.options import chosen, wanted_classes
from dala.ml.tasks.outputs import Outputs, computed, require_output
from dala.runtime.buffers.buffer import from_numpy


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Detection]:
    """The things found, the surest first; of one class, none overlaps another by more than iou.

    For each grid there are probabilities (1, cells, classes) and distributions (1, cells, 4 ·
    numbers) of the distances to the left, the top, the right and the bottom.
    """
    given = chosen(entry, options, "threshold", "iou", "max_results", "classes")
    names = entry.names
    kept = wanted_classes(entry, given["classes"], names)
    scores, boxes = _every(outputs, placement, entry)
    classes = scores.argmax(1)
    best = scores[np.arange(len(scores)), classes]
    is_wanted = np.isfinite(best) & (best >= given["threshold"])
    if kept is not None:
        is_wanted &= np.isin(classes, kept)
    boxes, classes, best = boxes[is_wanted], classes[is_wanted], best[is_wanted]
    if not len(boxes):
        return Results()
    inputs = [from_numpy(boxes), from_numpy(best), from_numpy(classes.astype(np.int32))]
    limits = {"iou": given["iou"]}
    taken = computed(non_maximum_suppression, inputs, (given["max_results"],), "s32", limits)
    found = Results[Detection]()
    for place in np.asarray(taken).tolist():
        box = placement.box(boxes[place]) if place >= 0 else (0.0,) * 4
        if box[0] < box[2] and box[1] < box[3]:
            index = int(classes[place])
            found.append(Detection(box, names[index], float(best[place]), index))
    return found


def _every(outputs: Outputs, placement: Placement, entry: Reading) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities and the boxes, x0, y0, x1, y1 in pixels of the tensor, of all cells."""
    height, width = placement.tensor
    bins = int(entry.settings["bins"])
    scores, boxes = [], []
    for stride in entry.settings["strides"]:
        rows, columns = -(-height // stride), -(-width // stride)
        cells = rows * columns
        shares = require_output(outputs, entry, "scores", (1, cells, len(entry.names)))
        spread = require_output(outputs, entry, "distances", (1, cells, 4 * bins))
        scores.append(np.asarray(shares)[0].astype(np.float32))
        logits = np.asarray(spread).reshape(cells, 4, bins).astype(np.float32)
        weights = np.exp(logits - logits.max(2, keepdims=True))
        distances = (weights @ np.arange(bins, dtype=np.float32)) / weights.sum(2) * stride
        y, x = np.mgrid[:rows, :columns].reshape(2, -1)
        centers = (np.stack([x, y, x, y], 1) + np.float32(0.5)) * stride
        boxes.append(centers + distances * np.array([-1, -1, 1, 1], np.float32))
    return np.concatenate(scores), np.concatenate(boxes).astype(np.float32)
