"""The picture that the project paints itself."""

from __future__ import annotations

import numpy as np
import pytest

from dala import errors
from dala.media.showcase import sample


def test_the_picture_is_the_same_each_time_and_opaque():
    first, second = sample.picture(120, 180), sample.picture(120, 180)
    assert first.shape == (120, 180, 4)
    assert first.dtype == np.uint8
    assert first.flags.c_contiguous
    assert (first[..., 3] == 255).all()
    np.testing.assert_array_equal(first, second)


def test_the_picture_has_something_for_every_filter():
    image = sample.picture(240, 360)
    levels = image[..., :3].astype(float)
    spread = levels.max(-1) - levels.min(-1)
    assert (levels.max(-1) < 40).any()
    assert (levels.min(-1) > 240).any()
    assert (spread > 200).mean() > 0.01  # saturated colors
    # Skin, by the usual bounds on Cb and Cr.
    cb = 128 + levels @ [-0.168736, -0.331264, 0.5]
    cr = 128 + levels @ [0.5, -0.418688, -0.081312]
    skin = (cb > 77) & (cb < 127) & (cr > 133) & (cr < 173)
    person = sample.person_mask(240, 360) > 128
    assert (skin & person).sum() > 0.08 * person.sum()


def test_other_sizes_show_the_same_picture():
    small, large = sample.picture(120, 180).astype(float), sample.picture(240, 360).astype(float)
    halved = large.reshape(120, 2, 180, 2, 4).mean((1, 3))
    assert np.abs(halved - small).mean() < 8
    assert sample.picture(200, 60).shape == (200, 60, 4)
    assert sample.picture(1, 1).shape == (1, 1, 4)
    assert sample.person_mask(1, 7).shape == (1, 7)


def test_the_mask_matches_the_person():
    image, screen, mask = (
        make(240, 360) for make in (sample.picture, sample.green_screen, sample.person_mask)
    )
    assert mask.dtype == np.uint8
    assert mask.shape == (240, 360)
    inside, outside = mask == 255, mask == 0
    assert 0.15 < inside.mean() < 0.45
    assert 0 < (~inside & ~outside).mean() < 0.05
    # The person is the same before both backgrounds, and nothing of her is outside of the mask.
    np.testing.assert_array_equal(image[inside], screen[inside])
    green = np.array(sample.SCREEN)
    assert np.abs(screen[outside][:, :3] - green).max() < 40
    assert not (np.abs(screen[inside][:, :3] - green).max(-1) < 40).any()


def test_the_cube_is_warm_and_red_varies_fastest(tmp_path):
    lines = sample.cube_text().splitlines()
    steps = int(next(line for line in lines if line.startswith("LUT_3D_SIZE")).split()[1])
    rows = [line for line in lines if line[:1].isdigit()]
    table = np.array([row.split() for row in rows], float).reshape(steps, steps, steps, 3)
    assert table.min() >= 0
    assert table.max() <= 1
    assert (np.diff(table[..., 0], axis=2) > 0).all()
    gray = table[steps // 2, steps // 2, steps // 2]
    assert gray[0] > gray[1] > gray[2]
    sample.write_cube(tmp_path / "a.cube")
    assert (tmp_path / "a.cube").read_text() == sample.cube_text()


@pytest.mark.parametrize("make", [sample.picture, sample.person_mask, sample.green_screen])
def test_a_size_that_is_none_is_refused(make):
    for height, width in ((0, 5), (5, -1), (2.0, 5), (True, 5), (5, 1 << 20), ("4", 5)):
        with pytest.raises(errors.ArgumentError, match=make.__name__):
            make(height, width)
