"""One buffer in several places of a call: as input and output, as two inputs, as all of them."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute

DTYPES = ["f4", "f8", "i4", "i8", "u4", "u1"]


def noise(shape, dtype):
    return np.random.default_rng(3).integers(0, 100, shape).astype(dtype)


@dala.kernel
def more(x):
    return x + x + 1


@dala.kernel
def combine(x, y):
    return x * 2 + y


@dala.kernel
def place(x):
    i, j = dala.position(2)
    return x + x if (i + j) % 2 == 0 else x


@dala.kernel
def around(x):
    i, j = dala.position(2)
    return x[i - 1, j + 1] + x[i + 1, j - 1]


@dala.kernel
def with_neighbour(x, y):
    i, j = dala.position(2)
    return x + y[i, j + 1]


@dala.kernel
def share(x):
    i, j = dala.position(2)
    return x[i, j] + sum(x[i, k] for k in range(x.shape[1]))


@dala.kernel
def turn_colours(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.b, p.r, p.g, p.a)


@dala.kernel
def pile(x, out: dala.Out):
    i, j = dala.position(2)
    out[j, i] = x


def neighbours(values):
    padded = np.pad(values, 1, mode="edge")
    return padded[:-2, 2:] + padded[2:, :-2]


ROWS, COLUMNS = np.indices((37, 37))
IN_PLACE = {
    "elementwise": (more, lambda x: x + x + np.ones(1, x.dtype)),
    "by position": (place, lambda x: np.where((ROWS + COLUMNS) % 2 == 0, x + x, x)),
    "stencil": (around, neighbours),
    "rows": (share, lambda x: x + x.sum(1, keepdims=True, dtype=x.dtype)),
    "scattered": (pile, np.transpose),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", IN_PLACE)
def test_a_kernel_may_write_over_what_it_reads(device, case, dtype):
    kernel, formula = IN_PLACE[case]
    values = noise((37, 37), dtype)
    x = compute.from_numpy(values)
    for _ in range(2):
        compute.run_kernel(kernel, [x], x)
        values = formula(values)
        assert np.array_equal(compute.read(x), values)


def test_rows_that_a_group_shares_may_be_written_over(device):
    values = noise((5, 301), "u1")
    x = compute.from_numpy(values)
    compute.run_kernel(share, [x], x)
    assert np.array_equal(compute.read(x), IN_PLACE["rows"][1](values))


@dala.kernel
def add_row(x, y):
    i, _ = dala.position(2)
    return x + sum(y[i, k] for k in range(y.shape[1]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_input_beside_a_row_that_a_group_shares_may_be_written_over(device, dtype):
    values = noise((5, 301), dtype)
    x, y = compute.from_numpy(values), compute.from_numpy(values)
    compute.run_kernel(add_row, [x, y], x)
    assert np.array_equal(compute.read(x), IN_PLACE["rows"][1](values))


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_an_image_may_be_written_over(device, channels, dtype):
    values = noise((5, 7, channels), dtype)
    x = compute.from_numpy(values)
    compute.run_kernel(turn_colours, [x], x)
    order = [2, 0, 1, 3][:channels]
    assert np.array_equal(compute.read(x), values[..., order])


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_buffer_may_be_both_inputs_and_the_output(device, dtype):
    values = noise((1003,), dtype)
    x, y = compute.from_numpy(values), compute.buffer_zeros((1003,), dtype)
    compute.run_kernel(combine, [x, x], y)
    assert np.array_equal(compute.read(y), values * 2 + values)
    compute.run_kernel(combine, [y, x], x)
    assert np.array_equal(compute.read(x), values * 7)
    compute.run_kernel(combine, [x, x], x)
    assert np.array_equal(compute.read(x), values * 21)


@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_a_buffer_read_in_place_and_beside_it_is_read_before_it_is_written(device, dtype):
    values = noise((9, 37), dtype)
    x = compute.from_numpy(values)
    compute.run_kernel(with_neighbour, [x, x], x)
    assert np.array_equal(
        compute.read(x), values + np.pad(values[:, 1:], ((0, 0), (0, 1)), mode="edge")
    )


def softmax(values):
    powers = np.exp(values)
    return powers / powers.sum(1, keepdims=True)


def layer_norm(values):
    apart = values - values.mean(1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1e-5)


RECIPES = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "prefix_sum": lambda values: np.cumsum(values, axis=1),
}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("shape", [(4, 9), (3, 300)], ids=str)
def test_a_composite_kernel_may_write_over_its_input(device, name, shape):
    values = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    x = compute.from_numpy(values)
    compute.run_kernel(name, [x], x)
    assert np.allclose(compute.read(x), RECIPES[name](values.astype(np.float64)), atol=1e-4)


def test_a_product_may_write_over_its_factors(device):
    values = noise((33, 33), "f4")
    x = compute.from_numpy(values)
    compute.run_kernel("matmul", [x, x], x)
    assert np.array_equal(compute.read(x), values @ values)


def test_a_reduction_over_an_axis_of_one_may_write_over_its_input(device):
    values = noise((65, 1), "f4")
    x = compute.from_numpy(values)
    compute.run_kernel("reduce_sum", [x], x, {"axis": 1})
    assert np.array_equal(compute.read(x), values)
