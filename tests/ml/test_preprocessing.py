"""Images made into tensors, whatever holds them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dala import errors, ml
from dala.gpu import compute

MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def picture(shape=(12, 20, 3)):
    return np.random.default_rng(3).integers(0, 256, shape, np.uint8)


def test_a_tensor_is_normalised_as_imagenet_is_unless_told_otherwise(device):
    image = picture((8, 9, 3))
    want = ((image / 255 - MEAN) / STD).transpose(2, 0, 1)
    for given in ({}, {"normalize": True}, {"normalize": "imagenet"}):
        tensor = ml.preprocess(image, (9, 8), **given)
        assert tensor.shape == (1, 3, 8, 9)
        np.testing.assert_allclose(compute.read(tensor)[0], want, atol=3e-6)


def test_without_normalising_values_are_in_0_to_1(device):
    image = picture((8, 9, 3))
    got = compute.read(ml.preprocess(image, size=(9, 8), normalize=False))
    np.testing.assert_allclose(got[0], (image / 255).transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_a_size_has_the_width_first_and_a_shape_the_height(layout):
    wide = ml.preprocess(picture(), size=(10, 4), layout=layout)
    assert wide.shape == ((1, 3, 4, 10) if layout == "nchw" else (1, 4, 10, 3))
    same = ml.preprocess(picture(), shape=(4, 10), layout=layout)
    np.testing.assert_array_equal(compute.read(same), compute.read(wide))


def test_one_number_is_both_sides_of_a_square(device):
    assert ml.preprocess(picture(), 6, layout="nhwc").shape == (1, 6, 6, 3)


def test_whatever_holds_the_image_the_tensor_is_the_same(device):
    image = picture()
    want = compute.read(ml.preprocess(image, 7))
    held = [Image.fromarray(image), compute.from_numpy(image), np.asfortranarray(image)]
    for each in held:
        np.testing.assert_array_equal(compute.read(ml.preprocess(each, 7)), want)


def test_the_tensor_is_on_the_device_of_the_image(webgpu):
    with compute.device("cpu"):
        image = compute.from_numpy(picture())
    assert ml.preprocess(image, 4).device == "cpu"
    assert ml.preprocess(picture(), 4).device == webgpu


def test_mean_and_std_stand_in_for_a_name(device):
    image = picture((4, 4, 3))
    got = compute.read(ml.preprocess(image, 4, layout="nhwc", mean=0.5, std=(1, 2, 4)))
    np.testing.assert_allclose(got[0], (image / 255 - 0.5) / (1, 2, 4), atol=1e-6)
    got = compute.read(ml.preprocess(image, 4, layout="nhwc", std=2))
    np.testing.assert_allclose(got[0], image / 255 / 2, atol=1e-6)


def test_all_that_the_kernel_takes_is_passed_on(device):
    image = picture((4, 8, 3))
    params = {"layout": "nhwc", "normalize": "levels", "order": "bgr"}
    got = ml.preprocess(image, 8, **params, fit="letterbox", fill=114 / 255, dtype="u8")
    assert got.dtype == "u8"
    levels = compute.read(got)[0]
    np.testing.assert_array_equal(levels[2:6], image[..., ::-1])
    assert (levels[[0, 1, 6, 7]] == 114).all()
    middle = compute.read(ml.preprocess(image, 4, **params, fit="crop", dtype="u8"))[0]
    np.testing.assert_array_equal(middle, image[:, 2:6, ::-1])


def test_a_tensor_is_written_where_it_is_wanted(device):
    out = compute.buffer_zeros((1, 3, 5, 5), "f32")
    assert ml.preprocess(picture(), 5, out=out) is out
    want = compute.read(ml.preprocess(picture(), 5))
    np.testing.assert_array_equal(compute.read(out), want)


@pytest.mark.parametrize(
    ("image", "params", "error", "words"),
    [
        ("cat.png", {}, errors.ArgumentError, "an image is an array"),
        (np.zeros((4, 4, 2), np.uint8), {}, errors.ShapeError, "not the shape of an image"),
        (np.zeros((4, 4, 3)), {}, errors.DtypeError, "float64"),
        (np.zeros((0, 4, 3), np.uint8), {}, errors.ShapeError, "no pixels"),
        (None, {"size": 0}, errors.ArgumentError, "size = 0"),
        (None, {"size": None}, errors.ArgumentError, "give size=(width, height)"),
        (None, {"shape": (4, 4)}, errors.ArgumentError, "give one of them"),
        (None, {"normalize": True, "mean": 0}, errors.ArgumentError, "given too"),
        (None, {"size": (4, 4, 3)}, errors.ArgumentError, "one number or two"),
        (None, {"size": 4.5}, errors.ArgumentError, "an integer"),
        (None, {"layout": "chw"}, errors.ArgumentError, "nchw, nhwc"),
        (None, {"normalize": "caffe"}, errors.ArgumentError, "imagenet, unit, signed, levels"),
        (None, {"normalize": ["unit"]}, errors.ArgumentError, "imagenet, unit, signed, levels"),
        (None, {"normalize": "unit", "mean": 1}, errors.ArgumentError, "given too"),
        (None, {"dtype": "u8"}, errors.DtypeError, "normalize='levels'"),
        (None, {"dtype": "complex64"}, errors.DtypeError, "complex64"),
        (None, {"out": np.zeros((1, 3, 4, 4))}, errors.ArgumentError, "out is a Buffer"),
    ],
)
def test_mistakes_are_refused(image, params, error, words):
    with pytest.raises(error) as caught:
        ml.preprocess(picture() if image is None else image, **{"size": 4, **params})
    assert words in str(caught.value)


def test_an_output_of_another_size_is_refused():
    out = compute.buffer_zeros((1, 3, 5, 6), "f32")
    with pytest.raises(errors.ShapeError, match="has room for 6 × 5"):
        ml.preprocess(picture(), 5, out=out)
