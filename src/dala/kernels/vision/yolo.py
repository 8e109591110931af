"""What the heads of YOLO give, as scores, classes and boxes: rows, or columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.base.record import value
from dala.errors import DtypeError, ShapeError
from dala.ir.types import F32, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import flag, integer, number
from dala.kernels.base.results import position_dtype
from dala.kernels.base.shapes import Shape, require_shape
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

BOX = 4
"""The columns of a box: center x, center y, width, height."""

PLANAR = flag("whether each column lies in one piece: (columns, n)", False)
CLASSES = integer("how many classes there are, all columns that are left unless given", 0)
CONFIDENCE = flag("whether a column of confidence comes before the classes", True)


@value
class _Form:
    """How many rows there are, and which of their columns are those of classes."""

    rows: int
    first: int
    classes: int


@composite(
    "*rows_wanted",
    threshold=number("the score below which a row counts for nothing", 0.0),
    planar=PLANAR,
    classes=CLASSES,
    confidence=CONFIDENCE,
)
def yolo_scores(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The confidence of each row of YOLO times the probability of its likeliest class

    Rows are (n, 5 + classes): center x, center y, width, height, confidence, and a probability for
    each class; without `confidence` there is no such column, and `planar` ones are (columns, n).
    There may be more columns after those of so many `classes`. A row with NaN in these scores 0,
    and so does one whose confidence is less than `threshold`, of which the classes are not looked
    at. A second input, one number for each class, says which are wanted: a row whose likeliest
    class has a 0 there scores 0.
    """
    rows, *wanted = inputs
    form = _form_of("yolo_scores", rows, params)
    require_shape("yolo_scores", output, f"rows {rows.shape}", (form.rows,))
    for item in wanted:
        if item.shape != (form.classes,) or len(wanted) > 1:
            raise ShapeError(
                f"yolo_scores: wanted is {item.shape}, but it has one number for each class: "
                f"({form.classes},)."
            )
    if form.rows:
        kernel = _score_kernel(params["planar"], params["confidence"], bool(wanted))
        given = {"first": form.first, "classes": form.classes, "threshold": params["threshold"]}
        yield Stage(kernel, inputs, output, given)


@yolo_scores.sized
def _scores_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return shapes[0][1:] if params["planar"] else shapes[0][:1]


@composite("rows", "positions", planar=PLANAR, classes=CLASSES, confidence=CONFIDENCE)
def yolo_classes(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The likeliest class of the rows of YOLO at the given positions, the first of equals

    Where NaN is among the probabilities it may be none: the number of classes.
    """
    rows, positions = inputs
    form = _form_of("yolo_classes", rows, params)
    require_positions("yolo_classes", positions)
    require_shape("yolo_classes", output, f"positions {positions.shape}", positions.shape)
    if output.shape[0]:
        given = {"first": form.first, "classes": form.classes}
        yield Stage(_class_kernel(params["planar"]), inputs, output, given)


@yolo_classes.sized
def _classes_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return shapes[1]


yolo_classes.typed(position_dtype)


@composite("rows", "positions", planar=PLANAR)
def yolo_boxes(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The boxes (x0, y0, x1, y1) of the rows of YOLO at the given positions"""
    rows, positions = inputs
    _form_of("yolo_boxes", rows, {**params, "classes": 0, "confidence": False})
    require_positions("yolo_boxes", positions)
    require_shape("yolo_boxes", output, f"positions {positions.shape}", (*positions.shape, 4))
    if output.shape[0]:
        yield Stage(_box_kernel(params["planar"]), inputs, output)


@yolo_boxes.sized
def _boxes_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return (*shapes[1], 4)


@composite("rows", "positions", planar=PLANAR)
def yolo_values(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """All columns of the rows of YOLO at the given positions, (count, columns), as f32"""
    rows, positions = inputs
    _form_of("yolo_values", rows, {**params, "classes": 0, "confidence": False})
    require_positions("yolo_values", positions)
    wanted = (*positions.shape, rows.shape[0 if params["planar"] else 1])
    require_shape("yolo_values", output, f"positions {positions.shape}", wanted)
    if output.shape[0]:
        yield Stage(_value_kernel(params["planar"]), inputs, output)


@yolo_values.sized
def _values_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return (*shapes[1], shapes[0][0 if params["planar"] else 1])


@yolo_values.typed
def _values_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    return F32


def _form_of(kernel: str, rows: Buffer, params: Given) -> _Form:
    first, classes = BOX + params["confidence"], params["classes"]
    if len(rows.shape) == 2:
        n, columns = rows.shape[::-1] if params["planar"] else rows.shape
        found = classes or columns - first
        if found > 0 and first + found <= columns:
            return _Form(n, first, found)
    names = "center x, center y, width, height" + ", confidence" * params["confidence"]
    wanted = f"{first} + {classes or 'classes'}"
    raise ShapeError(
        f"{kernel}: rows is {rows.shape}, but it has to be "
        f"{f'({wanted}, n)' if params['planar'] else f'(n, {wanted})'}: {names}, and one column "
        f"for each class."
    )


def require_positions(kernel: str, positions: Buffer) -> None:
    """Refuses what is no list of positions."""
    if len(positions.shape) != 1:
        raise ShapeError(f"{kernel}: positions is {positions.shape}, but it has to be (count,).")
    if positions.scalar.is_float:
        raise DtypeError(
            f"{kernel}: positions is {positions.dtype}, but positions are integers: give s32."
        )


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _reader(planar: bool) -> Any:
    @function
    def at(rows: Any, i: Any, column: Any) -> Any:
        return dala.f32(rows[column, i] if planar else rows[i, column])

    return at


@cache
def _score_kernel(planar: bool, confident: bool, is_choosing: bool) -> Kernel:
    at = _reader(planar)

    @function
    def best_of(rows: Any, i: Any, first: Any, classes: Any, threshold: Any) -> Any:
        """The confidence, or 1, the best of the classes, and how many are worth a look."""
        confidence = at(rows, i, BOX) if confident else dala.f32(1)
        looked_at = classes if not confident or confidence >= threshold else 0
        return confidence, max(at(rows, i, first + k) for k in range(looked_at)), looked_at

    def scores(rows: Any, first: dala.s32, classes: dala.s32, threshold: dala.f32) -> Any:
        (i,) = dala.position(1)
        confidence, best, looked_at = best_of(rows, i, first, classes, threshold)
        score = confidence * best
        return score if looked_at > 0 and not dala.isnan(score) else 0.0

    def scores_of_wanted(
        rows: Any, wanted: Any, first: dala.s32, classes: dala.s32, threshold: dala.f32
    ) -> Any:
        (i,) = dala.position(1)
        confidence, best, looked_at = best_of(rows, i, first, classes, threshold)
        score = confidence * best
        place = min(k if at(rows, i, first + k) == best else classes for k in range(looked_at))
        is_wanted = looked_at > 0 and wanted[min(place, classes - 1)] != 0
        return score if is_wanted and not dala.isnan(score) else 0.0

    return helper(scores_of_wanted if is_choosing else scores)


@cache
def _class_kernel(planar: bool) -> Kernel:
    at = _reader(planar)

    def likeliest(rows: Any, positions: Any, first: dala.s32, classes: dala.s32) -> Any:
        (j,) = dala.position(1)
        i = positions[j]
        largest = max(at(rows, i, first + k) for k in range(classes))
        return min(k if at(rows, i, first + k) == largest else classes for k in range(classes))

    return helper(likeliest)


@cache
def _box_kernel(planar: bool) -> Kernel:
    at = _reader(planar)

    def corners(rows: Any, positions: Any) -> Any:
        j, corner = dala.position(2)
        i, axis = positions[j], corner % 2
        half = at(rows, i, 2 + axis) * 0.5
        return at(rows, i, axis) - half if corner < 2 else at(rows, i, axis) + half

    return helper(corners)


@cache
def _value_kernel(planar: bool) -> Kernel:
    at = _reader(planar)

    def values(rows: Any, positions: Any) -> Any:
        j, column = dala.position(2)
        return at(rows, positions[j], column)

    return helper(values)
