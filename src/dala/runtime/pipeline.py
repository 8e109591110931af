"""Pipelines: stages that are planned once, put together where they can be, and run many times."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dala.devices import Device, using
from dala.errors import ArgumentError, DalaError, DtypeError, FreedError, ShapeError
from dala.ir.record import changed, record
from dala.runtime.arguments import Params, check_buffers, complete
from dala.runtime.buffer import Buffer
from dala.runtime.commands import Command, Work
from dala.runtime.expansion import Arrangement, Primitive, expanded
from dala.runtime.kernel import Kernel
from dala.runtime.plan import Plan

KEYS = {
    "run_kernel": {"op", "kernel", "inputs", "output", "params", "name"},
    "copy_buffer": {"op", "inputs", "output", "name"},
    "barrier": {"op", "name"},
}


@record
class StageEntry:
    """One stage as it was added; a barrier has neither kernel nor buffers."""

    op: str
    name: str
    kernel: Kernel | None = None
    inputs: tuple[Buffer, ...] = ()
    output: Buffer | None = None
    params: Params = {}  # noqa: RUF012  (records do not change)


class Pipeline:
    """A chain of kernels on given buffers.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([1.0, -2.0], (2,), "f32"), compute.scratch((2,), "f32")
    >>> out = compute.buffer_zeros((2,), "f32")
    >>> pipeline = compute.pipeline()
    >>> pipeline.add(kernel="scale", inputs=[x], output=y, params={"factor": 3.0})
    <Pipeline of 1 stage>
    >>> pipeline.add(kernel="relu", inputs=[y], output=out).run()
    >>> compute.read_list(out)
    [3.0, 0.0]
    """

    def __init__(self, *, fuse: bool = True) -> None:
        self.fuse = fuse
        self._stages: list[StageEntry] = []
        self._arranged: Arrangement | None = None
        self._plan: Plan | None = None
        self._device: Device | None = None
        self._freed = False

    # -- stages ----------------------------------------------------------------------------------

    def add(self, stage: Mapping[str, Any] | None = None, /, **given: Any) -> Pipeline:
        """The pipeline itself with one more stage, a mapping or keywords.

        `op` is "run_kernel" (the default), "copy_buffer" or "barrier"; the first takes `kernel`,
        `inputs`, `output` and `params`, the second `inputs` and `output`. `name` is what `set`
        knows the stage by, its kernel's name unless given.
        """
        self._check_there()
        if stage is not None and not isinstance(stage, Mapping):
            raise ArgumentError(f"a stage is a mapping or keywords, not {type(stage).__name__}.")
        wanted = {"op": "run_kernel", **(stage or {}), **given}
        number = len(self._stages)
        entry = _entry(number, wanted)
        if entry.output is not None:
            with _named(number, entry.name):
                self._check(entry)
        self._stages.append(entry)
        self._arranged = self._plan = None
        return self

    def _check(self, entry: StageEntry) -> None:
        """Refuse what would fail later: buffers, dtypes, shapes, parameters."""
        assert entry.kernel is not None
        assert entry.output is not None
        kernel, inputs, output = entry.kernel, list(entry.inputs), entry.output
        device = check_buffers(kernel.name, kernel.inputs, inputs, output)
        if self._device is not None and device is not self._device:
            raise ArgumentError(
                f"its buffers are on {device.id}, but those of the stages before it on "
                f"{self._device.id}: a pipeline has one device. Move them with buffer.to()."
            )
        complete(kernel.name, kernel.params, entry.params)
        with using(device):
            primitives = list(expanded(kernel, inputs, output, entry.params))
            arranged = Arrangement(primitives)
            for setting in arranged.settings:
                if setting is not None and not setting.primitive.is_call:
                    setting.step()
        self._device = device

    @property
    def stages(self) -> tuple[StageEntry, ...]:
        return tuple(self._stages)

    @property
    def stage_count(self) -> int:
        """How many stages there are, barriers among them."""
        return len(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __repr__(self) -> str:
        count = len(self._stages)
        return f"<Pipeline of {count} stage{'s' * (count != 1)}>"

    def set(self, stage: int | str, /, **params: Any) -> Pipeline:
        """The pipeline with other parameters of a stage, given by its number or its name.

        Run-time parameters change without compiling anything.
        """
        self._check_there()
        place = self._place(stage)
        entry = self._stages[place]
        changed_to = changed(entry, params={**entry.params, **params})
        with _named(place, entry.name):
            self._check(changed_to)
        self._stages[place] = changed_to
        self._arranged = None
        return self

    def bind(self, old: Buffer, new: Buffer) -> Pipeline:
        """The pipeline with one buffer in place of another of the same shape and dtype."""
        self._check_there()
        _check_exchange(old, new)
        if not any(old is item for entry in self._stages for item in _buffers(entry)):
            raise ArgumentError(f"bind: no stage uses {old!r}.")
        self._stages = [_replaced(entry, {old: new}) for entry in self._stages]
        self._arranged = None
        return self

    def _place(self, stage: int | str) -> int:
        if isinstance(stage, int) and not isinstance(stage, bool):
            if -len(self._stages) <= stage < len(self._stages):
                return stage % len(self._stages)
            raise ArgumentError(f"stage {stage} is not there: there are {len(self._stages)}.")
        places = [i for i, entry in enumerate(self._stages) if entry.name == stage]
        if len(places) == 1:
            return places[0]
        names = [entry.name for entry in self._stages]
        if places:
            raise ArgumentError(f"{len(places)} stages are named {stage!r}: give one's number.")
        near = difflib.get_close_matches(str(stage), names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ArgumentError(f"no stage is named {stage!r}; there are {', '.join(names)}.{hint}")

    # -- running ---------------------------------------------------------------------------------

    def run(
        self,
        params: Mapping[str, Params] | None = None,
        buffers: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        """Run every stage.

        For this run only, `params` are other parameters, by the names of stages, and `buffers` are
        those that stand in for others, as with `bind`.
        """
        arranged, plan = self._prepared(params, buffers)
        for buffer in arranged.buffers:
            if buffer.freed:
                raise self._freed_error(buffer)
        plan.run(arranged)

    def _prepared(
        self,
        params: Mapping[str, Params] | None = None,
        buffers: Mapping[Buffer, Buffer] | None = None,
    ) -> tuple[Arrangement, Plan]:
        """The stages as they are now, and the plan for them."""
        self._check_there()
        if params or buffers:
            arranged = self._arrange(self._overridden(params or {}, buffers or {}))
        else:
            if self._arranged is None:
                self._arranged = self._arrange(self._stages)
            arranged = self._arranged
        if self._plan is None or self._plan.signature != arranged.signature:
            device = self._device
            if device is None:
                from dala.devices import current_device

                device = current_device()
            self._plan = Plan(device, arranged, fuse=self.fuse)
        return arranged, self._plan

    def _overridden(
        self, params: Mapping[str, Params], buffers: Mapping[Buffer, Buffer]
    ) -> list[StageEntry]:
        for old, new in buffers.items():
            _check_exchange(old, new)
        stages = [_replaced(entry, buffers) for entry in self._stages]
        for name, given in params.items():
            place = self._place(name)
            entry = stages[place]
            stages[place] = changed(entry, params={**entry.params, **given})
        return stages

    def _arrange(self, stages: Sequence[StageEntry]) -> Arrangement:
        primitives: list[Primitive | None] = []
        for number, entry in enumerate(stages):
            if entry.kernel is None or entry.output is None or self._device is None:
                primitives.append(None)
                continue
            with _named(number, entry.name), using(self._device):
                primitives += expanded(entry.kernel, entry.inputs, entry.output, entry.params)
        return Arrangement(primitives)

    def _freed_error(self, buffer: Buffer) -> FreedError:
        for number, entry in enumerate(self._stages):
            if any(item is buffer for item in _buffers(entry)):
                return FreedError(
                    f"stage {number} ({entry.name}) uses {buffer!r}: put another in its place with "
                    f"bind(), or free a buffer after the last run."
                )
        return FreedError(f"a stage uses {buffer!r}.")

    def run_async(self, params: Mapping[str, Params] | None = None) -> Command:
        """A command that runs the pipeline; it can be awaited or waited for."""
        from dala.runtime.run import submit

        return submit(self) if not params else submit(_Overridden(self, params))

    def work(self, params: Mapping[str, Params] | None = None) -> Work:
        """What a command does: the run, and the memories that it reads and writes."""
        entries = [entry for entry in self._stages if entry.output is not None]
        reads = [item for entry in entries for item in entry.inputs if not item.is_scratch]
        writes = [entry.output for entry in entries if entry.output and not entry.output.is_scratch]

        def call() -> None:
            self.run(params)
            if self._device is not None:
                self._device.synchronize()

        return Work(
            call,
            tuple(item.memory for item in reads),
            tuple(item.memory for item in writes),
            repr(self),
        )

    # -- seeing ----------------------------------------------------------------------------------

    def explain(self) -> str:
        """The groups, why each begins where it does, and the bytes moved before and after.

        Prints it, and gives it back.
        """
        arranged, plan = self._prepared()
        explained = f"{self!r} on {plan.device.id}\n{plan.explained(arranged)}"
        print(explained)
        return explained

    # -- files -----------------------------------------------------------------------------------

    def to_dict(
        self, buffers: Mapping[str, Buffer], kernels: Mapping[str, Kernel] | None = None
    ) -> dict[str, Any]:
        """The pipeline as plain dicts and lists, its buffers by the names that are given here.

        Scratch needs no name. Users' kernels are kept as text; those in `kernels` by name only.
        """
        from dala.runtime.pipeline_file import to_document

        self._check_there()
        return to_document(self, buffers, kernels or {})

    def save(
        self,
        path: str | os.PathLike[str],
        buffers: Mapping[str, Buffer],
        kernels: Mapping[str, Kernel] | None = None,
    ) -> None:
        """Write what `to_dict` gives as a JSON file, which `compute.load_pipeline` reads."""
        from dala.runtime.pipeline_file import write_document

        write_document(path, self.to_dict(buffers, kernels))

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        buffers: Mapping[str, Buffer] | None = None,
        kernels: Mapping[str, Kernel] | None = None,
    ) -> Pipeline:
        """The pipeline of a file: the same as `compute.load_pipeline`."""
        from dala.runtime.pipeline_file import load_pipeline

        return load_pipeline(path, buffers, kernels)

    def free(self) -> None:
        """Forget the stages and their plan; the buffers stay. A second time does nothing."""
        self._freed = True
        self._stages, self._arranged, self._plan = [], None, None

    def _check_there(self) -> None:
        if self._freed:
            raise FreedError("the pipeline was freed: make a new one with compute.pipeline().")

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *raised: object) -> None:
        self.free()


@record
class _Overridden:
    """A pipeline with other parameters, for one command."""

    pipeline: Pipeline
    params: Mapping[str, Params]

    def work(self) -> Work:
        return self.pipeline.work(self.params)


@contextmanager
def _named(number: int, name: str) -> Iterator[None]:
    """Inside, an error says which stage it is about."""
    try:
        yield
    except DalaError as error:
        raise type(error)(f"stage {number} ({name}): {error}") from error


def _entry(number: int, wanted: Mapping[str, Any]) -> StageEntry:
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
    with _named(number, name):
        if op == "copy_buffer" and isinstance(output, Buffer) and len(inputs) == 1:
            _check_copy(inputs[0], output)
    params = wanted.get("params") or {}
    if not isinstance(params, Mapping):
        raise ArgumentError(f"stage {number} ({name}): params is a mapping of names to values.")
    return StageEntry(op, name, found, tuple(inputs), output, dict(params))


def _check_exchange(old: Buffer, new: Buffer) -> None:
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


def _buffers(entry: StageEntry) -> tuple[Buffer, ...]:
    return entry.inputs if entry.output is None else (*entry.inputs, entry.output)


def _replaced(entry: StageEntry, new: Mapping[Buffer, Buffer]) -> StageEntry:
    if not new or entry.output is None:
        return entry
    inputs = tuple(new.get(item, item) for item in entry.inputs)
    return changed(entry, inputs=inputs, output=new.get(entry.output, entry.output))
