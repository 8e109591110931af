"""Channels of pixels, and what kernels write side by side, are interleaved in registers."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.ir.types import SCALARS

WIDTHS = [1, 7, 64, 200, 1000]


@dala.kernel
def turned(image: dala.Image):
    p = image.pixel
    return dala.rgba(p.b, 1.0 - p.g, p.r, 1.0)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", ["u8", "u16", "f32", "f16"])
@pytest.mark.parametrize("channels", [3, 4])
def test_channels_come_out_in_their_order(device, width, dtype, channels):
    numpy = SCALARS[dtype].numpy
    highest = np.iinfo(numpy).max if dtype[0] == "u" else 1
    given = np.random.default_rng(width).random((5, width, channels))
    image = (given * highest).astype(numpy)
    r, g, b = (image[..., i] for i in range(3))
    full = np.full_like(r, highest)
    want = np.stack([b, full - g, r, full][:channels], -1)
    np.testing.assert_array_equal(turned(image), want)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", ["u8", "s16", "f32", "f16"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7, 16])
def test_neighbors_that_a_kernel_writes_come_out_in_their_order(device, width, dtype, count):
    lines = [f"    out[i, {count} * j + {(5 * k) % count}] = x[i, j] + {k}" for k in range(count)]
    text = "\n".join(["def k(x, out: dala.Out):", "    i, j = dala.position(2)", *lines])
    kernel = compute.Kernel.register("k", text, replace=True)
    x = np.random.default_rng(width).integers(0, 100, (5, width)).astype(SCALARS[dtype].numpy)
    added = [next(k for k in range(count) if 5 * k % count == place) for place in range(count)]
    want = (x[..., None] + np.array(added, x.dtype)).reshape(5, width * count)
    np.testing.assert_array_equal(kernel(x, shape=want.shape, dtype=dtype), want)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_written_backward_and_transposed(device, width):
    @dala.kernel
    def backward(x, out: dala.Out):
        i, j = dala.position(2)
        out[i, x.shape[1] - 1 - j] = x[i, j]

    @dala.kernel
    def transposed(x, out: dala.Out):
        i, j = dala.position(2)
        out[j, i] = x[i, j]

    x = np.random.default_rng(width).random((5, width)).astype(np.float32)
    np.testing.assert_array_equal(backward(x, shape=x.shape), x[:, ::-1])
    np.testing.assert_array_equal(transposed(x, shape=x.T.shape), x.T)


def test_what_lies_outside_is_not_written(device):
    @dala.kernel
    def wide(x, out: dala.Out):
        i, j = dala.position(2)
        out[i, 2 * j] = x[i, j]
        out[i, 2 * j + 1] = -x[i, j]

    x = np.random.default_rng(1).random((5, 100)).astype(np.float32)
    want = np.stack([x, -x], -1).reshape(5, 200)
    np.testing.assert_array_equal(wide(x, shape=(5, 150)), want[:, :150])
    np.testing.assert_array_equal(wide(x, shape=(4, 200)), want[:4])
    padded = np.pad(want, ((0, 0), (0, 9)))
    np.testing.assert_array_equal(wide(x, shape=(5, 209)), padded)
