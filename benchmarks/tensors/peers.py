"""Ways to compute of NumPy, SciPy, Numba, JAX, PyTorch and Taichi, with as many threads as dala."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.peers_others import torch_module
from dala.gpu import compute

Arrays = Sequence[np.ndarray]
Work = Callable[..., Any]


def numpy(work: Work, *, gives: bool = False, name: str = "NumPy") -> Peer:
    """The work takes the arrays and the destination; or gives a result of its own."""
    return Peer(name, lambda arrays, out: _call(work, (*arrays, out), gives))


def scipy(module: str, work: Work, *, gives: bool = False) -> Peer:
    """The work takes a module of SciPy, the arrays and the destination."""

    def make(arrays: Arrays, out: np.ndarray) -> Call:
        return _call(work, (import_module(f"scipy.{module}"), *arrays, out), gives)

    return Peer("SciPy", make)


def torch(work: Work, *, gives: bool = False) -> Peer:
    """The work takes PyTorch, tensors that share the memory of the arrays, and the destination."""

    def make(arrays: Arrays, out: np.ndarray) -> Call:
        module = torch_module()
        tensors = [module.from_numpy(item) for item in (*arrays, out)]
        return _call(work, (module, *tensors), gives)

    return Peer("PyTorch", make)


def _call(work: Work, given: tuple[Any, ...], gives: bool) -> Call:
    def run() -> Any:
        result = work(*given)
        return result if gives else None

    return run


def jax(work: Work) -> Peer:
    """The work takes jax.numpy and arrays of JAX, and is compiled; its results are its own."""

    def make(arrays: Arrays, out: np.ndarray) -> Call:
        import jax as module
        import jax.numpy as jnp

        given = [jnp.asarray(item) for item in arrays]
        compiled = module.jit(lambda *items: work(jnp, *items))
        return lambda: compiled(*given).block_until_ready()

    return Peer("JAX", make)


def numba(function: str, *given: Any) -> Peer:
    """A function of `loops`: it takes the arrays, the destination, and what else is given."""

    def make(arrays: Arrays, out: np.ndarray) -> Call:
        import numba as module

        module.set_num_threads(compute.device_info()["threads"])
        call = getattr(import_module("benchmarks.tensors.loops"), function)

        def run() -> None:
            call(*arrays, out, *given)

        return run

    return Peer("Numba", make)


def taichi(function: str, *given: Any) -> Peer:
    """A kernel of Taichi, which reads and writes arrays of NumPy where they are."""

    def make(arrays: Arrays, out: np.ndarray) -> Call:
        _start_taichi()
        call = getattr(import_module("benchmarks.tensors.loops_taichi"), function)
        flat = [item.reshape(-1) for item in (*arrays, out)]

        def run() -> None:
            call(*flat, *given)

        return run

    return Peer("Taichi", make)


@cache
def _start_taichi() -> None:
    from benchmarks.program_peers import taichi as start

    start()
