"""Kernels of one element at a time, and those that only move elements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

import dala
from benchmarks.contest import Peer
from benchmarks.tensors.arrays import f32, normal, uniform
from benchmarks.tensors.case import Case
from benchmarks.tensors.peers import jax, numba, numpy, scipy, taichi, torch
from dala.gpu import compute

A = f32(3)


def cases(small: bool = False) -> Iterator[tuple[str, Case]]:
    """All rows; small ones are for tests."""
    many, some = (1 << 12, 1 << 11) if small else (1 << 24, 1 << 22)
    yield from sums(many)
    for kernel, peers in CURVES.items():
        yield kernel, Case(f"{some:,} f32", kernel, lambda: [normal(some)], (some,), peers)
    yield from moves(64 if small else 4096, 1 << 10 if small else 1 << 17, many // 2)


@cache
def saxpy() -> compute.Kernel:
    @dala.kernel
    def saxpy(x, y, a: dala.f32):
        return a * x + y

    return saxpy


def sums(n: int) -> Iterator[tuple[str, Case]]:
    both = lambda: [uniform(n), uniform(n, seed=2)]  # noqa: E731
    peers = [
        numpy(lambda x, y, out: np.add(np.multiply(x, A, out=out), y, out=out)),
        torch(lambda torch, x, y, out: torch.add(y, x, alpha=3.0, out=out)),
        jax(lambda jnp, x, y: A * x + y),
        numba("saxpy", A),
        taichi("saxpy", 3.0),
    ]
    yield "saxpy", Case(f"{n:,} f32", saxpy(), both, (n,), peers, {"a": 3.0})
    for kernel, name in (("add", "add"), ("mul", "multiply")):
        case = Case(f"{n:,} f32", f"elementwise_{kernel}", both, (n,), binary(name))
        yield f"elementwise-{kernel}", case
    peers = [
        numpy(lambda x, out: np.maximum(x, f32(0), out=out)),
        torch(lambda torch, x, out: torch.clamp_min(x, 0.0, out=out)),
        jax(lambda jnp, x: jnp.maximum(x, f32(0))),
        numba("relu"),
        taichi("relu"),
    ]
    yield "relu", Case(f"{n:,} f32", "relu", lambda: [normal(n)], (n,), peers)


def binary(name: str) -> list[Peer]:
    """A function of that name, of two arrays."""
    return [
        numpy(lambda x, y, out: getattr(np, name)(x, y, out=out)),
        torch(lambda torch, x, y, out: getattr(torch, name)(x, y, out=out)),
        jax(lambda jnp, x, y: getattr(jnp, name)(x, y)),
        numba(name),
        taichi(name),
    ]


def _numpy_sigmoid(x: np.ndarray, out: np.ndarray) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, f32(1), out=out)
    np.reciprocal(out, out=out)


CURVES: dict[str, list[Peer]] = {
    "exp": [
        numpy(lambda x, out: np.exp(x, out=out)),
        torch(lambda torch, x, out: torch.exp(x, out=out)),
        jax(lambda jnp, x: jnp.exp(x)),
        numba("exp"),
        taichi("exp"),
    ],
    "sigmoid": [
        numpy(_numpy_sigmoid),
        scipy("special", lambda special, x, out: special.expit(x, out=out)),
        torch(lambda torch, x, out: torch.sigmoid(x, out=out)),
        jax(lambda jnp, x: f32(1) / (f32(1) + jnp.exp(-x))),
        numba("sigmoid"),
        taichi("sigmoid"),
    ],
    "tanh": [
        numpy(lambda x, out: np.tanh(x, out=out)),
        torch(lambda torch, x, out: torch.tanh(x, out=out)),
        jax(lambda jnp, x: jnp.tanh(x)),
        numba("tanh"),
        taichi("tanh"),
    ],
    "gelu": [
        torch(lambda torch, x, out: torch.nn.functional.gelu(x), gives=True),
        jax(lambda jnp, x: _jax_gelu(x)),
        numba("gelu"),
    ],
}


def _jax_gelu(x: object) -> object:
    import jax as module

    return module.nn.gelu(x, approximate=False)


# -- moves -----------------------------------------------------------------------------------------


def moves(side: int, rows: int, half: int) -> Iterator[tuple[str, Case]]:
    square = (side, side)
    peers = [
        numpy(lambda x, out: np.copyto(out, x.T)),
        torch(lambda torch, x, out: out.copy_(x.T)),
        jax(lambda jnp, x: jnp.transpose(x)),
        numba("transpose"),
    ]
    work = f"{side} × {side} f32"
    yield "transpose", Case(work, "transpose", lambda: [uniform(*square)], square, peers, within=0)
    taken = rows // 2

    def table() -> list[np.ndarray]:
        places = np.random.default_rng(3).integers(0, rows, taken, np.int32)
        return [uniform(rows, 64), places]

    peers = [
        numpy(lambda x, at, out: np.take(x, at, 0, out=out, mode="clip")),
        torch(lambda torch, x, at, out: torch.index_select(x, 0, at, out=out)),
        jax(lambda jnp, x, at: jnp.take(x, at, axis=0, mode="clip")),
        numba("gather"),
    ]
    work = f"{taken:,} rows of 64 f32"
    yield "gather", Case(work, "gather", table, (taken, 64), peers, within=0)
    both = lambda: [uniform(half), uniform(half, seed=2)]  # noqa: E731
    peers = [
        numpy(lambda x, y, out: np.concatenate([x, y], out=out)),
        torch(lambda torch, x, y, out: torch.cat([x, y], out=out)),
        jax(lambda jnp, x, y: jnp.concatenate([x, y])),
        numba("concat"),
    ]
    work = f"2 × {half:,} f32"
    yield "concat", Case(work, "concat", both, (2 * half,), peers, {"axis": 0}, within=0)
