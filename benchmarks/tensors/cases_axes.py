"""Kernels along an axis: sums, extremes, norms, running sums, counts and transforms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.filters.peers_opencv import opencv_module
from benchmarks.tensors.arrays import f32, normal, uniform
from benchmarks.tensors.case import Case
from benchmarks.tensors.peers import jax, numba, numpy, scipy, taichi, torch
from dala.gpu import compute


def cases(small: bool = False) -> Iterator[tuple[str, Case]]:
    """All rows; small ones are for tests."""
    n = 1 << 12 if small else 1 << 24
    yield from norms((16, 64) if small else (2048, 1024))
    yield from reductions(n, 64 if small else 4096)
    yield from running_sums(n // 4)
    yield from counts(n // 2, n // 16)
    yield from transforms(32 if small else 1024, 1 << 10 if small else 1 << 20)


# -- norms -----------------------------------------------------------------------------------------


def _numpy_softmax(x: np.ndarray, out: np.ndarray) -> None:
    np.subtract(x, np.max(x, axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, np.sum(out, axis=1, keepdims=True), out=out)


def _jax_softmax(jnp: Any, x: Any) -> Any:
    raised = jnp.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _numpy_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    np.subtract(x, x.mean(1, keepdims=True), out=out)
    spread = np.einsum("ij,ij->i", out, out)[:, None] / f32(x.shape[1])
    out /= np.sqrt(spread + f32(1e-5))
    out *= weight
    out += bias


def _jax_norm(jnp: Any, x: Any, weight: Any, bias: Any) -> Any:
    centered = x - x.mean(1, keepdims=True)
    spread = (centered * centered).mean(1, keepdims=True)
    return centered / jnp.sqrt(spread + f32(1e-5)) * weight + bias


def norms(shape: tuple[int, int]) -> Iterator[tuple[str, Case]]:
    work = f"{shape[0]} × {shape[1]} f32"
    peers = [
        numpy(_numpy_softmax),
        scipy("special", lambda special, x, out: special.softmax(x, axis=1), gives=True),
        torch(lambda torch, x, out: torch.softmax(x, 1, out=out)),
        jax(_jax_softmax),
        numba("softmax"),
    ]
    yield "softmax-rows", Case(work, "softmax", lambda: [normal(*shape)], shape, peers)
    peers = [
        numpy(_numpy_norm),
        torch(
            lambda torch, x, weight, bias, out: torch.nn.functional.layer_norm(
                x, weight.shape, weight, bias
            ),
            gives=True,
        ),
        jax(_jax_norm),
        numba("layer_norm"),
    ]

    def arrays() -> list[np.ndarray]:
        return [normal(*shape), uniform(shape[1], seed=2), uniform(shape[1], seed=3)]

    yield "layer-norm", Case(work, "layer_norm", arrays, shape, peers)


# -- reductions ------------------------------------------------------------------------------------


def reductions(n: int, side: int) -> Iterator[tuple[str, Case]]:
    flat, square = (lambda: [uniform(n)]), (lambda: [uniform(side, side)])
    peers = [
        numpy(lambda x, out: np.sum(x, keepdims=True, out=out)),
        torch(lambda torch, x, out: torch.sum(x, 0, keepdim=True, out=out)),
        jax(lambda jnp, x: jnp.sum(x)),
        numba("sum_all"),
        taichi("sum_all"),
    ]
    yield "reduce-sum-all", Case(f"{n:,} f32", "reduce_sum", flat, (1,), peers, within=1e-4)
    work = f"{side} × {side} f32"
    for name, axis in (("rows", 1), ("columns", 0)):
        peers = [
            numpy(lambda x, out, axis=axis: np.sum(x, axis, out=out)),
            torch(lambda torch, x, out, axis=axis: torch.sum(x, axis, out=out)),
            jax(lambda jnp, x, axis=axis: jnp.sum(x, axis)),
            numba(f"sum_{name}"),
        ]
        case = Case(work, "reduce_sum", square, (side,), peers, {"axis": axis}, within=1e-4)
        yield f"reduce-sum-{name}", case
    peers = [
        numpy(lambda x, out: np.max(x, keepdims=True, out=out)),
        torch(lambda torch, x, out: torch.amax(x, 0, keepdim=True, out=out)),
        jax(lambda jnp, x: jnp.max(x)),
        numba("max_all"),
    ]
    yield "reduce-max", Case(f"{n:,} f32", "reduce_max", flat, (1,), peers, within=0)
    peers = [
        numpy(lambda x, out: np.argmax(x, 1), gives=True),
        torch(lambda torch, x, out: torch.argmax(x, 1), gives=True),
        jax(lambda jnp, x: jnp.argmax(x, 1)),
        numba("argmax_rows"),
    ]
    given = {"axis": 1}
    yield "argmax-rows", Case(work, "argmax", square, (side,), peers, given, "s32", within=0)


def running_sums(n: int) -> Iterator[tuple[str, Case]]:
    def whole() -> list[np.ndarray]:
        return [np.random.default_rng(1).integers(-99, 100, n, np.int32)]

    for dtype, arrays in (("s32", whole), ("f32", lambda: [uniform(n)])):
        peers = [
            numpy(lambda x, out: np.cumsum(x, out=out)),
            torch(lambda torch, x, out: torch.cumsum(x, 0, dtype=x.dtype, out=out)),
            jax(lambda jnp, x: jnp.cumsum(x, dtype=x.dtype)),
            numba("prefix_sum"),
        ]
        within = 0 if dtype == "s32" else 1e-3  # the longer the sum, the more is rounded
        case = Case(f"{n:,} {dtype}", "prefix_sum", arrays, (n,), peers, {}, dtype, within)
        yield f"prefix-sum-{dtype}", case


def counts(n: int, m: int) -> Iterator[tuple[str, Case]]:
    def levels() -> list[np.ndarray]:
        return [np.random.default_rng(1).normal(128, 40, n).clip(0, 255).astype(np.uint8)]

    peers = [
        numpy(lambda x, out: np.bincount(x, minlength=256), gives=True),
        numpy(_opencv_counts, gives=True, name="OpenCV"),
        torch(lambda torch, x, out: torch.bincount(x, minlength=256), gives=True),
        jax(lambda jnp, x: jnp.bincount(x, length=256)),
        numba("histogram"),
    ]
    work = f"{n:,} u8, 256 bins"
    yield "histogram-u8", Case(work, "histogram", levels, (256,), peers, {}, "s32", within=0)
    k = 100
    peers = [
        numpy(lambda x, out: np.sort(np.partition(x, len(x) - k)[-k:])[::-1], gives=True),
        torch(lambda torch, x, out: torch.topk(x, k)[0], gives=True),
        jax(lambda jnp, x: _jax_top(x, k)),
    ]
    work = f"{k} of {m:,} f32"
    yield "top-k", Case(work, "top_k", lambda: [normal(m)], (k,), peers, within=0)


def _opencv_counts(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return opencv_module().calcHist([x], [0], None, [256], [0, 256])


def _jax_top(x: Any, k: int) -> Any:
    import jax as module

    return module.lax.top_k(x, k)[0]


def transforms(side: int, n: int) -> Iterator[tuple[str, Case]]:
    threads = compute.device_info()["threads"]
    for name, shape in (("rows", (side, side)), ("1m", (n,))):
        peers = [
            numpy(lambda x, out: np.fft.fft(_complex(x)), gives=True),
            scipy("fft", lambda fft, x, out: fft.fft(_complex(x), workers=threads), gives=True),
            torch(lambda torch, x, out: torch.fft.fft(torch.view_as_complex(x)), gives=True),
            jax(lambda jnp, x: jnp.fft.fft(x[..., 0] + 1j * x[..., 1])),
        ]
        work = " × ".join(map(str, shape)) + " complex f32"
        arrays = lambda shape=shape: [normal(*shape, 2)]  # noqa: E731
        yield f"fft-{name}", Case(work, "fft", arrays, (*shape, 2), peers, within=1e-4)


def _complex(pairs: np.ndarray) -> np.ndarray:
    return pairs.view(np.complex64)[..., 0]
