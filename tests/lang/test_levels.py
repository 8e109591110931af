"""Pixels as they are stored."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute


@dala.kernel
def double(image: dala.Image):
    return image.levels.pixel * 2 - 100


@dala.kernel
def above_and_below(image: dala.Image):
    y, x = dala.position(2)
    return (image.levels[y - 1, x] + image.levels[y + 1, x]) // 2


def run(kernel, image, shape, dtype):
    out = compute.buffer_zeros(shape, dtype)
    compute.run_kernel(kernel, [compute.from_numpy(image)], out)
    return compute.read(out)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_levels_of_bytes_are_whole_numbers_that_are_clamped_when_stored(device, shape):
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    want = np.clip(image.astype(int) * 2 - 100, 0, 255)
    assert (run(double, image, shape, "u8") == want).all()


def test_levels_are_read_at_neighbours_too(device):
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    padded = np.pad(image, ((1, 1), (0, 0), (0, 0)), mode="edge").astype(int)
    assert (run(above_and_below, image, image.shape, "u8") == (padded[:-2] + padded[2:]) // 2).all()


def test_levels_become_units_in_an_image_of_floats(device):
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    want = (image.astype(int) * 2 - 100) / 255
    np.testing.assert_allclose(run(double, image, image.shape, "f32"), want, atol=1e-6)


def test_levels_of_colours_become_the_luma_of_a_gray_image(device):
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    levels = image.astype(int) * 2 - 100
    want = np.clip(levels @ [0.299, 0.587, 0.114], 0, 255)
    assert (np.abs(run(double, image, (5, 7), "u8") - want) <= 0.501).all()


def test_levels_of_floats_are_floats(device):
    @dala.kernel
    def halve(image: dala.Image):
        return image.levels.pixel * 0.5

    image = np.random.default_rng(0).random((5, 7, 4), np.float32)
    np.testing.assert_allclose(run(halve, image, image.shape, "f32"), image / 2)
