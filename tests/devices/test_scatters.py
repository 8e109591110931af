"""Kernels that write where they like: in lanes where positions write elements of their own."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices import CPU
from dala.gpu import compute
from dala.ir.types import dtype_of

SIZES = [1, 5, 64, 1000]


def noise(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, np.float32)


def run(kernel, given: np.ndarray, shape, dtype="f32", **params) -> np.ndarray:
    """The kernel's output, in memory that held something else."""
    out = compute.from_numpy(np.full(shape, 77, dtype_of(dtype).numpy))
    compute.run_kernel(kernel, [compute.from_numpy(given)], out, params)
    return compute.read(out)


@dala.kernel
def spread(x, out: dala.Out):
    (i,) = dala.position(1)
    out[i, 0] = x
    out[i, 2] = 2.0 * x


@dala.kernel
def backward(x, out: dala.Out):
    (i,) = dala.position(1)
    if x > 0.5:
        out[len(x) - 1 - i] = x


@dala.kernel
def turned(x, out: dala.Out):
    i, j = dala.position(2)
    out[j, i] = x


@dala.kernel
def shifted(x, out: dala.Out, by: dala.s32):
    (i,) = dala.position(1)
    out[i + by] = x


@dala.kernel
def powers(x, out: dala.Out):
    i, j = dala.position(2)
    for k in range(4):
        if k != j % 4:
            out.add((i, j), x)
    out.add((i, j), 1.0)


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_an_output_are_written_by_one_position_each(device, size):
    x = noise(size)
    want = np.stack([x, 0 * x, 2 * x], 1)
    assert np.array_equal(run(spread, x, (size, 3)), want)


@pytest.mark.parametrize("dtype", ["f32", "u8", "s64"])
@pytest.mark.parametrize("size", SIZES)
def test_writes_under_a_condition_leave_zeros_elsewhere(device, size, dtype):
    if device == "webgpu" and dtype == "s64":
        dtype = "s32"
    x = noise(size)
    want = np.where(x > 0.5, x, 0)[::-1]
    got = run(backward, x, (size,), dtype)
    assert np.array_equal(got, want if dtype == "f32" else np.rint(want))


@pytest.mark.parametrize("size", [(1, 1), (3, 70), (70, 3), (64, 130)])
def test_a_transposed_output_is_covered(device, size):
    x = noise(*size)
    assert np.array_equal(run(turned, x, size[::-1]), x.T)


@pytest.mark.parametrize("by", [-70, -3, 0, 5, 999])
def test_writes_outside_the_output_are_skipped(device, by):
    x, want = noise(1000), np.zeros(700, np.float32)
    for i, v in enumerate(x):
        if 0 <= i + by < 700:
            want[i + by] = v
    assert np.array_equal(run(shifted, x, (700,), by=by), want)


def test_additions_to_elements_of_its_own_are_in_a_positions_order(device):
    x = noise(9, 300)
    want = (x + x) + x + np.float32(1)
    assert np.array_equal(run(powers, x, (9, 300)), want)


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_every_vector_width_writes_the_same(bits, monkeypatch):
    monkeypatch.setitem(vars(CPU.compiler), "vector_bits", bits)
    with compute.device("cpu"):
        x = noise(333)
        assert np.array_equal(run(spread, x, (333, 3))[:, 2], 2 * x)
        assert np.array_equal(run(backward, x, (333,)), np.where(x > 0.5, x, 0)[::-1])


def test_an_output_over_its_own_input_is_written_aside(device):
    x = compute.from_numpy(noise(500))
    want = compute.read(x)[::-1]

    @dala.kernel
    def reverse(x, out: dala.Out):
        (i,) = dala.position(1)
        out[len(x) - 1 - i] = x

    compute.run_kernel(reverse, [x], x)
    assert np.array_equal(compute.read(x), want)


def test_positions_that_write_their_own_elements_run_as_vectors():
    with compute.device("cpu"):
        x, out = compute.buffer_zeros((100,), "f32"), compute.buffer_zeros((100, 3), "f32")
        assert "llvm.masked.scatter" in spread.explain([x], out)

        @dala.kernel
        def histogram(x, out: dala.Out):
            out.add(dala.s32(x), 1.0)

        assert "@fast" not in histogram.explain([x], compute.buffer_zeros((9,), "f32"))


@dala.function
def force(mass, place, i, j, axis):
    x, y = place[j, 0] - place[i, 0], place[j, 1] - place[i, 1]
    near = 1.0 / dala.sqrt(x * x + y * y + 0.01)
    return (place[j, axis] - place[i, axis]) * mass[j] * near * near * near


@dala.kernel
def pull(mass, place, out: dala.Out):
    (i,) = dala.position(1)
    for axis in (0, 1):
        out[i, axis] = sum(force(mass, place, i, j, axis) for j in range(len(mass)))


def test_bodies_pull_each_other(device):
    mass, place = noise(300), noise(300, 2, seed=2)
    got = pull(mass, place, shape=(300, 2))
    apart = place[None].astype(np.float64) - place[:, None]
    near = (np.sum(apart**2, -1) + 0.01) ** -1.5
    assert np.allclose(got, np.sum(apart * (mass * near)[..., None], 1), rtol=2e-5, atol=1e-4)
