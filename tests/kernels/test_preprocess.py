"""Images as tensors, against matrices of resampling weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala import errors


def weights(old, new):
    """The matrix that resamples an axis: bilinear, or averages where it shrinks to half or less."""
    matrix = np.zeros((new, old))
    for i in range(new):
        if old >= 2 * new:
            first, last = i * old / new, (i + 1) * old / new
            for k in range(old):
                matrix[i, k] = max(0, min(last, k + 1) - max(first, k)) * new / old
        else:
            centre = (i + 0.5) * old / new - 0.5
            before = math.floor(centre)
            matrix[i, max(before, 0)] += 1 - (centre - before)
            matrix[i, min(before + 1, old - 1)] += centre - before
    return matrix


def resized(image, height, width):
    """The image as (height, width, 3) of numbers in 0..1."""
    values = np.atleast_3d(image).astype(np.float64) / (255 if image.dtype == np.uint8 else 1)
    down, across = weights(image.shape[0], height), weights(image.shape[1], width)
    found = np.einsum("ih,jw,hwc->ijc", down, across, values, optimize=True)
    return np.repeat(found, 3, 2) if found.shape[2] == 1 else found[..., :3]


def picture(shape, dtype):
    random = np.random.default_rng(8)
    if dtype == "u8":
        return random.integers(0, 256, shape, np.uint8)
    return random.random(shape, np.float32)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", [(5, 7), (40, 31, 3), (17, 65, 4), (1, 1), (6, 3, 1)])
def test_images_are_resized_and_laid_out(run, shape, dtype, layout):
    image = picture(shape, dtype)
    for height, width in ((5, 7), (3, 3), (20, 15), (33, 100)):
        want = resized(image, height, width)[None]
        want = want.transpose(0, 3, 1, 2) if layout == "nchw" else want
        got = run("preprocess", [image], want.shape, "f32", layout=layout, size=(width, height))
        np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize(
    ("params", "mean", "std"),
    [
        ({}, 0, 1),
        ({"mean": 0.5, "std": 2}, 0.5, 2),
        ({"mean": (0.1, 0.2, 0.3), "std": [1, 2, 4]}, (0.1, 0.2, 0.3), (1, 2, 4)),
        ({"mean": np.full(3, 0.5, np.float32)}, 0.5, 1),
        ({"normalize": "imagenet"}, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ({"normalize": True}, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ({"normalize": False}, 0, 1),
        ({"normalize": False, "std": 2}, 0, 2),
        ({"normalize": "unit"}, 0, 1),
        ({"normalize": "signed"}, 0.5, 0.5),
        ({"normalize": "levels"}, 0, 1 / 255),
    ],
)
def test_values_are_normalised_by_channel(run, params, mean, std):
    image = picture((8, 9, 3), "u8")
    want = (image / 255 - np.array(mean)) / np.array(std)
    got = run("preprocess", [image], (1, 8, 9, 3), "f32", layout="nhwc", **params)
    np.testing.assert_allclose(got[0], want, atol=2e-6, rtol=1e-6)


def test_an_image_of_the_same_size_keeps_its_values(run):
    image = picture((33, 20, 3), "f32")
    got = run("preprocess", [image], (1, 3, 33, 20), "f32")
    np.testing.assert_array_equal(got[0], image.transpose(2, 0, 1))


def placed(image, size, fit, fill):
    """The image in a frame of that size: scaled as a whole, then cut, or with a rim around it."""
    (height, width), (tall, wide) = image.shape[:2], size
    scale = (max if fit == "crop" else min)(tall / height, wide / width)
    high, broad = max(1, round(height * scale)), max(1, round(width * scale))
    whole = resized(image, high, broad)
    top, left = (tall - high) // 2, (wide - broad) // 2
    if fit == "crop":
        return whole[-top : tall - top, -left : wide - left]
    frame = np.full((tall, wide, 3), float(fill))
    frame[top : top + high, left : left + broad] = whole
    return frame


@pytest.mark.parametrize("fit", ["crop", "letterbox"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((40, 31, 3), (16, 16)),
        ((31, 40), (16, 16)),
        ((12, 200, 4), (24, 18)),
        ((200, 12, 3), (18, 24)),
        ((20, 200, 3), (20, 30)),
        ((200, 20), (30, 20)),
        ((16, 16, 3), (16, 40)),
        ((3, 50, 3), (7, 5)),
        ((1, 90, 3), (4, 4)),
    ],
)
def test_the_shape_of_an_image_is_kept_where_that_is_wanted(run, shape, size, layout, fit):
    image = picture(shape, "u8")
    want = placed(image, size, fit, 0.25)[None]
    want = want.transpose(0, 3, 1, 2) if layout == "nchw" else want
    got = run("preprocess", [image], want.shape, "f32", layout=layout, fit=fit, fill=0.25)
    np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_wide_image_is_cropped_where_its_sides_are_left_out(run, layout):
    image = picture((90, 700, 3), "u8")
    want = placed(image, (45, 45), "crop", 0)[None]
    want = want.transpose(0, 3, 1, 2) if layout == "nchw" else want
    got = run("preprocess", [image], want.shape, "f32", layout=layout, fit="crop")
    np.testing.assert_allclose(got, want, atol=2e-6)


def test_the_rim_is_normalised_like_the_image(run):
    image = picture((2, 8, 3), "f32")
    got = run(
        "preprocess", [image], (1, 3, 8, 8), "f32", fit="letterbox", fill=0.5, normalize="signed"
    )
    np.testing.assert_allclose(got[0, :, [0, 1, 2, 5, 6, 7]], 0, atol=1e-6)
    np.testing.assert_allclose(got[0, :, 3:5], image.transpose(2, 0, 1) * 2 - 1, atol=2e-6)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("shape", [(9, 8), (9, 8, 3), (9, 8, 4)])
def test_blue_comes_first_where_it_is_wanted_and_keeps_its_own_mean(run, shape, layout):
    image, mean, std = picture(shape, "u8"), (0.1, 0.2, 0.3), (1, 2, 4)
    want = ((resized(image, 5, 6) - mean) / std)[None, ..., ::-1]
    want = want.transpose(0, 3, 1, 2) if layout == "nchw" else want
    params = {"layout": layout, "order": "bgr", "mean": mean, "std": std}
    got = run("preprocess", [image], want.shape, "f32", **params)
    np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_levels_are_rounded_into_bytes(run, dtype):
    image = picture((30, 20, 3), dtype)
    exact = placed(image, (17, 17), "letterbox", 114 / 255)[None] * 255
    params = {"layout": "nhwc", "normalize": "levels", "fit": "letterbox", "fill": 114 / 255}
    got = run("preprocess", [image], (1, 17, 17, 3), "u8", **params)
    assert np.abs(got - exact).max() <= 0.5 + 1e-3
    assert (got[0, :, 0] == 114).all()


def test_levels_of_an_image_of_the_same_size_are_its_own(run):
    image = picture((7, 5, 3), "u8")
    for dtype in ("u8", "f32"):
        got = run("preprocess", [image], (1, 7, 5, 3), dtype, layout="nhwc", normalize="levels")
        np.testing.assert_array_equal(got[0], image)


def test_an_image_too_long_to_be_cropped_is_refused(fail):
    long, tensor = ((1, 1 << 16, 3), "u8"), ((1, 3, 512, 512), "f32")
    assert "33554432 pixels" in fail(errors.LimitError, "preprocess", [long], tensor, fit="crop")


IMAGE, TENSOR = ((4, 4, 3), "u8"), ((1, 3, 2, 2), "f32")


@pytest.mark.parametrize(
    ("image", "output", "params", "error", "words"),
    [
        (((4, 4, 2), "u8"), TENSOR, {}, errors.ShapeError, "the image is (4, 4, 2)"),
        (((4,), "u8"), TENSOR, {}, errors.ShapeError, "the image is (4,)"),
        (((0, 4), "u8"), TENSOR, {}, errors.ShapeError, "no pixels"),
        (((4, 4), "s32"), TENSOR, {}, errors.DtypeError, "the image is s32"),
        (IMAGE, ((1, 3, 2, 2), "u8"), {}, errors.DtypeError, "give f32"),
        (IMAGE, ((3, 2, 2), "f32"), {}, errors.ShapeError, "it is (1, 3, h, w)"),
        (IMAGE, TENSOR, {"layout": "nhwc"}, errors.ShapeError, "it is (1, h, w, 3)"),
        (IMAGE, TENSOR, {"layout": "hwc"}, errors.ArgumentError, "give nchw, nhwc"),
        (IMAGE, TENSOR, {"size": (3, 2)}, errors.ShapeError, "3 × 2, but the output (1, 3, 2, 2)"),
        (IMAGE, TENSOR, {"shape": (3, 2)}, errors.ShapeError, "2 × 3, but the output (1, 3, 2, 2)"),
        (IMAGE, TENSOR, {"shape": 2, "size": 2}, errors.ArgumentError, "give one of them"),
        (IMAGE, TENSOR, {"normalize": True, "std": 1}, errors.ArgumentError, "given too"),
        (IMAGE, TENSOR, {"normalize": True, "mean": 0}, errors.ArgumentError, "given too"),
        (
            IMAGE,
            TENSOR,
            {"normalize": 1},
            errors.ArgumentError,
            "normalize 1 is not known: give",
        ),
        (IMAGE, TENSOR, {"size": (3, 2, 1)}, errors.ArgumentError, "size is one number or two"),
        (IMAGE, TENSOR, {"mean": (1, 2)}, errors.ArgumentError, "mean is a number or three"),
        (IMAGE, TENSOR, {"std": (1, 0, 1)}, errors.ArgumentError, "divided by 0"),
        (IMAGE, TENSOR, {"normalize": "caffe"}, errors.ArgumentError, "imagenet, unit, signed"),
        (IMAGE, TENSOR, {"fit": "zoom"}, errors.ArgumentError, "stretch, crop, letterbox"),
        (IMAGE, TENSOR, {"fit": ["crop"]}, errors.ArgumentError, "fit ['crop'] is not known"),
        (IMAGE, TENSOR, {"order": "rgba"}, errors.ArgumentError, "give rgb, bgr"),
        (IMAGE, TENSOR, {"fill": 114}, errors.ArgumentError, "fill is a finite number from 0 to 1"),
        (
            IMAGE,
            ((1, 3, 2, 2), "u8"),
            {"normalize": "unit"},
            errors.DtypeError,
            "u8 with normalize='levels'",
        ),
        (IMAGE, TENSOR, {"normalize": "unit", "mean": 1}, errors.ArgumentError, "given too"),
    ],
)
def test_mistakes_are_refused(fail, image, output, params, error, words):
    assert words in fail(error, "preprocess", [image], output, **params)
