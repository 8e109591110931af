"""The outputs of a model of the catalog as the results of its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dala.devices import using
from dala.errors import ModelError
from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Results, Segmentation
from dala.ml.tasks import classification, faces, grid_boxes, poses, segmentation, text_regions, yolo
from dala.runtime.buffers.buffer import Buffer

Outputs = Mapping[str, Buffer]
Decoder = Callable[[Outputs, Placement, Reading, Mapping[str, Any]], Results[Any] | Segmentation]

DECODERS: dict[str, Decoder] = {
    "softmax": classification.decode,
    "yolo": yolo.decode,
    "blazeface": faces.decode,
    "posenet": poses.decode,
    "argmax": segmentation.decode_classes,
    "probability": segmentation.decode_probability,
    "text_regions": text_regions.decode,
    "grid_boxes": grid_boxes.decode,
}


def decode(
    outputs: Outputs,
    placement: Placement,
    entry: Reading,
    options: Mapping[str, Any] | None = None,
) -> Results[Any] | Segmentation:
    """Returns what the outputs for one image say, computed on the device that they are on.

    Options are, by the decoding of the entry: "softmax" top_k; "yolo" and "grid_boxes"
    threshold, iou, classes, max_results; "blazeface" threshold, iou, max_results; "posenet" and
    "text_regions" threshold, max_results.
    "argmax" and "probability" take none.
    """
    if not outputs:
        raise ModelError(f"{entry.name}: the model has no outputs of which to make results.")
    first = next(iter(outputs.values()))
    with using(first.memory.device):
        return DECODERS[entry.decoding](outputs, placement, entry, options or {})
