"""Images of another size, against matrices of resampling weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.pictures import SHAPES, check, in_units, picture

from dala import errors
from dala.gpu import compute
from dala.kernels.image import resampling
from dala.runtime.kernels.kernel import KERNELS

LOST = 0.25
"""How much of a level may be lost before it is rounded."""
METHODS = ["nearest", "bilinear", "bicubic", "lanczos", "area"]


def triangle(x):
    return max(0.0, 1 - abs(x))


def cubic(x, a=-0.5):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def lanczos(x):
    return float(np.sinc(x) * np.sinc(x / 3)) if abs(x) < 3 else 0.0


CURVES = {"bilinear": triangle, "bicubic": cubic, "lanczos": lanczos}


def weights(old, new, method):
    """The matrix that resamples an axis, an element at a time."""
    matrix = np.zeros((new, old))
    for i in range(new):
        if method == "nearest":
            matrix[i, (2 * i + 1) * old // (2 * new)] = 1
            continue
        for k in range(old):
            if method == "area":
                first, last = i * old / new, (i + 1) * old / new
                matrix[i, k] = max(0, min(last, k + 1) - max(first, k))
            else:
                away = k + 0.5 - (i + 0.5) * old / new
                matrix[i, k] = CURVES[method](away / max(1, old / new))
        matrix[i] /= matrix[i].sum()
    return matrix


def resized(x, size, method):
    if x.shape[:2] == tuple(size):
        return x
    down = np.eye(size[0]) if x.shape[0] == size[0] else weights(x.shape[0], size[0], method)
    across = np.eye(size[1]) if x.shape[1] == size[1] else weights(x.shape[1], size[1], method)
    return np.einsum("ih,jw,hw...->ij...", down, across, x)


def agree(got, want):
    """Compare with exact numbers; on the CPU, u8 is computed in 16 bits before it is rounded."""
    if got.dtype == np.uint8:
        assert got.shape == want.shape
        assert np.abs(got - want.clip(0, 1) * 255).max() <= 0.5 + LOST
    else:
        check(got, want, tolerance=3e-6)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("method", METHODS)
def test_resized_images_follow_their_formula(run, method, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        size = (3, 50) if shape[0] == 33 else (11, 23)
        given = {"method": method, "size": size[::-1]}
        got = run("resize", [image], (*size, *shape[2:]), dtype, **given)
        agree(got, resized(in_units(image), size, method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "size", [(33, 20), (33, 90), (12, 65), (70, 65), (70, 20), (1, 1), (2, 65)]
)
def test_axes_are_resized_one_by_one_or_together(run, method, size):
    image = picture((33, 65, 4), "u8")
    got = run("resize", [image], (*size, 4), "u8", method=method)
    agree(got, resized(in_units(image), size, method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ratio", [(2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (3, 2), (2, 3), (4, 3)])
def test_sizes_in_a_ratio_of_small_numbers_follow_the_same_formula(run, method, ratio):
    for shape, dtype in (((12, 96), "u8"), ((12, 96, 3), "f32"), ((12, 84, 4), "u8")):
        image = picture(shape, dtype)
        size = tuple(length * ratio[1] // ratio[0] for length in shape[:2])
        got = run("resize", [image], (*size, *shape[2:]), dtype, method=method)
        agree(got, resized(in_units(image), size, method))


@pytest.mark.parametrize("method", METHODS)
def test_an_image_in_its_own_size_is_kept(run, method):
    for shape in SHAPES:
        for dtype in ("u8", "f32"):
            image = picture(shape, dtype)
            np.testing.assert_array_equal(
                run("resize", [image], shape, dtype, method=method), image
            )


@pytest.mark.parametrize("method", METHODS)
def test_resized_images_convert_between_dtypes(run, method):
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((9, 21, 4), given)
        for size in ((9, 13), (5, 21), (20, 30)):
            got = run("resize", [image], (*size, 4), made, method=method)
            agree(got, resized(in_units(image), size, method))


@pytest.mark.parametrize("shape", [(8, 6), (8, 6, 3), (8, 6, 4), (64, 34, 4)])
def test_half_the_size_is_the_mean_of_four(run, shape):
    image = picture(shape, "u8")
    x = in_units(image)
    want = (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]) / 4
    for dtype in ("u8", "f32"):
        got = run("resize", [image], want.shape, dtype, method="area")
        check(got, want)


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("size", [(11, 19), (20, 35), (38, 67), (162, 211), (54, 40), (23, 96)])
def test_black_beside_white_is_as_exact_as_levels_are(run, method, size, channels):
    """Whatever overshoots is cut once, at the end, and 16 bits are enough for what lies between."""
    random = np.random.default_rng(9)
    image = (random.random((54, 96, *channels)) > 0.5).astype(np.uint8) * 255
    got = run("resize", [image], (*size, *channels), "u8", method=method)
    agree(got, resized(in_units(image), size, method))


@pytest.mark.parametrize("level", [0, 1, 127, 254, 255])
def test_what_is_flat_stays_flat(run, level):
    image = np.full((34, 42, 4), level, np.uint8)
    for method in METHODS:
        for size in ((17, 21), (11, 100)):
            got = run("resize", [image], (*size, 4), "u8", method=method)
            np.testing.assert_array_equal(got, np.full((*size, 4), level))


@pytest.mark.parametrize("shape", [(6, 40), (40, 6, 3), (9, 40, 4)])
@pytest.mark.parametrize("size", [(4, 15), (50, 61)])
@pytest.mark.parametrize("dtypes", [("u8", "f32"), ("f32", "f32"), ("u8", "u8")])
def test_loops_give_what_is_written_out(run, shape, size, dtypes, monkeypatch):
    dtype, made = dtypes
    image = picture(shape, dtype)
    written = run("resize", [image], (*size, *shape[2:]), made, method="lanczos")
    with monkeypatch.context() as patch:
        patch.setattr(resampling, "MOST_WRITTEN", 0)
        patch.setattr(resampling, "MOST_ROWS_WRITTEN", 0)
        resampling._table.cache_clear()
        looped = run("resize", [image], (*size, *shape[2:]), made, method="lanczos")
        resampling._table.cache_clear()
    np.testing.assert_allclose(looped, written, atol=2e-6)


def test_colours_of_transparent_pixels_do_not_show(run):
    image = picture((20, 30, 4), "f32")
    image[:10, :, 3] = 0
    x = in_units(image)
    for kernel in ("resize", "letterbox"):
        got = run(kernel, [image], (10, 15, 4), "f32", premultiply=True)
        whole = resized(np.dstack([x[..., :3] * x[..., 3:], x[..., 3]]), (10, 15), "bilinear")
        opaque = whole[..., 3:] > 0
        colours = np.where(opaque, whole[..., :3] / np.where(opaque, whole[..., 3:], 1), 0)
        check(got, np.dstack([colours, whole[..., 3]]), tolerance=1e-5)


def test_images_are_resized_in_place(device):
    image = picture((6, 9, 3), "u8")
    flat = compute.from_numpy(image)
    compute.run_kernel("resize", [flat], flat, {})
    np.testing.assert_array_equal(compute.read(flat), image)


@pytest.mark.parametrize("method", ["nearest", "area", "lanczos"])
def test_resized_images_lie_between_other_stages(run, device, method):
    image = picture((32, 48, 4), "u8")
    brighter = run("brightness", [image], image.shape, "u8", value=0.1)
    smaller = run("resize", [brighter], (16, 24, 4), "u8", method=method)
    want = run("invert", [smaller], smaller.shape, "u8")
    first, second = (compute.scratch(item.shape, "u8") for item in (image, want))
    output = compute.buffer_zeros(want.shape, "u8")
    stages = compute.pipeline()
    given = {"inputs": [compute.from_numpy(image)], "params": {"value": 0.1}}
    stages.add(kernel="brightness", output=first, **given)
    stages.add(kernel="resize", inputs=[first], output=second, params={"method": method})
    stages.add(kernel="invert", inputs=[second], output=output)
    stages.run()
    np.testing.assert_array_equal(compute.read(output), want)


def test_resized_images_without_pixels_are_empty(run):
    for kernel in ("resize", "letterbox"):
        for shape in ((0, 5, 3), (4, 4, 3)):
            image = np.zeros(shape, np.uint8)
            assert run(kernel, [image], (0, 7, 3), "u8").size == 0


def test_the_shape_of_the_output_follows_from_the_size():
    for kernel in (KERNELS["resize"], KERNELS["letterbox"]):
        assert kernel.output_shape([(4, 6, 3)]) == (4, 6, 3)
        assert kernel.output_shape([(4, 6, 3)], {"size": (8, 2)}) == (2, 8, 3)
        assert kernel.output_shape([(4, 6, 3)], {"shape": (8, 2)}) == (8, 2, 3)
        assert kernel.output_shape([(4, 6)], {"shape": 5}) == (5, 5)
        assert kernel.output_shape([(4, 6)], {"size": 5}) == (5, 5)
        with pytest.raises(errors.ShapeError, match="images are"):
            kernel.output_shape([(4,)])


# -- letterbox -------------------------------------------------------------------------------------


def boxed(x, size, colour, method="bilinear"):
    """The definition: scaled by the smaller ratio, centred, the smaller half above and left."""
    ratio = min(size[0] / x.shape[0], size[1] / x.shape[1])
    inner = tuple(max(1, round(length * ratio)) for length in x.shape[:2])
    want = np.ones((*size, *x.shape[2:]))
    if x.ndim == 2:
        want[:] = np.dot(colour, [0.299, 0.587, 0.114])
    else:
        want[..., :3] = colour
    top, left = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    want[top : top + inner[0], left : left + inner[1]] = resized(x, inner, method)
    return want


@pytest.mark.parametrize("size", [(20, 20), (31, 12), (7, 40), (1, 9)])
def test_letterboxes_keep_the_aspect(run, size):
    for shape, dtype in (((9, 21), "u8"), ((6, 9, 3), "f32"), ((33, 20, 4), "u8"), ((1, 1), "f32")):
        image = picture(shape, dtype)
        got = run("letterbox", [image], (*size, *shape[2:]), dtype, size=size[::-1])
        agree(got, boxed(in_units(image), size, [114 / 255] * 3))


def test_letterboxes_are_filled_with_the_colour(run):
    for shape in ((9, 21), (9, 21, 3), (9, 21, 4)):
        image = picture(shape, "u8")
        for color, colour in ((0, [0, 0, 0]), ((0.25, 1, 0.5), [0.25, 1, 0.5])):
            given = {"color": color, "method": "area"}
            got = run("letterbox", [image], (20, 15, *shape[2:]), "u8", **given)
            agree(got, boxed(in_units(image), (20, 15), colour, "area"))


# -- mistakes --------------------------------------------------------------------------------------

IMAGE = ((4, 4, 3), "u8")


@pytest.mark.parametrize("kernel", ["resize", "letterbox"])
@pytest.mark.parametrize(
    ("image", "output", "params", "error", "words"),
    [
        (IMAGE, IMAGE, {"method": "cubic"}, errors.ArgumentError, "method 'cubic' is not known"),
        (IMAGE, IMAGE, {"method": 3}, errors.ArgumentError, "give nearest, bilinear, bicubic"),
        (IMAGE, IMAGE, {"size": (1, 2, 3)}, errors.ArgumentError, "size is one number or two"),
        (IMAGE, IMAGE, {"size": (1, -2)}, errors.ArgumentError, "at least 0"),
        (IMAGE, IMAGE, {"size": 2.5}, errors.ArgumentError, "an integer, not 2.5"),
        (IMAGE, IMAGE, {"size": (3, 2)}, errors.ShapeError, "3 × 2, but the output (4, 4, 3) has"),
        (IMAGE, IMAGE, {"size": (3, 2)}, errors.ShapeError, "has room for 4 × 4."),
        (IMAGE, IMAGE, {"shape": (3, 2)}, errors.ShapeError, "which makes 2 × 3, but the output"),
        (IMAGE, IMAGE, {"shape": (4, 4, 3)}, errors.ArgumentError, "shape is one number or two"),
        (IMAGE, IMAGE, {"shape": -1}, errors.ArgumentError, "shape = -1, but it is at least 0"),
        (IMAGE, IMAGE, {"size": 4, "shape": 4}, errors.ArgumentError, "give one of them"),
        (IMAGE, ((2, 6, 3), "u8"), {"size": (2, 6)}, errors.ShapeError, "6 × 2: size is (width,"),
        (
            IMAGE,
            ((2, 6, 3), "u8"),
            {"shape": (6, 2)},
            errors.ShapeError,
            "shape is (height,",
        ),
        (IMAGE, IMAGE, {"premultiply": 1}, errors.ArgumentError, "True or False, not 1"),
        (((4, 4, 2), "u8"), IMAGE, {}, errors.ShapeError, "which is not an image"),
        (IMAGE, ((4, 4), "s32"), {}, errors.ShapeError, "which is not an image"),
        (IMAGE, ((4, 4), "u8"), {}, errors.ShapeError, "the same channels"),
        (((0, 4, 3), "u8"), IMAGE, {}, errors.ShapeError, "no pixels to make (4, 4, 3) of"),
    ],
)
def test_mistakes_are_refused(fail, kernel, image, output, params, error, words):
    said = fail(error, kernel, [image], output, **params)
    assert words in said
    assert said.startswith(f"{kernel}: ")


def test_colours_that_are_none_are_refused(fail):
    for color in ((1, 2), "grayish", (0, 0, 1.5), math.nan, "transparent"):
        said = fail(errors.ArgumentError, "letterbox", [IMAGE], IMAGE, color=color)
        assert said.startswith("letterbox: color ")


def test_too_many_weights_are_refused(fail, monkeypatch):
    monkeypatch.setattr(resampling, "MOST_WEIGHTS", 8)
    said = fail(errors.LimitError, "resize", [IMAGE], ((9, 9, 3), "u8"))
    assert "resize: 4 to 9 pixels along an axis takes 27 weights, but there are at most 8" in said
