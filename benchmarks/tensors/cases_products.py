"""Kernels of matrices and of planes: products, convolutions, pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.tensors.arrays import normal, uniform
from benchmarks.tensors.case import Case
from benchmarks.tensors.peers import jax, numba, numpy, scipy, torch


def cases(small: bool = False) -> Iterator[tuple[str, Case]]:
    """All rows; small ones are for tests."""
    for size in (512, 1024):
        yield f"matmul-{size}", matmul(32 if small else size)
    channels, side = (8, 14) if small else (64, 112)
    yield "conv2d-3x3", convolution(channels, side)
    yield "depthwise-conv2d-3x3", depthwise(channels, side)
    yield "max-pool", max_pool(channels, 2 * side)


def matmul(size: int) -> Case:
    shape = (size, size)
    peers = [
        numpy(lambda a, b, out: np.matmul(a, b, out=out)),
        scipy("linalg.blas", lambda blas, a, b, out: blas.sgemm(1.0, b.T, a.T).T, gives=True),
        torch(lambda torch, a, b, out: torch.mm(a, b, out=out)),
        jax(lambda jnp, a, b: jnp.matmul(a, b)),
    ]
    arrays = lambda: [uniform(*shape), uniform(*shape, seed=2)]  # noqa: E731
    return Case(f"{size}³ f32", "matmul", arrays, shape, peers, within=1e-4)


def _jax_convolution(x: Any, weight: Any, groups: int) -> Any:
    import jax as module

    padding = ((1, 1), (1, 1))
    return module.lax.conv_general_dilated(x, weight, (1, 1), padding, feature_group_count=groups)


def convolution(channels: int, side: int) -> Case:
    shape = (1, channels, side, side)
    arrays = lambda: [normal(*shape), normal(channels, channels, 3, 3, seed=2)]  # noqa: E731
    peers = [
        torch(
            lambda torch, x, weight, out: torch.nn.functional.conv2d(x, weight, padding=1),
            gives=True,
        ),
        jax(lambda jnp, x, weight: _jax_convolution(x, weight, 1)),
    ]
    work = f"{channels} channels of {side} × {side} to as many"
    return Case(work, "conv2d", arrays, shape, peers, {"padding": 1}, within=1e-4)


def depthwise(channels: int, side: int) -> Case:
    shape = (1, channels, side, side)
    arrays = lambda: [normal(*shape), normal(channels, 1, 3, 3, seed=2)]  # noqa: E731
    peers = [
        torch(
            lambda torch, x, weight, out: torch.nn.functional.conv2d(
                x, weight, padding=1, groups=channels
            ),
            gives=True,
        ),
        jax(lambda jnp, x, weight: _jax_convolution(x, weight, channels)),
        numba("depthwise"),
    ]
    work = f"{channels} channels of {side} × {side}"
    return Case(work, "depthwise_conv2d", arrays, shape, peers, {"padding": 1}, within=1e-4)


def max_pool(channels: int, side: int) -> Case:
    half = (1, channels, side // 2, side // 2)
    peers = [
        torch(lambda torch, x, out: torch.nn.functional.max_pool2d(x, 2), gives=True),
        jax(lambda jnp, x: x.reshape(1, channels, side // 2, 2, side // 2, 2).max((3, 5))),
        numba("max_pool"),
    ]
    arrays = lambda: [normal(1, channels, side, side)]  # noqa: E731
    work = f"2 × 2 of {channels} channels of {side} × {side}"
    return Case(work, "max_pool", arrays, half, peers, {"size": 2}, within=0)
