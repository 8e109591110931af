"""Of boxes that overlap the best, against a plain loop over them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute
from dala.kernels.vision import suppression

KERNEL = suppression.non_maximum_suppression.name


def share(a, b):
    """The part of their union that two boxes have in common; 0 where the union is empty."""
    across = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    down = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    union = -across * down
    for box in (a, b):
        union += max(box[2] - box[0], 0) * max(box[3] - box[1], 0)
    return across * down / union if union > 0 else 0


def suppressed(boxes, scores, classes=None, *, iou, threshold=0.0, candidates=1024):
    usable = np.isfinite(boxes).all(1) & np.isfinite(scores) & (scores >= threshold)
    order = sorted(np.flatnonzero(usable), key=lambda i: (-scores[i], i))[:candidates]
    kept: list[int] = []
    for i in order:
        rivals = [j for j in kept if classes is None or classes[i] == classes[j]]
        if all(share(boxes[i].astype(float), boxes[j].astype(float)) <= iou for j in rivals):
            kept.append(i)
    return kept


def filled(kept, room):
    return [*kept, *[-1] * room][:room]


def scattered(count, seed):
    """Boxes on a grid of eighths, whose shares are computed without rounding, and many ties."""
    random = np.random.default_rng(seed)
    corner = random.integers(0, 160, (count, 2)) / 8
    size = random.integers(0, 60, (count, 2)) / 8
    boxes = np.concatenate([corner, corner + size], 1).astype(np.float32)
    scores = (random.integers(0, 50, count) / 64).astype(np.float32)
    return boxes, scores, random.integers(0, 3, count).astype(np.int32)


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 200])
@pytest.mark.parametrize("iou", [0.0, 0.3, 1.0])
def test_what_is_left_is_that_of_the_plain_loop(run, count, iou):
    boxes, scores, classes = scattered(count, count)
    given = {"iou": iou, "threshold": 0.25}
    room = count + 3
    want = filled(suppressed(boxes, scores, **given), room)
    assert run(KERNEL, [boxes, scores], (room,), "s32", **given).tolist() == want
    want = filled(suppressed(boxes, scores, classes, **given), room)
    assert run(KERNEL, [boxes, scores, classes], (room,), "s32", **given).tolist() == want


def test_more_boxes_than_are_looked_at_are_ranked_first(run):
    boxes, scores, _ = scattered(300, 7)
    given = {"iou": 0.4, "candidates": 40}
    want = filled(suppressed(boxes, scores, **given), 50)
    assert run(KERNEL, [boxes, scores], (50,), "s32", **given).tolist() == want


def test_no_more_are_taken_than_there_is_room_for(run):
    boxes, scores, _ = scattered(60, 8)
    want = suppressed(boxes, scores, iou=0.5)
    assert len(want) > 4
    assert run(KERNEL, [boxes, scores], (4,), "s32", iou=0.5).tolist() == want[:4]
    assert run(KERNEL, [boxes, scores], (0,), "s32", iou=0.5).tolist() == []


def test_of_equal_boxes_with_equal_scores_the_first_is_taken(run):
    boxes = np.tile(np.array([1, 2, 5, 6], np.float32), (70, 1))
    scores = np.full(70, 0.5, np.float32)
    assert run(KERNEL, [boxes, scores], (3,), "s32").tolist() == [0, -1, -1]


def test_boxes_that_a_suppressed_one_overlaps_stay(run):
    # Each overlaps its neighbours alone: every other one is left.
    left = np.arange(70, dtype=np.float32) * 2
    boxes = np.stack([left, left * 0, left + 3, left * 0 + 1], 1)
    scores = np.linspace(1, 0.5, 70, dtype=np.float32)
    got = run(KERNEL, [boxes, scores], (40,), "s32", iou=0.1)
    assert got.tolist() == filled(range(0, 70, 2), 40)


def test_boxes_apart_are_all_left_in_the_order_of_their_scores(run):
    left = np.arange(40, dtype=np.float32) * 4
    boxes = np.stack([left, left * 0, left + 3, left * 0 + 1], 1)
    scores = np.random.default_rng(2).permutation(40).astype(np.float32)
    got = run(KERNEL, [boxes, scores], (40,), "s64", iou=0.0)
    assert got.tolist() == np.argsort(-scores).tolist()


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_box(run, odd):
    boxes, scores, _ = scattered(40, 3)
    scores[[0, 5]] = odd
    boxes[9, 2] = boxes[33, 1] = odd
    want = filled(suppressed(boxes, scores, iou=0.4), 40)
    assert run(KERNEL, [boxes, scores], (40,), "s32", iou=0.4).tolist() == want


def test_nothing_above_the_threshold_and_nothing_at_all_leave_nothing(run):
    boxes, scores, _ = scattered(40, 3)
    assert run(KERNEL, [boxes, scores], (3,), "s32", threshold=2.0).tolist() == [-1, -1, -1]
    nothing = [np.zeros((0, 4), np.float32), np.zeros(0, np.float32)]
    assert run(KERNEL, nothing, (2,), "s32").tolist() == [-1, -1]


def test_a_negative_score_is_a_score(run):
    boxes, scores, _ = scattered(40, 3)
    given = {"iou": 0.4, "threshold": -1.0}
    want = filled(suppressed(boxes, scores - 0.5, **given), 40)
    assert run(KERNEL, [boxes, scores - np.float32(0.5)], (40,), "s32", **given).tolist() == want


def test_it_is_a_stage_of_a_pipeline(device):
    boxes, scores, _ = scattered(50, 4)
    sure, kept = compute.scratch((50,), "f32"), compute.buffer_zeros((50,), "s32")
    pipeline = compute.pipeline()
    given = [compute.from_numpy(boxes), compute.from_numpy(scores)]
    pipeline.add(kernel="scale", inputs=[given[1]], output=sure, params={"factor": -1.0})
    pipeline.add(
        kernel=KERNEL, inputs=[given[0], sure], output=kept, params={"threshold": -1.0, "iou": 0.3}
    )
    pipeline.run()
    want = suppressed(boxes, -scores, iou=0.3, threshold=-1.0)
    assert compute.read(kept).tolist() == filled(want, 50)


@pytest.mark.parametrize(
    ("inputs", "output", "error", "said"),
    [
        ([((3, 5), "f32"), ((3,), "f32")], ((3,), "s32"), errors.ShapeError, "(n, 4)"),
        ([((3, 4), "f32"), ((4,), "f32")], ((3,), "s32"), errors.ShapeError, "scores is (4,)"),
        (
            [((3, 4), "f32"), ((3,), "f32"), ((2,), "s32")],
            ((3,), "s32"),
            errors.ShapeError,
            "classes is (2,)",
        ),
        ([((3, 4), "f32"), ((3,), "f32")], ((3, 1), "s32"), errors.ShapeError, "one axis"),
        ([((3, 4), "f32"), ((3,), "f32")], ((3,), "f32"), errors.DtypeError, "s32 or s64"),
        ([((3, 4), "f32"), ((3,), "f32")], ((3,), "u32"), errors.DtypeError, "-1"),
        ([((3, 4), "f32")], ((3,), "s32"), errors.ArgumentError, "boxes and scores"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(fail, inputs, output, error, said):
    assert said in fail(error, KERNEL, inputs, output)


@pytest.mark.parametrize(
    "params",
    [
        {"iou": 1.5},
        {"iou": math.nan},
        {"threshold": "high"},
        {"candidates": 0},
        {"candidates": 1.5},
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, params):
    inputs = [((3, 4), "f32"), ((3,), "f32")]
    (name,) = params
    assert name in fail(errors.ArgumentError, KERNEL, inputs, ((3,), "s32"), **params)
