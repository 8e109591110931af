"""Element by element, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, INTEGERS, NUMPY, SPECIAL, sample, stored, tolerance

from dala import errors
from dala.gpu import compute

SHAPES = [(0,), (1,), (3,), (257,), (65537, 1), (3, 85), (2, 3, 4), (2, 1, 3, 5), ()]

BINARY = {
    "elementwise_add": np.add,
    "elementwise_sub": np.subtract,
    "elementwise_mul": np.multiply,
    "elementwise_min": np.minimum,
    "elementwise_max": np.maximum,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_two_inputs_are_combined_as_numpy_does(run, name, dtype):
    for shape in SHAPES:
        a, b = sample(shape, dtype, 1), sample(shape, dtype, 2)
        with np.errstate(over="ignore"):
            want = BINARY[name](a, b)
        np.testing.assert_array_equal(run(name, [a, b], shape, dtype), want)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*BINARY, "elementwise_div"])
def test_special_values_meet_as_ieee_says(run, name, dtype):
    a, b = np.meshgrid(*[np.array(SPECIAL, NUMPY[dtype])] * 2)
    function = BINARY.get(name, np.divide)
    with np.errstate(all="ignore"):
        want = function(a, b)
    got = run(name, [a, b], a.shape, dtype)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_divided_rounding_down_and_by_zero_give_zero(run, dtype):
    limits = np.iinfo(NUMPY[dtype])
    values = np.array([limits.min, limits.max, 0, 1, 2, 7, limits.min + 3], NUMPY[dtype])
    if limits.min < 0:
        values = np.append(values, np.array([-1, -2, -7], NUMPY[dtype]))
    a, b = np.meshgrid(values, values)
    want = [0 if y == 0 else int(x) // int(y) for x, y in zip(a.flat, b.flat, strict=True)]
    wrapped = [(item - limits.min) % (1 << limits.bits) + limits.min for item in want]
    got = run("elementwise_div", [a, b], a.shape, dtype)
    np.testing.assert_array_equal(got.ravel(), np.array(wrapped, NUMPY[dtype]))


def test_integers_are_divided_as_floats_where_one_input_is_a_float(run):
    a, b = np.array([1, 2, 3], np.int32), np.array([2, 0, 4], np.float32)
    got = run("elementwise_div", [a, b], (3,), "f32")
    assert got.tolist() == [0.5, math.inf, 0.75]


def test_inputs_of_two_dtypes_meet_in_the_wider(run):
    a, b = np.array([200, 255], np.uint8), np.array([1000, -3], np.int32)
    assert run("elementwise_add", [a, b], (2,), "s32").tolist() == [1200, 252]


# -- one input -------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * np.vectorize(math.erfc, otypes=[float])(x * -math.sqrt(0.5))


UNARY = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "gelu": gelu,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_agree_with_their_formula(run, name, dtype):
    for shape in SHAPES:
        x = sample(shape, dtype)
        with np.errstate(all="ignore"):
            want = UNARY[name](x.astype(np.float64))
        got = run(name, [x], shape, dtype)
        # Far out, the tail of gelu feels the last bit of x · √½.
        rtol = tolerance(dtype) * (10 if name == "gelu" else 1)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-37)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_integers_are_computed_in_floats_and_rounded(run, name, dtype):
    x = np.arange(20).astype(NUMPY[dtype])
    if dtype in ("s32", "s64"):
        x = x - 5
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
    np.testing.assert_allclose(
        run(name, [x], (20,), "f32"), want.astype(np.float32), rtol=2e-6, atol=1e-30
    )
    if name != "exp":  # which soon has more digits than f32
        np.testing.assert_array_equal(run(name, [x], (20,), dtype), stored(want, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "want"),
    [
        # nan, inf, -inf, 0, -0
        ("relu", [math.nan, math.inf, 0, 0, 0]),
        ("relu6", [math.nan, 6, 0, 0, 0]),
        ("leaky_relu", [math.nan, math.inf, -math.inf, 0, 0]),
        ("sigmoid", [math.nan, 1, 0, 0.5, 0.5]),
        ("tanh", [math.nan, 1, -1, 0, 0]),
        ("gelu", [math.nan, math.inf, 0, 0, 0]),
        ("exp", [math.nan, math.inf, 0, 1, 1]),
        ("log", [math.nan, math.inf, math.nan, -math.inf, -math.inf]),
        ("sqrt", [math.nan, math.inf, math.nan, 0, 0]),
        ("abs", [math.nan, math.inf, math.inf, 0, 0]),
    ],
)
def test_special_values_become_their_limits(run, name, want, dtype):
    x = np.array(SPECIAL[:5], NUMPY[dtype])
    np.testing.assert_array_equal(run(name, [x], (5,), dtype), want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gelu_keeps_its_relative_accuracy_in_the_negative_tail(run, dtype):
    x = np.linspace(-12, -1, 111).astype(NUMPY[dtype])
    got = run("gelu", [x], x.shape, dtype)
    np.testing.assert_allclose(got, gelu(x.astype(np.float64)), rtol=tolerance(dtype) * 5)


def test_relu_never_gives_a_negative_zero(run):
    got = run("relu", [np.array([-1, -0.0, -np.inf], np.float32)], (3,), "f32")
    assert not np.signbit(got).any()


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_scale_by_a_whole_number_stays_in_the_dtype(run, dtype):
    x = sample((257,), dtype)
    want = x * NUMPY[dtype].type(3)
    np.testing.assert_array_equal(run("scale", [x], x.shape, dtype, factor=3), want)


@pytest.mark.parametrize("dtype", ["s32", "u32", "u8"])
def test_scale_of_integers_by_a_fraction_rounds_and_saturates(run, dtype):
    x = np.array([0, 1, 3, 200, 255], NUMPY[dtype])
    got = run("scale", [x], x.shape, dtype, factor=2.5)
    np.testing.assert_array_equal(got, stored(x * 2.5, dtype))


@pytest.mark.parametrize("name", ["relu", "leaky_relu"])
def test_a_slope_multiplies_what_is_not_positive(run, name):
    x = np.array([-4, -1, 0, 3], np.float32)
    assert run(name, [x], x.shape, "f32", slope=0.5).tolist() == [-2, -0.5, 0, 3]
    assert run(name, [x.astype(np.int32)], x.shape, "f32", slope=2).tolist() == [-8, -2, 0, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_clamp_bounds_from_both_sides(run, dtype):
    x = sample((257,), dtype)
    got = run("clamp", [x], x.shape, dtype, low=3, high=100)
    np.testing.assert_array_equal(got, np.clip(x, 3, 100))


def test_clamp_keeps_nan(run):
    x = np.array([math.nan, -math.inf, math.inf], np.float32)
    got = run("clamp", [x], (3,), "f32", low=-1.5, high=1.5)
    np.testing.assert_array_equal(got, [math.nan, -1.5, 1.5])


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cast_converts_as_storing_does(run, dtype, to):
    x = sample((257,), dtype)
    if dtype in FLOATS:
        x[: len(SPECIAL)] = SPECIAL
        x[20:25] = [0.5, 1.5, 2.5, -0.5, 1e30]
        with np.errstate(over="ignore"):
            want = stored(x.astype(np.float64), to) if to in INTEGERS else x.astype(NUMPY[to])
    else:
        want = x.astype(NUMPY[to])
    np.testing.assert_array_equal(run("cast", [x], x.shape, to), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_writes_the_value_everywhere(run, dtype):
    for shape in SHAPES:
        assert (run("fill", [], shape, dtype, value=7) == 7).all()
    assert run("fill", [], (2,), dtype, value=2.6).tolist() == pytest.approx(
        [2.6, 2.6] if dtype in FLOATS else [3, 3]
    )


# -- one memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["elementwise_add", "elementwise_div", "elementwise_sub"])
def test_the_output_may_be_an_input(device, name):
    a, b = sample((1000,), "f32", 1), sample((1000,), "f32", 2)
    function = {"add": np.add, "div": np.divide, "sub": np.subtract}[name.split("_")[1]]
    for place in (0, 1):
        buffers = [compute.from_numpy(a.copy()), compute.from_numpy(b.copy())]
        compute.run_kernel(name, buffers, buffers[place])
        np.testing.assert_array_equal(compute.read(buffers[place]), function(a, b))


# -- mistakes --------------------------------------------------------------------------------------


def test_inputs_of_different_shapes_are_refused_with_both(fail):
    inputs = [((2, 3), "f32"), ((3, 2), "f32")]
    said = fail(errors.ShapeError, "elementwise_div", inputs, ((2, 3), "f32"))
    assert "(3, 2)" in said
    assert "(2, 3)" in said


def test_a_value_that_does_not_fit_is_refused(fail):
    said = fail(errors.ArgumentError, "fill", [], ((2,), "u8"), value=256)
    assert "256 does not fit u8, which holds 0 to 255" in said


def test_every_kernel_says_in_one_line_what_it_computes(device):
    for name, described in compute.kernels().items():
        assert 2 < len(described["doc"]) < 100, name
