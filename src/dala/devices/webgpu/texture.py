"""Textures of a WebGPU device, filled and copied there without a round trip to the host.

Rows of a buffer that is copied to or from a texture are aligned to 256 bytes; rows of our memories
are contiguous. If these differ, a shader moves the rows on the device: 1080 copies of one row each
would take longer to encode than a frame lasts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from wgpu import TextureUsage

from dala.devices.device import check_sizes
from dala.devices.webgpu.adapters import largest_buffer
from dala.devices.webgpu.transfer import CHUNK_BYTES
from dala.errors import LimitError
from dala.lang.wgsl_module import read_module

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu
    from dala.devices.webgpu.memory import GpuMemory
    from dala.devices.webgpu.wgsl_kernel import WebGpuWgslRunner

FORMAT = "rgba8unorm"
PIXEL_BYTES = 4
ROW_STEP_BYTES = 256
_USAGE = (
    TextureUsage.COPY_SRC
    | TextureUsage.COPY_DST
    | TextureUsage.TEXTURE_BINDING
    | TextureUsage.RENDER_ATTACHMENT
)
_MOVE_ROWS = """
struct Rows { width: u32, source_width: u32, moved_width: u32 }
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> moved: array<u32>;
@group(0) @binding(2) var<uniform> rows: Rows;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    if (at.x < rows.width) {
        moved[at.y * rows.moved_width + at.x] = source[at.y * rows.source_width + at.x];
    }
}
"""


class Texture:
    """RGBA8 pixels, initially transparent black; `handle` is wgpu's own."""

    def __init__(self, device: WebGpu, width: int, height: int) -> None:
        self.device = device
        self.width = width
        self.height = height
        self.row_bytes = width * PIXEL_BYTES
        self.pitch_bytes = -(-self.row_bytes // ROW_STEP_BYTES) * ROW_STEP_BYTES
        most = largest_buffer(device.limits)
        if self.pitch_bytes * height > most:
            raise LimitError(
                f"{width:,} × {height:,} pixels take {self.pitch_bytes * height:,} bytes, but what "
                f"{device.id} ({device.name}) can copy at once has at most {most:,}."
            )
        device.check()
        with device.guard(), device.lock:
            self.handle: Any = device.gpu.create_texture(
                size=self._size, format=FORMAT, usage=_USAGE
            )
            self.view: Any = self.handle.create_view()

    def fill(self, memory: GpuMemory) -> None:
        """Replaces all pixels by those of a memory of the device, by a copy there."""
        device = self.device
        device.check()
        check_sizes("a surface", [memory], [self.row_bytes * self.height])
        with device.batch():
            source = memory
            if self.row_bytes != self.pitch_bytes:
                source = device.allocate(self.pitch_bytes * self.height, zeroed=False)
                self._move_rows(memory, self.row_bytes, source, self.pitch_bytes)
            with device.guard(), device.encoding(source) as encoder:
                encoder.copy_buffer_to_texture(self._rows_of(source), self._place(), self._size)

    def write(self, pixels: np.ndarray) -> None:
        """Replaces all pixels by those of a contiguous u8 array."""
        device = self.device
        device.check()
        flat = pixels.reshape(-1)
        band = max(1, CHUNK_BYTES // self.row_bytes)
        with device.guard(), device.lock:
            device.flush()  # earlier work comes first
            for top in range(0, self.height, band):
                rows = min(band, self.height - top)
                device.gpu.queue.write_texture(
                    self._place(top),
                    flat,
                    {"offset": top * self.row_bytes, "bytes_per_row": self.row_bytes},
                    (self.width, rows, 1),
                )
            device.submit([])  # until then wgpu holds a second copy

    def clear(self, levels: np.ndarray) -> None:
        """Sets every pixel to the same four bytes."""
        device = self.device
        device.check()
        attachment = {
            "view": self.view,
            "load_op": "clear",
            "store_op": "store",
            "clear_value": [int(level) / 255 for level in levels],
        }
        with device.guard(), device.lock:
            device.flush()  # earlier work comes first
            encoder = device.gpu.create_command_encoder()
            encoder.begin_render_pass(color_attachments=[attachment]).end()
            device.submit([encoder.finish()])

    def read(self) -> np.ndarray:
        """Returns the pixels as a new array on the host, (height, width, 4)."""
        rows = self.device.read(self._pitched()).reshape(self.height, self.pitch_bytes)
        rows = np.ascontiguousarray(rows[:, : self.row_bytes])
        return rows.reshape(self.height, self.width, PIXEL_BYTES)

    def copied(self) -> GpuMemory:
        """Returns the pixels in a new memory of the device."""
        device = self.device
        with device.batch():
            pitched = self._pitched()
            if self.row_bytes == self.pitch_bytes:
                return pitched
            packed = device.allocate(self.row_bytes * self.height, zeroed=False)
            self._move_rows(pitched, self.pitch_bytes, packed, self.row_bytes)
            return packed

    def _pitched(self) -> GpuMemory:
        device = self.device
        memory = device.allocate(self.pitch_bytes * self.height, zeroed=False)
        with device.guard(), device.encoding(memory) as encoder:
            encoder.copy_texture_to_buffer(self._place(), self._rows_of(memory), self._size)
        return memory

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.width, self.height, 1

    def _place(self, top: int = 0) -> dict[str, Any]:
        return {"texture": self.handle, "origin": (0, top, 0)}

    def _rows_of(self, memory: GpuMemory) -> dict[str, Any]:
        return {
            "buffer": memory.buffer,
            "bytes_per_row": self.pitch_bytes,
            "rows_per_image": self.height,
        }

    def _move_rows(
        self, source: GpuMemory, source_bytes: int, target: GpuMemory, target_bytes: int
    ) -> None:
        """Copies rows from one row pitch to another."""
        text = _row_mover(self.device)
        sizes = (self.row_bytes, source_bytes, target_bytes)
        params = text.module.pack([size // PIXEL_BYTES for size in sizes])
        groups = (-(-self.width // text.module.workgroup[0]), self.height, 1)
        text.run([source], target, params, groups)


def _row_mover(device: WebGpu) -> WebGpuWgslRunner:
    """Returns the shader that moves rows, compiled once per device."""
    name = "move_rows"
    known: WebGpuWgslRunner | None = device.cache.get(name)
    if known is None:
        known = device.load_wgsl(name, read_module(name, _MOVE_ROWS, {}))
        device.cache[name] = known
    return known
