"""Built-in kernels on floats of 16 bits, which are those of f32 rounded once, and on masks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from dala.gpu import compute

HALVES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
PLANE, ROWS = (1, 8, 9, 9), (7, 300)
CASES = {
    **{name: ([ROWS], ROWS, {}) for name in ("relu", "relu6", "sigmoid", "tanh", "gelu", "sqrt")},
    **{name: ([ROWS], ROWS, {}) for name in ("exp", "log", "abs", "leaky_relu", "cast")},
    **{
        f"elementwise_{op}": ([ROWS, ROWS], ROWS, {})
        for op in ("add", "sub", "mul", "div", "min", "max")
    },
    "scale": ([ROWS], ROWS, {"factor": 1.5}),
    "clamp": ([ROWS], ROWS, {"low": -1, "high": 2.5}),
    "fill": ([], ROWS, {"value": 2.6}),
    "softmax": ([ROWS], ROWS, {}),
    "layer_norm": ([ROWS], ROWS, {}),
    "prefix_sum": ([ROWS], ROWS, {}),
    "reduce_sum": ([ROWS], (7,), {"axis": 1}),
    "reduce_mean": ([ROWS], (300,), {"axis": 0}),
    "reduce_max": ([ROWS], (7,), {"axis": 1}),
    "reduce_min": ([ROWS], (), {"axis": None}),
    "matmul": ([ROWS, (300, 5)], (7, 5), {}),
    "transpose": ([ROWS], (300, 7), {"axes": (1, 0)}),
    "concat": ([ROWS, ROWS], (14, 300), {"axis": 0}),
    "conv2d": ([PLANE, (4, 8, 3, 3)], (1, 4, 7, 7), {}),
    "depthwise_conv2d": ([PLANE, (8, 1, 3, 3)], (1, 8, 7, 7), {}),
    "max_pool": ([PLANE], (1, 8, 4, 4), {}),
    "avg_pool": ([PLANE], (1, 8, 4, 4), {}),
    "top_k": ([ROWS], (7, 5), {"indices": False}),
    "fft": ([(4, 30)], (4, 30, 2), {}),
}


def run(name, arrays, shape, dtype, params):
    inputs, output = (
        [compute.from_numpy(item) for item in arrays],
        compute.buffer_zeros(shape, dtype),
    )
    compute.run_kernel(name, inputs, output, params)
    return compute.read(output)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_of_16_bit_floats_is_that_of_f32_rounded(device, name, dtype):
    shapes, shape, params = CASES[name]
    random, numpy = np.random.default_rng(3), HALVES[dtype]
    arrays = [random.normal(0, 2, item).astype(numpy) for item in shapes]
    got = run(name, arrays, shape, dtype, params).astype(np.float32)
    wide = run(name, [item.astype(np.float32) for item in arrays], shape, "f32", params)
    want = wide.astype(numpy).astype(np.float32)
    step = 2.0**-10 if dtype == "f16" else 2.0**-7
    np.testing.assert_allclose(got, want, rtol=step, atol=1e-4)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("k", [3, 200])
def test_16_bit_floats_are_ranked_as_f32(device, dtype, k):
    x = np.random.default_rng(4).normal(0, 2, (3, 300)).astype(HALVES[dtype])
    x[:, ::50] = np.nan
    got, want = (
        run("top_k", [item], (3, k), "s32", {"indices": True}) for item in (x, x.astype(np.float32))
    )
    assert np.array_equal(got, want)
    got = run("argmax", [x], (3,), "s32", {"axis": 1})
    assert got.tolist() == [0, 0, 0]


def test_masks_are_counted_moved_and_searched(device):
    mask = np.random.default_rng(5).random((6, 90)) < 0.3
    assert run("reduce_sum", [mask], (6,), "s32", {"axis": 1}).tolist() == mask.sum(1).tolist()
    assert compute.Kernel.lookup("reduce_sum")(mask, axis=1).dtype == np.int32
    assert np.array_equal(run("reduce_max", [mask], (6,), "bool", {"axis": 1}), mask.any(1))
    assert np.array_equal(run("reduce_min", [mask], (90,), "bool", {"axis": 0}), mask.all(0))
    assert np.allclose(run("reduce_mean", [mask], (6,), "f32", {"axis": 1}), mask.mean(1))
    assert np.array_equal(run("transpose", [mask], (90, 6), "bool", {"axes": (1, 0)}), mask.T)
    assert np.array_equal(run("argmax", [mask], (6,), "s32", {"axis": 1}), mask.argmax(1))
    sums = run("prefix_sum", [mask], mask.shape, "s32", {"axis": 1})
    assert np.array_equal(sums, mask.cumsum(1))
    found = run("top_k", [mask], (6, 4), "bool", {"indices": False})
    assert np.array_equal(found, np.sort(mask, 1)[:, ::-1][:, :4])
    counts = run("histogram", [mask], (2,), "s32", {})
    assert counts.tolist() == [(~mask).sum(), mask.sum()]


def test_a_quotient_of_masks_and_halves_is_what_numpy_says(device):
    x = np.arange(1, 50).astype(np.float16)
    divided = compute.Kernel.lookup("elementwise_div")(x, np.full(49, 3, np.float16))
    assert divided.dtype == np.float16
    assert np.array_equal(divided, x / np.float16(3))
