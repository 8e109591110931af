"""What lies behind a person, blurred or replaced, against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.layers import fitted, rgba_of
from kernels.pictures import SHAPES, check, in_units, picture
from kernels.test_neighbourhoods import blurred

from dala import errors
from dala.gpu import compute
from dala.lang.lower import Definition

KINDS = [(9, 21), (9, 21, 3), (9, 21, 4)]


def sampled(mask, size):
    """A mask in another size: bilinear, with half-pixel centres."""
    for axis, new in enumerate(size):
        old = mask.shape[axis]
        at = (np.arange(new) + 0.5) * old / new - 0.5
        first = np.floor(at).astype(int)
        part = (at - first).reshape(-1, 1) if axis == 0 else at - first
        low, high = (mask.take((first + k).clip(0, old - 1), axis) for k in (0, 1))
        mask = low + part * (high - low)
    return mask


def blurred_behind(image, mask, radius, sigma, border="clamp"):
    colour, alpha = rgba_of(image)
    m = sampled(in_units(mask), image.shape[:2])[..., None].clip(0, 1)
    weight = blurred(1 - m, radius, sigma, border)
    with np.errstate(all="ignore"):
        behind = np.where(
            weight > 1e-6, blurred((1 - m) * colour, radius, sigma, border) / weight, colour
        )
    return fitted(m * colour + (1 - m) * behind, alpha, image.shape)


def replaced(image, background, mask):
    m = sampled(in_units(mask), image.shape[:2])[..., None].clip(0, 1)
    (colour, alpha), (other, other_alpha) = rgba_of(image), rgba_of(background)
    return fitted(m * colour + (1 - m) * other, m * alpha + (1 - m) * other_alpha, image.shape)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_the_background_is_blurred_by_its_own_colours(run, dtype):
    for shape in SHAPES:
        image, mask = picture(shape, dtype), picture(shape[:2], dtype, seed=8)
        params = {"radius": 3, "sigma": 1.5}
        got = run("background_blur", [image, mask], shape, dtype, **params)
        check(got, blurred_behind(image, mask, **params), tolerance=1e-5)
    image, mask = picture((40, 50, 3), dtype), picture((40, 50), dtype, seed=8)
    got = run("background_blur", [image, mask], image.shape, dtype)
    check(got, blurred_behind(image, mask, 15, 7.5), tolerance=1e-5)
    given = {"radius": 2, "sigma": 1, "border": "mirror"}
    got = run("background_blur", [image, mask], image.shape, dtype, **given)
    check(got, blurred_behind(image, mask, **given), tolerance=1e-5)


@pytest.mark.parametrize(
    ("given", "radius", "sigma"), [({"radius": 6}, 6, 3), ({"sigma": 1.5}, 5, 1.5)]
)
def test_radius_and_sigma_follow_from_each_other(run, given, radius, sigma):
    image, mask = picture((20, 25, 3), "u8"), picture((20, 25), "u8", seed=8)
    got = run("background_blur", [image, mask], image.shape, "u8", **given)
    check(got, blurred_behind(image, mask, radius, sigma), tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_the_background_is_replaced_by_the_mask(run, dtype):
    for shape in (*SHAPES, *KINDS):
        others = KINDS if shape in KINDS else [shape]
        for other in others:
            image, background = picture(shape, dtype), picture(other, dtype, seed=6)
            mask = picture(shape[:2], "u8", seed=8)
            got = run("background_replace", [image, background, mask], shape, dtype)
            check(got, replaced(image, background, mask))


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_masks_of_other_sizes_are_sampled(run, dtype):
    for size in ((4, 6), (1, 1), (20, 60), (9, 3)):
        mask = picture(size, dtype, seed=8)
        image, background = picture((9, 21, 3), "u8"), picture((9, 21, 3), "u8", seed=6)
        got = run("background_replace", [image, background, mask], image.shape, "u8")
        check(got, replaced(image, background, mask), tolerance=1e-5)
        params = {"radius": 2, "sigma": 1.0}
        got = run("background_blur", [image, mask], image.shape, "u8", **params)
        check(got, blurred_behind(image, mask, **params), tolerance=2e-5)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_person_all_over_leaves_the_image_as_it_was(run, dtype):
    for shape in KINDS:
        image = picture(shape, dtype)
        mask = np.full(shape[:2], 255 if dtype == "u8" else 1, image.dtype)
        got = run("background_blur", [image, mask], shape, dtype)
        np.testing.assert_array_equal(got, image)
        got = run("background_replace", [image, 1 - image, mask], shape, dtype)
        np.testing.assert_array_equal(got, image)


def test_nobody_leaves_the_background_alone(run):
    for shape in KINDS:
        image, background = picture(shape, "u8"), picture(shape, "u8", seed=6)
        mask = np.zeros(shape[:2], np.uint8)
        got = run("background_replace", [image, background, mask], shape, "u8")
        np.testing.assert_array_equal(got, background)
        got = run("background_blur", [image, mask], shape, "u8", radius=9, sigma=4.0)
        want = blurred(in_units(image), 9, 4.0, "clamp")
        if shape[2:] == (4,):
            want[..., 3] = in_units(image)[..., 3]
        check(got, want, tolerance=1e-5)


def test_a_person_does_not_smear_into_the_background(run):
    image, mask = np.full((20, 40, 3), 30, np.uint8), np.zeros((20, 40), np.uint8)
    image[5:15, 10:25], mask[5:15, 10:25] = 240, 255
    got = run("background_blur", [image, mask], image.shape, "u8")
    np.testing.assert_array_equal(got, image)


def test_masks_beyond_the_range_count_as_its_ends(run):
    image, background = picture((2, 2), "f32"), picture((2, 2), "f32", seed=6)
    mask = np.array([[-3, 0], [1, 7]], np.float32)
    got = run("background_replace", [image, background, mask], (2, 2), "f32")
    check(got, np.where(mask > 0.5, image, background).astype(float))


def test_backgrounds_convert_between_dtypes(run):
    image, mask = picture((9, 21, 4), "u8"), picture((9, 21), "f32", seed=8)
    params = {"radius": 2, "sigma": 1.0}
    got = run("background_blur", [image, mask], image.shape, "f32", **params)
    check(got, blurred_behind(image, mask, **params), tolerance=1e-5)


def test_backgrounds_are_changed_in_place(device):
    image, other = picture((9, 21, 4), "u8"), picture((9, 21, 4), "u8", seed=6)
    mask = picture((9, 21), "u8", seed=8)
    buffer = compute.from_numpy(image)
    compute.run_kernel(
        "background_replace", [buffer, *map(compute.from_numpy, (other, mask))], buffer
    )
    check(compute.read(buffer), replaced(image, other, mask))
    buffer = compute.from_numpy(image)
    compute.run_kernel("background_blur", [buffer, compute.from_numpy(mask)], buffer)
    check(compute.read(buffer), blurred_behind(image, mask, 15, 7.5), tolerance=1e-5)


def test_images_without_pixels_stay_so(run):
    nothing = np.zeros((0, 5, 3), np.uint8)
    for mask in (np.zeros((0, 5), np.uint8), np.zeros((4, 4), np.uint8)):
        assert run("background_blur", [nothing, mask], (0, 5, 3), "u8").size == 0
        assert run("background_replace", [nothing, nothing, mask], (0, 5, 3), "u8").size == 0


def test_another_sigma_is_not_compiled_anew(run, monkeypatch):
    image, mask = picture((9, 21, 4), "u8"), picture((4, 6), "u8", seed=8)
    first = run("background_blur", [image, mask], image.shape, "u8", radius=15, sigma=2.0)
    monkeypatch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
    again = run("background_blur", [image, mask], image.shape, "u8", radius=15, sigma=7.0)
    assert (again != first).any()


IMAGE, MASK = ((4, 4, 3), "u8"), ((4, 4), "u8")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"radius": -1}, "background_blur: radius is 0 to"),
        ({"sigma": 0}, "background_blur: sigma is a finite number above 0, not 0"),
        ({"border": "black"}, "background_blur: border 'black' is not known"),
        ({"color": 1}, "background_blur has no parameter 'color'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, params, words):
    said = fail(errors.ArgumentError, "background_blur", [IMAGE, MASK], IMAGE, **params)
    assert words in said


def test_buffers_that_do_not_fit_are_refused(fail):
    def refused(inputs, output=IMAGE):
        name = "background_blur" if len(inputs) == 2 else "background_replace"
        return fail(errors.ShapeError, name, inputs, output)

    bad = ((4, 4, 2), "u8")
    assert "background_blur: the image is u8 (4, 4, 2), which is not" in refused([bad, MASK])
    assert "the mask is u8 (4, 4, 2), which is not an image" in refused([IMAGE, bad])
    assert "the output is u8 (4, 4, 2), which is not an image" in refused([IMAGE, MASK], bad)
    assert "the background is u8 (4, 4, 2), which is not" in refused([IMAGE, bad, MASK])
    assert "the mask is (4, 4, 3), but it is gray" in refused([IMAGE, IMAGE])
    assert "with at least one pixel" in refused([IMAGE, ((0, 4), "u8")])
    assert "(4, 5, 3)" in refused([IMAGE, MASK], ((4, 5, 3), "u8"))
    said = refused([IMAGE, ((4, 5, 3), "u8"), MASK])
    assert "the background is (4, 5, 3): give one of the same height and width, made by" in said
