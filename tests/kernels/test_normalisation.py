"""Softmax and layer normalisation, against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, NUMPY, sample, small

from dala import errors
from dala.gpu import compute

# Rows, a long row that is shared, few columns, many.
SHAPES = [(1,), (257,), (9001,), (65537, 1), (2, 9001), (70, 300), (40, 3), (2, 3, 4, 5)]


def softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def layer_norm(x, axis, epsilon):
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_agrees_with_its_formula_along_every_axis(run, dtype):
    output = dtype if dtype in FLOATS else "f32"
    for shape in SHAPES:
        x = sample(shape, dtype) if dtype in (*FLOATS, "u8") else small(shape, dtype)
        for axis in range(-len(shape), len(shape)):
            want = softmax(x.astype(np.float64), axis)
            got = run("softmax", [x], shape, output, axis=axis)
            rtol = 1e-12 if output == "f64" else 1e-5
            np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-37)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (4, 2, 20)])
def test_softmax_of_infinities_and_nan_is_as_the_formula_says(run, shape):
    axis = shape.index(4)
    for values in ([0, -math.inf, 1, 2], [-math.inf] * 4, [0, math.inf, 1, 2], [0, math.nan, 1, 2]):
        x = np.moveaxis(np.zeros(shape, np.float32), axis, -1)
        x[...] = values
        x = np.moveaxis(x, -1, axis).copy()
        with np.errstate(invalid="ignore"):
            want = softmax(x.astype(np.float64), axis)
        np.testing.assert_allclose(run("softmax", [x], shape, "f32", axis=axis), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["s32", "s64", "f32"])
def test_softmax_of_far_apart_elements_does_not_overflow(run, dtype):
    x = np.array([[-(2**31) + 1, 0, 2**31 - 256]], NUMPY[dtype])
    assert run("softmax", [x], (1, 3), "f32").tolist() == [[0, 0, 1]]


def test_softmax_rounds_into_an_integer_output(run):
    x = np.array([[0, 50, 0], [50, 0, 0]], np.float32)
    assert run("softmax", [x], (2, 3), "u8").tolist() == [[0, 1, 0], [1, 0, 0]]


def test_softmax_of_nothing_is_nothing(run):
    assert run("softmax", [np.zeros((3, 0), np.float32)], (3, 0), "f32").shape == (3, 0)


@pytest.mark.parametrize("shape", [(100, 30), (30, 100), (2, 9001)])
@pytest.mark.parametrize("kernel", ["softmax", "layer_norm"])
def test_the_output_may_be_the_input(device, run, kernel, shape):
    x = sample(shape, "f32")
    for axis in (0, 1):
        buffer = compute.from_numpy(x.copy())
        compute.run_kernel(kernel, [buffer], buffer, {"axis": axis})
        np.testing.assert_array_equal(
            compute.read(buffer), run(kernel, [x], shape, "f32", axis=axis)
        )


# -- layer normalisation ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_agrees_with_its_formula_along_every_axis(run, dtype):
    output = dtype if dtype in FLOATS else "f32"
    for shape in SHAPES:
        x = small(shape, dtype)
        for axis in range(-len(shape), len(shape)):
            want = layer_norm(x.astype(np.float64), axis, 0.01)
            got = run("layer_norm", [x], shape, output, axis=axis, epsilon=0.01)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [(1, 2), (0, 1), 0, -1, None])
@pytest.mark.parametrize("shape", [(4, 30, 50), (2, 3, 3001)])
def test_weight_and_bias_apply_to_normalised_elements(run, shape, axis):
    x = sample(shape, "f32")
    axes = tuple(range(3)) if axis is None else axis if isinstance(axis, tuple) else (axis % 3,)
    sizes = tuple(shape[item] for item in axes)
    weight, bias = sample(sizes, "f32", 2), sample(sizes, "f32", 3)
    spread = [shape[item] if item in axes else 1 for item in range(3)]
    want = layer_norm(x.astype(np.float64), axes, 1e-5)
    want = want * weight.reshape(spread) + bias.reshape(spread)
    got = run("layer_norm", [x, weight, bias], shape, "f32", axis=axis)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


def test_layer_norm_of_equal_elements_is_zero(run):
    assert not run("layer_norm", [np.full((3, 5), 7, np.float32)], (3, 5), "f32").any()


@pytest.mark.parametrize(
    ("inputs", "params", "error", "words"),
    [
        ([(2, 3)] * 2, {}, errors.ArgumentError, "x, or x, weight and bias; 2 inputs were given"),
        ([(2, 3), (2,), (2,)], {}, errors.ShapeError, "weight is (2,), but (2, 3) along axis -1"),
        ([(2, 3), (3,), (1,)], {}, errors.ShapeError, "bias is (1,)"),
        ([(2, 3)], {"axis": 4}, errors.ArgumentError, "axis 4 is outside"),
        ([(2, 3)], {"epsilon": -1}, errors.ArgumentError, "finite number from 0 on, not -1"),
        ([(2, 3)], {"epsilon": "x"}, errors.ArgumentError, "not 'x'"),
    ],
)
def test_layer_norm_refuses_what_does_not_fit(fail, inputs, params, error, words):
    given = [(shape, "f32") for shape in inputs]
    assert words in fail(error, "layer_norm", given, ((2, 3), "f32"), **params)


def test_layer_norm_refuses_axes_that_are_no_neighbours(fail):
    given = [((2, 3, 4), "f32")], ((2, 3, 4), "f32")
    said = fail(errors.ArgumentError, "layer_norm", *given, axis=(0, 2))
    assert "neighbors" in said


def test_softmax_refuses_an_output_of_another_shape(fail):
    said = fail(errors.ShapeError, "softmax", [((2, 3), "f32")], ((3, 2), "f32"))
    assert "the input is (2, 3), but the output is (3, 2)" in said
