"""Filters as functions: what they take, what they give back, and how they refuse."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from PIL import Image

from dala import errors
from dala.gpu import compute
from dala.media import gpu

H, W = 12, 17


def picture(channels: int = 4, dtype: type = np.uint8) -> np.ndarray:
    shape = (H, W) if channels == 1 else (H, W, channels)
    levels = np.random.default_rng(channels).integers(0, 256, shape, dtype=np.uint8)
    return levels if dtype is np.uint8 else (levels / 255).astype(dtype)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_kind_comes_back_as_itself_with_the_same_pixels(device, channels):
    image = picture(channels)
    want = gpu.blur(image, radius=2)
    assert isinstance(want, np.ndarray)
    assert gpu.blur(image.tobytes(), W, H, radius=2) == want.tobytes()
    assert gpu.blur(bytearray(image.tobytes()), width=W, height=H, radius=2) == want.tobytes()
    shown = gpu.blur(Image.fromarray(image), radius=2)
    assert isinstance(shown, Image.Image)
    np.testing.assert_array_equal(np.asarray(shown), want)
    buffer = gpu.blur(compute.from_numpy(image), radius=2)
    assert isinstance(buffer, compute.Buffer)
    assert buffer.device.startswith(device)
    np.testing.assert_array_equal(np.asarray(buffer), want)


def test_floats_stay_floats(device):
    image = picture(3, np.float32)
    got = gpu.brightness(image, 0.25)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, image + 0.25, rtol=1e-6)


def test_what_is_given_is_left_as_it_was(device):
    image = picture()
    before = image.copy()
    result = gpu.invert(image)
    result[:] = 7
    np.testing.assert_array_equal(image, before)
    assert (gpu.invert(image)[..., :3] == 255 - before[..., :3]).all()


def test_views_and_read_only_arrays_are_read_as_they_are(device):
    image = picture()
    turned = image[::-1, ::2]
    frozen = image.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(gpu.invert(turned), gpu.invert(turned.copy()))
    np.testing.assert_array_equal(gpu.invert(frozen), gpu.invert(image))


def test_a_result_is_written_where_it_is_wanted(device):
    image = picture()
    out = np.zeros_like(image)
    assert gpu.invert(image, out=out) is out
    np.testing.assert_array_equal(out, gpu.invert(image))
    spread = np.zeros((H, 2 * W, 4), np.uint8)
    gpu.invert(image, out=spread[:, ::2])
    np.testing.assert_array_equal(spread[:, ::2], out)
    assert not spread[:, 1::2].any()


def test_an_image_can_be_filtered_into_itself(device):
    image = picture()
    want = gpu.blur(image, radius=3)
    gpu.blur(image, radius=3, out=image)
    np.testing.assert_array_equal(image, want)


def test_parameters_go_by_place_or_by_name(device):
    image = picture()
    np.testing.assert_array_equal(gpu.blur(image, 2, 0.9), gpu.blur(image, sigma=0.9, radius=2))
    by_place = gpu.blur(image.tobytes(), W, H, 2, 0.9)
    assert by_place == gpu.apply_filter(image, "blur", radius=2, sigma=0.9).tobytes()
    by_name = gpu.blur(image.tobytes(), 2, width=W, height=H, sigma=0.9)
    assert by_name == by_place


def test_a_chain_is_its_filters_one_by_one(device):
    image = picture()
    got = gpu.filter_chain(image, [("blur", {"radius": 2}), "grayscale", ("sharpen", {})])
    np.testing.assert_array_equal(got, gpu.sharpen(gpu.grayscale(gpu.blur(image, radius=2))))
    raw = gpu.filter_chain(image.tobytes(), ["invert"], W, H)
    assert raw == gpu.invert(image).tobytes()


def test_a_chain_of_no_filters_is_the_image(device):
    image = picture()
    got = gpu.filter_chain(image, [])
    np.testing.assert_array_equal(got, image)
    assert not np.shares_memory(got, image)


def test_filters_of_users_are_applied_by_name(device):
    compute.Kernel.register(
        "halved",
        "def halved(image: dala.Image, share: dala.f32 = 0.5):\n    return image.pixel * share\n",
    )
    image = picture(3, np.float32)
    np.testing.assert_allclose(gpu.apply_filter(image, "halved"), image / 2, rtol=1e-6)


@pytest.mark.parametrize("name", ["resize", "letterbox"])
def test_a_size_is_that_of_pillow_and_a_shape_that_of_an_array(device, name):
    image = picture(3)
    got = gpu.apply_filter(image, name, size=(40, 10))
    assert got.shape == (10, 40, 3)
    assert Image.fromarray(image).resize((40, 10)).size == Image.fromarray(got).size
    np.testing.assert_array_equal(gpu.apply_filter(image, name, (40, 10)), got)
    np.testing.assert_array_equal(gpu.apply_filter(image, name, shape=got.shape[:2]), got)
    with pytest.raises(errors.ArgumentError, match="give one of them"):
        gpu.apply_filter(image, name, size=(40, 10), shape=(10, 40))


def test_every_filter_is_a_function_that_says_what_it_takes():
    for name, item in gpu.filters().items():
        taken = inspect.signature(getattr(gpu, name)).parameters
        assert list(taken) == [*item["inputs"], *item["params"], "out"]
    gray = gpu.convert(picture(3), **{"from": "rgb", "to": "gray"})
    np.testing.assert_array_equal(gray, gpu.convert(picture(3), "rgb", "gray"))
    assert gray.shape == (H, W)


def test_functions_say_what_they_take():
    signature = inspect.signature(gpu.blur)
    assert list(signature.parameters)[:3] == ["image", "radius", "sigma"]
    assert signature.parameters["radius"].default is None
    assert inspect.signature(gpu.unsharp).parameters["radius"].default == 2
    assert gpu.blur.__name__ == "blur"
    assert gpu.blur.__doc__.startswith("A Gaussian blur")
    assert "blur" in dir(gpu)
    with pytest.raises(AttributeError):
        _ = gpu.no_such_filter


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: gpu.invert(b"12345", 2, 1), errors.ShapeError, "5 bytes are no image of 2 × 1"),
        (lambda: gpu.invert(b"12"), errors.ArgumentError, "give width and height"),
        (lambda: gpu.invert(b"", 0, 1), errors.ShapeError, "width is an integer from 1 on"),
        (lambda: gpu.invert(np.zeros((2, 2, 2), np.uint8)), errors.ShapeError, r"\(2, 2, 2\)"),
        (lambda: gpu.invert(np.zeros((2, 2))), errors.DtypeError, "float64"),
        (lambda: gpu.invert("photo.png"), errors.ArgumentError, "not str"),
        (lambda: gpu.invert(Image.new("P", (2, 2))), errors.ArgumentError, r'convert\("RGB"\)'),
        (lambda: gpu.invert(picture(), 3, 4), errors.ArgumentError, "takes 0 arguments"),
        (lambda: gpu.blur(picture(), 3, radius=4), errors.ArgumentError, "given twice"),
        (lambda: gpu.blur(picture(), radios=4), errors.ArgumentError, "Did you mean 'radius'"),
        (lambda: gpu.brightness(picture()), errors.ArgumentError, "'value' is missing"),
        (lambda: gpu.apply_filter(picture(), "blurr"), errors.UnknownKernelError, "'blur'"),
        (lambda: gpu.filter_chain(picture(), "blur"), errors.ArgumentError, "are a list"),
        (lambda: gpu.filter_chain(picture(), [3]), errors.ArgumentError, "a filter is a name"),
        (lambda: gpu.filter_chain(picture(), [("blur", 3)]), errors.ArgumentError, "mapping"),
        (lambda: gpu.invert(picture(), out=np.zeros(3)), errors.ShapeError, "out is float64"),
    ],
)
def test_wrong_calls_are_refused_with_what_to_do(device, call, error, said):
    with pytest.raises(error, match=said):
        call()
    assert gpu.invert(picture()).shape == (H, W, 4)
