"""The compute layer against NumPy. Both sides write to destinations that exist beforehand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import dala
from benchmarks import start_up
from benchmarks.harness import Comparison, Duration, Row, repeats_for, seconds_per_call
from dala.gpu import compute

N = 1 << 24


def random_f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32)


def call_on_three_elements() -> Duration:
    a, b = (compute.from_numpy(random_f32(3)) for _ in range(2))
    out = compute.buffer_zeros((3,), "f32")

    def call() -> None:
        compute.run_kernel("elementwise_add", [a, b], out, {})

    call()
    repeats = repeats_for(call)
    return Duration(
        "run_kernel on 3 elements, warm", 10e-6, lambda: seconds_per_call(call, repeats)
    )


def calling_beside_running() -> Duration:
    @dala.kernel
    def saxpy(x, y, a: dala.f32):
        return a * x + y

    x, y = (compute.from_numpy(random_f32(3)) for _ in range(2))
    out = compute.buffer_zeros((3,), "f32")

    def call() -> None:
        saxpy(x, y, a=3.0, out=out)

    def run() -> None:
        compute.run_kernel(saxpy, [x, y], out, {"a": 3.0})

    call()
    repeats = repeats_for(call)
    return Duration(
        "kernel(…, out=) beyond run_kernel, warm",
        2e-6,
        lambda: seconds_per_call(call, repeats) - seconds_per_call(run, repeats),
    )


def add_by_hand() -> Comparison:
    """What reads and writes memory once, past the caches, is as fast as memory is."""
    from benchmarks.streaming_add import aligned, compiled

    call = compiled()
    a, b, want = (aligned(N) for _ in range(3))
    a[:], b[:] = random_f32(N), random_f32(N)[::-1]
    inputs = [compute.from_numpy(a), compute.from_numpy(b)]
    out = compute.buffer_zeros(a.shape, "f32")
    return Comparison(
        "elementwise_add, 16 M f32 : streaming AVX in C",
        1.05,
        ours=lambda: compute.run_kernel("elementwise_add", inputs, out, {}),
        peer=lambda: call(a, b, want),
        check=lambda: np.testing.assert_array_equal(np.asarray(out), want),
    )


def five_fused_operations() -> Comparison:
    @dala.kernel
    def five(a, b):
        return ((a * b + a) * 0.5 - b) * a

    a, b = random_f32(N), random_f32(N)[::-1].copy()
    want = np.empty_like(a)
    inputs = [compute.from_numpy(a), compute.from_numpy(b)]
    out = compute.buffer_zeros(a.shape, "f32")

    def peer() -> None:
        np.multiply(a, b, out=want)
        np.add(want, a, out=want)
        np.multiply(want, np.float32(0.5), out=want)
        np.subtract(want, b, out=want)
        np.multiply(want, a, out=want)

    return Comparison(
        "five fused operations, 16 M f32 : NumPy",
        0.25,
        ours=lambda: compute.run_kernel(five, inputs, out, {}),
        peer=peer,
        check=lambda: np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5, atol=1e-6),
    )


def reduce_sum() -> Comparison:
    a = random_f32(N)
    want = np.empty((1,), np.float32)
    inputs = [compute.from_numpy(a)]
    out = compute.buffer_zeros((1,), "f32")
    return Comparison(
        "reduce_sum, 16 M f32 : np.sum",
        1.0,
        ours=lambda: compute.run_kernel("reduce_sum", inputs, out, {}),
        peer=lambda: np.sum(a, keepdims=True, out=want),
        check=lambda: np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5),
    )


def softmax() -> Comparison:
    x = random_f32(1000, 1000)
    want = np.empty_like(x)
    row = np.empty((1000, 1), np.float32)
    inputs = [compute.from_numpy(x)]
    out = compute.buffer_zeros(x.shape, "f32")

    def peer() -> None:
        np.max(x, axis=1, keepdims=True, out=row)
        np.subtract(x, row, out=want)
        np.exp(want, out=want)
        np.sum(want, axis=1, keepdims=True, out=row)
        np.divide(want, row, out=want)

    return Comparison(
        "softmax, 1000 × 1000 f32 : NumPy",
        0.5,
        ours=lambda: compute.run_kernel("softmax", inputs, out, {}),
        peer=peer,
        check=lambda: np.testing.assert_allclose(np.asarray(out), want, rtol=1e-5),
    )


def matmul() -> Comparison:
    a, b = random_f32(1024, 1024), random_f32(1024, 1024).T.copy()
    want = np.empty_like(a)
    inputs = [compute.from_numpy(a), compute.from_numpy(b)]
    out = compute.buffer_zeros(a.shape, "f32")
    return Comparison(
        "matmul, 1024³ f32 : np.matmul(out=)",
        1.1,
        ours=lambda: compute.run_kernel("matmul", inputs, out, {}),
        peer=lambda: np.matmul(a, b, out=want),
        check=lambda: np.testing.assert_allclose(np.asarray(out), want, rtol=1e-4),
    )


def stencil() -> Comparison:
    @dala.kernel
    def mean_3x3(x):
        i, j = dala.position(2)
        above = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
        here = x[i, j - 1] + x[i, j] + x[i, j + 1]
        below = x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
        return (above + here + below) / 9.0

    image = random_f32(4096, 4096)
    copy = np.empty_like(image)
    inputs = [compute.from_numpy(image)]
    out = compute.buffer_zeros(image.shape, "f32")

    def check() -> None:
        padded = np.pad(image, 1, mode="edge")
        height, width = image.shape
        total = np.zeros_like(image)
        for dy in range(3):
            for dx in range(3):
                total += padded[dy : dy + height, dx : dx + width]
        np.testing.assert_allclose(np.asarray(out), total / 9, rtol=1e-5)

    return Comparison(
        "3 × 3 stencil, 4096² f32 : np.copyto",
        1.5,
        ours=lambda: compute.run_kernel(mean_3x3, inputs, out, {}),
        peer=lambda: np.copyto(copy, image),
        check=check,
    )


ROWS: dict[str, Callable[[], Row]] = {
    "import": start_up.importing,
    "first-run": start_up.first_run_with_nothing_cached,
    "first-run-cached": start_up.first_run_from_the_disk_cache,
    "call": call_on_three_elements,
    "call-out": calling_beside_running,
    "add-by-hand": add_by_hand,
    "fused": five_fused_operations,
    "sum": reduce_sum,
    "softmax": softmax,
    "matmul": matmul,
    "stencil": stencil,
}
