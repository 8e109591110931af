"""Kernels that draw random numbers: their distribution, and the same ones on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import NUMPY

from dala import errors
from dala.gpu import compute

COUNT = 60_000


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_uniform_numbers_fill_their_range(run, dtype):
    got = run("random_uniform", [], (COUNT,), dtype, low=-2, high=6, seed=4)
    assert got.min() >= -2
    assert got.max() < 6
    assert abs(got.mean() - 2) < 0.05
    assert abs(got.std() - 8 / math.sqrt(12)) < 0.05
    counts = np.histogram(got, 20)[0]
    assert counts.std() < 4 * math.sqrt(COUNT / 20)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_normal_numbers_have_the_mean_and_deviation_asked_for(run, dtype):
    got = run("random_normal", [], (COUNT,), dtype, mean=10, std=3, seed=4)
    assert abs(got.mean() - 10) < 0.06
    assert abs(got.std() - 3) < 0.05
    inside = np.mean(np.abs(got - 10) < 3)
    assert abs(inside - math.erf(math.sqrt(0.5))) < 0.01
    assert run("random_normal", [], (3,), dtype, mean=10, std=0).tolist() == [10, 10, 10]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("u8", 0, 256),
        ("u8", 250, 253),
        ("s32", -5, 6),
        ("s32", -(1 << 31), 1 << 30),
        ("u32", 1 << 31, (1 << 31) + 3),
        ("s64", -(1 << 40), -(1 << 40) + 5),
    ],
)
def test_integers_of_every_dtype_lie_between_their_ends(run, dtype, low, high):
    got = run("random_integers", [], (COUNT,), dtype, low=low, high=high, seed=1)
    assert got.dtype == NUMPY[dtype]
    got = got.astype(object)
    assert got.min() >= low
    assert got.max() < high
    if high - low < 300:
        counts = np.unique((got - low).astype(int), return_counts=True)[1]
        assert len(counts) == high - low
        expected = COUNT / (high - low)
        assert np.abs(counts - expected).max() < 5 * math.sqrt(expected)


def test_the_shape_does_not_matter_and_the_seed_does(run):
    flat = run("random_uniform", [], (24,), "f32", seed=2)
    assert np.array_equal(run("random_uniform", [], (2, 3, 4), "f32", seed=2).ravel(), flat)
    assert not np.array_equal(run("random_uniform", [], (24,), "f32", seed=3), flat)
    assert run("random_uniform", [], (0,), "f32").size == 0
    for kernel in ("random_normal", "random_integers"):
        params = {"low": 0, "high": 1000} if kernel == "random_integers" else {}
        first, again = (run(kernel, [], (9,), "s32" if params else "f32", **params) for _ in "ab")
        assert np.array_equal(first, again)


def test_devices_agree_in_every_bit(webgpu):
    cases = {
        "random_uniform": ("f32", {}),
        "random_integers": ("s32", {"low": -50, "high": 5000}),
        "permutation": ("s32", {}),
    }
    for kernel, (dtype, params) in cases.items():
        found = []
        for name in ("cpu", webgpu):
            with compute.device(name):
                out = compute.buffer_zeros((3, 1001), dtype)
                compute.run_kernel(kernel, [], out, {**params, "seed": 8})
                found.append(compute.read(out))
        assert np.array_equal(*found), kernel


@pytest.mark.parametrize("shape", [(1,), (2,), (257,), (5, 100), (2, 3, 4), (3, 0)])
def test_a_permutation_has_every_integer_once_in_each_row(run, computed_by, shape):
    got = run("permutation", [], shape, "s32", seed=3)
    assert np.array_equal(np.sort(got, axis=-1), np.broadcast_to(np.arange(shape[-1]), shape))


def test_permutations_are_in_no_order_and_each_row_has_its_own(run):
    rows = run("permutation", [], (4000, 3), "u8", seed=1)
    counts = np.unique(rows @ np.array([9, 3, 1]), return_counts=True)[1]
    assert len(counts) == 6
    assert np.abs(counts - 4000 / 6).max() < 5 * math.sqrt(4000 / 6)


@pytest.mark.parametrize(
    ("kernel", "dtype", "params", "error", "words"),
    [
        ("random_uniform", "s32", {}, errors.DtypeError, "random_integers"),
        ("random_normal", "u8", {}, errors.DtypeError, "f32 or f64"),
        ("random_uniform", "f32", {"low": 2, "high": 1}, errors.ArgumentError, "low is 2 and high"),
        ("random_normal", "f32", {"std": -1}, errors.ArgumentError, "std"),
        ("random_uniform", "f32", {"seed": -1}, errors.ArgumentError, "seed is 0 to 4294967295"),
        ("random_integers", "f32", {"low": 0, "high": 2}, errors.DtypeError, "random_uniform"),
        ("random_integers", "s32", {"low": 2, "high": 2}, errors.ArgumentError, "high is above"),
        ("random_integers", "u8", {"low": 0, "high": 257}, errors.ArgumentError, "0 to 256 do not"),
        ("permutation", "f32", {}, errors.DtypeError, "give s32 or s64"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fail, kernel, dtype, params, error, words):
    assert words in fail(error, kernel, [], ((300,), dtype), **params)
