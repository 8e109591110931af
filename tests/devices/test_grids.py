"""Fault 28: more workgroups than one axis of a dispatch can have."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.emit.wgsl import grid as wgsl_grid
from dala.gpu import compute

MOST = 65_535
GROUP = 256


def made(text, name="split"):
    """A kernel that no other test has run."""
    kernel = compute.Kernel.register(name, text)
    compute.Kernel.unregister(name)
    return kernel


PLACE = "def k(x):\n i, j = position(2)\n return x + {}(i * 7 + j)"
ROWS = "def k(x):\n i, j = position(2)\n return x[i, j] + sum(x[i, k] for k in range(x.shape[1]))"


def places(values):
    rows, columns = np.indices(values.shape[:2])
    return values + (rows * 7 + columns).astype(values.dtype)


def flipped(values):
    return 255 - values


CASES = {
    "elements": ("def k(x):\n return x + x", (2561,), "f4", lambda x: x + x),
    "bytes": ("def k(x):\n return x + x", (10_243,), "u1", lambda x: x + x),
    "positions": (PLACE.format("f32"), (2601, 5), "f4", places),
    "positions of bytes": (PLACE.format("u8"), (1300, 8), "u1", places),
    "positions of odd rows": (PLACE.format("u8"), (1700, 7), "u1", places),
    "columns": (PLACE.format("f32"), (3, 20_000), "f4", places),
    "rows": (ROWS, (11, 70), "f4", lambda x: x + x.sum(1, keepdims=True)),
    "rows of bytes": (ROWS, (11, 70), "u1", lambda x: x + x.sum(1, keepdims=True, dtype="u1")),
    "RGB": ("def k(x: Image):\n return 1.0 - x.pixel", (103, 101, 3), "u1", flipped),
    "planes": (
        "def k(x):\n i, j, k = position(3)\n return x + f32(i * 100 + j * 10 + k)",
        (40, 70, 3),
        "f4",
        lambda x: x + np.tensordot([100, 10, 1], np.indices(x.shape), 1).astype("f4"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_28_groups_past_the_limit_go_along_the_other_axes(webgpu, monkeypatch, case):
    monkeypatch.setattr(wgsl_grid, "MOST_GROUPS", 3)
    text, shape, dtype, formula = CASES[case]
    values = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    output = compute.from_numpy(np.full(shape, 77, dtype))
    kernel = made(text)
    compute.run_kernel(kernel, [compute.from_numpy(values)], output)
    assert np.array_equal(compute.read(output), formula(values))
    (runner,) = kernel._launches.values()
    assert max(runner.groups[:2]) <= 3
    assert runner.groups[2] > 1


@dala.kernel
def count_marks(x, out: dala.Out):
    (i,) = dala.position(1)
    if x > 0:
        out.add(0, i)


def test_28_more_elements_than_groups_have_are_all_reached(device):
    values = np.zeros(MOST * GROUP + 3, np.uint8)
    marks = np.array([0, 1, MOST * GROUP - 1, MOST * GROUP, values.size - 1])
    values[marks] = 1
    output = compute.buffer_zeros((1,), "u32")
    compute.run_kernel(count_marks, [compute.from_numpy(values)], output)
    assert compute.read_list(output) == [int(marks.sum()) % 2**32]


@dala.kernel
def count_rows(x, out: dala.Out):
    i, j = dala.position(2)
    if x > 0:
        out.add((0, j), i)


def test_28_more_rows_than_groups_have_are_all_reached(device):
    values = np.zeros((MOST * GROUP // 4 + 3, 4), np.uint8)
    marks = np.array([1, MOST, MOST * GROUP // 4 - 1, MOST * GROUP // 4, values.shape[0] - 1])
    values[marks, 2] = 1
    output = compute.buffer_zeros((1, 4), "u32")
    compute.run_kernel(count_rows, [compute.from_numpy(values)], output)
    assert compute.read_list(output) == [0, 0, int(marks.sum()), 0]


def test_28_more_shared_rows_than_groups_are_all_computed(device):
    values = np.random.default_rng(2).integers(0, 256, (MOST + 2, 64), np.uint8)
    output = compute.buffer_zeros((MOST + 2, 1), "u8")
    text = "def k(x):\n i, j = position(2)\n return sum(x[i, k] for k in range(x.shape[1]))"
    compute.run_kernel(made(text), [compute.from_numpy(values)], output)
    assert np.array_equal(compute.read(output), values.sum(1, keepdims=True, dtype=np.uint8))


def test_28_more_words_than_groups_have_are_all_written(device):
    x = compute.from_numpy(np.full(4 * MOST * GROUP + 5, 3, np.uint8))
    compute.run_kernel(made("def k(x):\n return x + 1"), [x], x)
    assert (np.asarray(x) == 4).all()
