"""What an ONNX file of YOLO tells of itself: its task, its labels, its size and its layout.

Ultralytics writes these into the file's metadata. Where there are none, the shapes tell: no other
model has as many rows as its input has cells.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dala.base.record import record
from dala.ml.catalog.labels import labels
from dala.ml.catalog.reading import Decoding, Dtype, Fit, Layout, Reading, Task
from dala.ml.onnx.signature import Tensor
from dala.ml.tasks.yolo_heads import form_of

Kind = Literal["detect", "segment", "pose", "obb", "classify"]
KINDS: tuple[Kind, ...] = ("detect", "segment", "pose", "obb", "classify")
USUAL_SIZE = 640
USUAL_CLASSIFIER_SIZE = 224
LONGEST_VALUE = 1 << 20
"""Characters of a property that are read: labels of some ten thousand classes."""
MOST_PIXELS_ALONG = 1 << 14
FILL = 114 / 255
_DOCS: dict[Kind, str] = {
    "detect": "Finds things, with a box around each",
    "segment": "Finds things, with a box around each and a mask of it",
    "pose": "Finds people or other things, with key points of each",
    "obb": "Finds things, with a box around each that need not be upright",
    "classify": "Says which class a picture shows",
}


@record
class About:
    """What a file's metadata say; None where they do not."""

    kind: Kind | None
    names: tuple[str, ...]
    size: tuple[int, int] | None
    """Width and height."""
    points: tuple[int, int] | None
    """How many key points there are, and how many numbers for each."""
    ended: bool


def read_about(metadata: Mapping[str, str]) -> About:
    """What Ultralytics' metadata say, as far as they can be made out."""
    task = metadata.get("task", "")
    size = _numbers(_literal(metadata.get("imgsz")), 2)
    points = _numbers(_literal(metadata.get("kpt_shape")), 2)
    options = _literal(metadata.get("args"))
    ended = _literal(metadata.get("end2end")) is True or (
        isinstance(options, dict) and options.get("nms") is True
    )
    kind = next((item for item in KINDS if item == task), None)
    names = _names(_literal(metadata.get("names")))
    return About(kind, names, None if size is None else (size[1], size[0]), points, ended)


def yolo_reading(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    metadata: Mapping[str, str],
    own_labels: tuple[str, ...] = (),
    *,
    told: bool = False,
) -> Reading | None:
    """How a file is fed and read, if it is one of YOLO; `told` is that the caller says so.

    None where it is none, or nothing tells.
    """
    if len(inputs) != 1 or inputs[0].dtype not in ("f32", "f16"):
        return None
    about = read_about(metadata)
    usual = USUAL_CLASSIFIER_SIZE if about.kind == "classify" else USUAL_SIZE
    fed = layout_of(inputs[0], about.size or (usual, usual))
    if fed is None:
        return None
    layout, size = fed
    names = own_labels or about.names
    kind = about.kind
    if kind is None:
        kind = _kind_by_shapes(outputs, size, len(names) or None, told=told)
    if kind is None:
        return None
    made = _classifying if kind == "classify" else _finding
    task, fit, decoding, settings = made(kind, about, layout)
    dtype: Dtype = "f16" if inputs[0].dtype == "f16" else "f32"
    return Reading(
        name, task, _DOCS[kind], size, layout, dtype, "unit", fit, names, decoding, settings
    )  # fmt: skip


def layout_of(given: Tensor, usual: tuple[int, int]) -> tuple[Layout, tuple[int, int]] | None:
    """The layout of an input for images, and its width and height, the usual where it is free."""
    axes = given.shape
    if (
        axes is None
        or len(axes) != 4
        or (axes[0] not in (1, None) and not isinstance(axes[0], str))
    ):
        return None
    layout: Layout = "nchw"
    sides = axes[2:]
    if axes[1] != 3:
        if axes[3] != 3:
            return None
        layout, sides = "nhwc", axes[1:3]
    height, width = (
        axis if isinstance(axis, int) else side
        for axis, side in zip(sides, usual[::-1], strict=True)
    )
    return layout, (width, height)


def _finding(
    kind: Kind, about: About, layout: Layout
) -> tuple[Task, Fit, Decoding, dict[str, Any]]:
    # What goes through TensorFlow, whose images have their channels last, gives shares.
    settings: dict[str, Any] = {
        "score": 0.25,
        "overlap": 0.7 if about.kind is not None else 0.45,
        "count": 300,
        "fill": FILL,
        "head": kind,
        "boxes": "pixels" if layout == "nchw" else "shares",
        "ended": about.ended,
    }
    if kind == "pose":
        count, values = about.points or (17, 3)
        people = labels("keypoints")
        points = people if count == len(people) else tuple(map(str, range(count)))
        settings |= {"keypoints": points, "point_values": values}
    return "pose" if kind == "pose" else "detection", "letterbox", "yolo", settings


def _classifying(
    kind: Kind, about: About, layout: Layout
) -> tuple[Task, Fit, Decoding, dict[str, Any]]:
    return "classification", "crop", "softmax", {"count": 5}


def _kind_by_shapes(
    outputs: Sequence[Tensor], size: tuple[int, int], classes: int | None, *, told: bool
) -> Kind | None:
    """The task, where the shapes leave no doubt, or the caller says that it is YOLO."""
    rows = [item for item in outputs if item.shape is not None and len(item.shape) == 3]
    masks = [item for item in outputs if item.shape is not None and len(item.shape) == 4]
    if len(outputs) != len(rows) + len(masks) or len(rows) != 1 or len(masks) > 1:
        return "detect" if told and rows else None
    found = rows[0].fixed
    prototypes = masks[0].fixed if masks else None
    kind: Kind = "segment" if masks else "detect"
    if told:
        return kind
    if found is None or (masks and prototypes is None):
        return None
    channels = 0 if prototypes is None else min(prototypes[1:])
    form = form_of((found[1], found[2]), size[::-1], channels, classes, is_ended=False)
    return None if form is None or form.ended else kind


def _literal(text: str | None) -> Any:
    """The value of a property, which is written as Python writes it; None where it is none."""
    if text is None or len(text) > LONGEST_VALUE:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None  # other programs write other things under these names


def _numbers(value: Any, count: int) -> tuple[int, int] | None:
    if isinstance(value, int):
        value = [value] * count
    if not isinstance(value, list | tuple) or len(value) != count:
        return None
    one, other = value
    if not all(isinstance(item, int) and 0 < item <= MOST_PIXELS_ALONG for item in value):
        return None
    return one, other


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        value = [value.get(index) for index in range(len(value))]
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return ()
