"""Layers over images, against the W3C's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.layers import MODES, added, composed, placed
from kernels.pictures import SHAPES, check, in_units, picture

from dala import errors
from dala.gpu import compute
from dala.lang.lower import Definition

KINDS = [(9, 21), (9, 21, 3), (9, 21, 4)]
PLACES = [(0, 0), (3, -2), (-4, 5), (20, 8), (21, 0), (0, 9), (-7, 0), (10**12, -(10**12))]


def pair(shape, layer_shape, dtype):
    """An image and a layer with transparent and opaque pixels in all combinations."""
    image, layer = picture(shape, dtype), picture(layer_shape, dtype, seed=6)
    full = 255 if dtype == "u8" else 1
    for given, ends in ((image, (0, full, 0, full)), (layer, (0, 0, full, full))):
        if given.shape[2:] == (4,):
            count = given[0, :4, 3].size
            given[0, :4, 3] = ends[:count]
    return image, layer


def near(got, want, tolerance=3e-6):
    """As `check`; where the mode divides by little, what f32 can tell."""
    check(got, want, tolerance=tolerance)


@pytest.mark.parametrize("mode", [*MODES, "add"])
def test_modes_follow_the_formula(run, mode):
    for shape, layer_shape, dtype in (
        ((33, 65, 4), (33, 65, 4), "u8"),
        ((33, 65, 4), (33, 65, 4), "f32"),
        ((9, 21, 3), (9, 21, 4), "u8"),
        ((9, 21), (9, 21, 3), "u8"),
    ):
        image, layer = pair(shape, layer_shape, dtype)
        for alpha in (0.5, 1, 0, 0.2):
            got = run("blend", [image, layer], shape, dtype, mode=mode, alpha=alpha)
            formula = MODES.get(mode)
            if formula is None:
                near(got, added(image, layer, alpha))
            else:
                near(got, composed(image, layer, formula, alpha))
            if alpha == 0:
                np.testing.assert_array_equal(got, image)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_images_and_layers_of_any_kind_are_blended(run, dtype):
    for shape in KINDS:
        for other in KINDS:
            image, layer = pair(shape, other, dtype)
            got = run("blend", [image, layer], shape, dtype, mode="multiply", alpha=0.7)
            near(got, composed(image, layer, MODES["multiply"], 0.7))
    for shape in SHAPES:
        image, layer = pair(shape, shape, dtype)
        near(
            run("blend", [image, layer], shape, dtype), composed(image, layer, MODES["normal"], 0.5)
        )


def test_blending_converts_between_dtypes(run):
    image, layer = picture((9, 21, 3), "u8"), picture((9, 21, 4), "f32")
    want = composed(image, layer, MODES["screen"], 0.5)
    near(run("blend", [image, layer], (9, 21, 3), "f32", mode="screen"), want)
    near(run("blend", [image, layer], (9, 21, 3), "u8", mode="screen"), want)


def test_modes_at_the_ends_of_the_range_are_exact(run):
    levels = np.array([0, 1, 127, 128, 254, 255], np.uint8)
    image, layer = (grid.copy() for grid in np.meshgrid(levels, levels))
    for mode in ("color-dodge", "color-burn", "divide", "soft-light"):
        got = run("blend", [image, layer], image.shape, "u8", mode=mode, alpha=1)
        near(got, composed(image, layer, MODES[mode], 1))


def test_modes_are_known_by_both_spellings(run):
    image, layer = picture((5, 7), "u8"), picture((5, 7), "u8", seed=6)
    one, other = (
        run("blend", [image, layer], (5, 7), "u8", mode=mode)
        for mode in ("soft-light", "soft_light")
    )
    np.testing.assert_array_equal(one, other)


def test_dissolve_takes_a_share_of_the_pixels_whole(run):
    image, layer = np.zeros((64, 200, 4), np.uint8), np.full((64, 200, 4), 255, np.uint8)
    image[..., 3] = 255
    shown = np.zeros((64, 200), bool)
    for alpha in (0, 0.1, 0.5, 0.9, 1):
        got = run("blend", [image, layer], image.shape, "u8", mode="dissolve", alpha=alpha)
        assert set(np.unique(got[..., 0])) <= {0, 255}
        assert (got[..., 3] == 255).all()
        now = got[..., 0] == 255
        assert abs(now.mean() - alpha) < 0.02
        assert (now | ~shown).all(), "more alpha never hides what was shown"
        for axis in (0, 1):
            assert abs(now.mean(axis) - alpha).max() < 0.35
        shown = now


def test_dissolve_is_the_same_on_every_device(run):
    image, layer = np.zeros((2, 8), np.uint8), np.full((2, 8), 255, np.uint8)
    got = run("blend", [image, layer], (2, 8), "u8", mode="dissolve", alpha=0.5)
    mixed = (np.arange(2)[:, None] * 0x9E3779B1 + np.arange(8)) % 2**32
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 1)):
        mixed = (mixed ^ (mixed >> shift)) * factor % 2**32
    np.testing.assert_array_equal(got == 255, (mixed >> 8) / 2**24 < 0.5)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_a_layer_lies_where_it_is_put(run, dtype):
    for shape, layer_shape in (
        ((9, 21, 4), (4, 7, 4)),
        ((9, 21, 3), (4, 7, 4)),
        ((9, 21), (4, 7, 3)),
        ((9, 21, 4), (4, 7)),
        ((3, 5, 3), (12, 11, 4)),
    ):
        image, layer = pair(shape, layer_shape, dtype)
        for x, y in PLACES if layer_shape == (4, 7, 4) else PLACES[:3]:
            whole = placed(layer, shape, x, y)
            got = run("overlay", [image, layer], shape, dtype, x=x, y=y, alpha=0.8)
            near(got, composed(image, whole, MODES["normal"], 0.8))
            untouched = whole[..., 3] == 0
            np.testing.assert_array_equal(got[untouched], image[untouched])


def test_an_opaque_layer_hides_the_image(run):
    for shape in SHAPES:
        image, layer = picture(shape, "u8"), picture(shape[:2], "u8", seed=6)
        got = run("overlay", [image, layer], shape, "u8")
        want = placed(layer, shape, 0, 0)
        np.testing.assert_array_equal(
            in_units(got).reshape(*shape[:2], -1), want[..., : got[0, 0].size]
        )


def test_layers_are_put_on_in_place(device):
    image, layer = pair((9, 21, 4), (9, 21, 4), "u8")
    for kernel, alpha in (("blend", 0.5), ("overlay", 1)):
        for shared in (0, 1):
            buffers = [compute.from_numpy(image.copy()), compute.from_numpy(layer.copy())]
            compute.run_kernel(kernel, buffers, buffers[shared])
            near(compute.read(buffers[shared]), composed(image, layer, MODES["normal"], alpha))


def test_images_without_pixels_stay_so(run):
    for shape in ((0, 5, 3), (5, 0)):
        nothing = np.zeros(shape, np.uint8)
        assert run("blend", [nothing, nothing], shape, "u8").size == 0
        assert run("overlay", [nothing, picture((4, 4, 4), "u8")], shape, "u8").size == 0
        image = picture((4, 4, 4), "u8")
        np.testing.assert_array_equal(run("overlay", [image, nothing], (4, 4, 4), "u8"), image)


def test_another_place_is_not_compiled_anew(run, monkeypatch):
    image, layer = pair((9, 21, 4), (4, 7, 4), "u8")
    first = run("overlay", [image, layer], image.shape, "u8", x=1)
    half = run("blend", [image, image], image.shape, "u8", mode="multiply")
    monkeypatch.setattr(Definition, "lower", lambda *_: pytest.fail("it was compiled again"))
    second = run("overlay", [image, layer], image.shape, "u8", x=2, y=3, alpha=0.4)
    whole = run("blend", [image, image], image.shape, "u8", mode="multiply", alpha=0.9)
    assert (second != first).any()
    assert (whole != half).any()


IMAGE = ((4, 4, 3), "u8")


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("overlay", {"x": 1.5}, "overlay: x is an integer, not 1.5"),
        ("overlay", {"y": None}, "overlay: y is an integer, not None"),
        ("overlay", {"alpha": 1.1}, "alpha is a finite number from 0 to 1, not 1.1"),
        ("blend", {"alpha": -0.1}, "blend: alpha is a finite number from 0 to 1, not -0.1"),
        ("blend", {"mode": "glow"}, "blend: mode 'glow' is not known: give normal, multiply, "),
        ("blend", {"mode": 3}, "mode 3 is not known"),
        ("blend", {"mode": ["add"]}, "mode ['add'] is not known"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fail, name, params, words):
    assert words in fail(errors.ArgumentError, name, [IMAGE, IMAGE], IMAGE, **params)


@pytest.mark.parametrize("name", ["overlay", "blend"])
def test_buffers_that_do_not_fit_are_refused(fail, name):
    bad = ((4, 4, 2), "u8")
    for inputs, output, what in (
        ([bad, IMAGE], IMAGE, "the image"),
        ([IMAGE, bad], IMAGE, "the layer"),
        ([IMAGE, IMAGE], bad, "the output"),
    ):
        said = fail(errors.ShapeError, name, inputs, output)
        assert f"{name}: {what} is u8 (4, 4, 2), which is not an image" in said
    assert "(4, 4)" in fail(errors.ShapeError, name, [IMAGE, IMAGE], ((4, 4), "u8"))
    if name == "blend":
        said = fail(errors.ShapeError, name, [IMAGE, ((4, 5, 3), "u8")], IMAGE)
        assert "the layer is (4, 5, 3): give one of the same height and width" in said
