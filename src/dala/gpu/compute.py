"""Buffers, kernels, commands and pipelines: everything for computing on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dala.kernels
import dala.ml.models.registration  # noqa: F401  (these two have kernels found by their names)
from dala import __version__
from dala.devices import Device, current_device, devices, use_device
from dala.devices import using as device
from dala.devices.device import MemoryStatistics
from dala.devices.registry import preferred_listing
from dala.runtime.buffers.access import (
    dtype,
    free,
    free_many,
    read,
    read_binary,
    read_list,
    shape,
    size,
    to_numpy,
    write,
)
from dala.runtime.buffers.buffer import (
    Buffer,
    buffer,
    buffer_from_binary,
    buffer_zeros,
    from_dlpack,
    from_numpy,
    scratch,
)
from dala.runtime.commands.command import Command
from dala.runtime.commands.run import (
    as_completed,
    poll,
    run_kernel,
    run_kernel_async,
    submit,
    wait,
    wait_all,
)
from dala.runtime.commands.stream import Stream, stream
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import KERNELS, Kernel
from dala.runtime.pipelines.file import load_pipeline
from dala.runtime.pipelines.iteration import Iterations, repeat, until
from dala.runtime.pipelines.pipeline import Pipeline
from dala.runtime.profiling.profile import Profile, Record, profile

if TYPE_CHECKING:
    from typing import Unpack

    from dala.runtime.pipelines.stages import StageFields
    from dala.surfaces.surface import Surface

__all__ = [
    "Buffer",
    "Command",
    "Device",
    "Iterations",
    "Kernel",
    "Pipeline",
    "Profile",
    "Record",
    "Stream",
    "add",
    "as_completed",
    "buffer",
    "buffer_from_binary",
    "buffer_zeros",
    "device",
    "device_info",
    "devices",
    "dtype",
    "free",
    "free_many",
    "free_pipeline",
    "from_dlpack",
    "from_numpy",
    "gpu_available",
    "kernels",
    "load_pipeline",
    "matmul",
    "memory",
    "multiply",
    "pipeline",
    "pipeline_add",
    "pipeline_run",
    "poll",
    "profile",
    "read",
    "read_binary",
    "read_list",
    "relu",
    "repeat",
    "run_kernel",
    "run_kernel_async",
    "run_to_surface",
    "scale",
    "scratch",
    "shape",
    "size",
    "stream",
    "submit",
    "synchronize",
    "to_numpy",
    "trim",
    "until",
    "use_device",
    "version",
    "wait",
    "wait_all",
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


def run_to_surface(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Buffer,
    surface: Surface,
    params: Params | None = None,
) -> None:
    """Computes `output`, u8 (height, width, 4), and shows it on a surface of `dala.gpu`.

    Both have the pixels then. On a GPU they are copied by the submission that computes them, and
    never leave the device; on the CPU there is one copy.

    >>> from dala import gpu
    >>> from dala.gpu import compute
    >>> surface = gpu.create_surface(3, 2, kind="offscreen")
    >>> out = compute.buffer_zeros((2, 3, 4), "u8")
    >>> compute.run_to_surface("generate_gradient", [], out, surface)
    >>> gpu.get_pixels(surface)[1].tolist()
    [[0, 255, 128, 255], [128, 255, 128, 255], [255, 255, 128, 255]]
    """
    from dala.surfaces import surface_functions

    surface_functions.run_to_surface(kernel, inputs, output, surface, params)


def pipeline(*, fuse: bool = True) -> Pipeline:
    """Returns a new, empty pipeline; `fuse=False` runs every stage separately."""
    return Pipeline(fuse=fuse)


def pipeline_add(
    pipeline: Pipeline, stage: Mapping[str, Any] | None = None, /, **given: Unpack[StageFields]
) -> Pipeline:
    """Adds a stage, like `pipeline.add`, and returns the pipeline."""
    return pipeline.add(stage, **given)


def pipeline_run(pipeline: Pipeline, params: Mapping[str, Params] | None = None) -> None:
    """Runs every stage, like `pipeline.run`."""
    pipeline.run(params)


def free_pipeline(pipeline: Pipeline) -> None:
    """Drops the stages of a pipeline; buffers are kept."""
    pipeline.free()


def version() -> str:
    """Returns the version of dala."""
    return __version__


def gpu_available() -> bool:
    """Returns whether a hardware GPU can be used; software adapters do not count."""
    return bool(preferred_listing().info()["gpu"])


def device_info() -> dict[str, Any]:
    """Returns the current device's name, backend, kind and features.

    >>> from dala.gpu import compute
    >>> compute.device_info()["backend"]
    'cpu'
    """
    return {**current_device().info(), "version": version()}


def memory() -> MemoryStatistics:
    """Returns the current device's memory in use by buffers, and in the pool for reuse."""
    return current_device().held()


def trim() -> int:
    """Frees the current device's memory pool; returns how many bytes."""
    return current_device().trim()


def synchronize() -> None:
    """Waits until all work on the current device is done.

    A GPU computes on after `run_kernel` has returned; reading a buffer waits by itself.
    """
    current_device().synchronize()


def kernels() -> dict[str, dict[str, Any]]:
    """Returns every kernel by name: its inputs, its parameters with defaults, and what it does.

    >>> from dala.gpu import compute
    >>> compute.kernels()["scale"]["params"]
    {'factor': {'type': 'number', 'doc': 'what each element is multiplied by'}}
    """
    return {name: KERNELS[name].describe() for name in sorted(KERNELS)}
