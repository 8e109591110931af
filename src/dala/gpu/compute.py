"""Buffers, kernels and commands: everything one needs to compute on a device."""

from __future__ import annotations

from typing import Any

import dala.kernels  # noqa: F401  (registers the built-in kernels)
from dala import __version__
from dala.devices import Device, adapters, current_device, devices, use_device
from dala.devices import using as device
from dala.runtime.buffer import (
    Buffer,
    buffer,
    buffer_from_binary,
    buffer_zeros,
    dtype,
    free,
    free_many,
    from_dlpack,
    from_numpy,
    memory,
    read,
    read_binary,
    read_list,
    shape,
    size,
    to_numpy,
    trim,
    write,
)
from dala.runtime.commands import Command
from dala.runtime.kernel import KERNELS, Kernel
from dala.runtime.run import poll, run_kernel, run_kernel_async, submit, wait

__all__ = [
    "Buffer",
    "Command",
    "Device",
    "Kernel",
    "add",
    "buffer",
    "buffer_from_binary",
    "buffer_zeros",
    "device",
    "device_info",
    "devices",
    "dtype",
    "free",
    "free_many",
    "from_dlpack",
    "from_numpy",
    "gpu_available",
    "kernels",
    "matmul",
    "memory",
    "multiply",
    "poll",
    "read",
    "read_binary",
    "read_list",
    "relu",
    "run_kernel",
    "run_kernel_async",
    "scale",
    "shape",
    "size",
    "submit",
    "synchronize",
    "to_numpy",
    "trim",
    "use_device",
    "version",
    "wait",
    "write",
]


def add(a: Buffer, b: Buffer, out: Buffer) -> None:
    """out = a + b, element by element."""
    run_kernel("elementwise_add", [a, b], out)


def multiply(a: Buffer, b: Buffer, out: Buffer) -> None:
    """out = a · b, element by element."""
    run_kernel("elementwise_mul", [a, b], out)


def scale(a: Buffer, factor: float, out: Buffer) -> None:
    """out = a · factor."""
    run_kernel("scale", [a], out, {"factor": factor})


def relu(a: Buffer, out: Buffer) -> None:
    """out = a where it is positive, else 0."""
    run_kernel("relu", [a], out)


def matmul(a: Buffer, b: Buffer, out: Buffer) -> None:
    """out = the matrix product of a and b."""
    run_kernel("matmul", [a, b], out)


def version() -> str:
    """The version of dala."""
    return __version__


def gpu_available() -> bool:
    """Whether a hardware GPU can be used; adapters that compute in software do not count."""
    return adapters.hardware_id() is not None


def device_info() -> dict[str, Any]:
    """What the kernels run on: its name, its backend, whether it is a GPU, what it has.

    >>> from dala.gpu import compute
    >>> compute.device_info()["backend"]
    'cpu'
    """
    return {**current_device().info(), "version": version()}


def synchronize() -> None:
    """Return when everything that was run on the current device is done.

    A GPU computes on after `run_kernel` has returned; reading a buffer waits by itself.
    """
    current_device().synchronize()


def kernels() -> dict[str, dict[str, Any]]:
    """Every kernel by name: its inputs, its parameters with their defaults, and what it does.

    >>> from dala.gpu import compute
    >>> compute.kernels()["scale"]["params"]
    {'factor': {'type': 'number'}}
    """
    return {name: KERNELS[name].describe() for name in sorted(KERNELS)}
