"""What a shader is given: its arguments in a uniform buffer, and the memories that are bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.emitted_code import dump_code
from dala.base.record import record
from dala.devices.device import forget_oldest
from dala.emit.wgsl.shader import ENTRY

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu
    from dala.devices.webgpu.memory import GpuMemory

MOST_BOUND = 16
"""The number of bind groups that a shader caches, the latest ones."""
MOST_PIPELINES = 1024
"""The number of pipelines that a device caches, the latest ones."""
WORD_BYTES = 4


@record
class Compiled:
    """A compiled shader."""

    pipeline: Any
    layout: Any


class Bindings:
    """The arguments and bind groups of one shader, kept from run to run."""

    def __init__(self, device: WebGpu) -> None:
        self.device = device
        self.packed = b""
        self._arguments: Any = None
        self._bound: dict[tuple[int, ...], Any] = {}

    def write_arguments(self, packed: bytes) -> None:
        """Writes packed arguments for the shader."""
        if self._arguments is None:
            import wgpu

            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._arguments = self.device.gpu.create_buffer(size=len(packed), usage=usage)
        else:
            # Submitted work still sees the old arguments; work deferred by a batch would not.
            self.device.flush()
        self.packed = b""
        self.device.gpu.queue.write_buffer(self._arguments, 0, packed)
        self.packed = packed

    def dispatch(self, code: Compiled, bound: Sequence[GpuMemory], groups: Sequence[int]) -> None:
        """Dispatches the shader with the arguments that were written last."""
        self.device.record_arguments(self, self.packed)
        self.device.dispatch(code.pipeline, self._group(code, bound), groups, bound)

    def _group(self, code: Compiled, bound: Sequence[GpuMemory]) -> Any:
        key = (id(code), *[memory.serial for memory in bound])
        known = self._bound.get(key)
        if known is None:
            buffers = [self._arguments, *[memory.buffer for memory in bound]]
            known = self.device.gpu.create_bind_group(
                layout=code.layout,
                entries=[
                    {"binding": i, "resource": {"buffer": item, "offset": 0, "size": item.size}}
                    for i, item in enumerate(buffers)
                ],
            )
            while len(self._bound) >= MOST_BOUND:
                self._bound.pop(next(iter(self._bound)))
            self._bound[key] = known
        return known


def compiled(device: WebGpu, text: str, outputs: int, inputs: int, more: int = 0) -> Compiled:
    """Returns a shader's pipeline, made once for each text."""
    key = ("pipeline", text)
    known = device.cache.get(key)
    if known is None:
        gpu = device.gpu
        layout = _layout(device, outputs, inputs, more)
        dump_code(text, "wgsl")
        module = gpu.create_shader_module(code=text)
        pipeline = gpu.create_compute_pipeline(
            layout=gpu.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": ENTRY},
        )
        known = device.cache[key] = Compiled(pipeline, layout)
        forget_oldest(device.cache, MOST_PIPELINES)
    return known


def _layout(device: WebGpu, outputs: int, inputs: int, more: int) -> Any:
    """Returns the layout: arguments, outputs, inputs, and status and reports if there are any."""
    key = ("layout", outputs, inputs, more)
    known = device.cache.get(key)
    if known is None:
        import wgpu

        kinds = ["uniform", *["storage"] * outputs, *["read-only-storage"] * inputs]
        kinds += ["storage"] * more
        known = device.cache[key] = device.gpu.create_bind_group_layout(
            entries=[
                {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
                for i, kind in enumerate(kinds)
            ]
        )
    return known


def empty_input(device: WebGpu) -> GpuMemory:
    """Returns the memory of an empty input, which reads as zeros."""
    known = device.cache.get("nothing")
    if known is None:
        known = device.cache["nothing"] = device.allocate(WORD_BYTES)
        device.write(known, np.zeros(WORD_BYTES, np.uint8))
    return known
