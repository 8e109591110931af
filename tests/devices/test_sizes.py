"""Every way to read and write, for every dtype, over shapes that fill no group and no word."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.ir.types import dtype_of
from dala.runtime.kernels.kernel import from_source

DTYPES = ["f32", "f64", "s32", "s64", "u32", "u8"]
SHAPES = [
    (0,),
    (1,),
    (3,),
    (255,),
    (257,),
    (3, 0),
    (65_537, 1),
    (1, 65_537),
    (3, 257),
    (2, 3, 5),
    (3, 1, 257),
    (257, 0, 3),
]
PADDING = {
    "clamp": "edge",
    "mirror": "reflect",
    "reflect": "symmetric",
    "wrap": "wrap",
    "zero": "constant",
}
"""What NumPy calls each border."""


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=str)
def shape(request):
    return request.param


def values_of(shape, dtype):
    """Integers from the whole of their range; floats whose sums are exact in any order."""
    random = np.random.default_rng(7)
    scalar = dtype_of(dtype)
    if scalar.is_float:
        return random.integers(-8, 9, shape).astype(scalar.numpy)
    limits = np.iinfo(scalar.numpy)
    return random.integers(limits.min, limits.max, shape, scalar.numpy, endpoint=True)


@dala.kernel
def square_and_more(x):
    return x * x + x


def test_an_elementwise_kernel_reaches_every_element(run, dtype, shape):
    values = values_of(shape, dtype)
    assert np.array_equal(run(square_and_more, values), values * values + values)


def stencil(rank, border):
    """A kernel that adds what lies two before and three after along every axis."""
    axes = ["i", "j", "k"][:rank]
    before, after = (", ".join(f"{axis} {by}" for axis in axes) for by in ("- 2", "+ 3"))
    text = f"def k(x):\n {', '.join(axes)}, = position({rank})\n return x[{before}] + x[{after}]"
    kernel = compute.Kernel.register("stencil", text, border=border)
    compute.Kernel.unregister("stencil")
    return kernel


STENCILS = {(rank, border): stencil(rank, border) for rank in (1, 2, 3) for border in PADDING}


@pytest.mark.parametrize("border", PADDING)
def test_a_stencil_follows_its_border(run, dtype, border):
    for shape in SHAPES:
        values = values_of(shape, dtype)
        want = values
        if values.size:
            padded = np.pad(values, (2, 3), mode=PADDING[border])
            first = padded[tuple(slice(size) for size in shape)]
            want = first + padded[tuple(slice(5, None) for _ in shape)]
        got = run(STENCILS[len(shape), border], values)
        assert np.array_equal(got, want), f"shape {shape}"


@dala.kernel
def sums_and_extremes(x):
    i, j = dala.position(2)
    (_, width) = x.shape
    total = sum(x[i, k] for k in range(width))
    least = min(x[i, k] for k in range(width))
    return x[i, j] + total - least


@pytest.mark.parametrize("shape", [*(s for s in SHAPES if len(s) == 2), (5, 63), (5, 65)], ids=str)
def test_a_reduction_of_a_row_takes_in_all_of_it_and_nothing_else(run, dtype, shape):
    values = values_of(shape, dtype)
    want = values
    if values.size:
        totals = values.sum(1, keepdims=True, dtype=values.dtype)
        want = values + totals - values.min(1, keepdims=True)
    assert np.array_equal(run(sums_and_extremes, values), want)


@dala.kernel
def reverse(x, out: dala.Out):
    (i,) = dala.position(1)
    (n,) = dala.shape(1)
    out[n - 1 - i] = x


@dala.kernel
def reverse_planes(x, out: dala.Out):
    i, j, k = dala.position(3)
    a, b, c = dala.shape(3)
    out[c - 1 - k, b - 1 - j, a - 1 - i] = x


@pytest.mark.parametrize("count", [0, 1, 3, 255, 257, 65_537])
def test_scattered_writes_arrive_each_at_its_place(run, dtype, count):
    values = values_of((count,), dtype)
    assert np.array_equal(run(reverse, values), values[::-1])
    planes = values_of((3, count, 2), dtype)
    assert np.array_equal(run(reverse_planes, planes, (2, count, 3)), np.flip(planes.T))


@dala.kernel
def tally(x, out: dala.Out):
    (i,) = dala.position(1)
    out.add(i % 3, x)


@pytest.mark.parametrize("count", [0, 1, 3, 255, 257, 65_537])
def test_no_addition_to_a_shared_element_is_lost(run, dtype, count):
    values = values_of((count,), dtype)
    want = [values[i::3].sum(dtype=values.dtype) for i in range(3)]
    # The fourth lies in the same word of u8, and nobody adds to it.
    assert run(tally, values, (4,)).tolist() == [*want, 0]


@pytest.mark.parametrize("index", ["~u32(5)", "u32(2147483648)", "s64(1) << 40", "-(s64(1) << 40)"])
def test_a_constant_index_beyond_any_buffer_reads_the_border_and_writes_nothing(device, index):
    x = compute.from_numpy(np.arange(1, 5, dtype=np.int32))
    out = compute.buffer_zeros((4,), "s32")
    written = (
        f"def k(x, out: Out):\n    (i,) = position(1)\n    out.add({index}, 1)\n    out[i] = x"
    )
    compute.run_kernel(from_source("k", written), [x], out)
    assert compute.read(out).tolist() == [1, 2, 3, 4]
    compute.run_kernel(from_source("k", f"def k(x):\n    return x[{index}] + 0 * x"), [x], out)
    assert compute.read(out).tolist() == [1 if index.startswith("-") else 4] * 4
