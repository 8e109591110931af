"""Boxes and scores from what detectors give, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.test_suppression import scattered, share, suppressed

from dala import errors
from dala.kernels.vision import detection  # noqa: F401  (registers its kernels)


def yolo_rows(count, classes, seed=1):
    random = np.random.default_rng(seed)
    return random.random((count, 5 + classes), np.float32)


# -- rows of YOLO ----------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [1, 7, 80])
def test_a_row_scores_its_confidence_times_its_likeliest_class(run, classes):
    rows = yolo_rows(333, classes)
    want = rows[:, 4] * rows[:, 5:].max(1)
    np.testing.assert_allclose(run("yolo_scores", [rows], (333,), "f32"), want, rtol=1e-6)


def test_a_row_that_is_not_confident_scores_nothing(run):
    rows = yolo_rows(333, 7)
    want = np.where(rows[:, 4] >= 0.5, rows[:, 4] * rows[:, 5:].max(1), 0)
    got = run("yolo_scores", [rows], (333,), "f32", threshold=0.5)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("column", [4, 5, 9])
def test_a_row_with_nan_scores_nothing(run, column):
    rows = yolo_rows(40, 6)
    rows[11, column] = math.nan
    got = run("yolo_scores", [rows], (40,), "f32")
    assert got[11] == 0
    assert (np.delete(got, 11) > 0).all()


def test_classes_are_those_of_the_rows_asked_for_and_the_first_of_equals(run):
    rows = np.round(yolo_rows(50, 9) * 4) / 4
    positions = np.array([49, 0, 7, 7], np.int32)
    want = rows[positions, 5:].argmax(1)
    got = run("yolo_classes", [rows, positions], (4,), "s32")
    np.testing.assert_array_equal(got, want)


def test_boxes_reach_from_one_corner_to_the_other(run):
    rows = yolo_rows(50, 2)
    positions = np.array([3, 3, 48], np.int32)
    centre, size = rows[positions, :2], rows[positions, 2:4]
    want = np.concatenate([centre - size / 2, centre + size / 2], 1)
    got = run("yolo_boxes", [rows, positions], (3, 4), "f32")
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_no_rows_and_no_positions_give_nothing(run):
    assert run("yolo_scores", [np.zeros((0, 7), np.float32)], (0,), "f32").shape == (0,)
    none = np.zeros(0, np.int32)
    assert run("yolo_boxes", [yolo_rows(3, 2), none], (0, 4), "f32").shape == (0, 4)


def test_rows_without_classes_are_refused(fail):
    said = fail(errors.ShapeError, "yolo_scores", [((9, 5), "f32")], ((9,), "f32"))
    assert "(9, 5)" in said
    assert "5 + classes" in said
    rows = ((9, 7), "f32")
    said = fail(errors.DtypeError, "yolo_boxes", [rows, ((2,), "f32")], ((2, 4), "f32"))
    assert "integers" in said
    said = fail(errors.ShapeError, "yolo_classes", [rows, ((2, 1), "s32")], ((2,), "s32"))
    assert "(count,)" in said


# -- anchors ---------------------------------------------------------------------------------------


def offsets_and_anchors(count, columns, seed=3):
    random = np.random.default_rng(seed)
    values = (random.random((count, columns)) * 60 - 30).astype(np.float32)
    return values, random.random((count, 2), np.float32)


@pytest.mark.parametrize(("column", "points"), [(0, 0), (0, 6), (1, 6)])
def test_offsets_to_anchors_become_boxes_and_points(run, column, points):
    values, anchors = offsets_and_anchors(70, column + 4 + 2 * points)
    offsets = values[:, column:] / 128
    centre, half = offsets[:, :2] + anchors, offsets[:, 2:4] / 2
    places = offsets[:, 4:] + np.tile(anchors, points)
    want = np.concatenate([centre - half, centre + half, places], 1)
    got = run("decode_anchors", [values, anchors], want.shape, "f32", column=column, scale=128)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_scores_of_anchors_are_the_sigmoid_of_their_column(run):
    values = np.array([[9, 0], [9, 100], [9, -100], [9, 2], [9, math.nan]], np.float32)
    got = run("anchor_scores", [values], (5,), "f32", column=1)
    np.testing.assert_allclose(got, [0.5, 1, 0, 1 / (1 + math.exp(-2)), 0], rtol=1e-6, atol=1e-30)


def test_anchors_that_do_not_fit_are_refused(fail):
    values, anchors = ((9, 16), "f32"), ((8, 2), "f32")
    said = fail(errors.ShapeError, "decode_anchors", [values, anchors], ((9, 16), "f32"))
    assert "(9, 2)" in said
    given = [values, ((9, 2), "f32")]
    said = fail(errors.ArgumentError, "decode_anchors", given, ((9, 16), "f32"), column=1)
    assert "from column 1 on there are not 16" in said
    said = fail(errors.ArgumentError, "decode_anchors", given, ((9, 16), "f32"), scale=0)
    assert "scale" in said
    said = fail(errors.ShapeError, "decode_anchors", given, ((9, 5), "f32"))
    assert "4 + 2 · points" in said


# -- one of many -----------------------------------------------------------------------------------


def merged(rows, scores, kept, iou, threshold):
    left = np.flatnonzero(scores >= threshold).tolist()
    means = np.zeros((len(kept), rows.shape[1]))
    for place, best in enumerate(kept):
        if best < 0:
            continue
        group = [i for i in left if i == best or share(rows[best, :4], rows[i, :4]) > iou]
        left = [i for i in left if i not in group]
        means[place] = np.average(rows[group], 0, scores[group])
    return means


@pytest.mark.parametrize("iou", [0.1, 0.3, 0.7])
def test_a_kept_row_becomes_the_mean_of_those_that_it_stands_for(run, iou):
    boxes, scores, _ = scattered(90, 5)
    rows = np.concatenate([boxes, yolo_rows(90, 1)], 1)
    kept = [*suppressed(boxes, scores, iou=iou, threshold=0.2), -1, -1]
    want = merged(rows.astype(float), scores.astype(float), kept, iou, 0.2)
    given = [rows, scores, np.array(kept, np.int32)]
    got = run("merge_overlapping", given, want.shape, "f32", iou=iou, threshold=0.2)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_kept_box_without_area_stands_for_itself(run):
    rows = np.array([[3, 4, 3, 4], [0, 0, 9, 9]], np.float32)
    scores, kept = np.array([0.75, 0.5], np.float32), np.array([0, 1], np.int32)
    np.testing.assert_array_equal(
        run("merge_overlapping", [rows, scores, kept], (2, 4), "f32"), rows
    )


def test_rows_to_merge_that_do_not_fit_are_refused(fail):
    kept = ((2,), "s32")
    said = fail(
        errors.ShapeError,
        "merge_overlapping",
        [((5, 3), "f32"), ((5,), "f32"), kept],
        ((2, 3), "f32"),
    )
    assert "x0, y0, x1, y1" in said
    said = fail(
        errors.ShapeError,
        "merge_overlapping",
        [((5, 4), "f32"), ((4,), "f32"), kept],
        ((2, 4), "f32"),
    )
    assert "scores is (4,)" in said
