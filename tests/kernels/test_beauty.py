"""What is done to skin, and to nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import LUMA, SHAPES, check, in_units, picture
from kernels.test_smoothing import bilateral

from dala import errors

SKIN, BLUE, DARK = (0.85, 0.62, 0.50), (0.2, 0.35, 0.8), (0.12, 0.08, 0.07)


def smoothstep(low, high, x):
    t = ((x - low) / (high - low)).clip(0, 1)
    return t * t * (3 - 2 * t)


def beautified(x, strength):
    if x.ndim == 2:
        return x
    s = bilateral(x, 3, 0.2, 3.0)
    light = s[..., :3] @ LUMA
    blue, red = 0.5 + (s[..., 2] - light) / 1.772, 0.5 + (s[..., 0] - light) / 1.402
    skin = 1 - smoothstep(0.75, 1.25, np.hypot((blue - 0.4) / 0.1, (red - 0.6) / 0.08))
    made = x + strength * skin[..., None] * (0.2 * x * (1 - x) - 0.8 * (x - s))
    made[..., 3:] = x[..., 3:]
    return made


def face(dtype="f32"):
    """Skin with pores on the left, and in it an eye; blue with the same noise on the right."""
    image = np.empty((40, 60, 3))
    image[:, :30], image[:, 30:], image[15:25, 10:20] = SKIN, BLUE, DARK
    image += np.random.default_rng(2).normal(0, 0.03, image.shape)
    image = image.clip(0, 1).astype(np.float32)
    return image if dtype == "f32" else (image * 255).round().astype(np.uint8)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_beauty_follows_its_formula(run, dtype):
    for shape in SHAPES if dtype == "u8" else SHAPES[:2]:
        image = picture(shape, dtype)
        check(
            run("beauty", [image], shape, dtype), beautified(in_units(image), 0.3), tolerance=1e-5
        )
    image = face(dtype)
    for strength in (0.5, 1):
        got = run("beauty", [image], image.shape, dtype, strength=strength)
        check(got, beautified(in_units(image), strength), tolerance=1e-5)


def test_skin_gets_smoother_and_lighter(run):
    image = face()
    got = run("beauty", [image], image.shape, "f32", strength=0.8)
    skin = np.s_[2:12, 2:26]
    assert got[skin].std((0, 1)).max() < 0.7 * image[skin].std((0, 1)).min()
    lift = (got[skin] - image[skin]).mean((0, 1))
    assert (lift > 0.01).all()
    assert (lift < 0.06).all()


def test_edges_stay(run):
    image = face()
    got = run("beauty", [image], image.shape, "f32", strength=1)
    across = np.diff(got[18:22, 5:25].mean(0), axis=0)
    before = np.diff(image[18:22, 5:25].mean(0), axis=0)
    assert (np.abs(across).max(0) > 0.9 * np.abs(before).max(0)).all()
    eye = np.s_[16:24, 11:19]
    np.testing.assert_allclose(got[eye].mean(), image[eye].mean(), atol=0.02)


def test_what_is_not_skin_is_untouched(run):
    for dtype in ("u8", "f32"):
        image = face(dtype)
        got = run("beauty", [image], image.shape, dtype, strength=1)
        np.testing.assert_array_equal(got[:, 34:], image[:, 34:])
        gray = picture((9, 21), dtype)
        np.testing.assert_array_equal(run("beauty", [gray], gray.shape, dtype, strength=1), gray)


def test_no_strength_changes_nothing(run):
    for dtype in ("u8", "f32"):
        for image in (face(dtype), picture((9, 21, 4), dtype)):
            got = run("beauty", [image], image.shape, dtype, strength=0)
            np.testing.assert_array_equal(got, image)


def test_what_makes_no_sense_is_refused(fail):
    image = ((4, 4, 3), "u8")
    said = fail(errors.ArgumentError, "beauty", [image], image, strength=-0.1)
    assert "beauty: strength is a finite number from 0 to 1, not -0.1" in said
    assert "(4, 5, 3)" in fail(errors.ShapeError, "beauty", [image], ((4, 5, 3), "u8"))
    assert "not an image" in fail(errors.ShapeError, "beauty", [((4,), "u8")], image)
