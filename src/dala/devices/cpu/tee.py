"""A task on the CPU whose output is wanted twice: each vector is stored to both places at once.

Computing a frame first and copying it then takes half as long again, because by then its first rows
have left the caches.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.devices.cpu.memory import HostMemory
from dala.devices.cpu.runner import CpuRunner
from dala.devices.device import Number, check_sizes


def run_twice(
    runner: CpuRunner,
    inputs: Sequence[HostMemory],
    output: HostMemory,
    params: Sequence[Number],
    twin: HostMemory,
) -> None:
    """Compute the output, and write the same into another memory, which has its size."""
    device = runner.device
    check_sizes(runner.task.name, (*inputs, output, twin), [*runner.sizes_bytes, output.size_bytes])
    in_place = runner.in_place(inputs, output)
    if in_place is None or not _suits(runner, inputs, output, twin):
        runner.run(inputs, output, params)
        device.copy(output, twin)
        return
    executable = runner.executable(in_place, twin=True)
    addresses = [memory.address for memory in inputs]
    slots = executable.pack(output.address, *addresses, *runner.sizes, *params, twin.address)
    device.run(executable, slots, runner.chunks)


def _suits(
    runner: CpuRunner, inputs: Sequence[HostMemory], output: HostMemory, twin: HostMemory
) -> bool:
    """Whether each element is computed once and for good, and the twin is not read."""
    task = runner.task
    if task.empty or task.watched or task.scattered:
        return False
    touched = (output, *inputs)
    return all(memory.size_bytes and not memory.overlaps(twin) for memory in touched)
