"""Masks in the size of the image, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.kernels.vision import masks  # noqa: F401  (registers its kernels)

SIZES = [((1, 1), (5, 3)), ((7, 9), (7, 9)), ((6, 8), (20, 31)), ((40, 30), (9, 7))]


def centres(start, length, count):
    return start + (np.arange(count) + 0.5) * length / count


def picked(mask, size, area):
    top, left, height, width = area
    rows = np.floor(centres(top, height, size[0])).astype(int)
    columns = np.floor(centres(left, width, size[1])).astype(int)
    found = np.zeros(size, mask.dtype)
    for (y, row), (x, column) in ((a, b) for a in enumerate(rows) for b in enumerate(columns)):
        if 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1]:
            found[y, x] = mask[row, column]
    return found


def mixed(mask, size, area):
    """By np.interp, one axis after the other."""
    top, left, height, width = area
    rows, columns = centres(top, height, size[0]), centres(left, width, size[1])
    across = np.stack([np.interp(columns, np.arange(mask.shape[1]) + 0.5, row) for row in mask])
    both = np.stack([np.interp(rows, np.arange(mask.shape[0]) + 0.5, c) for c in across.T], 1)
    both[(rows < 0) | (rows >= mask.shape[0])] = 0
    both[:, (columns < 0) | (columns >= mask.shape[1])] = 0
    return both


def areas(shape):
    height, width = shape
    return [
        (0, 0, height, width),
        (height / 4, width / 8, height / 2, width * 0.75),
        (-height * 0.5, -1.25, height * 2, width + 2.5),
    ]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.uint32])
def test_a_pixel_has_the_class_of_the_place_it_lies_in(run, dtype):
    random = np.random.default_rng(1)
    for old, new in SIZES:
        mask = random.integers(0, 21, old).astype(dtype)
        for area in areas(old):
            got = run("class_mask", [mask], new, "u8", area=area)
            np.testing.assert_array_equal(got, picked(mask, new, area))
        np.testing.assert_array_equal(
            run("class_mask", [mask], new, "s32"), picked(mask, new, (0, 0, *old))
        )


def test_classes_beyond_what_the_output_holds_become_the_nearest(run):
    mask = np.array([[-5, 255, 256, 70000]], np.int32)
    assert run("class_mask", [mask], (1, 4), "u8").tolist() == [[0, 255, 255, 255]]


def test_a_class_said_in_floats_is_rounded(run):
    mask = np.array([[0.0, 2.9999, 7.0]], np.float32)
    assert run("class_mask", [mask], (1, 3), "u8").tolist() == [[0, 3, 7]]


def test_a_soft_mask_is_interpolated_between_centres(run):
    random = np.random.default_rng(2)
    for old, new in SIZES:
        mask = random.random(old, np.float32)
        for area in areas(old):
            got = run("soft_mask", [mask], new, "f32", area=area)
            np.testing.assert_allclose(got, mixed(mask, new, area), rtol=1e-5, atol=1e-6)


def test_a_soft_mask_of_the_same_size_is_the_same(run):
    mask = np.random.default_rng(3).random((12, 17), np.float32)
    np.testing.assert_array_equal(run("soft_mask", [mask], (12, 17), "f32"), mask)


@pytest.mark.parametrize(("kernel", "dtype"), [("class_mask", "u8"), ("soft_mask", "f32")])
def test_far_outside_the_mask_there_is_nothing(run, kernel, dtype):
    mask = np.ones((4, 4), np.uint8 if dtype == "u8" else np.float32)
    got = run(kernel, [mask], (3, 3), dtype, area=(-1e12, 0, 2e12, 4))
    assert got.tolist() == [[0] * 3, [1] * 3, [0] * 3]


@pytest.mark.parametrize("kernel", ["class_mask", "soft_mask"])
def test_masks_and_areas_that_make_no_sense_are_refused(fail, run, kernel):
    dtype = "u8" if kernel == "class_mask" else "f32"
    mask = ((4, 4), dtype)
    for area in ((0, 0, 4), (0, 0, 0, 4), (0, float("nan"), 4, 4), "all"):
        assert "area" in fail(errors.ArgumentError, kernel, [mask], ((4, 4), dtype), area=area)
    said = fail(errors.ShapeError, kernel, [((4, 4, 1), dtype)], ((4, 4), dtype))
    assert "(4, 4, 1)" in said
    said = fail(errors.ShapeError, kernel, [((0, 4), dtype)], ((4, 4), dtype))
    assert "nothing to take" in said
    empty = np.zeros((4, 4), np.uint8 if dtype == "u8" else np.float32)
    assert run(kernel, [empty], (0, 4), dtype).shape == (0, 4)


def test_a_mask_of_the_other_kind_is_refused(fail):
    said = fail(errors.DtypeError, "class_mask", [((4, 4), "s32")], ((4, 4), "f32"))
    assert "u8" in said
    said = fail(errors.DtypeError, "soft_mask", [((4, 4), "u8")], ((4, 4), "f32"))
    assert "class_mask" in said
