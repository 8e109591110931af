"""Storage of a surface's pixels: a device's memory, or a WebGPU texture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dala.devices import Device, using
from dala.devices.cpu.memory import HostMemory
from dala.devices.device import Memory
from dala.errors import LimitError, ShapeError
from dala.ir.types import U8, U32
from dala.kernels.tensor.elementwise import fill
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, check_buffers
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.wgsl import WgslKernel
from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel
from dala.runtime.profiling.profile import ACTIVE, copy

if TYPE_CHECKING:
    from dala.devices.webgpu.texture import Texture

CHANNELS = 4
LARGEST_EXTENT = 1 << 15
"""The largest width and height on devices without a limit of their own."""
Paint = tuple[float, float, float, float]


class Store(Protocol):
    """Storage for all pixels of a surface."""

    def fill(self, memory: Any) -> None:
        """Copies the pixels from memory of the same device."""

    def run(
        self, kernel: Kernel, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        """Computes the output with a kernel, and copies it into the pixels."""

    def write(self, pixels: np.ndarray) -> None:
        """Replaces the pixels with a contiguous array."""

    def clear(self, paint: Paint) -> None:
        """Fills the pixels with one color."""

    def read(self) -> np.ndarray:
        """Returns the pixels as a new array."""

    def buffer(self) -> Buffer:
        """Returns the pixels as a buffer on the device, without a copy if possible."""


class MemoryStore:
    """Pixels in a device's memory."""

    def __init__(self, device: Device, width: int, height: int) -> None:
        self.device = device
        self.shape = (height, width, CHANNELS)
        self.memory = device.allocate(height * width * CHANNELS)

    def fill(self, memory: Memory) -> None:
        if memory is not self.memory:
            copy(self.device, memory, self.memory)

    def run(
        self, kernel: Kernel, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        kernel.run(inputs, output, params)
        self.fill(output.memory)

    def write(self, pixels: np.ndarray) -> None:
        self.device.write(self.memory, pixels.reshape(-1))

    def clear(self, paint: Paint) -> None:
        word = int.from_bytes(levels(paint).tobytes(), sys.byteorder)
        with using(self.device):
            fill.run([], Buffer(self.memory, U32, self.shape[:2]), {"value": word})

    def read(self) -> np.ndarray:
        return self.device.read(self.memory).reshape(self.shape)

    def buffer(self) -> Buffer:
        return Buffer(self.memory, U8, self.shape)


class HostStore(MemoryStore):
    """Pixels in host memory."""

    memory: HostMemory

    def run(
        self, kernel: Kernel, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        # None of these computes row by row into one memory.
        if ACTIVE or isinstance(kernel, CompositeKernel | HostCallKernel | WgslKernel):
            super().run(kernel, inputs, output, params)
            return
        from dala.devices.cpu.runner import CpuRunner
        from dala.devices.cpu.tee import run_with_tee

        check_buffers(kernel.name, kernel.inputs, inputs, output)
        key = tuple([(item.scalar.name, item.shape) for item in (*inputs, output)])
        runner, values = kernel.prepared(self.device, key, params)
        if not isinstance(runner, CpuRunner):  # it has several passes
            super().run(kernel, inputs, output, params)
            return
        memories: list[Any] = [item.memory for item in (*inputs, output)]
        run_with_tee(runner, memories[:-1], memories[-1], values, self.memory)


class TextureStore:
    """Pixels in a texture of a WebGPU device."""

    def __init__(self, texture: Texture) -> None:
        self.texture = texture
        self.shape = (texture.height, texture.width, CHANNELS)

    def fill(self, memory: Any) -> None:
        self.texture.fill(memory)

    def run(
        self, kernel: Kernel, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        with self.texture.device.batch():
            kernel.run(inputs, output, params)
            self.fill(output.memory)

    def write(self, pixels: np.ndarray) -> None:
        self.texture.write(pixels)

    def clear(self, paint: Paint) -> None:
        self.texture.clear(levels(paint))

    def read(self) -> np.ndarray:
        return self.texture.read()

    def buffer(self) -> Buffer:
        return Buffer(self.texture.copied(), U8, self.shape)


def store_for(device: Device, width: int, height: int) -> Store:
    """Returns storage for transparent black pixels that suits the device."""
    if device.backend == "webgpu":
        from dala.devices.webgpu.device import WebGpu
        from dala.devices.webgpu.texture import Texture

        if isinstance(device, WebGpu):  # not a wrapper around one
            return TextureStore(Texture(device, width, height))
    return (HostStore if device.is_host else MemoryStore)(device, width, height)


def levels(paint: Paint) -> np.ndarray:
    """Returns a color as four bytes, rounded to nearest."""
    return np.rint(np.multiply(paint, 255)).astype(np.uint8)


def checked_size(what: str, device: Device, width: Any, height: Any) -> tuple[int, int]:
    """Returns width and height as integers; raises ShapeError or LimitError for other values."""
    limits: dict[str, int] = getattr(device, "limits", {})
    most = limits.get("max-texture-dimension-2d", LARGEST_EXTENT)
    for name, extent in (("width", width), ("height", height)):
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 1:
            raise ShapeError(f"{what}: {name} is an integer from 1 on, not {extent!r}.")
        if extent > most:
            raise LimitError(
                f"{what}: {name} is {extent:,}, but a surface on {device.id} ({device.name}) has "
                f"at most {most:,} pixels each way."
            )
    return int(width), int(height)
