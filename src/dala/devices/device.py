"""The device interface: memory, transfers and tasks."""

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
"""64-bit types; fusion groups with line buffers; recording and replaying runs; WGSL kernels."""


@record
class MemoryStatistics:
    """Memory of a device: `live` is in use by buffers and views, `pooled` is kept for reuse."""

    live_bytes: int
    live_blocks: int
    pooled_bytes: int
    limit_bytes: int


@record
class Timing:
    """The start of a call by the host's clock, its duration, and the clock that measured it."""

    start_s: float
    duration_s: float
    clock: str
    """"device" or "host"."""


class Memory:
    """Bytes on a device, alive as long as anything refers to them."""

    __slots__ = ("__weakref__", "size_bytes")

    device: Device
    size_bytes: int

    def span(self) -> tuple[int, int]:
        """Returns its start and end among all memories: two that share bytes overlap."""
        return id(self), id(self) + 1

    @property
    def identity(self) -> int:
        """Returns a number that identifies its bytes during its lifetime."""
        return id(self)

    def part(self, size_bytes: int) -> Memory:
        """Returns its first bytes as a memory of their own, which keeps all of it alive."""
        raise InternalError(f"memory of {self.device.id} has no parts.")

    def overlaps(self, other: Memory) -> bool:
        """Whether the two share bytes."""
        (start, end), (other_start, other_end) = self.span(), other.span()
        return start < other_end and other_start < end

    def __reduce__(self) -> str:
        # A copied address would refer to bytes that the copy does not keep alive.
        raise TypeError("memory cannot be copied or pickled: copy its buffer or an array of it.")


class DeferredMemory:
    """Memory that is allocated when it is first needed."""

    __slots__ = ("_memory", "device", "size_bytes")

    def __init__(self, device: Device, size_bytes: int) -> None:
        self.device = device
        self.size_bytes = size_bytes
        self._memory: Memory | None = None

    def span(self) -> tuple[int, int]:
        return id(self), id(self) + 1

    def get(self) -> Memory:
        """Returns the memory; its initial contents are undefined."""
        if self._memory is None:
            self._memory = self.device.allocate(self.size_bytes, zeroed=False)
        return self._memory


BriefLaunch = tuple[int, int, int, int]
"""A launch on one thread, over before other threads of Python would notice.

The addresses of its function and slots, rows and width: `function(slots, 0, rows, 0, width)`.
"""


class Again(Protocol):
    """Launches that are made once more when it is called, on the same memory or on other."""

    def __call__(self) -> object:
        """Makes the launches."""

    def pointers(self) -> Iterable[tuple[Any, int]]:
        """Returns where the addresses of memory are: arrays of words, and places in them."""

    def brief(self) -> list[BriefLaunch] | None:
        """Returns the launches, where all of them are brief."""


class Launches:
    """Launches one after another, and what they need beside the memory that they are given."""

    __slots__ = ("_kept", "parts")

    def __init__(self, parts: Sequence[Again], kept: object = None) -> None:
        self.parts = parts
        self._kept = kept

    def __call__(self) -> None:
        for part in self.parts:
            part()

    def pointers(self) -> Iterable[tuple[Any, int]]:
        return [place for part in self.parts for place in part.pointers()]

    def brief(self) -> list[BriefLaunch] | None:
        found = [part.brief() for part in self.parts]
        if any(launches is None for launches in found):
            return None
        return [launch for launches in found if launches is not None for launch in launches]


class Recording(Protocol):
    """The work that a device was asked to do."""

    is_complete: bool
    """Whether a replay repeats all of it; false if the host took part."""


def check_sizes(name: str, memories: Iterable[Memory], sizes_bytes: Iterable[int]) -> None:
    """Raises if a memory is smaller than the bytes that would be read or written there."""
    for memory, size_bytes in zip(memories, sizes_bytes, strict=True):
        if memory.size_bytes < size_bytes:
            raise ShapeError(
                f"{name}: {size_bytes:,} bytes would be read or written in memory that has "
                f"{memory.size_bytes:,}."
            )


class Runner(Protocol):
    """A task, ready to run on a device."""

    task: Task

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], params: Sequence[Number]) -> None:
        """Computes the outputs from the inputs and the runtime parameters; all or nothing."""

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the code generated for it."""


class WgslRunner(Protocol):
    """A WGSL kernel, ready to run on a device."""

    def run(self, inputs: Sequence[Any], output: Any, params: bytes, groups: Groups) -> None:
        """Dispatches this many workgroups."""


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
    """Removes the oldest entries until at most `most` are left."""
    while len(known) > most:
        known.pop(next(iter(known)), None)


class GroupRunner(Protocol):
    """A fusion group, ready to run on a device."""

    def run(self, memories: Mapping[int, Any], params: Mapping[str, Number]) -> None:
        """Computes the outputs of all steps; memories are given by their numbers."""

    def needs(self) -> set[int]:
        """Returns the numbers of the memories that must exist."""

    def moved_bytes(self) -> int:
        """Returns the bytes of memory that a run reads and writes."""

    def how(self) -> str:
        """Returns how the steps are computed together, if there is more to say about it."""


class Sequential:
    """A group whose steps run one after another."""

    def __init__(self, device: Device, group: FusionGroup) -> None:
        self.device = device
        self.steps = [(step, device.load(step.task())) for step in group.steps]

    def needs(self) -> set[int]:
        return {number for step, _ in self.steps for number in step.buffers}

    def moved_bytes(self) -> int:
        return sum(step.moved_bytes for step, _ in self.steps)

    def how(self) -> str:
        return "one after another" if len(self.steps) > 1 else ""

    def run(self, memories: Mapping[int, Any], params: Mapping[str, Number]) -> None:
        for step, runner in self.steps:
            given = [params[name] for name in step.params]
            inputs = [memories[number] for number in step.inputs]
            runner.run(inputs, [memories[number] for number in step.outputs], given)

    def bound(self, memories: Mapping[int, Any], params: Mapping[str, Number]) -> Again | None:
        """Returns what runs all steps again, on the same memories."""
        calls = [
            self.device.bound(
                *(runner, [memories[number] for number in step.inputs]),
                *([memories[number] for number in step.outputs], [params[n] for n in step.params]),
            )
            for step, runner in self.steps
        ]
        return one_after_another(calls)


def one_after_another(calls: Sequence[Again | None], kept: object = None) -> Again | None:
    """Returns what makes all calls, or None if one of them cannot be made."""
    found = [call for call in calls if call is not None]
    if len(found) != len(calls):
        return None
    return found[0] if len(found) == 1 and not kept else Launches(found, kept)


class Device(ABC):
    """A device that holds memory and runs kernels."""

    id: str
    """Its id for `use_device`, such as "cpu" or "webgpu:1"."""
    name: str
    """The name reported by the hardware or its driver."""
    backend: str
    """Its backend: "cpu" or "webgpu"."""
    capabilities: frozenset[Capability] = frozenset()
    is_host: bool = False
    """Whether its memory is host memory, which arrays share and host libraries access."""
    is_gpu: bool = False
    """Whether it is a GPU rather than a software implementation of one."""
    most_buffers: int | None = None
    """The most buffers that a launch can use, where there is a limit."""
    lanes: int = 0
    """The invocations of every subgroup, where texts of WGSL may count on it; else 0."""
    lost: bool = False
    """Whether it was lost, with all its memory; its id then opens a new one."""

    def supports(self, capability: Capability) -> bool:
        """Whether the device has an optional capability."""
        return capability in self.capabilities

    @abstractmethod
    def info(self) -> dict[str, Any]:
        """Returns the facts about it: name, backend, whether it is a GPU, and its capabilities."""

    @abstractmethod
    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> Memory:
        """Allocates memory: zeroed, unless the caller says that it overwrites every byte."""

    @abstractmethod
    def write(self, memory: Any, data: np.ndarray) -> None:
        """Copies the bytes of an array of exactly its size into the memory."""

    @abstractmethod
    def read(self, memory: Any) -> np.ndarray:
        """Returns the bytes of the memory as a new array."""

    @abstractmethod
    def copy(self, source: Any, target: Any) -> None:
        """Copies all bytes from one memory of this device to another of the same size."""

    @abstractmethod
    def load(self, task: Task) -> Runner:
        """Returns the task, ready to run here; it is compiled on its first run."""

    def why_not_fuse(self, group: FusionGroup, materialized: set[int]) -> str:
        """Returns why a group is no faster than its steps one by one, or an empty string.

        The buffers that are `materialized` must be written.
        """
        return ""

    def load_group(self, group: FusionGroup, materialized: set[int]) -> GroupRunner:
        """Returns a group, ready to run here; memory that is not `materialized` need not exist."""
        return Sequential(self, group)

    def bound(self, runner: Any, *given: Any) -> Again | None:
        """Returns what a run with these memories and parameters comes to, without its checks.

        None where there is more to it. The memories have to be there when it is called.
        """
        return None

    def batch(self) -> AbstractContextManager[None]:
        """Defers work inside, which may be submitted together."""
        return nullcontext()

    def load_wgsl(self, name: str, module: WgslModule) -> WgslRunner:
        """Compiles a WGSL kernel; raises DeviceError if the device cannot run WGSL."""
        raise DeviceError(
            f"kernel {name!r} is WGSL text, which runs on WebGPU devices only, not on {self.id}. "
            f"Make its buffers there, in `with compute.device('webgpu')`, or write it as a Python "
            f"function."
        )

    def record(self) -> AbstractContextManager[Recording | None]:
        """Records the work done inside, for `replay`.

        Yields None if the device does not record.
        """
        return nullcontext(None)

    def replay(self, recording: Any, used: Sequence[Any]) -> None:
        """Repeats recorded work on the same memories, which are all that it uses."""
        raise InternalError(f"{self.id} records nothing.")

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until all work submitted here is done."""

    def timed(self, call: Callable[[], None]) -> Timing:
        """Times a call, including all work that it gives this device."""
        start_s = time.perf_counter()
        call()
        self.synchronize()
        return Timing(start_s, time.perf_counter() - start_s, "host")

    @abstractmethod
    def held(self) -> MemoryStatistics:
        """Returns how much memory is in use, and how much is kept for reuse."""

    @abstractmethod
    def trim(self) -> int:
        """Returns all memory kept for reuse to the system; returns how many bytes."""

    def __repr__(self) -> str:
        return f"<Device {self.id}: {self.name}>"
