"""ONNX files with the heads of YOLO, as Ultralytics exports them, of which one knows by heart what
they find: the rows are constants, and the input's mean is added to the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from ml.small_models import FLOAT, model_of
from onnx import helper, numpy_helper

SIDE = 64
CELLS = 8 * 8 + 4 * 4 + 2 * 2
"""The rows of version 8 for an input of 64 × 64."""


def yolo_model(
    outputs: Mapping[str, np.ndarray],
    metadata: Mapping[str, Any],
    layout: str = "nchw",
    shape: Sequence[int | str] | None = None,
    declared: bool = True,
) -> bytes:
    """A model of an image of 64 × 64 that gives these outputs, whatever it is shown."""
    usual = (1, 3, SIDE, SIDE) if layout == "nchw" else (1, SIDE, SIDE, 3)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "nothing"], ["none"]),
        *(helper.make_node("Add", [f"{name} rows", "none"], [name]) for name in outputs),
    ]
    constants = [numpy_helper.from_array(np.zeros((), np.float32), "nothing")]
    constants += [
        numpy_helper.from_array(np.ascontiguousarray(rows, np.float32), f"{name} rows")
        for name, rows in outputs.items()
    ]
    given = [("images", FLOAT, usual if shape is None else shape)]
    free = {
        name: rows.shape if declared else ["rows"] * rows.ndim for name, rows in outputs.items()
    }
    made = [(name, FLOAT, free[name]) for name in outputs]
    model = onnx.load_from_string(model_of(nodes, given, made, constants))
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=str(value))
    return model.SerializeToString()


def metadata(task: str, names: Sequence[str], **more: Any) -> dict[str, Any]:
    """What Ultralytics writes into a file."""
    return {
        "description": "Ultralytics YOLOv8n model",
        "task": task,
        "stride": 32,
        "batch": 1,
        "imgsz": [SIDE, SIDE],
        "names": dict(enumerate(names)),
        **more,
    }


def columns(
    found: Sequence[tuple[tuple[float, float, float, float], int, float]],
    classes: int,
    extra: Sequence[Sequence[float]] = (),
) -> np.ndarray:
    """Rows as version 8 has them, (1, 4 + classes + extra, cells): a box, a class, its score."""
    wide = len(extra[0]) if extra else 0
    made = np.zeros((1, 4 + classes + wide, CELLS), np.float32)
    for place, (box, index, score) in enumerate(found):
        made[0, :4, place] = box
        made[0, 4 + index, place] = score
        if extra:
            made[0, 4 + classes :, place] = extra[place]
    return made


def rows(
    found: Sequence[tuple[tuple[float, float, float, float], int, float]], classes: int
) -> np.ndarray:
    """The same as version 5 has them, (1, 3 · cells, 5 + classes), with a confidence."""
    made = np.zeros((1, 3 * CELLS, 5 + classes), np.float32)
    for place, (box, index, score) in enumerate(found):
        made[0, place, :4] = box
        made[0, place, 4] = score
        made[0, place, 5 + index] = 1
    return made
