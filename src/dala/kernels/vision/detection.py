"""What detectors give, as boxes and scores: offsets from anchors, and one of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.ir.types import S32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import ABOVE_0, SHARE
from dala.kernels.base.parameters import integer, number
from dala.kernels.base.results import require_size
from dala.kernels.base.shapes import Shape, require_shape
from dala.kernels.vision.suppression import overlap
from dala.kernels.vision.yolo import require_positions
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.pipelines.composite import Stage

# -- anchors ---------------------------------------------------------------------------------------


@composite("values", column=integer("the column of the scores", 0))
def anchor_scores(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The sigmoid of one column of what a detector gives for its anchors, 0 for NaN"""
    (values,) = inputs
    column = _column("anchor_scores", values, params["column"], 1)
    require_shape("anchor_scores", output, f"values {values.shape}", values.shape[:1])
    if output.shape[0]:
        yield Stage(_scores_of_column, [values], output, {"column": column})


@anchor_scores.sized
def _scores_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return shapes[0][:1]


@composite(
    "values",
    "anchors",
    column=integer("the first column of a box", 0),
    scale=number("how many units of values make the size of the image", 1.0, limit=ABOVE_0),
)
def decode_anchors(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Boxes and key points, from their offsets to anchors: x0, y0, x1, y1, and x, y of each point

    Values are (n, columns), of which those from `column` on are the offset of the center x and y,
    width, height, and the offsets of points x and y, all of them times `scale`. Anchors are (n, 2),
    x and y. The output has as many columns of these as are wanted.
    """
    values, anchors = inputs
    columns = output.shape[1] if len(output.shape) == 2 else 0
    if columns < 4 or columns % 2:
        raise ShapeError(
            f"decode_anchors: the output is {output.shape}, but it has to be (n, 4 + 2 · points)."
        )
    column = _column("decode_anchors", values, params["column"], columns)
    scale = params["scale"]
    n = values.shape[0]
    if anchors.shape != (n, 2):
        raise ShapeError(
            f"decode_anchors: anchors is {anchors.shape}, but values {values.shape} take one for "
            f"each row: ({n}, 2), x and y."
        )
    require_shape("decode_anchors", output, f"values {values.shape}", (n, columns))
    if n:
        given = {"column": column, "share": 1.0 / scale}
        yield Stage(_boxes_and_points, [values, anchors], output, given)


require_size(decode_anchors, "the output has as many columns as are wanted")


def _column(kernel: str, values: Buffer, column: int, count: int) -> int:
    """The first of so many columns; an error where there are not as many."""
    if len(values.shape) != 2:
        raise ShapeError(f"{kernel}: values is {values.shape}, but it has to be (n, columns).")
    if not 0 <= column <= values.shape[1] - count:
        raise ArgumentError(
            f"{kernel}: values is {values.shape}: from column {column} on there are not {count}."
        )
    return column


@helper
def _scores_of_column(values: Any, column: dala.s32) -> Any:
    (i,) = dala.position(1)
    score = dala.sigmoid(values[i, column])
    return 0.0 if dala.isnan(score) else score


@helper
def _boxes_and_points(values: Any, anchors: Any, column: dala.s32, share: dala.f32) -> Any:
    i, j = dala.position(2)
    axis = j % 2
    offset = values[i, column + axis] if j < 4 else values[i, column + j]
    half = values[i, column + 2 + axis] * 0.5
    if j < 4:
        offset += half if j >= 2 else -half
    return offset * share + anchors[i, axis]


# -- one of many -----------------------------------------------------------------------------------


@composite(
    "rows",
    "scores",
    "kept",
    iou=number("the overlap above which boxes are merged", 0.3, limit=SHARE),
    threshold=number("the score from which on a box counts", 0.0),
)
def merge_overlapping(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """For each row that was kept, the mean of those it stands for, weighed by their scores

    Rows are (n, columns) and begin with a box, x0, y0, x1, y1; kept are the positions that
    `non_maximum_suppression` gives for these boxes, scores, `iou` and `threshold`. A row is counted
    for the first kept one that it overlaps by more than `iou`. Where kept is -1 the output is 0.
    """
    rows, scores, kept = inputs
    if len(rows.shape) != 2 or rows.shape[1] < 4:
        raise ShapeError(
            f"merge_overlapping: rows is {rows.shape}, but it has to be (n, 4 or more): they begin "
            f"with x0, y0, x1, y1."
        )
    if scores.shape != rows.shape[:1]:
        raise ShapeError(
            f"merge_overlapping: scores is {scores.shape}, but rows is {rows.shape}: give one for "
            f"each, {rows.shape[:1]}."
        )
    require_positions("merge_overlapping", kept)
    wanted = (*kept.shape, rows.shape[1])
    require_shape("merge_overlapping", output, f"{kept.shape[0]} kept of {rows.shape}", wanted)
    iou = params["iou"]
    threshold = params["threshold"]
    if 0 in output.shape:
        return
    owners = scratch(scores.shape, S32)
    given = {"iou": iou, "threshold": threshold}
    yield Stage(_owner, [rows, scores, kept], owners, given)
    yield Stage(_weighed_mean, [rows, scores, owners], output)


@merge_overlapping.sized
def _merged_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return (*shapes[2], *shapes[0][1:])


@helper
def _owner(rows: Any, scores: Any, kept: Any, iou: dala.f32, threshold: dala.f32) -> Any:
    (i,) = dala.position(1)
    own = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
    owner = -1
    if scores[i] >= threshold:
        for k in range(kept.shape[0]):
            j = kept[k]
            other = rows[j, 0], rows[j, 1], rows[j, 2], rows[j, 3]
            # A box without area overlaps nothing, itself neither.
            is_its = j >= 0 and (i == j or overlap(own, other, iou))
            owner = k if is_its and owner < 0 else owner
    return owner


@helper
def _weighed_mean(rows: Any, scores: Any, owners: Any) -> Any:
    k, j = dala.position(2)
    n = rows.shape[0]
    weight = sum(scores[i] if owners[i] == k else 0.0 for i in range(n))
    total = sum(scores[i] * rows[i, j] if owners[i] == k else 0.0 for i in range(n))
    return total / weight if weight > 0.0 else 0.0
