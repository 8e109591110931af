"""Products and transposition, against NumPy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, sample

from dala import errors
from dala.devices.cpu.memory import Borrowed
from dala.gpu import compute
from dala.ir.types import U8
from dala.kernels.tensor import matmul as matrices
from dala.runtime.buffers.buffer import Buffer

PRODUCTS = [
    ((1, 1), (1, 1)),
    ((2, 3), (3, 5)),
    ((33, 257), (257, 18)),
    ((3, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((4, 2, 3), (4, 3, 5)),
    ((4, 2, 3), (3, 5)),
    ((2, 3), (4, 3, 5)),
    ((1, 2, 3), (4, 3, 5)),
    ((4, 2, 3), (1, 3, 5)),
]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_agree_with_numpy(run, dtype):
    for first, second in PRODUCTS:
        a, b = sample(first, dtype, 1), sample(second, dtype, 2)
        want = a @ b
        got = run("matmul", [a, b], want.shape, dtype)
        if dtype in FLOATS:
            scale = np.abs(a) @ np.abs(b)
            assert (np.abs(got - want) <= 1e-5 * scale).all()
        else:
            np.testing.assert_array_equal(got, want)


def test_products_of_mixed_dtypes_are_computed_in_the_widest(run):
    a, b = sample((5, 7), "u8"), sample((7, 3), "f32")
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(run("matmul", [a, b], (5, 3), "f32"), want, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(
        run("matmul", [b.T, a.T], (3, 5), "f64"), want.T, rtol=1e-6, atol=1e-4
    )


def test_products_of_small_integers_take_the_width_of_the_output(run):
    a, b = sample((3, 300), "u8", 1), sample((300, 2), "u8", 2)
    want = a.astype(np.int64) @ b.astype(np.int64)
    for dtype in ("s32", "u32", "s64"):
        np.testing.assert_array_equal(run("matmul", [a, b], (3, 2), dtype), want)
    signed = sample((3, 300), "s32", 1)
    wide = signed.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(run("matmul", [signed, b], (3, 2), "s64"), wide)


def test_signed_and_unsigned_multiply_into_either(run):
    a, b = np.array([[-2]], np.int32), np.array([[3]], np.uint32)
    assert run("matmul", [a, b], (1, 1), "s32") == -6
    assert run("matmul", [a, b], (1, 1), "u32") == 2**32 - 6


@pytest.mark.usefixtures("computed_by")
def test_a_product_may_overwrite_its_input(device):
    a, b = sample((8, 8), "f32", 1), sample((8, 8), "f32", 2)
    buffers = [compute.from_numpy(a.copy()), compute.from_numpy(b)]
    compute.run_kernel("matmul", buffers, buffers[0])
    np.testing.assert_allclose(compute.read(buffers[0]), a @ b, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("a", "b", "output", "words"),
    [
        (
            (2, 3),
            (4, 5),
            (2, 5),
            "matmul(a, b): a has 3 columns but b has 4 rows (a is (2, 3), b is (4, 5)).",
        ),
        ((2, 3), (3, 5), (5, 2), "makes the output (2, 5), but it is (5, 2)"),
        ((3,), (3, 5), (5,), "a has 1 axes, but a matrix has 2"),
        ((2, 2, 3), (4, 3, 5), (4, 2, 5), "a has a batch of 2 but b one of 4"),
        ((2, 2, 3), (2, 3, 5), (2, 5), "makes the output (2, 2, 5), but it is (2, 5)"),
    ],
)
def test_matrices_that_do_not_fit_are_refused_with_both_numbers(fail, a, b, output, words):
    said = fail(errors.ShapeError, "matmul", [(a, "f32"), (b, "f32")], (output, "f32"))
    assert words in said


# -- transposition ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_axes_come_in_every_order(run, dtype):
    for shape in [
        (),
        (5,),
        (3, 4),
        (1, 7),
        (2, 3, 4),
        (2, 1, 3, 5),
        (2, 3, 4, 5),
        (70, 33),
        (300, 3),
        (3, 300),
    ]:
        x = sample(shape, dtype)
        for axes in permutations(range(len(shape))):
            want = x.transpose(axes)
            got = run("transpose", [x], want.shape, dtype, axes=axes)
            np.testing.assert_array_equal(got, want)


def test_axes_are_reversed_unless_said(run):
    x = sample((2, 3, 4, 5, 6), "f32")
    np.testing.assert_array_equal(run("transpose", [x], (6, 5, 4, 3, 2), "f32"), x.T)
    x = sample((2,) * 10, "f32")
    np.testing.assert_array_equal(run("transpose", [x], x.shape, "f32"), x.T)


@pytest.mark.parametrize("computed_by", ["kernels"], indirect=True)
@pytest.mark.parametrize("dtype", DTYPES)
def test_more_axes_than_a_kernel_runs_over_come_in_any_order(run, dtype, computed_by):
    x = sample((2, 3, 1, 2, 4, 2, 3, 2, 2, 5, 2), dtype)
    for axes in [(10, 8, 9, 6, 7, 4, 5, 3, 1, 0, 2), (1, 0, 4, 3, 6, 5, 8, 7, 10, 9, 2)]:
        want = x.transpose(axes)
        got = run("transpose", [x], want.shape, dtype, axes=axes)
        np.testing.assert_array_equal(got, want)


def test_more_elements_than_can_be_counted_in_many_axes_are_refused():
    # Borrowed memory of which nothing is touched: as many elements would not fit in here.
    memory = Borrowed(0, 1 << 31, None)
    x, output = (Buffer(memory, U8, (2,) * 31) for _ in range(2))
    with pytest.raises(errors.ShapeError, match="2,147,483,648 elements in 31 axes"):
        list(matrices.transpose.stages([x], output))


@pytest.mark.parametrize("dtype", ["f32", "f64", "u8"])
@pytest.mark.parametrize("shape", [(1024, 2048), (2, 1500, 1024), (1031, 2053)])
def test_large_matrices_are_transposed_too(run, shape, dtype):
    x = sample(shape, dtype)
    axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    want = x.transpose(axes)
    np.testing.assert_array_equal(run("transpose", [x], want.shape, dtype, axes=axes), want)


def test_empty_matrices_are_transposed_to_empty_ones(run):
    assert run("transpose", [np.zeros((0, 3), np.float32)], (3, 0), "f32").shape == (3, 0)


def test_a_square_may_be_transposed_in_place(device):
    x = sample((40, 40), "s32")
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("transpose", [buffer], buffer)
    np.testing.assert_array_equal(compute.read(buffer), x.T)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ((0, 0), "axes (0, 0) is no order of the 2 axes of (2, 3)"),
        ((0,), "axes (0,) is no order"),
        ((0, 2), "axis 2 is outside an input of 2 axes"),
    ],
)
def test_axes_that_are_no_order_are_refused(fail, axes, words):
    said = fail(errors.ArgumentError, "transpose", [((2, 3), "f32")], ((3, 2), "f32"), axes=axes)
    assert words in said


def test_a_transposed_output_of_the_wrong_shape_is_refused(fail):
    said = fail(errors.ShapeError, "transpose", [((2, 3), "f32")], ((2, 3), "f32"))
    assert "makes the output (3, 2), but it is (2, 3)" in said
