"""Running kernels: at once, or as commands that are waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.runtime.arguments import Params, check_buffers, complete
from dala.runtime.buffer import Buffer
from dala.runtime.commands import Command, Queue, Status
from dala.runtime.kernel import Kernel

_COMMAND_KEYS = {
    "run_kernel": {"op", "kernel", "inputs", "output", "params"},
    "copy_buffer": {"op", "inputs", "output"},
}


def run_kernel(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Buffer,
    params: Params | None = None,
) -> None:
    """Compute `output` from `inputs` by a kernel or the name of one.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> compute.run_kernel("relu", [x], y, {"slope": 0.5})
    >>> compute.read_list(y)
    [-0.5, 2.0]
    """
    found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)
    found.run(inputs, output, params)


def submit(command: Mapping[str, Any] | None = None, /, **given: Any) -> Command:
    """Queue a command and return at once; commands run one after another, in this order.

    A command is a mapping or keywords: `op` ("run_kernel", the default, or "copy_buffer"),
    `kernel`, `inputs`, `output`, `params`. Names, counts and buffers are checked now; what a kernel
    itself refuses, such as a shape, is raised by `wait`.
    """
    if command is not None and not isinstance(command, Mapping):
        raise ArgumentError(
            f"a command is a mapping such as {{'kernel': 'relu', 'inputs': [x], 'output': y}}, not "
            f"{type(command).__name__}."
        )
    wanted = {"op": "run_kernel", **(command or {}), **given}
    op = wanted["op"]
    if not isinstance(op, str) or op not in _COMMAND_KEYS:
        raise ArgumentError(f"op {op!r} is not one of {', '.join(_COMMAND_KEYS)}.")
    for key in wanted:
        if key not in _COMMAND_KEYS[op]:
            allowed = ", ".join(sorted(_COMMAND_KEYS[op]))
            raise ArgumentError(f"a command {op!r} takes {allowed}; {key!r} was given.")
    missing = sorted(_COMMAND_KEYS[op] - {"params"} - set(wanted))
    if missing:
        raise ArgumentError(f"a command {op!r} also needs {', '.join(missing)}.")
    inputs, output = wanted["inputs"], wanted["output"]
    if isinstance(inputs, Sequence):
        inputs = list(inputs)
    if op == "copy_buffer":
        return _queue().submit(_copy(inputs, output))
    kernel, params = wanted["kernel"], wanted.get("params")
    found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)
    check_buffers(found.name, found.inputs, inputs, output)
    params = complete(found.name, found.params, params)

    def run() -> None:
        found.run(inputs, output, params)
        output.memory.device.synchronize()

    return _queue().submit(run)


def run_kernel_async(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Buffer,
    params: Params | None = None,
) -> Command:
    """Queue a kernel and return at once; the command can be awaited or waited for."""
    return submit(op="run_kernel", kernel=kernel, inputs=inputs, output=output, params=params)


def poll(command: Command | int) -> Status:
    """The status of a command or of its id: pending, running, completed, failed or cancelled."""
    return _queue().poll(command)


def wait(command: Command | int, timeout: float | None = None) -> None:
    """Return when the command is completed; raises its own error if it failed."""
    _queue().wait(command, timeout)


@cache
def _queue() -> Queue:
    return Queue()


def _copy(inputs: Any, output: Any) -> Any:
    if (
        not isinstance(inputs, list)
        or len(inputs) != 1
        or not all(isinstance(item, Buffer) for item in (*inputs, output))
    ):
        raise ArgumentError("a command 'copy_buffer' takes one buffer as input and one as output.")
    source = inputs[0]
    if source.shape != output.shape:
        raise ShapeError(f"copy_buffer: the input is {source.shape}, the output {output.shape}.")
    if source.scalar != output.scalar:
        raise DtypeError(f"copy_buffer: the input is {source.dtype}, the output {output.dtype}.")
    device = check_buffers("copy_buffer", ("source",), inputs, output)

    def copy() -> None:
        device.copy(source.memory, output.memory)
        device.synchronize()

    return copy
