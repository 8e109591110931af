"""Blurs of any radius and how exact they are; their formulas are held against everywhere else."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import check, in_units, picture
from kernels.test_neighbourhoods import RIMS, blurred, boxed

from dala import errors
from dala.gpu import compute
from dala.kernels.image import blurs, wide_blurs

LEVEL = 1 / 255


def stripes(shape, dtype="u8"):
    """White and black in turn, ever wider: edges on which wrong weights show."""
    y, x = np.indices(shape[:2])
    image = ((np.sqrt(y * y + 3 * x * x) / 3).astype(int) % 2).astype(np.float32)
    image = np.repeat(image[..., None], shape[2], -1) if len(shape) == 3 else image
    return (image * 255).astype(np.uint8) if dtype == "u8" else image


SPREADS = [
    ({}, 3, 1.5),
    ({"radius": 0}, 0, 0.5),
    ({"radius": 1}, 1, 0.5),
    ({"radius": 7}, 7, 3.5),
    ({"radius": 60}, 60, 30),
    ({"sigma": 0.2}, 1, 0.2),
    ({"sigma": 4.1}, 13, 4.1),
    ({"radius": None, "sigma": 2}, 6, 2),
    ({"radius": 12, "sigma": 1.5}, 12, 1.5),
]
"""What is given of a blur, and the radius and the sigma that it then has."""


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("given", "radius", "sigma"), SPREADS)
def test_radius_and_sigma_follow_from_each_other(run, dtype, given, radius, sigma):
    image = stripes((61, 67), dtype)
    got = run("blur", [image], image.shape, dtype, **given)
    check(got, blurred(in_units(image), radius, sigma, "clamp"), tolerance=0.5 * LEVEL)
    whole = run("blur", [image], image.shape, dtype, radius=radius, sigma=sigma)
    np.testing.assert_array_equal(got, whole)


@pytest.mark.parametrize(("given", "radius", "sigma"), SPREADS)
def test_a_stage_of_a_pipeline_follows_from_what_it_is_given(device, given, radius, sigma):
    image = compute.from_numpy(stripes((31, 37, 4)))
    out, want = (compute.buffer_zeros(image.shape, "u8") for _ in range(2))
    pipeline = compute.pipeline().add(kernel="blur", inputs=[image], output=out, params=given)
    pipeline.run()
    compute.run_kernel("blur", [image], want, {"radius": radius, "sigma": sigma})
    np.testing.assert_array_equal(compute.read(out), compute.read(want))
    sigma = 2.5
    compute.run_kernel("blur", [image], want, {**given, "sigma": sigma})
    pipeline.run({"blur": {"sigma": sigma}})
    np.testing.assert_array_equal(compute.read(out), compute.read(want))
    pipeline.set("blur", sigma=sigma).run()
    np.testing.assert_array_equal(compute.read(out), compute.read(want))


def test_a_sigma_whose_radius_would_be_too_large_is_refused(fail):
    image = ((4, 4, 3), "u8")
    said = fail(errors.ArgumentError, "blur", [image], image, sigma=1e9)
    assert "blur: sigma = 1000000000.0 makes the radius 3 · sigma" in said
    assert "at most 1048576" in said
    assert "give a smaller sigma, or a radius too" in said


@pytest.mark.parametrize("border", RIMS)
def test_far_weights_are_put_together_of_tents(run, border):
    shape, sigma = (61, 67, 3), 21
    step, _ = wide_blurs._tents(64, sigma, 255, blurs.current_device())
    assert step > 1
    for image in (stripes(shape, "f32"), picture(shape, "f32")):
        got = run("blur", [image], shape, "f32", radius=64, sigma=sigma, border=border)
        want = blurred(in_units(image), 64, sigma, border)
        check(got, want, tolerance=0.4 * LEVEL)


def test_tents_change_no_image_by_more_than_they_may():
    for radius, sigma in ((64, 21), (100, 33), (300, 100), (1000, 300)):
        curve = wide_blurs._curve(radius, sigma)
        step, kept = wide_blurs._tents(radius, sigma, 255, blurs.current_device())
        tent = np.maximum(1 - np.abs(np.arange(1 - step, step)) / step, 0) / step
        weights = np.zeros(2 * step * (kept.shape[0] - 1) + 1)
        half = np.asarray(kept)
        weights[::step] = np.concatenate([half[:0:-1], half])
        made = np.convolve(weights, tent)
        wanted = np.concatenate([curve[:0:-1], curve])
        spare = (len(made) - len(wanted)) // 2
        made = made[spare:-spare] if spare > 0 else np.pad(made, -spare)
        assert made.sum() == pytest.approx(1, abs=1e-3)
        assert np.abs(made - wanted).sum() * 255 / 2 <= 0.2 + 0.001


def test_weights_that_are_cut_off_where_they_are_large_are_all_computed(run):
    """Nothing but every tap gives the edge of such a window."""
    image = stripes((41, 43), "f32")
    got = run("blur", [image], image.shape, "f32", radius=36, sigma=80)
    check(got, blurred(image.astype(float), 36, 80, "clamp"), tolerance=3e-6)


@pytest.mark.parametrize(("radius", "sigma"), [(100, 1.5), (1 << 20, 0.4), (500, 1e-300)])
def test_weights_too_small_to_show_are_left_out(run, radius, sigma):
    for dtype in ("u8", "f32"):
        image = picture((9, 21, 3), dtype)
        got = run("blur", [image], image.shape, dtype, radius=radius, sigma=sigma)
        want = blurred(in_units(image), 12, max(sigma, 1e-3), "clamp")
        check(got, want, tolerance=0.05 * LEVEL if dtype == "u8" else 2e-6)


@pytest.mark.parametrize(("radius", "sigma"), [(12, 5), (32, 11), (32, 200), (4, 0.25)])
def test_blurs_of_u8_stay_within_half_a_level(run, radius, sigma):
    for image in (stripes((45, 70, 4)), picture((37, 51), "u8")):
        got = run("blur", [image], image.shape, "u8", radius=radius, sigma=sigma)
        exact = blurred(in_units(image), radius, sigma, "clamp")
        check(got, exact, tolerance=0.5 * LEVEL)
        assert np.abs(got - exact * 255).mean() < 0.3


@pytest.mark.parametrize("radius", [1, 2, 5, 7])
def test_boxes_of_u8_are_rounded_exactly(run, radius):
    for image in (stripes((33, 50, 4)), picture((37, 51), "u8")):
        got = run("box_blur", [image], image.shape, "u8", radius=radius)
        np.testing.assert_array_equal(got, np.rint(boxed(in_units(image), radius, "clamp") * 255))


@pytest.mark.parametrize("radius", [8, 12, 30])
def test_boxes_are_put_together_of_blocks(run, radius):
    """25 has no rest, 17 and 61 have one."""
    for border in ("clamp", "zero", "wrap"):
        image = picture((23, 37, 4), "f32")
        got = run("box_blur", [image], image.shape, "f32", radius=radius, border=border)
        check(got, boxed(in_units(image), radius, border), tolerance=3e-6)


@pytest.mark.parametrize("border", ["clamp", "zero", "wrap"])
@pytest.mark.parametrize("radius", [9, 11, 16, 20, 33, 50])
def test_large_boxes_of_u8_lose_little_of_a_level(run, radius, border):
    for image in (stripes((63, 70, 4)), picture((57, 61), "u8"), picture((64, 81, 3), "u8")):
        got = run("box_blur", [image], image.shape, "u8", radius=radius, border=border)
        exact = boxed(in_units(image), radius, border)
        check(got, exact, tolerance=(2 * radius + 1) / 512 * LEVEL)


@pytest.mark.parametrize("radius", [11, 20, 50])
@pytest.mark.parametrize("level", [0, 1, 77, 254, 255])
def test_large_boxes_keep_what_is_flat(run, radius, level):
    image = np.full((60, 70, 3), level, np.uint8)
    assert np.array_equal(run("box_blur", [image], image.shape, "u8", radius=radius), image)


def test_boxes_far_larger_than_the_image_are_its_mean_where_it_wraps(run):
    image = picture((5, 7), "f32")
    got = run("box_blur", [image], image.shape, "f32", radius=35 * 20, border="wrap")
    np.testing.assert_allclose(got, image.mean(), atol=1e-3)


# -- premultiplied ---------------------------------------------------------------------------------

FILTERS = [
    ("blur", {}),
    ("box_blur", {}),
    ("sharpen", {}),
    ("unsharp", {}),
    ("denoise", {}),
    ("bilateral", {}),
    ("median", {}),
    ("erode", {}),
    ("dilate", {}),
]


def see_through(dtype):
    """An image with an area of no alpha at all, whose colour must not show."""
    image = picture((13, 21, 4), "f32")
    image[..., 3] = np.linspace(0.2, 1, 21)
    image[3:10, 5:12] = (1, 0, 1, 0)
    return (image * 255).round().astype(np.uint8) if dtype == "u8" else image


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("name", "params"), FILTERS)
def test_colours_count_for_as_much_as_they_are_opaque(run, name, params, dtype):
    image = see_through(dtype)
    given = in_units(image)
    multiplied = np.concatenate([given[..., :3] * given[..., 3:], given[..., 3:]], -1)
    plain = run(name, [multiplied.astype(np.float32)], image.shape, "f32", **params)
    alpha = plain[..., 3:].astype(float)
    colours = np.divide(plain[..., :3], alpha, where=alpha > 0, out=np.zeros_like(plain[..., :3]))
    want = np.concatenate([colours, alpha], -1)
    got = run(name, [image], image.shape, dtype, **params, premultiply=True)
    check(got, want, tolerance=1e-4)
    if name == "blur":
        assert (got[6, 8] == 0).all()
        hidden = image.copy()
        hidden[3:10, 5:12, :3] = 0
        np.testing.assert_array_equal(
            run(name, [hidden], image.shape, dtype, premultiply=True, **params), got
        )


@pytest.mark.parametrize(("name", "params"), FILTERS)
def test_images_without_alpha_have_nothing_to_multiply(run, name, params):
    for shape in ((6, 9), (6, 9, 3)):
        image = picture(shape, "u8")
        plain = run(name, [image], shape, "u8", **params)
        got = run(name, [image], shape, "u8", **params, premultiply=True)
        np.testing.assert_array_equal(got, plain)


def test_premultiplied_filters_may_write_over_their_input(device):
    for name, params in FILTERS:
        image = compute.from_numpy(see_through("u8"))
        want = compute.buffer_zeros(image.shape, "u8")
        compute.run_kernel(name, [image], want, {**params, "premultiply": True})
        compute.run_kernel(name, [image], image, {**params, "premultiply": True})
        np.testing.assert_array_equal(compute.read(image), compute.read(want))


def test_premultiply_is_true_or_false(fail):
    image = ((4, 4, 4), "u8")
    for name, _ in FILTERS:
        said = fail(errors.ArgumentError, name, [image], image, premultiply=1)
        assert f"{name}: premultiply is True or False, not 1" in said
        other = ((4, 5, 4), "u8")
        assert "(4, 5, 4)" in fail(errors.ShapeError, name, [image], other, premultiply=True)
