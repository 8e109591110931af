"""Pipelines: stages that are planned once, fused where possible, and run many times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from dala.base.record import changed, record
from dala.base.suggestions import hint
from dala.devices import Device, current_device, using
from dala.errors import ArgumentError, FreedError, edge
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.command import Command, Work
from dala.runtime.kernels.arguments import Params, check_buffers, complete
from dala.runtime.kernels.call import Outputs
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.executable import Executable
from dala.runtime.pipelines.execution_plan import ExecutionPlan, Workspace, plan_for
from dala.runtime.pipelines.launch_graph import LaunchGraph, expand
from dala.runtime.pipelines.stages import (
    StageEntry,
    StageFields,
    check_exchange,
    read_stage,
    replaced,
    stage_errors,
    stage_fields,
)
from dala.runtime.pipelines.steps import Steps

if TYPE_CHECKING:
    from typing import Unpack


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
        self._parts: list[LaunchGraph] = []
        """The launches of each stage by itself."""
        self._graph: LaunchGraph | None = None
        self._plan: ExecutionPlan | None = None
        self._workspace = Workspace()
        self._swaps: dict[Buffer, Buffer] = {}
        self._device: Device | None = None
        self._freed = False

    # -- stages ----------------------------------------------------------------------------------

    @overload
    def add(
        self, stage: Mapping[str, Any] | None = None, /, **given: Unpack[StageFields]
    ) -> Pipeline: ...
    @overload
    def add(
        self,
        kernel: str | Kernel,
        inputs: Sequence[Buffer],
        output: Outputs,
        params: Params | None = None,
        /,
        **given: Unpack[StageFields],
    ) -> Pipeline: ...
    @edge
    def add(self, stage: Any = None, /, *buffers: Any, **given: Any) -> Pipeline:
        """Returns the pipeline itself with one more stage, a mapping or keywords.

        `op` is "run_kernel" (the default), "copy_buffer" or "barrier"; the first takes `kernel`,
        `inputs`, `output` and `params`, the second `inputs` and `output`. `name` is what `set`
        knows the stage by, its kernel's name unless given. `output` is a list for a kernel with
        several. The four of "run_kernel" may be given by position, as to `compute.run_kernel`.
        """
        self._check_there()
        wanted = {"op": "run_kernel", **stage_fields(stage, buffers), **given}
        number = len(self._stages)
        entry = read_stage(number, wanted)
        with stage_errors(number, entry.name):
            part = self._part(entry)
            part.check()
            self._check_start(entry)
        self._stages.append(entry)
        self._parts.append(part)
        self._graph = self._plan = None
        return self

    def _check_start(self, entry: StageEntry) -> None:
        """Refuse scratch as what a kernel starts from, unless a stage before has written it."""
        if entry.kernel is None or not entry.kernel.accumulates:
            return
        (output,) = entry.outputs
        written = any(output is item for before in self._stages for item in before.outputs)
        if output.is_scratch and not written:
            raise ArgumentError(
                f"{entry.kernel.name} accumulates onto {output!r}, which no stage before it writes "
                f"and which keeps nothing between runs: give a buffer, or fill it first."
            )

    def _part(self, entry: StageEntry) -> LaunchGraph:
        """Returns the launches of a stage; raises for buffers and parameters that do not fit."""
        if entry.kernel is None:
            return LaunchGraph([None])
        kernel, inputs, outputs = entry.kernel, list(entry.inputs), entry.outputs
        device = check_buffers(kernel.name, kernel.inputs, inputs, outputs)
        if self._device is not None and device is not self._device:
            raise ArgumentError(
                f"its buffers are on {device.id}, but those of the stages before it on "
                f"{self._device.id}: a pipeline has one device. Move them with buffer.to()."
            )
        complete(kernel.name, kernel.params, entry.params)
        with using(device):
            part = LaunchGraph(list(expand(kernel, inputs, outputs, entry.params)))
        self._device = device
        return part

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

    @edge
    def set(self, stage: int | str, /, **params: Any) -> Pipeline:
        """Returns the pipeline with other parameters of a stage, given by its number or its name.

        Run-time parameters change without compiling anything.
        """
        self._check_there()
        place = self._place(stage)
        entry = self._stages[place]
        changed_to = changed(entry, params={**entry.params, **params})
        with stage_errors(place, entry.name):
            part = self._part(changed_to)
            if part.signature != self._parts[place].signature:
                part.check()
                self._graph = None
        if self._graph is not None:
            first = sum(len(item.launches) for item in self._parts[:place])
            self._graph = self._graph.rebind(first, part)
        self._stages[place], self._parts[place] = changed_to, part
        return self

    def bind(self, old: Buffer, new: Buffer) -> Pipeline:
        """Returns the pipeline with one buffer in place of another of the same shape and dtype."""
        self._check_there()
        check_exchange(old, new)
        if not any(old is item for entry in self._stages for item in entry.buffers):
            raise ArgumentError(f"bind: no stage uses {old!r}.")
        stages = [replaced(entry, {old: new}) for entry in self._stages]
        self._parts = self._expand(stages)
        self._stages = stages
        self._graph = None
        return self

    def swap(self, a: Buffer, b: Buffer) -> Pipeline:
        """Returns the pipeline with two buffers that change roles after each step.

        Steps are those of `compute.repeat` and `compute.until`: what one writes into `b`, the next
        one reads from it and writes into `a`. At the end `a` has the result, whatever the number of
        steps; so has `b` what the next step reads from it, if any stage does, and is else left as
        it happens to be. `run` is one step, and swaps nothing.
        """
        self._check_there()
        check_exchange(a, b)
        for buffer in (a, b):
            if not any(buffer is item for entry in self._stages for item in entry.buffers):
                raise ArgumentError(f"swap: no stage uses {buffer!r}: add its stages first.")
            if buffer in self._swaps or a is b:
                raise ArgumentError(f"swap: {buffer!r} is swapped already: give it one partner.")
            if buffer.is_scratch:
                raise ArgumentError(f"swap: {buffer!r} keeps nothing between steps.")
        self._swaps |= {a: b, b: a}
        return self

    @property
    def swaps(self) -> tuple[tuple[Buffer, Buffer], ...]:
        """The pairs that `swap` was given."""
        items = list(self._swaps.items())
        return tuple(items[::2])

    def iterating(self) -> Steps:
        """Returns a context whose `run` makes steps; at its end, results are in first buffers."""
        even = self._prepared()
        odd = self._prepared(buffers=self._swaps) if self._swaps else even
        read = {buffer for entry in self._stages for buffer in entry.inputs}
        return Steps((even, odd), self.swaps, read)

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
        raise ArgumentError(
            f"no stage is named {stage!r}; there are {', '.join(names)}.{hint(stage, names)}"
        )

    # -- running ---------------------------------------------------------------------------------

    @edge
    def run(
        self,
        params: Mapping[str, Params] | None = None,
        buffers: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        """Run every stage.

        For this run only, `params` are other parameters, by the names of stages, and `buffers` are
        those that stand in for others, as with `bind`.
        """
        graph, plan = self._prepared(params, buffers)
        for buffer in graph.buffers:
            if buffer.freed:
                raise self._freed_error(buffer)
        plan.run(graph, self._workspace)

    def _prepared(
        self,
        params: Mapping[str, Params] | None = None,
        buffers: Mapping[Buffer, Buffer] | None = None,
    ) -> tuple[LaunchGraph, ExecutionPlan]:
        """Returns the launch graph of the stages as they are now, and its plan."""
        self._check_there()
        if params or buffers:
            graph = _joined(self._expand(self._overridden(params or {}, buffers or {})))
        else:
            if self._graph is None:
                self._graph = _joined(self._parts)
            graph = self._graph
        if self._plan is None or self._plan.signature != graph.signature:
            self._plan = plan_for(self._device or current_device(), graph, fuse=self.fuse)
        return graph, self._plan

    def executable(self, params: Mapping[str, Params], arguments: Sequence[Buffer]) -> Executable:
        """Returns the stages with these parameters, to be run on other buffers than `arguments`."""
        self._check_there()
        parts = self._expand(self._overridden(params, {}))
        device, launches = self._device or current_device(), _joined(parts).invocations
        return Executable(device, launches, arguments, fuse=self.fuse, keep=False)

    def _overridden(
        self, params: Mapping[str, Params], buffers: Mapping[Buffer, Buffer]
    ) -> list[StageEntry]:
        for old, new in buffers.items():
            check_exchange(old, new)
        stages = [replaced(entry, buffers) for entry in self._stages]
        for name, given in params.items():
            place = self._place(name)
            entry = stages[place]
            stages[place] = changed(entry, params={**entry.params, **given})
        return stages

    def _expand(self, stages: Sequence[StageEntry]) -> list[LaunchGraph]:
        """Returns the launches of each stage; those that changed are expanded again."""
        parts = list(self._parts)
        for number, (entry, before) in enumerate(zip(stages, self._stages, strict=True)):
            if entry is not before:
                with stage_errors(number, entry.name):
                    parts[number] = self._part(entry)
        return parts

    def _freed_error(self, buffer: Buffer) -> FreedError:
        for number, entry in enumerate(self._stages):
            if any(item is buffer for item in entry.buffers):
                return FreedError(
                    f"stage {number} ({entry.name}) uses {buffer!r}: put another in its place with "
                    f"bind(), or free a buffer after the last run."
                )
        return FreedError(f"a stage uses {buffer!r}.")

    def run_async(self, params: Mapping[str, Params] | None = None) -> Command:
        """Returns a command that runs the pipeline; it can be awaited or waited for."""
        from dala.runtime.commands.run import submit

        return submit(self) if not params else submit(_Overridden(self, params))

    def work(self, params: Mapping[str, Params] | None = None) -> Work:
        """Returns what a command does: the run, and the memories that it reads and writes."""
        entries = self._stages
        reads = [item for entry in entries for item in entry.inputs if not item.is_scratch]
        writes = [item for entry in entries for item in entry.outputs if not item.is_scratch]

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
        """Returns the groups, why each begins where it does, and the bytes moved before and after.

        Prints it, and gives it back.
        """
        graph, plan = self._prepared()
        explained = f"{self!r} on {plan.device.id}\n{plan.explain(graph)}"
        print(explained)
        return explained

    # -- files -----------------------------------------------------------------------------------

    def to_dict(
        self, buffers: Mapping[str, Buffer], kernels: Mapping[str, Kernel] | None = None
    ) -> dict[str, Any]:
        """Returns the pipeline as plain dicts and lists, with its buffers by the names given.

        Scratch needs no name. Users' kernels are kept as text; those in `kernels` by name only.
        """
        from dala.runtime.pipelines.file import to_document

        self._check_there()
        return to_document(self, buffers, kernels or {})

    def save(
        self,
        path: str | os.PathLike[str],
        buffers: Mapping[str, Buffer],
        kernels: Mapping[str, Kernel] | None = None,
    ) -> None:
        """Write what `to_dict` gives as a JSON file, which `compute.load_pipeline` reads."""
        from dala.runtime.pipelines.file import write_document

        write_document(path, self.to_dict(buffers, kernels))

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        buffers: Mapping[str, Buffer] | None = None,
        kernels: Mapping[str, Kernel] | None = None,
    ) -> Pipeline:
        """Returns the pipeline of a file: the same as `compute.load_pipeline`."""
        from dala.runtime.pipelines.file import load_pipeline

        return load_pipeline(path, buffers, kernels)

    def free(self) -> None:
        """Forget the stages and their plan; the buffers stay. A second time does nothing."""
        self._freed = True
        self._stages, self._parts, self._graph, self._plan = [], [], None, None
        self._workspace = Workspace()

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


def _joined(parts: Sequence[LaunchGraph]) -> LaunchGraph:
    return LaunchGraph([invocation for part in parts for invocation in part.invocations])
