"""Runs a user's WGSL kernel on a WebGPU device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import wgpu

from dala.base.lru_cache import LruCache
from dala.devices.webgpu.bindings import empty_input
from dala.devices.webgpu.memory import GpuMemory
from dala.emit.wgsl.grid import MOST_GROUPS
from dala.errors import KernelSyntaxError, LimitError
from dala.lang.wgsl_module import Groups, WgslModule

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

MOST_BOUND = 64
"""The number of bind groups that a kernel caches, the latest ones."""
_TYPES = {"input": "read-only-storage", "output": "storage", "params": "uniform"}


class WebGpuWgslRunner:
    """A compiled WGSL kernel; its mistakes raise KernelSyntaxError with the compiler's message."""

    def __init__(self, device: WebGpu, name: str, module: WgslModule) -> None:
        self.device = device
        self.name = name
        self.module = module
        self._groups: LruCache[Any, Any] = LruCache(MOST_BOUND)
        self._uniforms: LruCache[bytes, Any] = LruCache(MOST_BOUND)
        device.check()
        with device.guard(), self._explained("does not compile"):
            self.pipeline, self.layout = self._compiled()

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Translates what the device refuses into an error about the user's text."""
        try:
            yield
        except wgpu.GPUValidationError as error:
            raise KernelSyntaxError(
                f"kernel {self.name!r}, which is WGSL text, {what}:\n{error}"
            ) from error

    def _compiled(self) -> tuple[Any, Any]:
        gpu = self.device.gpu
        layout = gpu.create_bind_group_layout(
            entries=[
                {
                    "binding": item.number,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": {"type": _TYPES[item.kind]},
                }
                for item in self.module.bindings
            ]
        )
        pipeline = gpu.create_compute_pipeline(
            layout=gpu.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={
                "module": gpu.create_shader_module(code=self.module.text),
                "entry_point": self.module.entry,
            },
        )
        return pipeline, layout

    def run(
        self, inputs: Sequence[GpuMemory], output: GpuMemory, params: bytes, groups: Groups
    ) -> None:
        """Dispatches the workgroups; an output that is also an input is computed aside first."""
        device = self.device
        device.check()
        if max(groups) > MOST_GROUPS:
            raise LimitError(
                f"{self.name}: {groups} workgroups are needed, but along each axis there are at "
                f"most {MOST_GROUPS:,}: use larger workgroups, or give groups= and have each "
                f"invocation compute more."
            )
        target = output
        if any(memory is output for memory in inputs):
            target = device.allocate(output.size_bytes, zeroed=False)
            device.copy(output, target)
        with device.lock, device.guard(), self._explained("cannot run on these buffers"):
            group = self._group(inputs, target, params)
            device.dispatch(self.pipeline, group, groups, (*inputs, target))
        if target is not output:
            device.copy(target, output)

    def _group(self, inputs: Sequence[GpuMemory], output: GpuMemory, params: bytes) -> Any:
        """Returns the cached bind group of these buffers."""
        used = tuple((item.serial, item.size_bytes) for item in (*inputs, output))
        return self._groups.find((params, used), lambda: self._bound(inputs, output, params))

    def _uniform(self, params: bytes) -> Any:
        usage = wgpu.BufferUsage.UNIFORM
        return self.device.gpu.create_buffer_with_data(data=params, usage=usage)

    def _bound(self, inputs: Sequence[GpuMemory], output: GpuMemory, params: bytes) -> Any:
        """Creates a bind group; buffers are bound by exact size, so that arrayLength is right."""
        gpu, given = self.device.gpu, iter(inputs)
        entries = []
        for item in self.module.bindings:
            if item.kind == "params":
                buffer = self._uniforms.find(params, lambda: self._uniform(params))
                resource = {"buffer": buffer, "offset": 0, "size": len(params)}
            else:
                memory = output if item.kind == "output" else next(given)
                memory = memory if memory.size_bytes else empty_input(self.device)
                size = -(-memory.size_bytes // 4) * 4
                resource = {"buffer": memory.buffer, "offset": 0, "size": size}
            entries.append({"binding": item.number, "resource": resource})
        return gpu.create_bind_group(layout=self.layout, entries=entries)
