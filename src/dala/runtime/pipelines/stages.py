"""The stages of a pipeline as users write them, checked for what can be seen of each alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypedDict

from dala.base.record import changed, record
from dala.errors import ArgumentError, DalaError, DtypeError, ShapeError
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, one_output, outputs_of
from dala.runtime.kernels.call import Outputs
from dala.runtime.kernels.kernel import Kernel

KEYS = {
    "run_kernel": {"op", "kernel", "inputs", "output", "params", "name"},
    "copy_buffer": {"op", "inputs", "output", "name"},
    "barrier": {"op", "name"},
}


class StageFields(TypedDict, total=False):
    """What a stage is made of, as keywords."""

    op: Literal["run_kernel", "copy_buffer", "barrier"]
    kernel: str | Kernel
    inputs: Sequence[Buffer]
    output: Outputs
    params: Params | None
    name: str


@record
class StageEntry:
    """One stage as it was added; a barrier has neither kernel nor buffers."""

    op: str
    name: str
    kernel: Kernel | None = None
    inputs: tuple[Buffer, ...] = ()
    outputs: tuple[Buffer, ...] = ()
    params: Params = {}  # noqa: RUF012  (records do not change)

    @property
    def output(self) -> Buffer | None:
        """The first output."""
        return next(iter(self.outputs), None)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Its inputs, then its outputs."""
        return (*self.inputs, *self.outputs)


@contextmanager
def stage_errors(number: int, name: str) -> Iterator[None]:
    """Inside, an error says which stage it is about."""
    try:
        yield
    except DalaError as error:
        raise type(error)(f"stage {number} ({name}): {error}") from error


def stage_fields(stage: Any, buffers: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the fields of a stage that is given by position: a mapping, or a kernel's own."""
    if isinstance(stage, Mapping) and not buffers:
        return dict(stage)
    if stage is None and not buffers:
        return {}
    if not isinstance(stage, str | Kernel) or len(buffers) > 3:
        raise ArgumentError(
            f"a stage is a mapping, keywords, or a kernel with its inputs, output and params, not "
            f"{type(stage).__name__}."
        )
    return dict(zip(("kernel", "inputs", "output", "params"), (stage, *buffers), strict=False))


def read_stage(number: int, wanted: Mapping[str, Any]) -> StageEntry:
    """Returns the stage that a mapping asks for."""
    op = wanted["op"]
    if not isinstance(op, str) or op not in KEYS:
        raise ArgumentError(f"stage {number}: op {op!r} is not one of {', '.join(KEYS)}.")
    for key in wanted:
        if key not in KEYS[op]:
            allowed = ", ".join(sorted(KEYS[op]))
            raise ArgumentError(f"stage {number}: a stage {op!r} takes {allowed}, not {key!r}.")
    missing = sorted(KEYS[op] - {"params", "name"} - set(wanted))
    if missing:
        raise ArgumentError(f"stage {number}: a stage {op!r} also needs {', '.join(missing)}.")
    if op == "barrier":
        return StageEntry(op, wanted.get("name", op))
    kernel = wanted.get("kernel")
    if op == "copy_buffer":
        kernel = "cast"
    found = kernel if isinstance(kernel, Kernel) else Kernel.lookup(kernel)  # type: ignore[arg-type]
    name = wanted.get("name", op if op == "copy_buffer" else found.name)
    inputs, output = wanted["inputs"], wanted["output"]
    if isinstance(inputs, Buffer) or not isinstance(inputs, Sequence):
        raise ArgumentError(
            f"stage {number} ({name}): inputs is a list of buffers, not {type(inputs).__name__}."
        )
    with stage_errors(number, name):
        output = one_output(name, output) if op == "copy_buffer" else output
        if op == "copy_buffer" and isinstance(output, Buffer) and len(inputs) == 1:
            _check_copy(inputs[0], output)
    params = wanted.get("params") or {}
    if not isinstance(params, Mapping):
        raise ArgumentError(f"stage {number} ({name}): params is a mapping of names to values.")
    return StageEntry(op, name, found, tuple(inputs), outputs_of(output), dict(params))


def check_exchange(old: Buffer, new: Buffer) -> None:
    """Refuse a buffer that cannot stand where another stands."""
    if old.shape != new.shape:
        raise ShapeError(f"bind: {old!r} cannot be replaced by {new!r}: the shapes differ.")
    if old.scalar != new.scalar:
        raise DtypeError(f"bind: {old!r} cannot be replaced by {new!r}: the dtypes differ.")
    if old.device != new.device:
        raise ArgumentError(f"bind: {old!r} and {new!r} are on two devices.")


def _check_copy(source: Any, output: Buffer) -> None:
    if isinstance(source, Buffer) and source.shape != output.shape:
        raise ShapeError(f"the input is {source.shape}, the output {output.shape}.")
    if isinstance(source, Buffer) and source.scalar != output.scalar:
        raise DtypeError(f"the input is {source.dtype}, the output {output.dtype}.")


def replaced(entry: StageEntry, new: Mapping[Buffer, Buffer]) -> StageEntry:
    """Returns the stage with other buffers in place of some; itself if it has none of these."""
    if not any(item in new for item in entry.buffers):
        return entry
    inputs, outputs = (
        tuple(new.get(item, item) for item in each) for each in (entry.inputs, entry.outputs)
    )
    return changed(entry, inputs=inputs, outputs=outputs)
