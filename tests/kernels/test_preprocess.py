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
    found = np.einsum("ih,jw,hwc->ijc", down, across, values)
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
        got = run("preprocess", [image], want.shape, "f32", layout=layout, size=(height, width))
        np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize(
    ("params", "mean", "std"),
    [
        ({}, 0, 1),
        ({"mean": 0.5, "std": 2}, 0.5, 2),
        ({"mean": (0.1, 0.2, 0.3), "std": [1, 2, 4]}, (0.1, 0.2, 0.3), (1, 2, 4)),
        ({"mean": np.full(3, 0.5, np.float32)}, 0.5, 1),
        ({"normalize": "imagenet"}, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ({"normalize": "unit"}, 0, 1),
        ({"normalize": "signed"}, 0.5, 0.5),
    ],
)
def test_values_are_normalised_by_channel(run, params, mean, std):
    image = picture((8, 9, 3), "u8")
    want = (image / 255 - np.array(mean)) / np.array(std)
    got = run("preprocess", [image], (1, 8, 9, 3), "f32", layout="nhwc", **params)
    np.testing.assert_allclose(got[0], want, atol=2e-6)


def test_an_image_of_the_same_size_keeps_its_values(run):
    image = picture((33, 20, 3), "f32")
    got = run("preprocess", [image], (1, 3, 33, 20), "f32")
    np.testing.assert_array_equal(got[0], image.transpose(2, 0, 1))


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
        (IMAGE, TENSOR, {"layout": "hwc"}, errors.ArgumentError, "give 'nchw' or 'nhwc'"),
        (IMAGE, TENSOR, {"size": (3, 2)}, errors.ShapeError, "has room for (2, 2)"),
        (IMAGE, TENSOR, {"size": (3, 2, 1)}, errors.ArgumentError, "size is one number or two"),
        (IMAGE, TENSOR, {"mean": (1, 2)}, errors.ArgumentError, "mean is a number or three"),
        (IMAGE, TENSOR, {"std": (1, 0, 1)}, errors.ArgumentError, "divided by 0"),
        (IMAGE, TENSOR, {"normalize": "caffe"}, errors.ArgumentError, "imagenet, unit, signed"),
        (IMAGE, TENSOR, {"normalize": "unit", "mean": 1}, errors.ArgumentError, "given too"),
    ],
)
def test_mistakes_are_refused(fail, image, output, params, error, words):
    assert words in fail(error, "preprocess", [image], output, **params)
