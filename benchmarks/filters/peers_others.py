"""Filters as users of PyTorch, libvips, NumPy and Numba write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer, made
from dala.gpu import compute

Images = Sequence[np.ndarray]


Work = Callable[..., Any]
"""Takes the module, the images, the destination if there is one, and what else is given."""


def numpy(work: Work, *given: Any) -> Peer:
    """NumPy's functions, which have one thread."""

    def make(images: Images, out: np.ndarray) -> Call:
        values = made(given)

        def run() -> None:
            work(np, *images, out, *values)

        return run

    return Peer("NumPy", make)


# -- PyTorch ---------------------------------------------------------------------------------------


@cache
def torch_module() -> Any:
    import torch

    torch.set_num_threads(compute.device_info()["threads"])
    torch.set_grad_enabled(False)
    return torch


def torch(work: Work, *given: Any) -> Peer:
    """PyTorch's functions on arrays as they lie in memory, into one that is there already."""

    def make(images: Images, out: np.ndarray) -> Call:
        module = torch_module()
        values = [*images, out, *made(given)]
        tensors = [module.from_numpy(x) if isinstance(x, np.ndarray) else x for x in values]

        def run() -> None:
            work(module, *tensors)

        return run

    return Peer("PyTorch", make)


def torch_planes(work: Work, *given: Any) -> Peer:
    """PyTorch's functions of (n, c, h, w) on pixels as they lie in memory: channels last.

    They make their results themselves.
    """

    def make(images: Images, out: np.ndarray) -> Call:
        module = torch_module()
        (image,) = images
        pixels = module.from_numpy(image.reshape(*image.shape[:2], -1))
        planes, values = pixels.permute(2, 0, 1).unsqueeze(0), made(given)

        def run() -> Plane:
            return Plane(work(module, planes, *values))

        return run

    return Peer("PyTorch", make)


class Plane:
    """A result of (1, c, h, w) that becomes an array of pixels when that is asked for."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.result.squeeze(0).permute(1, 2, 0).numpy()


# -- libvips ---------------------------------------------------------------------------------------


@cache
def vips_module() -> Any:
    try:
        import pyvips
    except OSError as error:  # the package without the library
        raise ModuleNotFoundError(str(error), name="pyvips") from None
    pyvips.cache_set_max(0)  # so that nothing is given from memory of the last call
    return pyvips


def vips(work: Work, *given: Any) -> Peer:
    """Operations of libvips; its number of threads is set by the environment."""

    def make(images: Images, out: np.ndarray) -> Call:
        module = vips_module()
        values = [*images, *made(given)]
        shown = [module.Image.new_from_array(x) if isinstance(x, np.ndarray) else x for x in values]
        shape, dtype = out.shape, out.dtype

        def run() -> Memory:
            return Memory(work(module, *shown).write_to_memory(), shape, dtype)

        return run

    return Peer("pyvips", make)


def vips_mask(weights: np.ndarray, scale: float) -> Any:
    """Whole weights of a convolution, which is divided by the scale."""
    return vips_module().Image.new_from_array(weights.tolist(), scale=scale)


class Memory:
    """Bytes that become an array when that is asked for."""

    def __init__(self, data: Any, shape: tuple[int, ...], dtype: Any) -> None:
        self.data, self.shape, self.dtype = data, shape, dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


# -- Numba -----------------------------------------------------------------------------------------


def numba(loops: str | Callable[[], Any], *given: Any) -> Peer:
    """A function of one of the modules of loops, as `module.function`, or what makes one.

    It takes the images, the destination and what else is given; gray images have one channel.
    """

    def make(images: Images, out: np.ndarray) -> Call:
        import numba as module

        module.set_num_threads(compute.device_info()["threads"])
        call = _function(loops) if isinstance(loops, str) else loops()
        values = made(given)
        arrays = [item.reshape(*item.shape[:2], -1) for item in (*images, out)]

        def run() -> None:
            call(*arrays, *values)

        return run

    return Peer("Numba", make)


def _function(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(import_module(f"benchmarks.filters.{module}"), function)
