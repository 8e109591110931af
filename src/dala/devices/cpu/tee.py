"""Runs a task on the CPU with a second output: each vector is stored to both at once.

Computing a frame and copying it afterwards takes half as long again, because by then its first rows
have left the caches.
"""

from __future__ import annotations

from collections.abc import Sequence

from dala.devices.cpu.memory import HostMemory
from dala.devices.cpu.runner import CpuRunner
from dala.devices.device import Number, check_sizes


def run_with_tee(
    runner: CpuRunner,
    inputs: Sequence[HostMemory],
    output: HostMemory,
    params: Sequence[Number],
    second: HostMemory,
) -> None:
    """Computes the output, and stores it to a second memory of the same size as well."""
    device = runner.device
    check_sizes(
        runner.task.name, (*inputs, output, second), [*runner.sizes_bytes, output.size_bytes]
    )
    in_place = runner.in_place(inputs, [output])
    if in_place is None or not _suits(runner, inputs, output, second):
        runner.run(inputs, [output], params)
        device.copy(output, second)
        return
    executable = runner.executable(in_place, tee=True)
    addresses = [memory.address for memory in inputs]
    slots = executable.pack(output.address, *addresses, *runner.sizes, *params, second.address)
    device.run(executable, slots, runner.chunks)


def _suits(
    runner: CpuRunner, inputs: Sequence[HostMemory], output: HostMemory, second: HostMemory
) -> bool:
    """Whether each element is stored exactly once, and the second output is not read."""
    task = runner.task
    if task.empty or task.watched or task.scattered or task.reports:
        return False
    touched = (output, *inputs)
    return all(memory.size_bytes and not memory.overlaps(second) for memory in touched)
