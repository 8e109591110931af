"""A third device: the NumPy interpreter behind the interface that every device has.

Loaded as a plugin of pytest it is registered, and `DALA_DEVICE=numpy` runs the contract on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dala.devices.device import Device, Memory, MemoryStatistics, Number
from dala.devices.registry import Listing, register_backend
from dala.errors import KernelTimeoutError, LimitError
from dala.plan.task import Task
from dala.plan.watchdog import TIMEOUT
from reference import interpreter

CAPACITY_BYTES = 1 << 33


class Bytes(Memory):
    """An array of bytes that only the interpreter looks at."""

    __slots__ = ("array", "device")

    def __init__(self, device: NumPy, size_bytes: int) -> None:
        self.device = device
        self.size_bytes = size_bytes
        self.array = np.zeros(size_bytes, np.uint8)

    def part(self, size_bytes: int) -> Bytes:
        made = Bytes(self.device, 0)
        made.size_bytes, made.array = size_bytes, self.array[:size_bytes]
        return made


class NumPy(Device):
    """Kernels run over their whole domain at once, one statement after another."""

    id = name = "numpy"
    backend = "cpu"
    capabilities = frozenset({"f64", "s64"})

    def info(self) -> dict[str, Any]:
        facts = {"id": self.id, "name": self.name, "backend": self.backend, "kind": "interpreter"}
        return {**facts, "gpu": False, "hardware": False, "has_f64": True, "has_s64": True}

    def allocate(self, size_bytes: int, *, zeroed: bool = True) -> Bytes:
        if size_bytes > CAPACITY_BYTES:
            raise LimitError(f"{size_bytes:,} bytes were asked for, of {CAPACITY_BYTES:,}.")
        return Bytes(self, size_bytes)

    def write(self, memory: Bytes, data: np.ndarray) -> None:
        memory.array[:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)

    def read(self, memory: Bytes) -> np.ndarray:
        return memory.array.copy()

    def copy(self, source: Bytes, target: Bytes) -> None:
        target.array[:] = source.array

    def load(self, task: Task) -> Interpreted:
        return Interpreted(task)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def held(self) -> MemoryStatistics:
        return MemoryStatistics(
            live_bytes=0, live_blocks=0, pooled_bytes=0, limit_bytes=CAPACITY_BYTES
        )

    def trim(self) -> int:
        return 0


class Interpreted:
    """One task, interpreted."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def run(
        self, inputs: Sequence[Bytes], outputs: Sequence[Bytes], params: Sequence[Number]
    ) -> None:
        program = self.task.lowered
        kinds = zip(program.inputs, inputs, self.task.inputs, strict=True)
        arrays = {
            item.name: memory.array.view(kind.numpy).reshape(extents or (1,))
            for item, memory, (kind, extents) in kinds
        }
        values = dict(zip([item.name for item in program.params], params, strict=True))
        try:
            wanted = [(shape or (1,), scalar.numpy) for scalar, shape in self.task.outputs]
            made = interpreter.run_all(program, arrays, values, wanted)
        except interpreter.Endless:
            raise KernelTimeoutError(f"{self.task.name}: {TIMEOUT}") from None
        for output, array in zip(outputs, made, strict=True):
            output.array[:] = array.reshape(-1).view(np.uint8)

    def explain(self, *, assembly: bool = False) -> str:
        return "interpreted, statement by statement"


class Backend:
    """The one device of its kind."""

    def __init__(self) -> None:
        self._device = NumPy()

    def listings(self) -> list[Listing]:
        device = self._device
        return [Listing(device.id, device.name, device.info, lambda: device)]

    def preferred(self) -> Listing | None:
        return None


register_backend("numpy", Backend())
