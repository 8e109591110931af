"""Convolution and pooling of planes, against sliding windows of NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, NUMPY, sample, small, stored
from numpy.lib.stride_tricks import sliding_window_view

from dala import errors
from dala.gpu import compute
from dala.kernels.tensor import patches


def both(value):
    return value if isinstance(value, tuple) else (value, value)


def windows(x, size, stride, padding, dilation=1, fill=0):
    """The elements of each window along two last axes."""
    size, stride, padding, dilation = map(both, (size, stride, padding, dilation))
    rim = [(0, 0)] * (x.ndim - 2) + [(added, added) for added in padding]
    reach = [(count - 1) * gap + 1 for count, gap in zip(size, dilation, strict=True)]
    found = sliding_window_view(np.pad(x, rim, constant_values=fill), reach, axis=(-2, -1))
    return found[..., :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    found = windows(x, weight.shape[2:], stride, padding, dilation)
    inputs, outputs = np.split(found, groups, 1), np.split(weight, groups, 0)
    parts = [np.einsum("nchwab,ocab->nohw", a, b) for a, b in zip(inputs, outputs, strict=True)]
    total = np.concatenate(parts, 1)
    return total if bias is None else total + bias[:, None, None]


# x, weight, parameters: small and odd planes, every parameter on each axis, groups, channels enough
# for BLAS, windows as large as the plane.
CASES = [
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((2, 3, 7, 9), (4, 3, 3, 3), {"padding": 1}),
    ((1, 2, 13, 17), (3, 2, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2)}),
    ((1, 2, 20, 33), (3, 2, 5, 3), {"stride": (3, 2), "padding": 2, "dilation": (2, 1)}),
    ((2, 4, 9, 30), (6, 2, 3, 3), {"groups": 2, "padding": (0, 1)}),
    ((1, 5, 4, 4), (2, 5, 4, 4), {}),
    ((1, 3, 3, 3), (2, 3, 1, 1), {"stride": 2}),
    ((1, 16, 12, 13), (32, 16, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 128, 5, 30), (64, 64, 1, 1), {"groups": 2}),
    ((1, 64, 9, 70), (33, 64, 3, 3), {"padding": 1}),
    ((0, 3, 5, 5), (2, 3, 3, 3), {}),
]


# Every case compiles code of its own: not each of them in each dtype.
TYPED_CASES = [
    (*case, dtype)
    for i, case in enumerate(CASES)
    for dtype in (DTYPES if i % 3 == 1 else ["f32", "u8"])
]


LARGE_CASES = [(*case, dtype) for case in CASES[-4:] for dtype in FLOATS]


@pytest.mark.parametrize("computed_by", ["kernels"], indirect=True)
@pytest.mark.parametrize(("shape", "size", "params", "dtype"), LARGE_CASES)
def test_many_channels_are_convolved_without_blas(run, shape, size, params, dtype, computed_by):
    x, weight, bias = (sample(item, dtype, i) for i, item in enumerate((shape, size, size[:1])))
    for inputs in ([x, weight], [x, weight, bias]):
        want = convolution(*inputs, **params)
        got = run("conv2d", inputs, want.shape, dtype, **params)
        assert np.abs(got - want).max(initial=0) <= 1e-5 * np.abs(want).max(initial=0)


@pytest.mark.parametrize(("shape", "size", "params", "dtype"), TYPED_CASES)
def test_convolution_agrees_with_sliding_windows(run, shape, size, params, dtype):
    make = small if dtype in FLOATS else sample
    x, weight, bias = make(shape, dtype, 1), make(size, dtype, 2), make(size[:1], dtype, 3)
    for inputs in ([x, weight], [x, weight, bias]):
        want = convolution(*inputs, **params)
        np.testing.assert_array_equal(run("conv2d", inputs, want.shape, dtype, **params), want)


def test_windows_are_not_flipped(run):
    x = np.zeros((1, 1, 3, 3), np.float32)
    x[0, 0, 1, 1] = 1
    weight = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    got = run("conv2d", [x, weight], (1, 1, 3, 3), "f32", padding=1)
    assert got[0, 0].tolist() == [[8, 7, 6], [5, 4, 3], [2, 1, 0]]


@pytest.mark.parametrize("channels", [(1, 1), (16, 32)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("length", [4, 5, 9])
def test_same_padding_gives_a_result_for_each_step(run, length, stride, channels):
    x = small((1, channels[0], length, length), "f32")
    weight = small((channels[1], channels[0], 3, 4), "f32", 2)
    count = -(-length // stride)
    added = [max(0, (count - 1) * stride + size - length) for size in (3, 4)]
    rim = [(total // 2, total - total // 2) for total in added]
    want = convolution(np.pad(x, [(0, 0), (0, 0), *rim]), weight, stride=stride)
    assert want.shape[2:] == (count, count)
    got = run("conv2d", [x, weight], want.shape, "f32", padding="same", stride=stride)
    np.testing.assert_array_equal(got, want)


def test_patches_are_multiplied_a_few_rows_at_a_time(run, monkeypatch):
    monkeypatch.setattr(patches, "PATCH_BYTES", 144 * 7 * 4 * 2)
    params = {"stride": (2, 3), "dilation": (3, 1), "padding": (2, 0)}
    x, weight = small((2, 16, 17, 21), "f32"), small((32, 16, 3, 3), "f32", 2)
    want = convolution(x, weight, **params)
    assert want.shape[2:] == (8, 7)
    np.testing.assert_array_equal(run("conv2d", [x, weight], want.shape, "f32", **params), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("params", [{"padding": 1}, {"stride": 2, "dilation": 2}])
def test_depthwise_convolution_keeps_channels_apart(run, params, dtype):
    x, weight, bias = (
        small((2, 3, 11, 20), dtype),
        small((3, 1, 3, 3), dtype, 2),
        small((3,), dtype),
    )
    want = convolution(x, weight, bias, groups=3, **params)
    got = run("depthwise_conv2d", [x, weight, bias], want.shape, dtype, **params)
    np.testing.assert_array_equal(got, want)


def test_convolution_of_bytes_takes_the_width_of_the_output(run):
    x, weight = np.full((1, 2, 5, 5), 200, np.uint8), np.full((1, 2, 3, 3), 100, np.uint8)
    assert (run("conv2d", [x, weight], (1, 1, 3, 3), "s32") == 200 * 100 * 18).all()
    assert (run("conv2d", [x, weight], (1, 1, 3, 3), "u8") == 200 * 100 * 18 % 256).all()
    assert (run("conv2d", [x, weight], (1, 1, 3, 3), "f32") == 200 * 100 * 18).all()


def test_convolution_of_floats_is_rounded_once(run):
    x, weight = np.full((1, 3, 1, 1), 0.5, np.float32), np.full((1, 3, 1, 1), 0.5, np.float32)
    assert run("conv2d", [x, weight], (1, 1, 1, 1), "s32") == 1
    bias = np.array([0.5], np.float32)
    assert run("conv2d", [x, weight, bias], (1, 1, 1, 1), "s32") == 1


@pytest.mark.parametrize("channels", [2, 80])
def test_infinities_reach_only_the_windows_that_hold_them(run, channels):
    x, weight = (
        np.ones((1, channels, 20, 20), np.float32),
        np.ones((40, channels, 3, 3), np.float32),
    )
    x[0, 0, 10, 19] = math.inf
    want = convolution(x, weight, padding=1)
    got = run("conv2d", [x, weight], want.shape, "f32", padding=1)
    np.testing.assert_array_equal(got, want)


def test_a_convolution_may_replace_its_input(device):
    x, weight = small((1, 2, 9, 9), "f32"), small((2, 2, 3, 3), "f32", 2)
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("conv2d", [buffer, compute.from_numpy(weight)], buffer, {"padding": 1})
    np.testing.assert_array_equal(compute.read(buffer), convolution(x, weight, padding=1))


X, W, OUT = (1, 4, 8, 8), (6, 4, 3, 3), (1, 6, 6, 6)


@pytest.mark.parametrize(
    ("inputs", "output", "params", "error", "words"),
    [
        ([X, W], (1, 6, 8, 8), {}, errors.ShapeError, "(1, 6, 6, 6), but it is (1, 6, 8, 8)"),
        (
            [X, (6, 3, 3, 3)],
            OUT,
            {},
            errors.ShapeError,
            "weight is (6, 3, 3, 3), but x (1, 4, 8, 8)",
        ),
        ([(4, 8, 8), W], OUT, {}, errors.ShapeError, "x is (4, 8, 8), but it has four axes"),
        ([X, (6, 4, 9)], OUT, {}, errors.ShapeError, "weight is (6, 4, 9), but it has four axes"),
        ([X, W, (5,)], OUT, {}, errors.ShapeError, "bias is (5,)"),
        ([X, (6, 4, 9, 9)], OUT, {}, errors.ShapeError, "over 9 does not fit an input of 8"),
        ([X, W], OUT, {"groups": 3}, errors.ArgumentError, "groups = 3 does not divide"),
        ([X, W], OUT, {"groups": 0}, errors.ArgumentError, "groups = 0"),
        ([X, W], OUT, {"stride": 0}, errors.ArgumentError, "stride = 0, but it is at least 1"),
        ([X, W], OUT, {"stride": (1, 1, 1)}, errors.ArgumentError, "stride is one number or two"),
        ([X, W], OUT, {"padding": -1}, errors.ArgumentError, "padding = -1"),
        ([X, W], OUT, {"padding": "valid"}, errors.ArgumentError, "padding 'valid' is not known"),
        (
            [X, W],
            OUT,
            {"dilation": 1.5},
            errors.ArgumentError,
            "dilation is an integer, not 1.5",
        ),
        ([X, W, (6,), (6,)], OUT, {}, errors.ArgumentError, "4 inputs were given"),
    ],
)
def test_convolution_refuses_what_does_not_fit(fail, inputs, output, params, error, words):
    given = [(shape, "f32") for shape in inputs]
    assert words in fail(error, "conv2d", given, (output, "f32"), **params)


# -- pooling ---------------------------------------------------------------------------------------

POOLS = [
    ((1, 1, 4, 4), {}),
    ((2, 3, 7, 9), {"size": 3, "stride": 2, "padding": 1}),
    ((5, 20, 70), {"size": (2, 3), "stride": (1, 2), "padding": (1, 1)}),
    ((9, 8), {}),
    ((1, 2, 33, 40), {"size": 3, "stride": 1, "padding": 1}),
    ((1, 2, 6, 6), {"size": 6}),
    ((1, 1, 5, 5), {"size": 1, "stride": 3}),
    ((0, 3, 4, 4), {}),
]


def pooled(x, size=2, stride=None, padding=0):
    return windows(
        x.astype(np.float64), size, size if stride is None else stride, padding, 1, math.nan
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "params"), POOLS)
def test_pools_agree_with_sliding_windows(run, shape, params, dtype):
    x = sample(shape, dtype)
    if dtype in ("s64", "u64"):
        x >>= 16  # f64, in which we compare, holds no more
    found = pooled(x, **params)
    want = np.nanmax(found, (-2, -1)) if found.size else found[..., 0, 0]
    got = run("max_pool", [x], want.shape, dtype, **params)
    np.testing.assert_array_equal(got, want.astype(NUMPY[dtype]))
    want = stored(np.nanmean(found, (-2, -1)) if found.size else want, dtype)
    got = run("avg_pool", [x], want.shape, dtype, **params)
    if dtype in FLOATS:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)


def test_nan_fills_its_windows(run):
    x = np.ones((4, 4), np.float32)
    x[0, 3] = math.nan
    for kernel in ("max_pool", "avg_pool"):
        np.testing.assert_array_equal(run(kernel, [x], (2, 2), "f32"), [[1, math.nan], [1, 1]])


def test_padding_is_never_the_largest(run):
    x = np.full((2, 3, 3), -5, np.float32)
    assert (run("max_pool", [x], (2, 3, 3), "f32", size=3, stride=1, padding=1) == -5).all()
    assert (run("avg_pool", [x], (2, 3, 3), "f32", size=3, stride=1, padding="same") == -5).all()


@pytest.mark.parametrize("kernel", ["max_pool", "avg_pool"])
@pytest.mark.parametrize(
    ("shape", "output", "params", "error", "words"),
    [
        ((4, 4), (3, 3), {}, errors.ShapeError, "makes the output (2, 2), but it is (3, 3)"),
        ((4,), (2,), {}, errors.ShapeError, "last two axes are (height, width)"),
        ((1, 1), (1, 1), {}, errors.ShapeError, "over 2 does not fit an input of 1"),
        ((4, 4), (2, 2), {"padding": 2}, errors.ArgumentError, "outside the input altogether"),
        ((4, 4), (2, 2), {"padding": "all"}, errors.ArgumentError, "padding 'all' is not known"),
        ((4, 4), (2, 2), {"size": 0}, errors.ArgumentError, "size = 0, but it is at least 1"),
    ],
)
def test_pools_refuse_what_does_not_fit(fail, kernel, shape, output, params, error, words):
    assert words in fail(error, kernel, [(shape, "f32")], (output, "f32"), **params)
