"""Concatenation, picking by position and counting, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, INTEGERS, NUMPY, sample, small

from dala import errors
from dala.gpu import compute
from dala.kernels.tensor import gathering

SHAPES = [(1,), (3,), (257,), (65537, 1), (3, 85), (2, 3, 4), (2, 1, 3, 5)]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_follow_one_another_along_every_axis(run, dtype):
    for shape in SHAPES:
        for axis in range(-len(shape), len(shape)):
            longer = tuple(
                size + 2 * (place == axis % len(shape)) for place, size in enumerate(shape)
            )
            parts = [sample(shape, dtype, 1), sample(longer, dtype, 2), sample(shape, dtype, 3)]
            want = np.concatenate(parts, axis)
            np.testing.assert_array_equal(run("concat", parts, want.shape, dtype, axis=axis), want)


@pytest.mark.usefixtures("computed_by")
def test_concat_takes_one_input_and_empty_ones(run):
    x = sample((2, 3), "f32")
    np.testing.assert_array_equal(run("concat", [x], (2, 3), "f32"), x)
    np.testing.assert_array_equal(run("concat", [x[:0], x, x[:0]], (2, 3), "f32"), x)
    assert run("concat", [x[:0], x[:0]], (0, 3), "f32").shape == (0, 3)
    assert run("concat", [x[:, :0], x[:, :0]], (4, 0), "f32").shape == (4, 0)


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("count", [2, 4, 5, 8, 9, 16, 19])
def test_concat_takes_as_many_inputs_as_there_are(run, count):
    parts = [sample((3, i % 4, 2), "s32", i) for i in range(count)]
    want = np.concatenate(parts, 1)
    np.testing.assert_array_equal(run("concat", parts, want.shape, "s32", axis=1), want)


@pytest.mark.parametrize("computed_by", ["kernels"], indirect=True)
def test_no_kernel_joins_many_inputs_or_empty_ones(device, computed_by):
    parts = [compute.buffer_zeros((3, i % 3), "u8") for i in range(20)]
    stages = list(gathering.concat.stages(parts, compute.buffer_zeros((3, 19), "u8"), {"axis": 1}))
    assert all(len(stage.inputs) <= 4 for stage in stages)
    assert all(0 not in part.shape for stage in stages for part in stage.inputs)


@pytest.mark.parametrize("dtype", ["f32", "s16", "u8"])
def test_large_inputs_are_joined_by_threads(monkeypatch, run, dtype):
    monkeypatch.setattr(gathering, "SHARED_BYTES", 100)
    parts = [small((count, 7), dtype, count) for count in (900, 0, 3, 2000)]
    want = np.concatenate(parts)
    np.testing.assert_array_equal(run("concat", parts, want.shape, dtype), want)


@pytest.mark.usefixtures("computed_by")
def test_concat_may_write_over_an_input(device):
    x = sample((4,), "f32")
    whole = compute.from_numpy(x.copy())
    compute.run_kernel("concat", [whole], whole)
    np.testing.assert_array_equal(compute.read(whole), x)


@pytest.mark.parametrize(
    ("inputs", "output", "error", "words"),
    [
        ([(2, 3), (2, 4)], (4, 3), errors.ShapeError, "input 1 is (2, 4), but input 0 is (2, 3)"),
        ([(2, 3), (3,)], (4, 3), errors.ShapeError, "input 1 is (3,)"),
        ([(2, 3), (2, 3)], (3, 4), errors.ShapeError, "the output (4, 3), but it is (3, 4)"),
        ([(), ()], (2,), errors.ArgumentError, "axis 0 is outside"),
    ],
)
def test_concat_refuses_what_does_not_fit(fail, inputs, output, error, words):
    said = fail(error, "concat", [(shape, "f32") for shape in inputs], (output, "f32"))
    assert words in said


def test_concat_refuses_a_second_dtype_and_names_cast(fail):
    inputs = [((2,), "f32"), ((2,), "s32")]
    said = fail(errors.DtypeError, "concat", inputs, ((4,), "f32"))
    assert "input 1 is s32, but the output is f32" in said
    assert "cast" in said


# -- gather ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", INTEGERS)
def test_gather_takes_along_every_axis(run, dtype, index):
    for shape in [(1,), (257,), (3, 40), (2, 3, 4, 5)]:
        x = sample(shape, dtype)
        for axis in range(-len(shape), len(shape)):
            size = shape[axis]
            least = -size if index in ("s32", "s64") else 0
            for places in ((), (3,), (2, 20)):
                indices = np.random.default_rng(4).integers(least, min(size, 256), places)
                indices = np.asarray(indices, NUMPY[index])
                want = np.take(x, indices.astype(np.int64), axis)
                got = run("gather", [x, indices], want.shape, dtype, axis=axis)
                np.testing.assert_array_equal(got, want)


def test_an_index_outside_takes_the_nearest_element(run):
    x = np.array([10, 11, 12], np.float32)
    indices = np.array([3, 2**31 - 1, -4, -(2**31)], np.int32)
    assert run("gather", [x, indices], (4,), "f32").tolist() == [12, 12, 10, 10]
    large = np.array([2**32 - 1, 3], np.uint32)
    assert run("gather", [x, large], (2,), "f32").tolist() == [12, 12]


@pytest.mark.parametrize(
    ("inputs", "output", "error", "words"),
    [
        ([((3,), "f32"), ((2,), "f32")], (2,), errors.DtypeError, "indices is f32"),
        ([((3, 4), "f32"), ((2,), "s32")], (3, 2), errors.ShapeError, "(2, 4), but it is (3, 2)"),
        ([((0, 4), "f32"), ((2,), "s32")], (2, 4), errors.ShapeError, "nothing to take"),
    ],
)
def test_gather_refuses_what_does_not_fit(fail, inputs, output, error, words):
    assert words in fail(error, "gather", inputs, (output, "f32"))


# -- histogram -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_counted_by_value(run, dtype):
    for shape in [(0,), (1,), (257,), (40, 50), (3, 4, 5)]:
        x = np.random.default_rng(6).integers(0, 60, shape).astype(NUMPY[dtype])
        counts = np.bincount(x.ravel().astype(np.int64), minlength=100)
        np.testing.assert_array_equal(run("histogram", [x], (50,), "u32"), counts[:50])
        np.testing.assert_array_equal(run("histogram", [x], (20,), "f32", low=7), counts[7:27])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers_are_not_counted_elsewhere(run, dtype):
    limits = np.iinfo(NUMPY[dtype])
    x = np.array([limits.min, limits.max, limits.max - 1], NUMPY[dtype])
    assert run("histogram", [x], (3,), "s32", low=limits.max - 1).tolist() == [1, 1, 0]
    assert run("histogram", [x], (3,), "s32", low=limits.min).tolist() == [1, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_range_is_split_evenly(run, dtype):
    x = small((1000,), dtype)
    want, _ = np.histogram(x, 4, (1, 9))
    np.testing.assert_array_equal(run("histogram", [x], (4,), "s64", low=1, high=9), want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_upper_end_counts_and_what_lies_outside_does_not(run, dtype):
    values = [-0.1, -0.0, 0.0, 0.24, 0.25, 0.99, 1.0, 1.01, math.nan, math.inf, -math.inf]
    x = np.array(values, NUMPY[dtype])
    assert run("histogram", [x], (4,), "u32", high=1).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize("dtype", ["u8", "s32", "f32"])
@pytest.mark.parametrize("counted", ["s32", "u8", "f32"])
def test_rows_are_counted_by_themselves(run, dtype, counted):
    for count in (4800, 4801):  # the latter is prime
        x = np.random.default_rng(count).integers(0, 20, count).astype(NUMPY[dtype])
        want = np.bincount(x.astype(int), minlength=17)[:17].astype(NUMPY[counted])
        params = {"low": 0, "high": 17} if dtype == "f32" else {}
        x = x[x < 17] if dtype == "f32" else x
        np.testing.assert_array_equal(run("histogram", [x], (17,), counted, **params), want)


@pytest.mark.parametrize(
    ("dtype", "output", "params", "error", "words"),
    [
        ("f32", (4,), {}, errors.ArgumentError, "x is f32: give low and high"),
        ("f32", (4,), {"low": 2, "high": 2}, errors.ArgumentError, "low is 2 and high is 2"),
        ("f32", (4,), {"high": math.inf}, errors.ArgumentError, "high is a finite number"),
        ("u8", (4,), {"low": 0.5}, errors.ArgumentError, "low is an integer, not 0.5"),
        ("u8", (4, 4), {}, errors.ShapeError, "the output is (4, 4)"),
    ],
)
def test_histogram_refuses_what_makes_no_bins(fail, dtype, output, params, error, words):
    assert words in fail(error, "histogram", [((9,), dtype)], (output, "u32"), **params)
