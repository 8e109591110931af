"""A device whose operations fail on demand, for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.devices.device import Device, Memory, MemoryStatistics, Number, Runner
from dala.errors import ArgumentError, DalaError, DeviceError, DeviceLostError, MemoryLimitError
from dala.plan.task import Task

OPERATIONS = ("allocate", "write", "submit", "read", "map")


class FaultyMemory(Memory):
    """Memory of the wrapped device, which only the wrapper touches."""

    __slots__ = ("device", "inner")

    device: Faulty

    def __init__(self, device: Faulty, inner: Memory) -> None:
        self.device = device
        self.inner = inner
        self.size_bytes = inner.size_bytes

    def part(self, size_bytes: int) -> FaultyMemory:
        return FaultyMemory(self.device, self.inner.part(size_bytes))


class Faulty(Device):
    """Wraps a device and fails the k-th call of an operation: `Faulty(cpu, allocate=3)`.

    A failed `allocate` is out of memory; a failed `write`, `read` or `map` (the end of a read-back)
    is a DeviceError; a failed `submit` (of a kernel or a copy) loses the device for good. `counts`
    holds the number of calls of each.
    """

    def __init__(self, device: Device, **failing: int) -> None:
        for operation, number in failing.items():
            if operation not in OPERATIONS or number < 1:
                raise ArgumentError(
                    f"{operation}={number!r} cannot be made to fail: name one of "
                    f"{', '.join(OPERATIONS)}, and which call of it, from 1."
                )
        self.inner = device
        self.id = device.id
        self.name = f"{device.name}, faulty"
        self.backend = device.backend
        self.capabilities = device.capabilities & {"f64", "s64"}
        self.counts: Counter[str] = Counter()
        self._failing = failing
        self._gone = False

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self._gone or self.inner.lost

    def step(self, operation: str) -> None:
        """Counts a call, and raises if it is the one to fail."""
        if self._gone:
            raise self._error("submit")
        self.counts[operation] += 1
        if self.counts[operation] == self._failing.get(operation):
            error = self._error(operation)
            if isinstance(error, DeviceLostError):
                self._gone = True
                lose = getattr(self.inner, "lose", None)
                if lose is not None:
                    lose()
            raise error

    def _error(self, operation: str) -> DalaError:
        said = f"{self.id} ({self.name}) was made to fail: {operation} {self.counts[operation]}."
        if operation == "allocate":
            return MemoryLimitError(said)
        return DeviceLostError(said) if operation == "submit" else DeviceError(said)

    def info(self) -> dict[str, Any]:
        return {**self.inner.info(), "name": self.name}

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> FaultyMemory:
        self.step("allocate")
        return FaultyMemory(self, self.inner.allocate(size_bytes, zeroed=zeroed))

    def write(self, memory: FaultyMemory, data: np.ndarray) -> None:
        self.step("write")
        self.inner.write(memory.inner, data)

    def read(self, memory: FaultyMemory) -> np.ndarray:
        self.step("read")
        data = self.inner.read(memory.inner)
        self.step("map")
        return data

    def copy(self, source: FaultyMemory, target: FaultyMemory) -> None:
        self.step("submit")
        self.inner.copy(source.inner, target.inner)

    def load(self, task: Task) -> FaultyRunner:
        return FaultyRunner(self, task)

    def synchronize(self) -> None:
        self.inner.synchronize()

    def held(self) -> MemoryStatistics:
        return self.inner.held()

    def trim(self) -> int:
        return self.inner.trim()


class FaultyRunner:
    """A task of the wrapped device, each run of which is a submission."""

    def __init__(self, device: Faulty, task: Task) -> None:
        self.device = device
        self.task = task
        self._inner: Runner = device.inner.load(task)

    def run(
        self,
        inputs: Sequence[FaultyMemory],
        outputs: Sequence[FaultyMemory],
        params: Sequence[Number],
    ) -> None:
        """Computes the outputs, unless this run is to fail."""
        self.device.step("submit")
        read, written = ([item.inner for item in each] for each in (inputs, outputs))
        self._inner.run(read, written, params)

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the code generated for it."""
        return self._inner.explain(assembly=assembly)
