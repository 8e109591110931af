"""Things found by YOLO, from rows, against a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.test_suppression import suppressed
from ml.tasks.tensors import decoded

from dala import errors
from dala.ml.catalog.labels import labels

pytestmark = pytest.mark.usefixtures("device")

CLASSES = 80


def row(x, y, width, height, confidence, index, probability=1.0):
    made = np.zeros(5 + CLASSES, np.float32)
    made[:5] = x, y, width, height, confidence
    made[5 + index] = probability
    return made


def found_in(rows, image=(640, 640), **options):
    return decoded("yolo_v5", {"rows": np.array(rows)[None]}, image, **options)


def test_a_row_becomes_a_box_in_the_pixels_of_the_image():
    (cup,) = found_in([row(0.5, 0.25, 0.5, 0.125, 0.75, 41, 0.5)], threshold=0.3)
    assert (cup.label, cup.index) == ("cup", 41)
    assert cup.score == pytest.approx(0.375)
    assert cup.box == pytest.approx((160, 120, 480, 200))


def test_the_borders_of_a_letterbox_are_taken_off():
    # An image of 320 × 160 lies in the rows 160 to 480 of the tensor, twice as large.
    (cup,) = found_in([row(0.5, 0.5, 1.0, 0.25, 0.9, 41)], image=(160, 320))
    assert cup.box == pytest.approx((0, 40, 320, 120))


def test_a_box_outside_the_image_is_left_out_and_one_across_its_edge_is_cut():
    rows = [row(0.5, 0.1, 0.2, 0.1, 0.9, 41), row(0.5, 0.25, 0.5, 0.25, 0.8, 41)]
    (cup,) = found_in(rows, image=(160, 320))
    assert cup.box == pytest.approx((80, 0, 240, 40))


def test_boxes_are_those_of_the_plain_loop():
    random = np.random.default_rng(5)
    count = 600
    rows = np.zeros((count, 5 + CLASSES), np.float32)
    rows[:, :2] = random.integers(16, 48, (count, 2)) / 64
    rows[:, 2:4] = random.integers(1, 16, (count, 2)) / 64
    rows[:, 4] = random.random(count)
    rows[:, 5:8] = random.random((count, 3))
    half = rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], 1)
    scores = rows[:, 4] * rows[:, 5:].max(1)
    classes = rows[:, 5:].argmax(1)
    kept = suppressed(boxes, scores, classes, iou=0.5, threshold=0.3)
    found = found_in(rows, threshold=0.3, iou=0.5)
    assert [item.index for item in found] == classes[kept].tolist()
    np.testing.assert_allclose([item.box for item in found], boxes[kept] * 640, rtol=1e-5)
    np.testing.assert_allclose([item.score for item in found], scores[kept], rtol=1e-6)
    assert [item.label for item in found] == [labels("coco")[index] for index in classes[kept]]


def test_nothing_sure_enough_and_nothing_that_is_a_number_gives_nothing():
    assert found_in([row(0.5, 0.5, 0.2, 0.2, 0.1, 0)]) == []
    assert found_in([row(0.5, math.nan, 0.2, 0.2, 0.9, 0)]) == []
    assert found_in([row(0.5, 0.5, 0.2, 0.2, math.nan, 0)]) == []


def test_no_more_come_than_are_asked_for():
    rows = [row(0.1 * k, 0.5, 0.05, 0.05, 0.9 - 0.05 * k, k) for k in range(1, 9)]
    assert len(found_in(rows)) == 8
    assert [item.index for item in found_in(rows, max_results=3)] == [1, 2, 3]


def test_rows_for_other_classes_are_refused():
    with pytest.raises(errors.ModelError, match=r"\(1, n, 85\).*\(1, 9, 25\)"):
        decoded("yolo_v5", {"out": np.zeros((1, 9, 25), np.float32)}, (64, 64))


@pytest.mark.parametrize("options", [{"threshold": 1.5}, {"iou": -0.1}, {"threshold": math.nan}])
def test_options_outside_of_0_to_1_are_refused(options):
    (name,) = options
    with pytest.raises(errors.ArgumentError, match=f"{name}.*from 0 to 1"):
        found_in([row(0.5, 0.5, 0.2, 0.2, 0.9, 0)], **options)


def test_a_row_without_a_likeliest_class_is_none_even_where_all_are_wanted():
    rows = [row(0.5, 0.5, 0.5, 0.5, 0.9, 41), row(0.2, 0.2, 0.1, 0.1, 0.9, 41)]
    rows[1][5:] = math.nan
    assert [item.label for item in found_in(rows, threshold=0)] == ["cup"]
