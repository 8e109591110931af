"""Filters of colours, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import LUMA, SHAPES, check, in_units, picture

from dala import errors
from dala.devices import using
from dala.gpu import compute
from dala.lang.lower import Definition


def luma(x):
    return (x @ LUMA)[..., None]


def hue_rotated(x, degrees):
    """As the filter effects of CSS give the matrix."""
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))

    def entry(still, with_cos, with_sin):
        return still + cos * with_cos + sin * with_sin

    matrix = [
        [entry(0.213, 0.787, -0.213), entry(0.715, -0.715, -0.715), entry(0.072, -0.072, 0.928)],
        [entry(0.213, -0.213, 0.143), entry(0.715, 0.285, 0.140), entry(0.072, -0.072, -0.283)],
        [entry(0.213, -0.213, -0.787), entry(0.715, -0.715, 0.715), entry(0.072, 0.928, 0.072)],
    ]
    return x @ np.array(matrix).T


def browned(x, amount):
    """As the filter effects of CSS give the matrix."""
    a = 1 - amount
    matrix = [
        [0.393 + 0.607 * a, 0.769 - 0.769 * a, 0.189 - 0.189 * a],
        [0.349 - 0.349 * a, 0.686 + 0.314 * a, 0.168 - 0.168 * a],
        [0.272 - 0.272 * a, 0.534 - 0.534 * a, 0.131 + 0.869 * a],
    ]
    return x @ np.array(matrix).T


def tone_mapped(x, exposure):
    return np.expm1(-exposure * x) / np.expm1(-exposure)


def darkened(x, intensity, radius, softness):
    height, width, _ = x.shape
    down = (np.arange(height)[:, None] + 0.5) / height - 0.5
    across = (np.arange(width) + 0.5) / width - 0.5
    t = ((np.hypot(down, across) - (radius - softness)) / softness).clip(0, 1)
    return x * (1 - intensity * (3 * t**2 - 2 * t**3))[..., None]


FORMULAS = [
    ("grayscale", {}, lambda x: np.repeat(luma(x), 3, -1)),
    ("brightness", {"value": 0.2}, lambda x: x + 0.2),
    ("brightness", {"value": -0.45}, lambda x: x - 0.45),
    ("contrast", {"value": 0.3}, lambda x: 1.3 * (x - 0.5) + 0.5),
    ("contrast", {"value": -1}, lambda x: 0 * x + 0.5),
    ("saturation", {"value": -0.4}, lambda x: luma(x) + 0.6 * (x - luma(x))),
    ("saturation", {"value": 1.5}, lambda x: luma(x) + 2.5 * (x - luma(x))),
    ("hue", {"degrees": 0}, lambda x: x),
    ("hue", {"degrees": 50}, lambda x: hue_rotated(x, 50)),
    ("hue", {"degrees": -3670.5}, lambda x: hue_rotated(x, -70.5)),
    ("gamma", {"value": 1}, lambda x: x),
    ("gamma", {"value": 2.2}, lambda x: x ** (1 / 2.2)),
    ("gamma", {"value": 0.3}, lambda x: x ** (1 / 0.3)),
    ("exposure", {"stops": 0.7}, lambda x: x * 2**0.7),
    ("exposure", {"stops": -2}, lambda x: x / 4),
    ("sepia", {}, lambda x: browned(x, 0.8)),
    ("sepia", {"intensity": 0}, lambda x: x),
    ("sepia", {"intensity": 1}, lambda x: browned(x, 1)),
    ("invert", {}, lambda x: 1 - x),
    ("hdr", {}, lambda x: tone_mapped(x, 1)),
    ("hdr", {"exposure": 6}, lambda x: tone_mapped(x, 6)),
    ("hdr", {"exposure": 1e-3}, lambda x: tone_mapped(x, 1e-3)),
    ("vignette", {}, lambda x: darkened(x, 0.5, 0.75, 0.45)),
    (
        "vignette",
        {"intensity": 1, "radius": 0.5, "softness": 0.1},
        lambda x: darkened(x, 1, 0.5, 0.1),
    ),
]
RUN_TIME = {
    "brightness": "value",
    "contrast": "value",
    "saturation": "value",
    "hue": "degrees",
    "gamma": "value",
    "exposure": "stops",
    "sepia": "intensity",
    "threshold": "value",
    "hdr": "exposure",
    "vignette": "radius",
    "sharpen": "amount",
    "blur": "sigma",
}


def filtered(image, formula):
    """What a filter makes of the colours of an image; alpha stays."""
    x = in_units(image)
    if image.ndim == 2:
        return luma(formula(np.repeat(x[..., None], 3, -1)))[..., 0]
    return np.concatenate([formula(x[..., :3]), x[..., 3:]], -1)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("name", "params", "formula"), FORMULAS)
def test_colours_follow_their_formula(run, name, params, formula, dtype):
    for shape in SHAPES:
        image = picture(shape, dtype)
        got = run(name, [image], shape, dtype, **params)
        check(got, filtered(image, formula))
        if shape[2:] == (4,):
            np.testing.assert_array_equal(got[..., 3], image[..., 3])


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_grayscale_fits_the_channels_of_its_output(run, dtype):
    image = picture((9, 21, 4), dtype)
    light = (in_units(image)[..., :3] @ LUMA)[..., None]
    check(run("grayscale", [image], (9, 21), dtype), light[..., 0])
    check(run("grayscale", [image], (9, 21, 3), dtype), np.repeat(light, 3, -1))
    gray = np.ascontiguousarray(image[..., 0])
    np.testing.assert_array_equal(run("grayscale", [gray], (9, 21), dtype), gray)
    wide = run("grayscale", [gray], (9, 21, 4), dtype)
    np.testing.assert_array_equal(wide[..., :3], np.repeat(gray[..., None], 3, -1))
    assert (wide[..., 3] == (255 if dtype == "u8" else 1)).all()


def test_grayscale_of_levels_is_the_nearest_level(run):
    edges = np.array([0, 1, 127, 128, 254, 255])
    corners = np.stack(np.meshgrid(edges, edges, edges), -1).reshape(1, -1, 3)
    colours = np.random.default_rng(9).integers(0, 256, (1, 60_000, 3))
    for image in (corners, colours):
        got = run("grayscale", [image.astype(np.uint8)], image.shape[:2], "u8")
        apart = np.abs(1000 * got.astype(int) - image @ [299, 587, 114])
        assert apart.max() <= 500


def test_brightness_of_levels_is_the_nearest_level(run):
    levels = np.arange(256)
    image = levels.astype(np.uint8).reshape(1, 256)
    for value in (*np.arange(-255, 256, 3) / 255, 0.1, -0.1, 0.499 / 255):
        got = run("brightness", [image], image.shape, "u8", value=value)
        want = (levels + float(value) * 255).clip(0, 255)
        assert np.abs(got[0] - want).max() <= 0.5 + 1e-4


def test_a_filter_with_a_table_runs_where_its_image_is(device):
    image = picture((9, 21, 3), "u8")
    buffer, output = compute.from_numpy(image), compute.buffer_zeros(image.shape, "u8")
    with using("cpu"):
        compute.run_kernel("gamma", [buffer], output, {"value": 2.2})
    check(compute.read(output), filtered(image, lambda x: x ** (1 / 2.2)))


def test_a_filter_converts_between_dtypes(run):
    image = picture((9, 21, 3), "u8")
    check(run("invert", [image], (9, 21, 3), "f32"), 1 - in_units(image))
    check(run("brightness", [image], (9, 21, 3), "f32", value=0.3), in_units(image) + 0.3)
    image = picture((9, 21, 3), "f32")
    check(run("invert", [image], (9, 21, 3), "u8"), 1 - in_units(image))
    check(run("brightness", [image], (9, 21, 3), "u8", value=0.3), in_units(image) + 0.3)


@pytest.mark.parametrize("value", [None, 0.2, 128 / 255])
def test_threshold_is_white_above_its_value(run, value):
    given = {} if value is None else {"value": value}
    for shape in SHAPES:
        for dtype in ("u8", "f32"):
            image = picture(shape, dtype)
            got = run("threshold", [image], shape, dtype, **given)
            limit = 0.5 if value is None else value
            check(got, filtered(image, lambda x, at=limit: 1.0 * (luma(x) > at) + 0 * x))


def test_threshold_is_black_at_its_value_itself(run):
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for level in range(256):
        got = run("threshold", [levels], (16, 16), "u8", value=level / 255)
        np.testing.assert_array_equal(got, np.where(levels > level, 255, 0))


def test_threshold_tells_the_nearest_colours_apart(run):
    weights = np.array([299, 587, 114])
    colours = np.random.default_rng(3).integers(0, 256, (4000, 3))
    colours = colours[np.argsort(colours @ weights)]
    lights = colours @ weights
    image = colours.astype(np.uint8)[None]
    for i in np.flatnonzero(np.diff(lights) == 1)[:20]:
        got = run("threshold", [image], image.shape[:2], "u8", value=lights[i] / 255_000)
        np.testing.assert_array_equal(got[0], np.where(lights > lights[i], 255, 0))


def test_gamma_of_what_is_below_black_is_black(run):
    image = np.array([[-0.5, -1e-9, 0, 0.25]], np.float32)
    got = run("gamma", [image], (1, 4), "f32", value=2)
    np.testing.assert_array_equal(got, [[0, 0, 0, 0.5]])


def test_colours_of_floats_may_leave_the_range(run):
    image = np.array([[-0.5, 0.0, 1.5]], np.float32)
    got = run("brightness", [image], (1, 3), "f32", value=1)
    np.testing.assert_array_equal(got, [[0.5, 1, 2.5]])


def test_colours_are_filtered_in_place(device):
    image = picture((9, 21, 4), "u8")
    for name, params, formula in FORMULAS:
        buffer = compute.from_numpy(image)
        compute.run_kernel(name, [buffer], buffer, params)
        check(compute.read(buffer), filtered(image, formula))


@pytest.mark.parametrize("name", RUN_TIME)
def test_another_value_is_not_compiled_anew(run, monkeypatch, name):
    image = picture((4, 5, 4), "u8")
    fixed = {"radius": 3} if name == "blur" else {}
    first = run(name, [image], image.shape, "u8", **fixed, **{RUN_TIME[name]: 0.3})
    monkeypatch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
    again = run(name, [image], image.shape, "u8", **fixed, **{RUN_TIME[name]: 0.9})
    assert (again != first).any()


def test_levels_in_a_pipeline_give_what_they_give_alone(run, device):
    image = picture((9, 21, 4), "u8")
    steps = [("brightness", -0.2), ("contrast", 0.3), ("brightness", 0.1), ("grayscale", None)]
    given = [(name, {} if value is None else {"value": value}) for name, value in steps]
    want = image
    for name, params in given:
        want = run(name, [want], image.shape, "u8", **params)
    pipeline, source = compute.pipeline(), compute.from_numpy(image)
    output = compute.buffer_zeros(image.shape, "u8")
    for i, (name, params) in enumerate(given):
        made = output if i == len(given) - 1 else compute.scratch(image.shape, "u8")
        pipeline.add(kernel=name, inputs=[source], output=made, params=params)
        source = made
    pipeline.run()
    np.testing.assert_allclose(compute.read(output), want, atol=0 if device == "cpu" else 1)


IMAGE = ((4, 4, 3), "u8")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("brightness", {}, "parameter 'value' is missing"),
        ("brightness", {"value": "much"}, "value is a finite number from -1 to 1, not 'much'"),
        ("contrast", {"value": "much"}, "is a number, not str"),
        ("hue", {}, "parameter 'degrees' is missing"),
        ("hue", {"degrees": "90"}, "hue: degrees is a finite number, not '90'"),
        ("hue", {"degrees": np.inf}, "degrees is a finite number, not inf"),
        ("gamma", {}, "parameter 'value' is missing"),
        ("gamma", {"value": 0}, "gamma: value is a finite number above 0, not 0"),
        ("gamma", {"value": np.nan}, "above 0, not nan"),
        ("sepia", {"intensity": 1.1}, "sepia: intensity is a finite number from 0 to 1, not 1.1"),
        ("sepia", {"intensity": None}, "from 0 to 1, not None"),
        ("threshold", {"value": np.nan}, "value is a finite number from 0 to 1, not nan"),
        ("hdr", {"exposure": 0}, "hdr: exposure is a finite number from 1e-06 to 1e+06, not 0"),
        ("vignette", {"intensity": -0.1}, "intensity is a finite number from 0 to 1, not -0.1"),
        ("vignette", {"radius": -1}, "vignette: radius is a finite number from 0 on, not -1"),
        ("vignette", {"softness": 0}, "softness is a finite number above 0, not 0"),
        ("vignette", {"softness": 10**400}, "softness is a finite number above 0"),
        ("invert", {"value": 1}, "invert takes no parameters"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, name, params, words):
    assert words in fail(errors.ArgumentError, name, [IMAGE], IMAGE, **params)


@pytest.mark.parametrize("name", ["grayscale", "sepia", "vignette"])
def test_buffers_that_are_no_images_are_refused(fail, name):
    for shape, dtype in (((4, 4, 2), "u8"), ((4,), "u8"), ((4, 4), "s32")):
        assert "which is not an image" in fail(errors.ShapeError, name, [(shape, dtype)], IMAGE)
    assert "(4, 5, 3)" in fail(errors.ShapeError, name, [IMAGE], ((4, 5, 3), "u8"))
