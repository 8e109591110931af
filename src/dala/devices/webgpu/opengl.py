"""WebGPU over OpenGL: one thread at a time.

OpenGL has one context. wgpu aborts the process if a thread does not get it within a second, so the
lock is held during everything that may use it, including waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.devices.device import MemoryStatistics, Number
from dala.devices.webgpu.device import WebGpu
from dala.devices.webgpu.memory import GpuMemory
from dala.devices.webgpu.runner import WebGpuRunner
from dala.devices.webgpu.wgsl_kernel import WebGpuWgslRunner
from dala.lang.wgsl_module import Groups, WgslModule
from dala.plan.task import Task


class OpenGl(WebGpu):
    """An OpenGL adapter."""

    def check(self) -> None:
        with self.lock:
            super().check()

    def wait(self, promise: Any) -> None:
        with self.lock:
            super().wait(promise)

    def synchronize(self) -> None:
        with self.lock:
            super().synchronize()

    def flush(self) -> None:
        with self.lock:
            super().flush()

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> GpuMemory:
        with self.lock:
            return super().allocate(size_bytes, zeroed=zeroed)

    def write(self, memory: GpuMemory, data: np.ndarray) -> None:
        with self.lock:
            super().write(memory, data)

    def read(self, memory: GpuMemory) -> np.ndarray:
        with self.lock:
            return super().read(memory)

    def copy(self, source: GpuMemory, target: GpuMemory) -> None:
        with self.lock:
            super().copy(source, target)

    def held(self) -> MemoryStatistics:
        with self.lock:
            return super().held()

    def trim(self) -> int:
        with self.lock:
            return super().trim()

    def load(self, task: Task) -> WebGpuRunner:
        return _Runner(self, task)

    def load_wgsl(self, name: str, module: WgslModule) -> WebGpuWgslRunner:
        with self.lock:
            return _Text(self, name, module)


class _Runner(WebGpuRunner):
    def run(
        self, inputs: Sequence[GpuMemory], outputs: Sequence[GpuMemory], params: Sequence[Number]
    ) -> None:
        with self.device.lock:
            super().run(inputs, outputs, params)


class _Text(WebGpuWgslRunner):
    def run(
        self, inputs: Sequence[GpuMemory], output: GpuMemory, params: bytes, groups: Groups
    ) -> None:
        with self.device.lock:
            super().run(inputs, output, params, groups)
