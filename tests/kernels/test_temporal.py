"""Kernels over a frame and those before it, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.pictures import SHAPES, check, in_units, picture

from dala.gpu import compute
from dala.kernels.image.temporal import AT_ONCE, mean_stages, mix_frames, settle, store


def run(kernel, arrays, dtype, **params):
    output = compute.buffer_zeros(arrays[0].shape, dtype)
    kernel.run([compute.from_numpy(item) for item in arrays], output, params)
    return np.array(output)


def mean(arrays, dtype):
    output = compute.buffer_zeros(arrays[0].shape, dtype)
    for stage in mean_stages([compute.from_numpy(item) for item in arrays], output):
        stage.kernel.run(stage.inputs, stage.output, stage.params)
    return np.array(output)


def settled(x, y, share, threshold):
    away = np.abs(x - y)
    if x.ndim == 3:
        away = away.max(-1, keepdims=True)
    alike = (1 - (away / threshold) ** 2) ** 2
    return x + np.where(away < threshold, share * alike, 0) * (y - x)


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_alike_is_mixed_with_the_past_and_the_rest_is_not(device, shape, dtype):
    x = picture(shape, dtype)
    noise = np.random.default_rng(3).normal(0, 0.08, shape)
    y = (in_units(x) + noise).astype(np.float32)
    got = run(settle, [x, y], "f32", share=0.7, inverse=1 / 0.15)
    check(got, settled(in_units(x), y.astype(np.float64), 0.7, 0.15), tolerance=2e-6)


def test_one_channel_that_differs_is_enough_to_keep_a_pixel_out(device):
    x = np.full((1, 4, 4), 0.5, np.float32)
    y = x.copy()
    y[0, range(4), range(4)] = 0.7
    np.testing.assert_array_equal(run(settle, [x, y], "f32", share=0.9, inverse=1 / 0.2), x)


def test_a_past_that_is_not_finite_is_forgotten(device):
    x = np.full((1, 4), 0.5, np.float32)
    y = np.array([[np.nan, np.inf, -np.inf, 0.5]], np.float32)
    np.testing.assert_array_equal(run(settle, [x, y], "f32", share=0.9, inverse=10.0), x)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_was_settled_on_is_stored_as_levels(device, shape):
    x = picture(shape, "u8")
    kept = run(store, [x], "f32")
    check(kept, in_units(x))
    np.testing.assert_array_equal(run(store, [kept], "u8"), x)


@pytest.mark.parametrize("amount", [0.0, 0.5, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(5, 7), (33, 65, 4)])
def test_frames_are_mixed_as_they_are_stored(device, shape, amount):
    x, y = picture(shape, "u8", 1).astype(float), picture(shape, "u8", 2).astype(float)
    got = run(mix_frames, [x.astype(np.uint8), y.astype(np.uint8)], "u8", amount=amount)
    exact = x + amount * (y - x)
    if amount == 0.3:
        assert (np.abs(got - exact) <= 0.5001).all()
    else:
        np.testing.assert_array_equal(got, np.rint(exact))
    x, y = picture(shape, "f32", 1), picture(shape, "f32", 2)
    check(run(mix_frames, [x, y], "f32", amount=amount), x + amount * (y.astype(float) - x))


@pytest.mark.parametrize("count", [1, 2, 3, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE, 32])
def test_the_mean_of_levels_is_exact_and_ties_go_up(device, count):
    frames = [picture((9, 31, 3), "u8", seed) for seed in range(count)]
    total = np.sum(frames, 0, dtype=np.int64)
    np.testing.assert_array_equal(mean(frames, "u8"), (2 * total + count) // (2 * count))


@pytest.mark.parametrize("count", [1, 4, 13])
def test_the_mean_of_floats_is_that_of_their_sum(device, count):
    frames = [picture((9, 31), "f32", seed) for seed in range(count)]
    check(mean(frames, "f32"), np.mean(np.array(frames, np.float64), 0))


@pytest.mark.parametrize("shape", [(0, 5), (4, 0, 3)])
def test_frames_without_pixels_stay_so(device, shape):
    x = np.zeros(shape, np.uint8)
    kept = run(settle, [x, x.astype(np.float32)], "f32", share=0.5, inverse=10.0)
    assert kept.shape == run(mix_frames, [x, x], "u8", amount=0.5).shape == shape
    assert mean([x, x, x], "u8").shape == shape
