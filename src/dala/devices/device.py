"""What every device can do: hold memory, move bytes, and run tasks."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import numpy as np

from dala.base.record import record
from dala.errors import DeviceError, InternalError, ShapeError
from dala.lang.wgsl_module import Groups, WgslModule
from dala.plan.fusion import FusionGroup
from dala.plan.task import Task

Number = bool | int | float
Capability = Literal["f64", "s64", "line_buffers", "recording", "wgsl"]
"""64-bit types; groups that go through their steps a few rows at a time; runs that are recorded and
replayed; kernels in WGSL."""


@record
class MemoryStatistics:
    """What a device holds: `live` is in use by buffers and views, `pooled` waits for the next."""

    live_bytes: int
    live_blocks: int
    pooled_bytes: int
    limit_bytes: int


@record
class Timing:
    """When a call began by the host's clock, how long it took, and which clock says so."""

    start_s: float
    duration_s: float
    clock: str
    """"device" or "host"."""


class Memory:
    """Bytes on a device, kept there as long as anyone refers to them."""

    __slots__ = ("__weakref__", "size_bytes")

    device: Device
    size_bytes: int

    def span(self) -> tuple[int, int]:
        """Where it begins and ends among all memories: two that share bytes overlap."""
        return id(self), id(self) + 1

    @property
    def identity(self) -> int:
        """What tells its bytes from others as long as it is there."""
        return id(self)

    def part(self, size_bytes: int) -> Memory:
        """Its first bytes as a memory of their own, which keeps all of it alive."""
        raise InternalError(f"memory of {self.device.id} has no parts.")

    def overlaps(self, other: Memory) -> bool:
        """Whether the two share bytes."""
        (start, end), (other_start, other_end) = self.span(), other.span()
        return start < other_end and other_start < end

    def __reduce__(self) -> str:
        # A copied address would point at bytes that the copy does not keep alive.
        raise TypeError("memory cannot be copied or pickled: copy its buffer or an array of it.")


class DeferredMemory:
    """Memory that is asked for when it is first needed, if ever."""

    __slots__ = ("_memory", "device", "size_bytes")

    def __init__(self, device: Device, size_bytes: int) -> None:
        self.device = device
        self.size_bytes = size_bytes
        self._memory: Memory | None = None

    def span(self) -> tuple[int, int]:
        return id(self), id(self) + 1

    def get(self) -> Memory:
        """The memory itself; what it holds at first is not defined."""
        if self._memory is None:
            self._memory = self.device.allocate(self.size_bytes, zeroed=False)
        return self._memory


class Recording(Protocol):
    """What a device was asked to do."""

    is_complete: bool
    """Whether running it again would do all of it; not so where the host took part."""


def check_sizes(name: str, memories: Iterable[Memory], sizes_bytes: Iterable[int]) -> None:
    """Refuse memory that has fewer bytes than would be read or written there."""
    for memory, size_bytes in zip(memories, sizes_bytes, strict=True):
        if memory.size_bytes < size_bytes:
            raise ShapeError(
                f"{name}: {size_bytes:,} bytes would be read or written in memory that has "
                f"{memory.size_bytes:,}."
            )


class Runner(Protocol):
    """A task, ready to be run on a device."""

    task: Task

    def run(self, inputs: Sequence[Any], output: Any, params: Sequence[Number]) -> None:
        """Compute the output from the inputs and the run-time parameters; all or nothing."""

    def explain(self, *, assembly: bool = False) -> str:
        """The code that was made of it."""


class WgslRunner(Protocol):
    """A WGSL text, ready to be run on a device."""

    def run(self, inputs: Sequence[Any], output: Any, params: bytes, groups: Groups) -> None:
        """Dispatch so many workgroups."""


def __getattr__(name: str) -> Any:
    if name == "Held":
        warnings.warn(
            "dala.devices.device.Held is called MemoryStatistics now.",
            DeprecationWarning,
            stacklevel=2,
        )
        return MemoryStatistics
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def forget_oldest(known: dict[Any, Any], most: int) -> None:
    """Take out what was put in first, as long as there is more than there may be."""
    while len(known) > most:
        known.pop(next(iter(known)), None)


class GroupRunner(Protocol):
    """A group of steps, ready to be run on a device."""

    def run(self, memories: Mapping[int, Any], params: Mapping[str, Number]) -> None:
        """Compute the outputs of all steps; memories are known by their numbers."""

    def needs(self) -> set[int]:
        """The numbers of the memories that have to be there."""


class Sequential:
    """A group whose steps are run one after another."""

    def __init__(self, device: Device, group: FusionGroup) -> None:
        self.steps = [(step, device.load(step.task())) for step in group.steps]

    def needs(self) -> set[int]:
        return {number for step, _ in self.steps for number in (*step.inputs, step.output)}

    def run(self, memories: Mapping[int, Any], params: Mapping[str, Number]) -> None:
        for step, runner in self.steps:
            given = [params[name] for name in step.params]
            inputs = [memories[number] for number in step.inputs]
            runner.run(inputs, memories[step.output], given)


class Device(ABC):
    """A place that holds memory and runs kernels."""

    id: str
    """What `use_device` knows it by, such as "cpu" or "webgpu:1"."""
    name: str
    """What the hardware or its driver calls itself."""
    backend: str
    """Which kind of device it is: "cpu" or "webgpu"."""
    capabilities: frozenset[Capability] = frozenset()
    is_host: bool = False
    """Whether its memory is the host's own: arrays share it, and libraries work on it."""
    is_gpu: bool = False
    """Whether it is a GPU, and not software that computes like one."""
    lost: bool = False
    """Whether it is gone for good, with all its memory; the same id then opens another."""

    def supports(self, capability: Capability) -> bool:
        """Whether it has something that not every device has."""
        return capability in self.capabilities

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """The facts about it: name, backend, whether it is a GPU, and what it has."""

    @abstractmethod
    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> Memory:
        """Memory of `size_bytes`, all zero unless the caller says that it overwrites every byte."""

    @abstractmethod
    def write(self, memory: Any, data: np.ndarray) -> None:
        """Fill the memory with the bytes of an array of just its size."""

    @abstractmethod
    def read(self, memory: Any) -> np.ndarray:
        """The bytes of the memory, as a new array."""

    @abstractmethod
    def copy(self, source: Any, target: Any) -> None:
        """Copy all bytes from one memory of this device to another of the same size."""

    @abstractmethod
    def load(self, task: Task) -> Runner:
        """The task, ready to be run here; compiled when it first runs."""

    def should_fuse(self, group: FusionGroup, materialized: set[int]) -> bool:
        """Whether a group is computed faster than its steps; `materialized` must be written."""
        return True

    def load_group(self, group: FusionGroup, materialized: set[int]) -> GroupRunner:
        """Loads a group; buffers that are not `materialized` need not exist."""
        return Sequential(self, group)

    def batch(self) -> AbstractContextManager[None]:
        """Inside, work may be held back and sent off together."""
        return nullcontext()

    def load_wgsl(self, name: str, module: WgslModule) -> WgslRunner:
        """A WGSL text, compiled; a DeviceError where WGSL cannot be run."""
        raise DeviceError(
            f"kernel {name!r} is WGSL text, which runs on WebGPU devices only, not on {self.id}. "
            f"Make its buffers there, in `with compute.device('webgpu')`, or write it as a Python "
            f"function."
        )

    def record(self) -> AbstractContextManager[Recording | None]:
        """Inside, what is run is written down as well, to be run again by `replay`.

        None where the device has no use for that.
        """
        return nullcontext(None)

    def replay(self, recording: Any, used: Sequence[Any]) -> None:
        """Run again what was recorded, on the same memories, which are all that it uses."""
        raise InternalError(f"{self.id} records nothing.")

    @abstractmethod
    def synchronize(self) -> None:
        """Return when everything that was run here is done."""

    def timed(self, call: Callable[[], None]) -> Timing:
        """How long a call takes, with all that it has this device do."""
        start_s = time.perf_counter()
        call()
        self.synchronize()
        return Timing(start_s, time.perf_counter() - start_s, "host")

    @abstractmethod
    def held(self) -> MemoryStatistics:
        """How much is in use, and how much is kept for reuse."""

    @abstractmethod
    def trim(self) -> int:
        """Gives all memory kept for reuse back to the system; returns how many bytes."""

    def __repr__(self) -> str:
        return f"<Device {self.id}: {self.name}>"
