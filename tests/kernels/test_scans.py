"""Running sums, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, INTEGERS, NUMPY, sample

from dala import errors
from dala.gpu import compute

# One chunk and less, a rest, several levels of chunks, few columns, many, many rows of one.
SHAPES = [
    (1,),
    (3,),
    (16,),
    (255,),
    (70001,),
    (65537, 1),
    (3, 4096),
    (300, 3),
    (2, 300, 17),
    (2, 3, 4, 5),
]


def running(x, axis, dtype, exclusive):
    wide = np.float64 if dtype in FLOATS else NUMPY[dtype]
    total = np.cumsum(x, axis, wide)
    if exclusive:
        total = np.roll(total, 1, axis)
        np.moveaxis(total, axis, 0)[0] = 0
    return total


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_summed_along_every_axis(run, dtype, exclusive):
    for shape in SHAPES:
        x = sample(shape, dtype)
        if dtype in FLOATS:
            x = abs(x)
        for axis in range(-len(shape), len(shape)):
            want = running(x, axis, dtype, exclusive)
            got = run("prefix_sum", [x], shape, dtype, axis=axis, exclusive=exclusive)
            if dtype in FLOATS:
                np.testing.assert_allclose(got, want, rtol=3e-6 if dtype == "f32" else 1e-13)
            else:
                np.testing.assert_array_equal(got, want)


def test_sums_take_the_width_of_the_output(run):
    x = np.full((1000,), 255, np.uint8)
    np.testing.assert_array_equal(run("prefix_sum", [x], (1000,), "s64"), np.arange(1, 1001) * 255)
    large = np.full((5,), 2**31 - 1, np.int32)
    want = np.arange(1, 6) * (2**31 - 1)
    np.testing.assert_array_equal(run("prefix_sum", [large], (5,), "s64"), want)


@pytest.mark.parametrize("shape", [(50,), (50, 20), (50, 2)])
def test_nan_and_infinity_reach_only_what_follows(run, shape):
    for value in (math.nan, math.inf):
        x = np.ones(shape, np.float32)
        x[20] = value
        want = np.cumsum(x, 0)
        np.testing.assert_array_equal(run("prefix_sum", [x], shape, "f32", axis=0), want)


def test_nothing_has_no_sums(run):
    assert run("prefix_sum", [np.zeros((0, 3), np.float32)], (0, 3), "f32", axis=0).size == 0


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_may_replace_their_elements(device, dtype):
    x = sample((1000,), dtype)
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("prefix_sum", [buffer], buffer)
    np.testing.assert_array_equal(compute.read(buffer), np.cumsum(x, dtype=x.dtype))


@pytest.mark.parametrize(
    ("output", "params", "error", "words"),
    [
        ((3,), {}, errors.ShapeError, "the input is (4,), but the output is (3,)"),
        ((4,), {"axis": 1}, errors.ArgumentError, "axis 1 is outside an input of 1 axes"),
        ((4,), {"exclusive": 2}, errors.ArgumentError, "exclusive is True or False, not 2"),
    ],
)
def test_mistakes_are_refused(fail, output, params, error, words):
    assert words in fail(error, "prefix_sum", [((4,), "f32")], (output, "f32"), **params)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("n", [63, 64, 1023, 1024, 1025, 3000, 1_100_000])
def test_rows_that_a_workgroup_shares_are_summed_right(run, n, exclusive):
    x = np.random.default_rng(n).integers(-1000, 1000, (2, n)).astype(np.int32)
    want = np.cumsum(x, 1, dtype=np.int32) - (x if exclusive else 0)
    got = run("prefix_sum", [x], x.shape, "s32", exclusive=exclusive)
    np.testing.assert_array_equal(got, want)


def test_shared_rows_are_summed_in_another_type_than_they_are_stored_in(run):
    x = np.random.default_rng(0).integers(0, 256, (3, 2000)).astype(np.uint8)
    got = run("prefix_sum", [x], x.shape, "u8")
    np.testing.assert_array_equal(got, np.cumsum(x, 1, dtype=np.uint8))
