"""Sums, means and extremes along axes, against NumPy."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, INTEGERS, NUMPY, sample, stored, tolerance

from dala import errors
from dala.gpu import compute

# Rows, columns, many short rows, a few long ones, a column longer than a run, planes.
SHAPES = [
    (1,),
    (3,),
    (255,),
    (65537, 1),
    (1, 65537),
    (3, 70001),
    (300, 17),
    (2, 131, 3),
    (2, 3, 4, 5),
]

FOLDS = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min}


def axes_of(rank):
    several = [axes for count in range(2, rank + 1) for axes in combinations(range(rank), count)]
    return [None, *range(-rank, rank), *several]


def expected(name, x, axis, dtype):
    """NumPy's result, with integers wrapping and float sums that are exact."""
    if name == "reduce_sum":
        return x.sum(axis, NUMPY[dtype]) if dtype in INTEGERS else x.sum(axis, np.float64)
    if name == "reduce_mean":
        return stored(np.asarray(x.astype(np.float64).mean(axis)), dtype)
    return FOLDS[name](x, axis)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDS)
def test_elements_are_folded_along_every_choice_of_axes(run, name, dtype):
    for shape in SHAPES:
        x = sample(shape, dtype)
        if dtype in FLOATS:
            x = abs(x)  # else sums cancel, and no relative error means anything
        for axis in axes_of(len(shape)):
            want = np.asarray(expected(name, x, axis, dtype))
            got = run(name, [x], want.shape, dtype, axis=axis)
            if dtype in FLOATS and name in ("reduce_sum", "reduce_mean"):
                np.testing.assert_allclose(got, want, rtol=min(1e-6, tolerance(dtype)))
            elif name == "reduce_mean":
                # s64 has more digits than the f64 that its mean is computed in.
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=512 if dtype == "s64" else 0)
            else:
                np.testing.assert_array_equal(got, want)


def test_reduced_axes_may_stay_as_ones(run):
    x = sample((3, 4, 5), "f32")
    got = run("reduce_max", [x], (3, 1, 5), "f32", axis=1)
    np.testing.assert_array_equal(got, x.max(1, keepdims=True))
    for shape in ((), (1,), (1, 1, 1)):
        assert run("reduce_max", [x], shape, "f32") == x.max()


def test_no_axes_leave_the_elements_as_they_are(run):
    x = sample((3, 4), "f32")
    np.testing.assert_array_equal(run("reduce_sum", [x], (3, 4), "f32", axis=()), x)


@pytest.mark.parametrize("shape", [(5_000_011,), (7, 700_001)])
def test_long_sums_stay_within_a_millionth(run, shape):
    x = np.random.default_rng(3).random(shape, np.float32) + np.float32(1000)
    want = x.astype(np.float64).sum(-1)
    got = run("reduce_sum", [x], want.shape, "f32", axis=-1)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sums_take_the_width_of_the_output(run):
    x = np.full((70_000,), 200, np.uint8)
    for dtype, want in (("u8", 14_000_000 % 256), ("s32", 14_000_000), ("s64", 14_000_000)):
        assert run("reduce_sum", [x], (), dtype) == want
    assert run("reduce_sum", [x], (), "f32") == 14_000_000
    large = np.full((3,), 2**31 - 1, np.int32)
    assert run("reduce_sum", [large], (), "s64") == 3 * (2**31 - 1)
    assert run("reduce_sum", [large], (), "s32") == 2**31 - 3
    assert run("reduce_mean", [large], (), "s32") == 2**31 - 1


@pytest.mark.parametrize("shape", [(100,), (1, 70_000), (5, 300, 20)])
@pytest.mark.parametrize("name", FOLDS)
def test_nan_spreads_and_infinities_count(run, name, shape):
    x = sample(shape, "f32")
    for value in (math.nan, math.inf, -math.inf):
        x.flat[-1] = value
        with np.errstate(invalid="ignore"):
            want = FOLDS[name](x)
        got = run(name, [x], (), "f32")
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_nothing_the_sum_is_zero_and_the_mean_is_not_a_number(run, dtype):
    x = np.zeros((3, 0), NUMPY[dtype])
    assert run("reduce_sum", [x], (3,), dtype, axis=1).tolist() == [0, 0, 0]
    mean = run("reduce_mean", [x], (3,), dtype, axis=1)
    np.testing.assert_array_equal(mean, [math.nan] * 3 if dtype in FLOATS else [0] * 3)
    for name in FOLDS:
        assert run(name, [x], (0,), dtype, axis=0).shape == (0,)


@pytest.mark.parametrize(("name", "word"), [("reduce_max", "largest"), ("reduce_min", "smallest")])
def test_of_nothing_there_is_no_extreme(fail, name, word):
    said = fail(errors.ShapeError, name, [((3, 0), "f32")], ((3,), "f32"), axis=1)
    assert "(3, 0)" in said
    assert word in said


def test_the_output_may_be_the_input(device):
    x = sample((64,), "f32")
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("reduce_max", [buffer], buffer, {"axis": ()})
    np.testing.assert_array_equal(compute.read(buffer), x)


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        (2, "axis 2 is outside an input of 2 axes: give -2 to 1"),
        (-3, "axis -3 is outside"),
        ((0, 0), "axis 0 is given twice"),
        ((1, -1), "axis 1 is given twice in (1, -1)"),
        (1.0, "axis is an integer, not 1.0"),
        (True, "not True"),
        ("rows", "not 'rows'"),
    ],
)
def test_a_wrong_axis_is_refused(fail, axis, words):
    said = fail(errors.ArgumentError, "reduce_sum", [((2, 3), "f32")], ((2,), "f32"), axis=axis)
    assert words in said


def test_an_output_that_does_not_fit_is_refused_with_both_shapes(fail):
    said = fail(errors.ShapeError, "reduce_mean", [((2, 3), "f32")], ((3,), "f32"), axis=1)
    assert "(2, 3) over axis 1 makes the output (2,) or (2, 1), but it is (3,)" in said
