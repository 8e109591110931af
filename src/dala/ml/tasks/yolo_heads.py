"""Which of the heads of YOLO a model has, found from the shapes of its outputs.

Versions differ in what a row has, and how rows lie. Up to version 7 they are (n, 5 + classes), with
a confidence of their own and three anchors for each cell; from 8 on (4 + classes, n). Exporters
turn the latter, too. With their own suppression they give (n, 6): corners, score, class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dala.base.record import record, value
from dala.errors import ModelError, argument
from dala.kernels.tensor.matmul import transpose
from dala.kernels.vision.yolo import BOX
from dala.ml.catalog.reading import Reading
from dala.ml.tasks.outputs import Outputs, computed, listed, without_batch
from dala.runtime.buffers.buffer import Buffer

ENDED = 6
"""The columns of rows that are suppressed already: corners, score, class."""
STRIDES = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32))
"""How far apart the cells of each grid are, in pixels, of the models that there are."""
ANCHORS = 3
"""Boxes for each cell, up to version 7."""
Size = tuple[int, int]


@value
class Form:
    """What the columns are, and whether they lie in one piece each."""

    planar: bool
    confident: bool
    classes: int
    ended: bool = False


@record
class Head:
    """The rows of a model, what they are, and the prototypes of masks if it has such."""

    rows: Buffer
    form: Form
    prototypes: Buffer | None


def find_head(outputs: Outputs, entry: Reading, tensor: Size) -> Head:
    """The head among the outputs, for an input of (height, width)."""
    kind = entry.settings["head"]
    prototypes = _prototypes(outputs, entry.layout) if kind == "segment" else None
    extra = _extra(entry.settings, prototypes)
    known = len(entry.names) or None
    for item in outputs.values():
        if len(item.shape) == 3 and item.shape[0] == 1 and item.scalar.is_float:
            is_ended = bool(entry.settings.get("ended"))
            form = form_of(item.shape[1:], tensor, extra, known, is_ended)
            if form is not None:
                return Head(without_batch(item), form, prototypes)
    columns = BOX + extra + (known or 0)
    plus = "" if known else " + classes"
    raise ModelError(
        f"{entry.name}: expected the rows of YOLO's {kind} head, (1, {columns}{plus}, n) or "
        f"(1, n, {columns + 1}{plus}), but {listed(outputs)}: give {argument('labels')} with one "
        f"for each class that it has."
    )


def form_of(
    shape: Size, tensor: Size, extra: int, classes: int | None, is_ended: bool
) -> Form | None:
    """What rows of that shape are; None where they are none, or could be several."""
    if is_ended:
        return Form(False, False, classes or 0, True) if shape[1] == ENDED + extra else None
    fitting = []
    for form, rows, columns in _forms(shape, extra):
        if form.classes < 1 or (classes is not None and form.classes != classes):
            continue
        cells = _cells(tensor)
        is_grid = rows in ({ANCHORS * n for n in cells} if form.confident else cells)
        fitting.append((not is_grid, columns > rows, form))
    fitting.sort(key=lambda item: item[:2])
    sure = [item for item in fitting if not item[0]]
    if sure:
        return sure[0][2]
    if classes is not None and fitting:
        return fitting[0][2]
    return Form(False, False, classes or 0, True) if shape[1] == ENDED + extra else None


def _forms(shape: Size, extra: int) -> Iterator[tuple[Form, int, int]]:
    """The forms that rows could have, the most usual first, how many they are, and columns."""
    for planar, confident in ((True, False), (False, True), (False, False), (True, True)):
        rows, columns = shape[::-1] if planar else shape
        yield Form(planar, confident, columns - BOX - confident - extra), rows, columns


def _cells(tensor: Size) -> set[int]:
    height, width = tensor
    return {
        sum(-(-height // stride) * -(-width // stride) for stride in strides) for strides in STRIDES
    }


def _extra(settings: Mapping[str, Any], prototypes: Buffer | None) -> int:
    """How many columns come after those of the classes."""
    if settings["head"] == "segment":
        return 0 if prototypes is None else prototypes.shape[0]
    if settings["head"] == "pose":
        return len(settings["keypoints"]) * int(settings["point_values"])
    return 1 if settings["head"] == "obb" else 0


def _prototypes(outputs: Outputs, layout: str) -> Buffer | None:
    """The prototypes of masks as (channels, height, width)."""
    for item in outputs.values():
        if len(item.shape) == 4 and item.shape[0] == 1:
            if layout == "nchw":
                return without_batch(item)
            _, height, width, channels = item.shape
            planes = (channels, height, width)
            order = {"axes": (2, 0, 1)}
            return computed(transpose, [without_batch(item)], planes, item.dtype, order)
    return None
