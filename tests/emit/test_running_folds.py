"""Folds over all that stands before a position are carried along rows, and give what loops say."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices.cpu import runner
from dala.gpu import compute

DTYPES = {"s32": np.int32, "u32": np.uint32, "f32": np.float32}
WIDTHS = [1, 2, 15, 16, 17, 100, 300]


def given(width: int, dtype: str) -> np.ndarray:
    return (np.random.default_rng(width).random((5, width)) * 100).astype(DTYPES[dtype])


@dala.kernel
def so_far(x):
    i, j = dala.position(2)
    return sum(x[i, k] for k in range(j + 1))


@dala.kernel
def before(x):
    i, j = dala.position(2)
    return sum(x[i, k] for k in range(j))


@dala.kernel
def largest(x):
    i, j = dala.position(2)
    return max(x[i, k] for k in range(j + 1))


@dala.kernel
def smallest_of_squares(x):
    i, j = dala.position(2)
    return min((x[i, k] - x[0, 0]) * (x[i, k] - x[0, 0]) for k in range(j + 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_carry_sums_and_extremes_on(device, dtype, width):
    x = given(width, dtype)
    sums = np.cumsum(x, 1, dtype=np.float64)
    np.testing.assert_allclose(so_far(x, dtype=dtype), sums, rtol=1e-6)
    np.testing.assert_allclose(before(x, dtype=dtype), sums - x, rtol=1e-5, atol=1e-3)
    assert np.array_equal(largest(x), np.maximum.accumulate(x, 1))
    squares = (x - x[0, 0]) * (x - x[0, 0])
    np.testing.assert_allclose(
        smallest_of_squares(x), np.minimum.accumulate(squares, 1), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_neighbors_of_terms_follow_the_border(device, width):
    @dala.kernel(border="zero")
    def smoothed(x):
        i, j = dala.position(2)
        return sum(x[i, k - 1] + x[i, k + 2] for k in range(j + 1)) - j

    x = given(width, "s32")
    wide = np.pad(x, ((0, 0), (1, 2)))
    want = np.cumsum(wide[:, :width] + wide[:, 3:], 1) - np.arange(width)
    assert np.array_equal(smoothed(x), want)


def test_terms_that_depend_on_the_position_are_summed_for_each(device):
    @dala.kernel
    def weighted(x):
        i, j = dala.position(2)
        return sum(x[i, k] * (j - k) for k in range(j + 1))

    x = given(40, "s32")
    want = [[sum(row[k] * (j - k) for k in range(j + 1)) for j in range(40)] for row in x]
    assert np.array_equal(weighted(x), want)


def test_nan_stays_in_its_row(device):
    x = given(40, "f32")
    x[2, 20] = np.nan
    for kernel in (so_far, largest):
        found = np.isnan(kernel(x))
        assert found[2, 20:].all()
        assert found.sum() == 20


def test_a_row_takes_as_many_steps_as_it_has_elements():
    """One by one, 2 ** 20 positions would take 2 ** 39 of them."""
    x = np.ones((1, 1 << 20), np.int32)
    with compute.device("cpu"):
        assert np.array_equal(so_far(x)[0], np.arange(1, (1 << 20) + 1))


def test_what_follows_a_running_sum_may_be_fused_with_it(device):
    x = compute.from_numpy(given(300, "f32"))
    middle, fused, alone = (compute.buffer_zeros(x.shape, "f32") for _ in range(3))
    pipeline = compute.pipeline()
    pipeline.add(so_far, [x], middle)
    pipeline.add("scale", [middle], fused, {"factor": 0.1})
    pipeline.run()
    compute.run_kernel(so_far, [x], middle)
    compute.run_kernel("scale", [middle], alone, {"factor": 0.1})
    assert np.array_equal(np.asarray(fused), np.asarray(alone))


def test_rows_that_begin_within_a_cache_line_are_not_streamed(monkeypatch):
    """Stores past the caches must not cross lines, and would fault."""
    monkeypatch.setattr(runner, "outgrows_caches", lambda task, times: True)
    x = given(1003, "s32")
    with compute.device("cpu"):
        assert np.array_equal(so_far(x, dtype="s32"), np.cumsum(x, 1))
