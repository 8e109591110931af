"""The WebGPU device: a GPU, or a software one, over Vulkan, Metal, D3D12 or OpenGL."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import wgpu

from dala.devices.device import Device, GroupRunner, MemoryStatistics, Timing, check_sizes
from dala.devices.webgpu import process_exit, wgpu_errors
from dala.devices.webgpu.adapters import Adapter, largest_buffer
from dala.devices.webgpu.memory import Blocks, GpuMemory
from dala.devices.webgpu.products import lanes_of, products_of
from dala.devices.webgpu.transfer import Transfers
from dala.devices.webgpu.wgpu_errors import Guard
from dala.errors import ArgumentError, DeviceError, LimitError, MemoryLimitError
from dala.ir.types import U8
from dala.lang.wgsl_module import WgslModule
from dala.plan.fusion import FusionGroup
from dala.plan.task import Task

if TYPE_CHECKING:
    from dala.devices.webgpu.pass_clock import PassClock
    from dala.devices.webgpu.runner import WebGpuRunner
    from dala.devices.webgpu.wgsl_kernel import WebGpuWgslRunner

WAIT_S = 0.05
"""How often a wait checks that the device still exists."""


class Batch:
    """Encoded work that is not submitted yet; what it uses is kept alive until then."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.used: list[GpuMemory] = []


class WebGpuRecording:
    """Dispatches and copies in order, with the arguments that shaders read."""

    def __init__(self) -> None:
        self.is_complete = True
        self.commands: list[tuple[Any, ...]] = []
        self.arguments: list[tuple[Any, bytes]] = []


class WebGpu(Device):
    """One adapter, opened with all the limits that it has.

    `gpu` is wgpu's device, `cache` holds what was made with it and shares its lifetime, and `lock`
    is held while commands are encoded and submitted.
    """

    backend = "webgpu"

    def __init__(self, adapter: Adapter) -> None:
        self.id = adapter.id
        self.name = adapter.name
        self.adapter = adapter
        self.lock = threading.RLock()
        self.suspect = False
        self._batch: Batch | None = None
        self._recording: WebGpuRecording | None = None
        self._clock: PassClock | None = None
        self.cache: dict[Any, Any] = {}
        self._pid = os.getpid()
        try:
            self.gpu = adapter.handle.request_device_sync(
                label="dala",
                required_features=list(adapter.features),
                required_limits=adapter.limits,
            )
        except (wgpu.GPUError, RuntimeError) as error:
            raise DeviceError(f"{self.id} ({self.name}) does not open: {error}") from error
        self.limits: dict[str, int] = dict(self.gpu.limits)
        status = 1  # where loops are counted, it is bound beside a launch's own buffers
        self.most_buffers: int = self.limits["max-storage-buffers-per-shader-stage"] - status
        has = {"shader-f64": "f64", "shader-int64": "s64"}
        found = {has[name] for name in self.gpu.features if name in has}
        self.capabilities = frozenset({"recording", "wgsl", *found})  # type: ignore[arg-type]
        self.is_gpu = adapter.hardware
        self.tiles = _asks_for_tiles(adapter)
        """Whether fusion groups are computed in tiles."""
        self.lanes = lanes_of(adapter)
        self.products = products_of(adapter)
        """The tiles in which matrix products are computed."""
        self._blocks = Blocks(self.gpu, largest_buffer(self.limits))
        self._transfers = Transfers()
        wgpu_errors.watch(self)
        process_exit.keep_at_exit(self.gpu)

    def info(self) -> dict[str, Any]:
        return self.adapter.info()

    # -- whether it is there ---------------------------------------------------------------------

    def check(self) -> None:
        """Raises DeviceError if the device cannot be used."""
        if self._pid != os.getpid():
            raise DeviceError(
                f"{self.id} ({self.name}) and its buffers cannot be used in this process: it was "
                f"forked after they were made. Start processes by 'spawn', or use the device 'cpu'."
            )
        if self.lost or self.suspect:
            if self.is_lost():
                raise wgpu_errors.lost_error(self)
            self.suspect = False

    def is_lost(self) -> bool:
        """Whether the device is lost, which it reports when given the least of work."""
        if not self.lost:
            try:
                self.gpu.create_command_encoder().finish()
            except wgpu.GPUError as error:
                self.lost = "lost" in str(error)
        return self.lost

    def lose(self) -> None:
        """Loses the device on purpose, as if its driver had been reset."""
        with self.lock:
            self.lost = True
            self.gpu.destroy()

    def guard(self) -> Guard:
        """Returns a context that translates errors of wgpu."""
        return Guard(self)

    # -- work ------------------------------------------------------------------------------------

    def submit(self, command_buffers: Sequence[Any]) -> None:
        """Submits encoded commands: every submission passes through here."""
        with self.lock:
            self.check()
            self.gpu.queue.submit(command_buffers)

    @contextmanager
    def encoding(self, *used: GpuMemory) -> Iterator[Any]:
        """Yields an encoder for work on memories; it is submitted at the end, or with its batch."""
        with self.lock:
            if self._batch is not None:
                self._batch.used += used
                yield self._batch.encoder
                return
            encoder = self.gpu.create_command_encoder()
            yield encoder
            self.submit([encoder.finish()])

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Submits the work encoded inside together at the end; other threads wait for it."""
        with self.lock:
            if self._batch is not None:
                yield
                return
            self.check()
            try:
                with self.guard():
                    self._batch = Batch(self.gpu.create_command_encoder())
                yield
                with self.guard():
                    self.flush()
            finally:
                self._batch = None

    def flush(self) -> None:
        """Submits what a batch has deferred so far, before the host looks at its results."""
        batch = self._batch
        if batch is not None and batch.used:
            # Encoded work refers to buffers that must not be destroyed before it is submitted.
            self.submit([batch.encoder.finish()])
            self._batch = Batch(self.gpu.create_command_encoder())

    def dispatch(
        self, pipeline: Any, group: Any, groups: Sequence[int], used: Sequence[GpuMemory]
    ) -> None:
        """Dispatches a shader with this many workgroups on the bound memories."""
        with self.encoding(*used) as encoder:
            compute = self.begin_pass(encoder)
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*groups)
            compute.end()
            if self._recording is not None:
                self._recording.commands.append((pipeline, group, groups))

    @contextmanager
    def record(self) -> Iterator[WebGpuRecording]:
        with self.lock:
            outer, made = self._recording, WebGpuRecording()
            self._recording = made
            try:
                yield made
            finally:
                self._recording = outer

    def record_arguments(self, runner: Any, packed: bytes) -> None:
        """Records the arguments that a runner's shader reads."""
        if self._recording is not None:
            self._recording.arguments.append((runner, packed))

    def not_recorded(self) -> None:
        """Marks the recording as incomplete, because the host takes part."""
        if self._recording is not None:
            self._recording.is_complete = False

    def replay(self, recording: WebGpuRecording, used: Sequence[GpuMemory]) -> None:
        """Replays all dispatches in one pass; only changed arguments are written."""
        from dala.devices.webgpu.encoding import encode

        with self.lock, self.guard():
            self.check()
            for runner, packed in recording.arguments:
                if runner.packed != packed:
                    runner.write_arguments(packed)
            with self.encoding(*used) as encoder:
                encode(self, encoder, recording.commands)

    def wait(self, promise: Any) -> None:
        """Waits for a promise of wgpu, but never for a lost device."""
        # Not with sync_wait alone: promises of a lost device never resolve.
        while not promise._thread_event.wait(WAIT_S):
            self.check()
        promise.sync_wait()

    def synchronize(self) -> None:
        self.check()
        with self.guard():
            with self.lock:
                self.check()
                self.flush()
                promise = self.gpu.queue.on_submitted_work_done_async()
            self.wait(promise)

    def begin_pass(self, encoder: Any) -> Any:
        """Begins a compute pass, which is timed if requested."""
        clock = self._clock
        return encoder.begin_compute_pass() if clock is None else clock.begin(encoder)

    def timed(self, call: Callable[[], None]) -> Timing:
        """Times the compute passes of a call if the device can, else until it is done.

        Other threads wait for it.
        """
        if "timestamp-query" not in self.gpu.features:
            return super().timed(call)
        from dala.devices.webgpu.pass_clock import PassClock

        with self.lock:
            self.check()
            start_s = time.perf_counter()
            outer = self._clock
            with self.guard():
                clock = self._clock = PassClock(self)
            try:
                call()
            finally:
                self._clock = outer
            duration_s = clock.read()
            if duration_s is not None:
                return Timing(start_s, duration_s, "device")
            self.synchronize()
            return Timing(start_s, time.perf_counter() - start_s, "host")

    def load(self, task: Task) -> WebGpuRunner:
        from dala.devices.webgpu.runner import WebGpuRunner

        return WebGpuRunner(self, task)

    def why_not_fuse(self, group: FusionGroup, materialized: set[int]) -> str:
        from dala.devices.webgpu.tile_group import why_not_fuse

        return why_not_fuse(self, group, materialized) if self.tiles else ""

    def load_group(self, group: FusionGroup, materialized: set[int]) -> GroupRunner:
        from dala.devices.webgpu.tile_group import WebGpuTileGroup, tiles_of

        tiling = tiles_of(self, group, materialized) if self.tiles else None
        if tiling is None:
            return super().load_group(group, materialized)
        return WebGpuTileGroup(self, tiling)

    def load_wgsl(self, name: str, module: WgslModule) -> WebGpuWgslRunner:
        from dala.devices.webgpu.wgsl_kernel import WebGpuWgslRunner

        return WebGpuWgslRunner(self, name, module)

    # -- memory ----------------------------------------------------------------------------------

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> GpuMemory:
        self.check()
        self.not_recorded()  # a replay would write to this memory after it is freed
        largest = largest_buffer(self.limits)
        if size_bytes > largest:
            raise LimitError(
                f"{size_bytes:,} bytes were asked for, but a buffer of {self.id} ({self.name}) has "
                f"at most {largest:,}: work in smaller pieces, or use the device 'cpu'."
            )
        try:
            memory, new = self._taken(size_bytes)
        except MemoryLimitError:
            with self.guard(), self.lock:
                self.flush()
            if not self._blocks.trim():
                raise
            memory, new = self._taken(size_bytes)
        if zeroed and not new and size_bytes:
            self._clear(memory)
        return memory

    def _taken(self, size_bytes: int) -> tuple[GpuMemory, bool]:
        with self.guard():
            block, new = self._blocks.take(size_bytes)
        return GpuMemory(self, size_bytes, block, self._blocks), new

    def _clear(self, memory: GpuMemory) -> None:
        with self.guard(), self.encoding(memory) as encoder:
            encoder.clear_buffer(memory.buffer)

    def write(self, memory: GpuMemory, data: np.ndarray) -> None:
        self.check()
        self.not_recorded()
        check_sizes("write", [memory], [data.nbytes])
        if memory.size_bytes:
            with self.guard(), self.lock:
                self.flush()
                self._transfers.write(self, memory, data)

    def read(self, memory: GpuMemory) -> np.ndarray:
        self.check()
        self.not_recorded()
        if not memory.size_bytes:
            return np.empty(0, U8.numpy)
        with self.guard():
            with self.lock:
                self.flush()
            return self._transfers.read(self, memory)

    def copy(self, source: GpuMemory, target: GpuMemory) -> None:
        self.check()
        check_sizes("copy", [source], [target.size_bytes])
        if source is target or not target.size_bytes:
            return
        size = -(-target.size_bytes // 4) * 4
        with self.guard(), self.encoding(source, target) as encoder:
            encoder.copy_buffer_to_buffer(source.buffer, 0, target.buffer, 0, size)
            if self._recording is not None:
                self._recording.commands.append((None, source.buffer, target.buffer, size))

    def held(self) -> MemoryStatistics:
        self.check()
        return self._blocks.held()

    def trim(self) -> int:
        self.check()
        return self._blocks.trim()


def _asks_for_tiles(adapter: Adapter) -> bool:
    """Whether tiles are wanted: by DALA_TILES, else of GPUs, as software gains nothing by them."""
    asked = os.environ.get("DALA_TILES")
    if asked not in (None, "", "0", "1"):
        raise ArgumentError(f"DALA_TILES is {asked!r}, but it is 1 (in tiles) or 0 (step by step).")
    return asked == "1" if asked else adapter.hardware
