"""Filters of neighbourhoods, against their formulas on images with a rim."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import LUMA, SHAPES, check, in_units, picture

from dala import errors
from dala.gpu import compute
from dala.kernels.image import blurs

RIMS = {
    "clamp": "edge",
    "mirror": "reflect",
    "reflect": "symmetric",
    "wrap": "wrap",
    "zero": "constant",
}
"""What NumPy calls the border rules."""


def shifted(x, reach, border):
    """The image shifted by each offset (down, across) of up to the reach."""
    rim = [(reach, reach), (reach, reach)] + [(0, 0)] * (x.ndim - 2)
    padded = np.pad(x, rim, mode=RIMS[border])
    height, width = x.shape[:2]
    return lambda down, across: padded[
        reach + down : reach + down + height, reach + across : reach + across + width
    ]


def weighed(x, weights, border):
    """Weighted sums down, then across."""
    reach = len(weights) // 2
    at = shifted(x, reach, border)
    x = sum(w * at(k - reach, 0) for k, w in enumerate(weights))
    at = shifted(x, reach, border)
    return sum(w * at(0, k - reach) for k, w in enumerate(weights))


def blurred(x, radius, sigma, border):
    weights = np.exp(-(np.arange(-radius, radius + 1.0) ** 2) / (2 * sigma**2))
    return weighed(x, weights / weights.sum(), border)


def boxed(x, radius, border):
    return weighed(x, np.full(2 * radius + 1, 1 / (2 * radius + 1)), border)


def extreme(x, radius, border, better):
    at = shifted(x, radius, border)
    offsets = range(-radius, radius + 1)
    rows = better.reduce([at(0, k) for k in offsets])
    at = shifted(rows, radius, border)
    return better.reduce([at(k, 0) for k in offsets])


def sharpened(x, amount, border):
    at = shifted(x, 1, border)
    return x + amount * (4 * x - at(-1, 0) - at(1, 0) - at(0, -1) - at(0, 1))


def slope(x, border):
    at = shifted(x if x.ndim == 2 else x[..., :3] @ LUMA, 1, border)
    across = sum(w * (at(k, 1) - at(k, -1)) for k, w in ((-1, 1), (0, 2), (1, 1)))
    down = sum(w * (at(1, k) - at(-1, k)) for k, w in ((-1, 1), (0, 2), (1, 1)))
    return np.hypot(across, down)


def edges(x, border):
    found = slope(x, border)
    if x.ndim == 2:
        return found
    return np.concatenate([np.repeat(found[..., None], 3, -1), x[..., 3:]], -1)


FORMULAS = [
    ("blur", {}, lambda x, border: blurred(x, 3, 1.5, border)),
    ("blur", {"radius": 1, "sigma": 0.6}, lambda x, border: blurred(x, 1, 0.6, border)),
    ("blur", {"radius": 9, "sigma": 4}, lambda x, border: blurred(x, 9, 4, border)),
    ("blur", {"radius": 33, "sigma": 14}, lambda x, border: blurred(x, 33, 14, border)),
    ("box_blur", {}, lambda x, border: boxed(x, 1, border)),
    ("box_blur", {"radius": 4}, lambda x, border: boxed(x, 4, border)),
    ("box_blur", {"radius": 40}, lambda x, border: boxed(x, 40, border)),
    ("sharpen", {}, lambda x, border: sharpened(x, 0.5, border)),
    ("sharpen", {"amount": -0.125}, lambda x, border: sharpened(x, -0.125, border)),
    ("edge_detect", {}, edges),
    ("erode", {}, lambda x, border: extreme(x, 1, border, np.minimum)),
    ("erode", {"radius": 3}, lambda x, border: extreme(x, 3, border, np.minimum)),
    ("erode", {"radius": 18}, lambda x, border: extreme(x, 18, border, np.minimum)),
    ("dilate", {}, lambda x, border: extreme(x, 1, border, np.maximum)),
    ("dilate", {"radius": 2}, lambda x, border: extreme(x, 2, border, np.maximum)),
    ("dilate", {"radius": 18}, lambda x, border: extreme(x, 18, border, np.maximum)),
]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_neighbourhoods_follow_their_formula(run, name, params, formula, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        got = run(name, [image], shape, dtype, **params)
        check(
            got,
            formula(in_units(image), "clamp"),
            tolerance=allowed(name, dtype, params.get("radius", 1)),
        )


def allowed(name: str, dtype: str, radius: int = 1) -> float:
    """How far a result may be from the exact one: blurs of u8 keep 7 bits of a level's fraction.

    Of large boxes they keep fewer.
    """
    if dtype != "u8" or not name.endswith("blur"):
        return 2e-6
    is_large = name == "box_blur" and radius > 10
    return ((2 * radius + 1) / 512 if is_large else 0.03) / 255


@pytest.mark.parametrize("radius", [1, 3, 7])
@pytest.mark.parametrize("level", [0, 1, 127, 254, 255])
@pytest.mark.parametrize("name", ["blur", "box_blur"])
def test_what_is_flat_stays_flat(run, name, level, radius):
    image = np.full((9, 21, 4), level, np.uint8)
    np.testing.assert_array_equal(run(name, [image], image.shape, "u8", radius=radius), image)


@pytest.mark.parametrize("border", RIMS)
@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_borders_are_as_asked_for(run, name, params, formula, border):
    for shape in ((1, 1, 3), (2, 21), (1, 5, 3), (23, 37, 4)):
        image = picture(shape, "f32")
        got = run(name, [image], shape, "f32", **params, border=border)
        check(got, formula(in_units(image), border), tolerance=2e-6)


@pytest.mark.parametrize("name", ["blur", "box_blur", "erode", "dilate"])
def test_a_radius_of_zero_changes_nothing(run, name):
    for shape in SHAPES:
        for dtype in ("u8", "f32"):
            image = picture(shape, dtype)
            np.testing.assert_array_equal(run(name, [image], shape, dtype, radius=0), image)


@pytest.mark.parametrize("name", ["blur", "box_blur", "sharpen", "erode", "dilate"])
def test_alpha_is_a_channel_like_others(run, name):
    image = picture((9, 21, 4), "u8")
    swapped = np.ascontiguousarray(image[..., ::-1])
    got = run(name, [image], image.shape, "u8")
    np.testing.assert_array_equal(run(name, [swapped], image.shape, "u8")[..., ::-1], got)


def test_loops_give_what_is_written_out(run, monkeypatch):
    image = picture((23, 37, 3), "f32")
    written = run("blur", [image], image.shape, "f32", radius=7, sigma=3)
    monkeypatch.setattr(blurs, "MOST_TAPS", 0)
    looped = run("blur", [image], image.shape, "f32", radius=7, sigma=3)
    np.testing.assert_allclose(looped, written, atol=1e-6)


def test_a_vanishing_sigma_changes_nothing_and_a_huge_one_is_a_mean(run):
    image = picture((9, 21), "f32")
    got = run("blur", [image], image.shape, "f32", sigma=1e-300)
    np.testing.assert_array_equal(got, image)
    got = run("blur", [image], image.shape, "f32", radius=2, sigma=1e300)
    check(got, boxed(in_units(image), 2, "clamp"))


@pytest.mark.parametrize("border", RIMS)
def test_extremes_of_any_radius_are_those_of_one_window(run, border):
    """Signs of both kinds: a zero outside is then neither the least nor the greatest of all."""
    for shape in ((23, 4), (9, 11)):
        image = np.random.default_rng(7).normal(0, 1, shape).astype(np.float32)
        for radius in range(14):
            for name, better in (("erode", np.minimum), ("dilate", np.maximum)):
                got = run(name, [image], shape, "f32", radius=radius, border=border)
                np.testing.assert_array_equal(got, extreme(image, radius, border, better))


@pytest.mark.parametrize("name", ["erode", "dilate"])
def test_extremes_reach_over_the_whole_image(run, name):
    image = picture((23, 37, 3), "u8")
    want = (image.min if name == "erode" else image.max)((0, 1))
    got = run(name, [image], image.shape, "u8", radius=1 << 20)
    np.testing.assert_array_equal(got, np.broadcast_to(want, image.shape))


def test_edges_fit_the_channels_of_their_output(run):
    image = picture((9, 21, 4), "u8")
    want = slope(in_units(image), "clamp")
    check(run("edge_detect", [image], (9, 21), "u8"), want)
    check(run("edge_detect", [image], (9, 21), "f32"), want, tolerance=2e-6)
    got = run("edge_detect", [image], (9, 21, 3), "u8")
    check(got, np.repeat(want[..., None], 3, -1))


@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_neighbourhoods_convert_between_dtypes(run, name, params, formula):
    for given, made in (("u8", "f32"), ("f32", "u8")):
        image = picture((9, 21, 4), given)
        got = run(name, [image], image.shape, made, **params)
        check(got, formula(in_units(image), "clamp"), tolerance=2e-6)


def test_neighbourhoods_are_filtered_in_place(device):
    image = picture((9, 21, 4), "u8")
    for name, params, formula in FORMULAS:
        buffer = compute.from_numpy(image)
        compute.run_kernel(name, [buffer], buffer, params)
        tolerance = allowed(name, "u8", params.get("radius", 1))
        check(compute.read(buffer), formula(in_units(image), "clamp"), tolerance=tolerance)


def test_images_without_pixels_stay_so(run):
    for name, params, _ in FORMULAS:
        assert run(name, [np.zeros((0, 5, 3), np.uint8)], (0, 5, 3), "u8", **params).size == 0


IMAGE = ((4, 4, 3), "u8")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("blur", {"radius": -1}, "blur: radius is 0 to 1048576, not -1"),
        ("blur", {"radius": 1 << 30}, "radius is 0 to 1048576"),
        ("blur", {"radius": 1.5}, "blur: radius is an integer, not 1.5"),
        ("blur", {"sigma": 0}, "blur: sigma is a finite number above 0, not 0"),
        ("blur", {"sigma": "wide"}, "above 0, not 'wide'"),
        ("box_blur", {"radius": None}, "box_blur: radius is an integer, not None"),
        ("box_blur", {"border": "black"}, "box_blur: border 'black' is not known: give clamp, "),
        ("sharpen", {"amount": "much"}, "sharpen: amount is a finite number, not "),
        ("sharpen", {"border": 0}, "sharpen: border 0 is not known: give clamp, mirror, reflect"),
        ("edge_detect", {"border": None}, "edge_detect: border None is not known"),
        ("erode", {"radius": True}, "erode: radius is an integer, not True"),
        ("dilate", {"radius": -3}, "dilate: radius is 0 to"),
        ("dilate", {"size": 3}, "dilate has no parameter 'size'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, name, params, words):
    assert words in fail(errors.ArgumentError, name, [IMAGE], IMAGE, **params)


@pytest.mark.parametrize("name", sorted({name for name, *_ in FORMULAS}))
def test_buffers_that_do_not_fit_are_refused(fail, name):
    for shape, dtype in (((4, 4, 2), "u8"), ((4,), "u8"), ((4, 4), "s32")):
        for image, output in (((shape, dtype), IMAGE), (IMAGE, (shape, dtype))):
            assert "which is not an image" in fail(errors.ShapeError, name, [image], output)
    assert "(4, 5, 3)" in fail(errors.ShapeError, name, [IMAGE], ((4, 5, 3), "u8"))
    if name != "edge_detect":
        assert "(4, 4)" in fail(errors.ShapeError, name, [IMAGE], ((4, 4), "u8"))
