"""Running kernels: at once, or as commands that are waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

from dala.devices.device import Memory
from dala.errors import ArgumentError, DtypeError, KernelError, ShapeError, edge, without_frames
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.command import Command, Status, Work
from dala.runtime.commands.queue import Queue
from dala.runtime.kernels import call_gate
from dala.runtime.kernels.arguments import (
    Params,
    check_buffers,
    complete,
    one_output,
    outputs_of,
)
from dala.runtime.kernels.call import Outputs
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.repeated_calls import Call, call_of
from dala.runtime.profiling.profile import copy

if TYPE_CHECKING:
    from typing import Unpack

_COMMAND_KEYS = {
    "run_kernel": {"op", "kernel", "inputs", "output", "params"},
    "copy_buffer": {"op", "inputs", "output"},
}


class CommandFields(TypedDict, total=False):
    """What a command is made of, as keywords."""

    op: Literal["run_kernel", "copy_buffer"]
    kernel: str | Kernel
    inputs: Sequence[Buffer]
    output: Outputs
    params: Params | None


class Submittable(Protocol):
    """Anything that can say what there is to do."""

    def work(self) -> Work:
        """Returns the call, and what it reads and writes."""


def run_kernel(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Outputs,
    params: Params | None = None,
) -> None:
    """Compute `output` from `inputs` by a kernel or the name of one.

    A kernel that returns several values takes a list of as many outputs, of one shape.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> compute.run_kernel("relu", [x], y, {"slope": 0.5})
    >>> compute.read_list(y)
    [-0.5, 2.0]
    """
    if call_gate.again(kernel, inputs, output, params):
        return
    try:
        found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)
        found.run(inputs, output, params)
    except KernelError as error:
        raise without_frames(error) from None


def submit(
    command: Mapping[str, Any] | Submittable | None = None, /, **given: Unpack[CommandFields]
) -> Command:
    """Queue a command and return at once.

    A command is a mapping or keywords: `op` ("run_kernel", the default, or "copy_buffer"),
    `kernel`, `inputs`, `output`, `params`; or an object that has a method `work()`. Names, counts
    and buffers are checked now; what a kernel itself refuses, such as a shape, is raised by `wait`.

    Commands that share no memory, or only read what they share, run side by side; the others in the
    order of their submission. So the bytes are those of running all of them one after another. A
    buffer may be freed while commands use it: its memory goes back when they are done.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> first = compute.submit(kernel="relu", inputs=[x], output=y)
    >>> second = compute.submit(op="copy_buffer", inputs=[y], output=x)
    >>> compute.wait(second)
    >>> compute.poll(first), compute.read_list(x)
    ('completed', [0.0, 2.0])
    """
    return queue().submit(work_of(command, given))


def run_kernel_async(
    kernel: str | Kernel,
    inputs: Sequence[Buffer],
    output: Outputs,
    params: Params | None = None,
) -> Command:
    """Queue a kernel and return at once; the command can be awaited or waited for."""
    return submit(op="run_kernel", kernel=kernel, inputs=inputs, output=output, params=params)


def poll(command: Command | int) -> Status:
    """Returns a command's status: pending, running, completed, failed or cancelled."""
    return queue().poll(command)


@edge
def wait(command: Command | int, timeout: float | None = None) -> None:
    """Return when the command is completed; raises its own error if it failed."""
    queue().wait(command, timeout)


def wait_all(commands: Iterable[Command | int], timeout: float | None = None) -> None:
    """Return when all commands have ended; then raises the error of the first that has one.

    The first is the one that was submitted first. A `timeout` is for all of them together.

    >>> from dala.gpu import compute
    >>> x = compute.buffer([-1.0, 2.0], (2,), "f32")
    >>> outputs = [compute.buffer_zeros((2,), "f32") for _ in range(3)]
    >>> compute.wait_all([compute.run_kernel_async("relu", [x], out) for out in outputs])
    >>> [compute.read_list(out) for out in outputs]
    [[0.0, 2.0], [0.0, 2.0], [0.0, 2.0]]
    """
    queue().wait_all(commands, timeout)


def as_completed(
    commands: Iterable[Command | int], timeout: float | None = None
) -> Iterator[Command]:
    """Returns each command once it has ended, well or not, in the order in which they end.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> commands = [compute.run_kernel_async("relu", [x], y) for _ in range(3)]
    >>> [command.status for command in compute.as_completed(commands)]
    ['completed', 'completed', 'completed']
    """
    return queue().as_completed(commands, timeout)


@cache
def queue() -> Queue:
    """Returns the queue that all commands of this process go through."""
    return Queue()


def work_of(command: Mapping[str, Any] | Submittable | None, given: Mapping[str, Any]) -> Work:
    """Returns what a command asks for, checked as far as it can be before it runs."""
    if command is not None and not isinstance(command, Mapping):
        return _own_work(command, given)
    wanted = {"op": "run_kernel", **(command or {}), **given}
    op = wanted["op"]
    if not isinstance(op, str) or op not in _COMMAND_KEYS:
        raise ArgumentError(f"op {op!r} is not one of {', '.join(_COMMAND_KEYS)}.")
    keys = _COMMAND_KEYS[op]
    if not keys - {"params"} <= wanted.keys() <= keys:
        raise _wrong_keys(op, keys, wanted)
    inputs, output = wanted["inputs"], wanted["output"]
    if op == "copy_buffer":
        return _copying(inputs, output)
    return _running(wanted["kernel"], inputs, output, wanted.get("params"))


def _wrong_keys(op: str, keys: set[str], wanted: Mapping[str, Any]) -> ArgumentError:
    for key in wanted:
        if key not in keys:
            allowed = ", ".join(sorted(keys))
            return ArgumentError(f"a command {op!r} takes {allowed}; {key!r} was given.")
    missing = sorted(keys - {"params"} - set(wanted))
    return ArgumentError(f"a command {op!r} also needs {', '.join(missing)}.")


def _own_work(command: Submittable, given: Mapping[str, Any]) -> Work:
    if not callable(getattr(command, "work", None)):
        raise ArgumentError(
            f"a command is a mapping such as {{'kernel': 'relu', 'inputs': [x], 'output': y}}, not "
            f"{type(command).__name__}."
        )
    if given:
        raise ArgumentError(
            f"{type(command).__name__} says itself what there is to do: nothing can be given "
            f"beside it, but {', '.join(map(repr, given))} was."
        )
    return command.work()


def _running(kernel: str | Kernel, inputs: Any, output: Any, params: Params | None) -> Work:
    found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)
    known = call_of(inputs, output, params)
    if not found.calls.knows(known):
        check_buffers(found.name, found.inputs, inputs, output)
        complete(found.name, found.params, params)
    outputs = outputs_of(output)
    reads, writes = _memories(inputs), _memories(outputs)
    own = dict(params) if params else None  # the caller may change it
    call = partial(_run, found, known, (*inputs, *outputs), reads, writes, own)
    return Work(call, reads, writes, found.name)


def _run(
    kernel: Kernel,
    call: Call | None,
    buffers: tuple[Buffer, ...],
    reads: tuple[Memory, ...],
    writes: tuple[Memory, ...],
    params: Params | None,
) -> None:
    if kernel.calls.repeat(call):
        return
    # Buffers of its own: the caller may have freed the others since.
    own = [
        Buffer(memory, buffer.scalar, buffer.shape)
        for memory, buffer in zip((*reads, *writes), buffers, strict=True)
    ]
    outputs = own[len(reads) :]
    kernel.run(own[: len(reads)], outputs[0] if len(outputs) == 1 else outputs, params)


def _copying(inputs: Any, output: Any) -> Work:
    output = one_output("copy_buffer", output)
    if (
        not isinstance(inputs, Sequence)
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
    call = partial(copy, device, source.memory, output.memory)
    return Work(call, _memories(inputs), (output.memory,), "copy_buffer")


def _memories(buffers: Sequence[Buffer]) -> tuple[Memory, ...]:
    return tuple([item.memory for item in buffers])
