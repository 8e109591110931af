"""A device made of two: every task runs on both, and their results are compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dala.devices.device import Device, Memory, MemoryStatistics, Number, Runner
from dala.devices.registry import Listing, find_listing
from dala.devices.result_comparison import difference
from dala.errors import DalaError, ParityError
from dala.plan.reports import silent
from dala.plan.task import Task


class ParityMemory(Memory):
    """The same bytes on two devices."""

    __slots__ = ("device", "first", "second")

    device: Parity

    def __init__(self, device: Parity, first: Memory, second: Memory) -> None:
        self.device = device
        self.first = first
        self.second = second
        self.size_bytes = first.size_bytes

    def part(self, size_bytes: int) -> ParityMemory:
        return ParityMemory(self.device, self.first.part(size_bytes), self.second.part(size_bytes))


class Parity(Device):
    """Runs everything on two devices, and returns the results of the first."""

    id = "parity"

    def __init__(self, first: Device, second: Device) -> None:
        self.first = first
        self.second = second
        self.name = f"{first.name} and {second.name}"
        self.backend = second.backend
        self.capabilities = first.capabilities & second.capabilities

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self.first.lost or self.second.lost

    def info(self) -> dict[str, Any]:
        both = [self.first.info(), self.second.info()]
        return {
            "id": self.id,
            "name": self.name,
            "backend": self.backend,
            "kind": "each stage on both, compared",
            "gpu": any(info["gpu"] for info in both),
            "hardware": all(info["hardware"] for info in both),
            "has_f64": self.supports("f64"),
            "has_s64": self.supports("s64"),
            "devices": both,
        }

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> ParityMemory:
        first = self.first.allocate(size_bytes, zeroed=zeroed)
        return ParityMemory(self, first, self.second.allocate(size_bytes, zeroed=zeroed))

    def write(self, memory: ParityMemory, data: np.ndarray) -> None:
        if memory.size_bytes:
            self.first.write(memory.first, data)
            self.second.write(memory.second, data)

    def read(self, memory: ParityMemory) -> np.ndarray:
        return self.first.read(memory.first)

    def copy(self, source: ParityMemory, target: ParityMemory) -> None:
        self.first.copy(source.first, target.first)
        self.second.copy(source.second, target.second)

    def load(self, task: Task) -> ParityRunner:
        return ParityRunner(self, task)

    def synchronize(self) -> None:
        self.first.synchronize()
        self.second.synchronize()

    def held(self) -> MemoryStatistics:
        a, b = self.first.held(), self.second.held()
        return MemoryStatistics(
            live_bytes=a.live_bytes + b.live_bytes,
            live_blocks=a.live_blocks + b.live_blocks,
            pooled_bytes=a.pooled_bytes + b.pooled_bytes,
            limit_bytes=a.limit_bytes + b.limit_bytes,
        )

    def trim(self) -> int:
        return self.first.trim() + self.second.trim()


class ParityRunner:
    """One task on both devices."""

    def __init__(self, device: Parity, task: Task) -> None:
        self.device = device
        self.task = task
        self._first: Runner = device.first.load(task)
        self._second: Runner = device.second.load(task)

    def run(
        self,
        inputs: Sequence[ParityMemory],
        outputs: Sequence[ParityMemory],
        params: Sequence[Number],
    ) -> None:
        """Computes the outputs on both devices; raises ParityError if the results differ."""
        with silent():
            self._second.run(
                [item.second for item in inputs], [item.second for item in outputs], params
            )
        try:
            self._first.run(
                [item.first for item in inputs], [item.first for item in outputs], params
            )
        except DalaError:
            device = self.device  # its second result is reverted, so that neither has changed
            for output in outputs:
                device.second.write(output.second, device.first.read(output.first))
            raise
        for number, output in enumerate(outputs):
            if output.size_bytes:
                self._compare(number, output)

    def _compare(self, number: int, output: ParityMemory) -> None:
        first, second = self.device.first, self.device.second
        scalar, shape = self.task.outputs[number]
        want = first.read(output.first)
        got = second.read(output.second)
        if np.array_equal(got, want):
            return
        found = difference(*(item.view(scalar.numpy).reshape(shape) for item in (got, want)))
        if found is not None:
            more = "" if found.count == 1 else f", the first of {found.count:,} such elements"
            which = f" of output {number}" if len(self.task.outputs) > 1 else ""
            raise ParityError(
                f"{self.task.name}: element {found.index}{which} is {found.want!r} on {first.id} "
                f"and {found.got!r} on {second.id}{more}; the largest difference is "
                f"{found.largest:g}."
            )
        # The next stage is then compared by itself, not together with everything before it.
        second.write(output.second, want)

    def explain(self, *, assembly: bool = False) -> str:
        """Returns the code generated for each of the two."""
        both = [self._first.explain(assembly=assembly), self._second.explain(assembly=assembly)]
        return "\n\n".join(both)


@lru_cache(maxsize=1)
def pair(first: Device, second: Device) -> Parity:
    """Returns the two as one device: the same object for the same two."""
    return Parity(first, second)


def listings() -> Sequence[Listing]:
    """Returns the CPU and the best WebGPU adapter as one device."""

    def opened() -> Parity:
        return pair(find_listing("cpu").open(), find_listing("webgpu").open())

    return [Listing("parity", "parity", lambda: opened().info(), opened)]


def preferred() -> Listing | None:
    return None
