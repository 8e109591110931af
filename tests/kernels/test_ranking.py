"""Where the largest elements are, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.samples import DTYPES, FLOATS, NUMPY, sample, small

from dala import errors
from dala.gpu import compute
from dala.kernels.tensor import ranking

# Rows, columns, many rows of one, a row that is searched in blocks, and one with a rest.
SHAPES = [
    (1,),
    (3,),
    (257,),
    (65537, 1),
    (1, 65536),
    (70001,),
    (2, 70001),
    (4, 300, 17),
    (2, 3, 4, 5),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax_finds_the_first_of_the_largest(run, dtype):
    for shape in SHAPES:
        for x in (sample(shape, dtype), small(shape, dtype)):
            for axis in (None, *range(-len(shape), len(shape))):
                want = np.asarray(x.argmax(axis))
                got = run("argmax", [x], want.shape, "s32", axis=axis)
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("place", [0, 2047, 2048, 65535, 69_999, 70_000])
@pytest.mark.parametrize("shape", [(70_001,), (70_001, 2), (1, 70_001, 1)])
def test_argmax_finds_the_largest_wherever_it_is(run, shape, place):
    axis = shape.index(70_001)
    x = np.zeros(shape, np.float32)
    np.moveaxis(x, axis, 0)[place] = 5
    assert (run("argmax", [x], np.delete(shape, axis).tolist(), "s64", axis=axis) == place).all()
    x[x == 5] = math.nan
    assert (run("argmax", [x], np.delete(shape, axis).tolist(), "s64", axis=axis) == place).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(40,), (70_001,), (6, 40), (40, 6)])
def test_argmax_takes_the_first_nan_for_the_largest(run, shape, dtype):
    random = np.random.default_rng(5)
    for filler in (1.0, -math.inf, math.inf):
        x = np.full(shape, filler, NUMPY[dtype])
        x[random.random(shape) < 0.1] = math.nan
        for axis in range(len(shape)):
            want = np.asarray(x.argmax(axis))
            got = run("argmax", [x], want.shape, "s32", axis=axis)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["s32", "s64", "u32", "u8"])
def test_positions_may_have_any_integer_dtype(run, dtype):
    x = sample((3, 256), "f32")
    got = run("argmax", [x], (3, 1), dtype, axis=1)
    np.testing.assert_array_equal(got, x.argmax(1, keepdims=True))


@pytest.mark.parametrize(
    ("kernel", "params"), [("argmax", {"axis": 1}), ("top_k", {"indices": True})]
)
def test_an_output_that_cannot_hold_positions_is_refused(fail, kernel, params):
    said = fail(errors.DtypeError, kernel, [((2, 9), "f32")], ((2, 1), "f32"), **params)
    assert "positions are integers" in said
    said = fail(errors.DtypeError, kernel, [((2, 257), "f32")], ((2, 1), "u8"), **params)
    assert "255" in said
    assert "256" in said


def test_argmax_of_nothing_is_refused(fail, run):
    said = fail(errors.ShapeError, "argmax", [((2, 0), "f32")], ((2,), "s32"), axis=1)
    assert "(2, 0)" in said
    assert run("argmax", [np.zeros((2, 0), np.float32)], (0,), "s32", axis=0).shape == (0,)


# -- the k largest ---------------------------------------------------------------------------------


def positions(x, count, largest):
    if not largest:
        return np.argsort(x, axis=-1, kind="stable")[..., :count]
    backwards = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return x.shape[-1] - 1 - backwards[..., :count]


TOP = [
    ((1,), (1,)),
    ((257,), (0, 1, 5, 128, 129, 257)),
    ((3, 2, 17), (1, 17)),
    ((2, 1, 256), (200, 256)),
    ((0, 300), (200,)),
]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_top_k_gives_elements_and_positions_in_order(run, dtype, largest):
    for shape, counts in TOP:
        for x in (sample(shape, dtype), small(shape, dtype)):
            for count in counts:
                want = positions(x, count, largest)
                given = {"largest": largest}
                got = run("top_k", [x], want.shape, "s32", indices=True, **given)
                np.testing.assert_array_equal(got, want)
                got = run("top_k", [x], want.shape, dtype, **given)
                np.testing.assert_array_equal(got, np.take_along_axis(x, want, -1))


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("count", [6, 200])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_top_k_sorts_nan_as_the_largest_and_zeros_as_equal(run, dtype, largest, count):
    values = [0.0, -0.0, math.inf, math.nan, -math.inf, -math.nan, 1e-45, -1.0]
    for some in (values, values[:2]):
        x = np.random.default_rng(2).choice(np.array(some, NUMPY[dtype]), (4, 300))
        want = positions(x, count, largest)
        got = run("top_k", [x], want.shape, "s32", indices=True, largest=largest)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", [1, 5, 60, 600, 3000])
@pytest.mark.parametrize("largest", [True, False])
def test_a_few_of_many_are_found_in_order_whatever_is_equal(run, largest, count):
    draw = np.random.default_rng(4)
    many = draw.normal(size=9000).astype(np.float32)
    few = draw.integers(0, 3, 9000).astype(np.float32)
    some = np.where(draw.random(9000) < 0.01, np.nan, many)
    most = np.where(draw.random(9000) < 0.9, np.nan, many)
    x = np.stack([many, few, some, most]).astype(np.float32)
    want = positions(x, count, largest)
    got = run("top_k", [x], want.shape, "s32", indices=True, largest=largest)
    np.testing.assert_array_equal(got, want)


@pytest.mark.usefixtures("computed_by")
def test_top_k_may_write_over_its_input(device):
    x = sample((3, 300), "f32")
    buffer = compute.from_numpy(x.copy())
    compute.run_kernel("top_k", [buffer], buffer, {"largest": False})
    np.testing.assert_array_equal(compute.read(buffer), np.sort(x))


@pytest.mark.parametrize("computed_by", ["kernels"], indirect=True)
def test_one_compiled_kernel_makes_all_passes_of_a_sort(device, computed_by):
    x, output = compute.buffer_zeros((2, 1000), "f32"), compute.buffer_zeros((2, 200), "f32")
    stages = list(ranking.top_k.stages([x], output))
    passes = [stage for stage in stages if "distance" in stage.params]
    assert len(passes) == 10 * 11 // 2
    assert len({stage.kernel for stage in passes}) == 1
    assert {item.kind for item in passes[0].kernel.params} == {"typed"}
    assert all(stage.output.dtype == "s32" for stage in stages[:-1])


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ((2, 5), "5 of each row are asked for, but a row of (2, 4) has 4"),
        ((3, 2), "the output is (3, 2), but the input (2, 4)"),
        ((), "the output is ()"),
    ],
)
def test_top_k_refuses_an_output_that_does_not_fit(fail, output, words):
    assert words in fail(errors.ShapeError, "top_k", [((2, 4), "f32")], (output, "f32"))


def test_top_k_refuses_what_is_not_true_or_false(fail):
    given = [((4,), "f32")], ((2,), "f32")
    assert "largest is True or False" in fail(errors.ArgumentError, "top_k", *given, largest=3)
