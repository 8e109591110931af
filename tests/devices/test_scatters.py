"""Kernels that write where they like: in lanes where positions write elements of their own."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import need_webgpu

import dala
from dala.devices import CPU, current_device
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


# -- minima, maxima, and what is there already -----------------------------------------------------

DTYPES = ["f32", "f64", "s32", "s64", "u32", "u8"]


def there_is(device: str, dtype: str) -> None:
    """Skip where the adapter lacks the dtype, as the f64 and s64 of some."""
    if dtype in ("f64", "s64") and not current_device().supports(dtype):
        pytest.skip(f"{device} lacks {dtype}")


@dala.kernel
def lowest(x, bins, out: dala.Out):
    (i,) = dala.position(1)
    out.min(bins[i], x)


@dala.kernel(accumulate=True)
def highest(x, bins, out: dala.Out):
    (i,) = dala.position(1)
    out.max(bins[i], x)


@dala.kernel(accumulate=True)
def count(x, bins, out: dala.Out):
    (i,) = dala.position(1)
    out.add(bins[i], x)


@dala.kernel(accumulate=True)
def put(x, bins, out: dala.Out):
    (i,) = dala.position(1)
    if x > 2:
        out[2 * i] = x


UPDATES = {lowest: np.minimum, highest: np.maximum, count: np.add}


def scattered(dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, bins (some of them outside) and an output that holds something."""
    rng, numpy = np.random.default_rng(5), dtype_of(dtype).numpy
    low = -50 if numpy.kind in "if" else 0
    x = rng.integers(low, 60, 3000).astype(numpy)
    bins = rng.integers(-2, 40, 3000).astype(np.int32)
    return x, bins, rng.integers(0, 9, 37).astype(numpy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", UPDATES, ids=lambda kernel: kernel.name)
def test_updates_of_shared_elements_lose_none(device, kernel, dtype):
    there_is(device, dtype)
    x, bins, start = scattered(dtype)
    out = compute.from_numpy(start)
    compute.run_kernel(kernel, [compute.from_numpy(x), compute.from_numpy(bins)], out)
    want = start.copy() if kernel.accumulates else np.zeros_like(start)
    inside = (bins >= 0) & (bins < 37)
    UPDATES[kernel].at(want, bins[inside], x[inside])
    assert np.array_equal(compute.read(out), want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_least_and_the_most_are_nan_where_one_is(device, dtype):
    there_is(device, dtype)
    x = np.array([1.0, np.nan, 3.0, -4.0], dtype_of(dtype).numpy)
    bins = np.array([0, 1, 1, 0], np.int32)
    for kernel in (lowest, highest):
        got = kernel(x, bins, shape=(3,), dtype=dtype)
        want = [-4.0 if kernel is lowest else 1.0, np.nan, 0.0]
        assert np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("dtype", ["f32", "u8", "s32"])
def test_plain_writes_keep_what_they_do_not_hit(device, dtype):
    x, bins, _ = scattered(dtype)
    x, start = x[:20], np.full(39, 7, x.dtype)
    out = compute.from_numpy(start)
    compute.run_kernel(put, [compute.from_numpy(x), compute.from_numpy(bins[:20])], out)
    want = start.copy()
    want[::2] = np.where(x > 2, x, 7)
    assert np.array_equal(compute.read(out), want)


def test_runs_of_an_accumulating_kernel_add_up(device):
    x, bins, _ = scattered("f32")
    total = np.zeros(37, np.float32)
    for _ in range(3):
        assert count(x, bins, out=total) is total
    want = np.zeros(37)
    inside = (bins >= 0) & (bins < 37)
    np.add.at(want, bins[inside], 3 * x[inside])
    assert np.allclose(total, want)
    apart = np.zeros((37, 2), np.float32)[:, 0]
    count(x, bins, out=apart)
    assert np.allclose(3 * apart, want)
    assert np.allclose(3 * count(x, bins, shape=(37,)), want)
    assert np.array_equal(
        count.python(x[:9], bins[:9], shape=(37,)), count(x[:9], bins[:9], shape=(37,))
    )


def test_an_accumulating_kernel_over_its_own_input_reads_the_old_values(device):
    @dala.kernel(accumulate=True)
    def fold(x, out: dala.Out):
        (i,) = dala.position(1)
        out.add(len(x) - 1 - i, x)

    x = compute.from_numpy(np.arange(100, dtype=np.float32))
    compute.run_kernel(fold, [x], x)
    assert np.array_equal(compute.read(x), np.full(100, 99))


def test_an_accumulating_kernel_without_positions_changes_nothing(device):
    empty = [compute.buffer_zeros((0,), "s32"), compute.buffer_zeros((0,), "s32")]
    out = compute.from_numpy(np.arange(5, dtype=np.int32))
    compute.run_kernel(count, empty, out)
    assert compute.read_list(out) == [0, 1, 2, 3, 4]


def test_stages_accumulate_onto_what_the_stages_before_them_wrote(device, tmp_path):
    x = compute.from_numpy(np.arange(8, dtype=np.float32))
    bins = compute.from_numpy(np.arange(8, dtype=np.int32) % 4)
    between, out = compute.scratch((4,), "f32"), compute.buffer_zeros((4,), "f32")
    pipeline = compute.pipeline()
    with pytest.raises(dala.errors.ArgumentError, match="which no stage before it writes"):
        pipeline.add(kernel=count, inputs=[x, bins], output=between)
    ones = compute.from_numpy(np.ones(4, np.float32))
    pipeline.add(kernel="scale", inputs=[ones], output=between, params={"factor": 100.0})
    pipeline.add(kernel=count, inputs=[x, bins], output=between)
    pipeline.add(kernel="scale", inputs=[between], output=out, params={"factor": 2.0})
    for _ in range(3):
        pipeline.run()
        assert compute.read_list(out) == [208.0, 212.0, 216.0, 220.0]
    buffers = {"x": x, "bins": bins, "ones": ones, "out": out}
    pipeline.save(tmp_path / "stages.json", buffers)
    again = compute.load_pipeline(tmp_path / "stages.json", buffers)
    compute.write(out, np.zeros(4, np.float32))
    again.run()
    assert compute.read_list(out) == [208.0, 212.0, 216.0, 220.0]


def test_commands_that_accumulate_run_in_order():
    x, bins, _ = scattered("s32")
    with compute.device("cpu"):
        given = [compute.from_numpy(x), compute.from_numpy(bins)]
        out = compute.buffer_zeros((37,), "s32")
        compute.wait_all([compute.run_kernel_async(count, given, out) for _ in range(20)])
        assert np.array_equal(compute.read(out), 20 * count(x, bins, shape=(37,)))


def test_parity_mode_starts_both_devices_from_the_same():
    need_webgpu()
    x, bins, start = scattered("f32")
    with compute.device("parity"):
        out = compute.from_numpy(start)
        for _ in range(2):
            compute.run_kernel(highest, [compute.from_numpy(x), compute.from_numpy(bins)], out)
    want = start.copy()
    inside = (bins >= 0) & (bins < 37)
    np.maximum.at(want, bins[inside], x[inside])
    assert np.array_equal(compute.read(out), want)


def test_a_kernel_of_text_accumulates_and_says_so():
    text = "def tally(x, out: Out):\n    out.add(s32(x), 1)"
    kernel = compute.Kernel.register("tally", text, accumulate=True)
    try:
        out = np.array([5, 5, 5], np.int32)
        kernel(np.array([0, 2, 2], np.float32), out=out)
        assert out.tolist() == [6, 5, 7]
        assert "from what it holds on" in kernel.explain()
    finally:
        compute.Kernel.unregister("tally")


def test_a_kernel_that_returns_its_element_cannot_accumulate():
    with pytest.raises(dala.errors.KernelSyntaxError, match="returns its element"):

        @dala.kernel(accumulate=True)
        def plain(x):
            return x


def test_an_update_that_is_none_is_refused_with_those_that_are():
    with pytest.raises(dala.errors.KernelSyntaxError, match=r"out.min\(i, value\)"):

        @dala.kernel
        def wrong(x, out: dala.Out):
            out.mul(0, x)
