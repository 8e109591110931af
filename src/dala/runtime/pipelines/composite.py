"""Composite kernels, which expand into stages, and host calls, which a library computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dala.base.lru_cache import LruCache
from dala.base.record import record
from dala.devices import using
from dala.devices.device import Device
from dala.errors import ArgumentError, InternalError
from dala.ir.types import Scalar
from dala.lang.signature import Parameter
from dala.plan.task import Kind, Shape
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.arguments import (
    Params,
    check_buffers,
    complete,
    one_output,
    params_key,
)
from dala.runtime.kernels.call import Outputs, kind_of_first, only
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.kernels.repeated_calls import call_of
from dala.runtime.profiling.profile import ACTIVE, copy, measure

if TYPE_CHECKING:
    from dala.runtime.pipelines.executable import Executable

Expand = Callable[[Sequence[Buffer], Buffer, dict[str, Any]], Iterator["Stage"]]
Library = Callable[..., None]
Sizing = Callable[[Sequence[tuple[int, ...]], dict[str, Any]], tuple[int, ...]]
"""The shape of an output, from the shapes of the inputs and the parameters."""
Typing = Callable[[Sequence[Scalar], dict[str, Any]], Scalar]
"""The dtype of what a call gives, from the dtypes of the inputs and the parameters."""

MOST_EXECUTABLES = 32
"""How many combinations of shapes and parameters a kernel keeps ready to run."""
FUSED_BYTES = 1 << 22
"""The output size from which fusing the stages, a few rows at a time, pays off."""


@record
class Stage:
    """One kernel that a composite kernel expands into, on its buffers."""

    kernel: Kernel
    inputs: Sequence[Buffer]
    output: Buffer
    params: Params = MappingProxyType({})


class CompositeKernel(Kernel):
    """A kernel that expands into stages, given its buffers and parameters."""

    has_function = False

    def __init__(
        self,
        name: str,
        doc: str,
        inputs: tuple[str, ...],
        params: tuple[Parameter, ...],
        expand: Expand,
    ) -> None:
        super().__init__(name, doc, _no_definition)
        self._inputs = inputs
        self._params = params
        self._expand = expand
        self._sizing: Sizing | None = None
        self._typing: Typing | None = None
        self._executables: LruCache[Any, Executable] = LruCache(MOST_EXECUTABLES)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._inputs

    @property
    def params(self) -> tuple[Parameter, ...]:
        return self._params

    def complete(self, params: Params | None) -> dict[str, Any]:
        """Returns the checked value of every parameter, given or default."""
        return complete(self.name, self.params, params)

    def sized(self, sizing: Sizing) -> Sizing:
        """Decorates the function that gives the output's shape, if not the first input's."""
        self._sizing = sizing
        return sizing

    def typed(self, typing: Typing) -> Typing:
        """Decorates the function that gives the dtype of a call's result, if not the first's."""
        self._typing = typing
        return typing

    def output_shape(
        self, shapes: Sequence[tuple[int, ...]], params: Params | None = None
    ) -> tuple[int, ...]:
        if self._sizing is None:
            return super().output_shape(shapes, params)
        return self._sizing(shapes, self.complete(params))

    def result_kinds(
        self,
        inputs: tuple[Kind, ...],
        params: Params,
        shapes: tuple[Shape, ...] = (),
        scalars: tuple[Scalar, ...] = (),
    ) -> tuple[Kind, ...]:
        shape, scalar = only(self.name, "shape", shapes), only(self.name, "dtype", scalars)
        if shape is None and inputs:
            shape = self.output_shape([given for _, given in inputs], params)
        if scalar is None and self._typing is not None:
            scalar = self._typing([given for given, _ in inputs], self.complete(params))
        if scalar is not None and shape is not None:
            return ((scalar, shape),)
        own, extents = kind_of_first(self.name, inputs, shape)
        return ((scalar or own, extents),)

    def stages(
        self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None
    ) -> Iterator[Stage]:
        """Returns the steps that compute the output, in order."""
        output = one_output(self.name, output)
        check_buffers(self.name, self.inputs, inputs, output)
        return self._expand(inputs, output, self.complete(params))

    def explain(
        self,
        inputs: Sequence[Buffer] | None = None,
        output: Outputs | None = None,
        params: Params | None = None,
        *,
        assembly: bool = False,
    ) -> str:
        """Returns the stages for these buffers, each with its program and emitted code."""
        if inputs is None or output is None:
            raise ArgumentError(
                f"{self.name} is planned for given buffers: explain(inputs, output, params)."
            )
        parts = []
        with using(check_buffers(self.name, self.inputs, inputs, output)):
            for number, stage in enumerate(self.stages(inputs, output, params), 1):
                print(f"stage {number} of {self.name}:")
                given = (stage.inputs, stage.output, stage.params)
                parts.append(stage.kernel.explain(*given, assembly=assembly))
        return "\n\n".join(parts)

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        call = call_of(inputs, output, params)
        if self.calls.repeat(call):
            return
        output = one_output(self.name, output)
        device = check_buffers(self.name, self.inputs, inputs, output)
        chosen = params_key(params)
        with using(device):
            if any(item.aliases(output) for item in inputs):
                self.run_over_inputs(device, inputs, output, params)
            elif output.is_host and chosen is not None:
                kinds = tuple([(item.scalar.name, item.shape) for item in (*inputs, output)])
                known = self._executables.find(
                    (kinds, chosen), lambda: self._executable(device, inputs, output, params)
                )
                known.run([*inputs, output])
                if call is not None:
                    given = [*inputs, output]
                    self.calls.made(
                        self, call, [output, *inputs], params, lambda: known.bound(given)
                    )
            else:
                self._run_stages(device, list(self.stages(inputs, output, params)))

    def _executable(
        self, device: Device, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> Executable:
        """Returns what is run on other buffers like these without being expanded again."""
        from dala.runtime.pipelines.executable import Executable
        from dala.runtime.pipelines.launch_graph import expand

        *given, made = (scratch(item.shape, item.scalar) for item in (*inputs, output))
        stages = list(self.stages(given, made, params))
        invocations = [
            invocation
            for stage in stages
            for invocation in expand(stage.kernel, stage.inputs, stage.output, stage.params)
        ]
        fuse = device.supports("line_buffers") and output.size >= FUSED_BYTES
        return Executable(device, invocations, [*given, made], fuse=fuse, keep=False)

    def run_over_inputs(
        self, device: Device, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        """Computes an output that is one of the inputs, or a part of one, aside."""
        made = scratch(output.shape, output.scalar)
        self._run_stages(device, list(self.stages(inputs, made, params)))
        copy(device, made.memory, output.memory)

    def _run_stages(self, device: Device, stages: list[Stage]) -> None:
        try:
            # A profile times each stage.
            with nullcontext() if ACTIVE else device.batch():
                for stage in stages:
                    stage.kernel.run(stage.inputs, stage.output, stage.params)
        finally:
            stages.clear()  # else an error's traceback keeps the buffers between them alive


class HostCallKernel(Kernel):
    """A kernel that a library computes on the host, on arrays that are the buffers' own memory.

    Between buffers of another device inputs are copied to the host, and the output back.
    """

    has_function = False

    def __init__(self, name: str, inputs: tuple[str, ...], call: Library) -> None:
        super().__init__(name, call.__doc__ or "", _no_definition)
        self._inputs = inputs
        self._call = call

    def explain(self, *_: Any, **__: Any) -> str:
        """Returns what is computed, and that a library does it."""
        explained = f"{self.name} is computed by a library on the host: {self.doc}"
        print(explained)
        return explained

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._inputs

    @property
    def params(self) -> tuple[Parameter, ...]:
        return ()

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        output = one_output(self.name, output)
        call = partial(self._compute, inputs, output, params or {})
        if ACTIVE:
            memories, target = [item.memory for item in inputs], output.memory
            measure(self.name, target.device, memories, (target,), call)
        else:
            call()

    def _compute(self, inputs: Sequence[Buffer], output: Buffer, params: Params) -> None:
        arrays, target = [np.asarray(item) for item in inputs], output.memory
        if output.is_host and not any(item.memory.overlaps(target) for item in inputs):
            self._call(*arrays, out=np.asarray(output), **params)
            return
        made = np.empty(output.shape, output.scalar.numpy)
        self._call(*arrays, out=made, **params)
        target.device.write(target, made)

    def elsewhere(self, output: Buffer) -> str:
        if output.is_host:
            return ""
        return f"computed on the host: copied there from {output.device}, and back"


def _no_definition() -> Any:
    raise InternalError("a composite kernel has no source of its own.")
