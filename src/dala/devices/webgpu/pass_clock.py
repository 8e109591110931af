"""Times compute passes with timestamp queries of a WebGPU device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import wgpu

if TYPE_CHECKING:
    from dala.devices.webgpu.device import WebGpu

MOST_PASSES = 1024
"""The most passes timed at once: a query set has at most 4096 queries."""
_TIME_BYTES = 8


class PassClock:
    """Timestamps the begin and end of passes; used under the device's lock."""

    def __init__(self, device: WebGpu) -> None:
        self.device = device
        self.passes = 0
        gpu, count = device.gpu, 2 * MOST_PASSES
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._queries = gpu.create_query_set(type="timestamp", count=count)
        self._resolved = gpu.create_buffer(size=count * _TIME_BYTES, usage=usage)
        self._tick_s = _nanoseconds_per_tick(gpu) * 1e-9

    def begin(self, encoder: Any) -> Any:
        """Begins a timed compute pass."""
        at = 2 * self.passes
        self.passes += 1
        if self.passes > MOST_PASSES:
            return encoder.begin_compute_pass()
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._queries,
                "beginning_of_pass_write_index": at,
                "end_of_pass_write_index": at + 1,
            }
        )

    def read(self) -> float | None:
        """Returns the total seconds of the passes; None if there were none, or too many."""
        if not 0 < self.passes <= MOST_PASSES:
            return None
        device, count = self.device, 2 * self.passes
        seen = device.allocate(count * _TIME_BYTES, zeroed=False)
        with device.guard(), device.encoding(seen) as encoder:
            encoder.resolve_query_set(self._queries, 0, count, self._resolved, 0)
            encoder.copy_buffer_to_buffer(self._resolved, 0, seen.buffer, 0, seen.size_bytes)
        begins, ends = device.read(seen).view(np.int64).reshape(-1, 2).T
        return float(np.maximum(ends - begins, 0).sum()) * self._tick_s


def _nanoseconds_per_tick(gpu: Any) -> float:
    """Returns the timestamp period of the queue; wgpu has it below its Python API only."""
    try:
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(gpu.queue._internal))
    except (ImportError, AttributeError):
        return 1.0  # the default of the standard
