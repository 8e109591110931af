"""Small arrays of a position's own: `dala.local(9, dala.f32)`."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import KernelSyntaxError, KernelTypeError
from dala.gpu import compute

X = np.random.default_rng(2).random((23, 31), np.float32)


@dala.kernel
def median(x):
    i, j = dala.position(2)
    near = dala.local(9, dala.f32)
    for k in range(9):
        near[k] = x[i + k // 3 - 1, j + k % 3 - 1]
    for a in range(5):
        least = a
        for b in range(a + 1, 9):
            if near[b] < near[least]:
                least = b
        near[a], near[least] = near[least], near[a]
    return near[4]


@dala.kernel
def most_frequent(x):
    (i,) = dala.position(1)
    counts = dala.local(8, dala.s32)
    for k in range(len(x)):
        counts[x[k] % 8] += 1
    best = 0
    for k in range(8):
        if counts[k] > counts[best]:
            best = k
    return best + 0 * i


@dala.kernel
def outside(x, n: int):
    held = dala.local(3, dala.f32)
    held[0], held[1], held[2] = 1.0, 2.0, 4.0
    held[n] = 100.0
    return x + held[0] + held[1] + held[2]


@dala.kernel
def reversed_sum(x):
    held = dala.local(4, dala.f32)
    for k, v in enumerate((1.0, 2.0, 3.0, 4.0)):
        held[3 - k] = v * x
    total = 0.0
    for v in held:
        total = 10.0 * total + v
    return total * dala.f32(len(held))


def test_a_median_by_selection(device):
    padded = np.pad(X, 1, "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).reshape(23, 31, 9)
    got = median(compute.from_numpy(X))
    np.testing.assert_array_equal(compute.read(got), np.median(windows, axis=2))


def test_counts_by_computed_indices(device):
    x = np.random.default_rng(4).integers(0, 5, 100).astype(np.int32)
    got = most_frequent(compute.from_numpy(x), shape=(3,), dtype="s32")
    assert compute.read(got).tolist() == [np.bincount(x).argmax()] * 3


@pytest.mark.parametrize(("n", "total"), [(0, 106.0), (2, 103.0), (3, 7.0), (-1, 7.0), (99, 7.0)])
def test_an_index_outside_changes_nothing(n, total, device):
    got = outside(compute.from_numpy(np.zeros(5, np.float32)), n=n)
    assert compute.read(got).tolist() == [total] * 5


def test_an_array_is_gone_through_like_a_tuple(device):
    got = reversed_sum(compute.from_numpy(np.ones(3, np.float32)))
    assert compute.read(got).tolist() == [4321.0 * 4] * 3


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (" h = dala.local(65, dala.f32)\n return x", KernelTypeError, "1 to 64"),
        (" h = dala.local(3)\n return x", KernelTypeError, "takes 2 arguments"),
        (" h = dala.local(3, 4)\n return x", KernelTypeError, "and their type"),
        (" h = dala.local(3, dala.f32)\n h[3] = x\n return x", KernelTypeError, "outside a local"),
        (" h = dala.local(3, dala.f32)\n h[1.5] = x\n return x", KernelTypeError, "by an integer"),
        (" h = dala.local(3, dala.f32)\n return h", KernelTypeError, "a local array of 3"),
        (" h = (1.0, 2.0)\n h[0] = x\n return x", KernelSyntaxError, "dala.local"),
    ],
)
def test_mistakes_with_local_arrays_are_explained(body, kind, says):
    with pytest.raises(kind, match=says):
        compute.Kernel.register("k", f"def k(x):\n{body}", replace=True)
