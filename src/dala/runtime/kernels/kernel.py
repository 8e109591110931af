"""Kernels as users hold them: made from functions or text, registered by name, run on buffers."""

from __future__ import annotations

import builtins
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import ModuleType
from typing import Any, overload

from dala.base.suggestions import hint
from dala.devices import CPU
from dala.devices.device import Device, Runner
from dala.errors import ArgumentError, UnknownKernelError, edge
from dala.ir.dump import dump
from dala.ir.nodes import Border
from dala.ir.types import F32, SCALARS, Scalar
from dala.lang.calls import Function
from dala.lang.example_specialization import example_of
from dala.lang.language_names import NAMES
from dala.lang.lower import Definition
from dala.lang.signature import Parameter
from dala.lang.source import Source, from_function
from dala.lang.text_definitions import from_definitions
from dala.plan.task import Kind, Shape
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import (
    Params,
    check_buffers,
    complete,
    composite,
    fitted,
    number,
    number_type,
    outputs_of,
    params_key,
)
from dala.runtime.kernels.call import CalledKernel, Outputs, for_each
from dala.runtime.kernels.declarations import (
    border_rule,
    check_declared,
    check_name,
    checked_definition,
)
from dala.runtime.kernels.inference import inferred
from dala.runtime.kernels.repeated_calls import RepeatedCalls, call_of
from dala.runtime.kernels.specialization import Consts, Types, specialized_task
from dala.runtime.profiling.profile import ACTIVE, measure

MOST_LAUNCHES = 512
"""Specializations (device, dtypes, shapes, constants) that a kernel keeps: the latest ones."""
MOST_LAUNCHES_IN_ALL = 4096
"""Those that all kernels together keep: machine code takes memory mappings, which are limited."""

_latest: deque[tuple[weakref.ref[Kernel], tuple[Any, ...]]] = deque()

Specs = tuple[tuple[str, tuple[int, ...]], ...]
Values = list[bool | int | float]


class Kernel(CalledKernel):
    """A function that computes buffers from others, in the kernel language."""

    def __init__(self, name: str, doc: str, define: Callable[[], Definition]) -> None:
        self.name = name
        self.doc = doc
        self._define, self.calls = define, RepeatedCalls()
        self._launches: dict[tuple[Any, ...], Runner] = {}
        self._seen: dict[tuple[Any, ...], tuple[tuple[Any, ...], Values]] = {}
        """The launches and values of buffers and parameters that it was run with before."""

    @cached_property
    def definition(self) -> Definition:
        """The source, parsed when it is first needed."""
        return self._define()

    # -- what it is ------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        return self.definition.input_names

    @property
    def params(self) -> tuple[Parameter, ...]:
        """Its parameters, with their defaults."""
        return self.definition.signature.params

    @property
    def accumulates(self) -> bool:
        return self.has_function and self.definition.accumulate

    def output_shape(
        self, shapes: Sequence[tuple[int, ...]], params: Params | None = None
    ) -> tuple[int, ...]:
        """Returns the shape of the output for inputs of given shapes: that of the first."""
        return shapes[0]

    def result_kinds(
        self,
        inputs: tuple[Kind, ...],
        params: Params,
        shapes: tuple[Shape, ...] = (),
        scalars: tuple[Scalar, ...] = (),
    ) -> tuple[Kind, ...]:
        given = tuple(scalar for scalar, _ in inputs)
        last = scalars[0] if scalars else given[0] if given else F32
        consts, types, _ = self.sort_params((*given, last), params)
        first = shapes[0] if shapes else None
        found = inferred(self.name, self.definition, inputs, consts, types, first)
        extents = for_each(self.name, "shape", shapes, found) if len(shapes) > 1 else ()
        dtypes = for_each(self.name, "dtype", scalars, found)
        return tuple(
            (dtypes[i] if dtypes else own, extents[i] if extents else shape)
            for i, (own, shape) in enumerate(found)
        )

    def elsewhere(self, output: Buffer) -> str:
        """Returns a note on copies if it runs on another device than its buffers', or ""."""
        return ""

    def describe(self) -> dict[str, Any]:
        """Returns its inputs, its parameters with their defaults, and what it does, in one line."""
        return {
            "inputs": list(self.inputs),
            "params": {item.name: item.describe() for item in self.params},
            "doc": self.doc.partition("\n")[0],
        }

    def __repr__(self) -> str:
        arguments = ", ".join([*self.inputs, *map(str, self.params)])
        return f"<Kernel {self.name}({arguments})>"

    # -- running ---------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        """Compute the output from the inputs; a list of outputs if there are several."""
        call = call_of(inputs, output, params)
        if self.calls.repeat(call):
            return
        outputs = outputs_of(output)
        device = check_buffers(self.name, self.inputs, inputs, outputs)
        key = tuple([(item.scalar.name, item.shape) for item in (*inputs, *outputs)])
        memories, targets = [item.memory for item in inputs], [item.memory for item in outputs]
        runner, values = self.prepared(device, key, params)
        given = (memories, targets, values)
        if ACTIVE:
            measure(self.name, device, memories, tuple(targets), partial(runner.run, *given))
            return
        runner.run(*given)
        if call is not None:
            again = partial(device.bound, runner, *given)
            self.calls.made(self, call, (*outputs, *inputs), params, again)

    def prepared(self, device: Device, key: Specs, params: Params | None) -> tuple[Runner, Values]:
        """Returns a runner for such buffers, and the values of the run-time parameters."""
        given = params_key(params)
        if given is not None and (found := self._seen.get((device, key, given))) is not None:
            known = self._launches.get(found[0])
            if known is not None:
                return known, found[1]
        scalars = tuple([SCALARS[name] for name, _ in key[: len(self.inputs) + 1]])
        consts, types, values = self.sort_params(scalars, params)
        chosen = (
            tuple([(name, repr(v)) for name, v in consts]),
            tuple([type.name for _, type in types]),
        )
        full = (device, key, *chosen)
        known = self._launches.get(full) or self._made(full, device, key, consts, types)
        if given is not None:
            if len(self._seen) >= MOST_LAUNCHES:
                self._seen.clear()
            self._seen[device, key, given] = (full, values)
        return known, values

    def sort_params(
        self, scalars: tuple[Scalar, ...], params: Params | None
    ) -> tuple[Consts, Types, Values]:
        """Returns the constants, the types of numbers, and the values of the run-time parameters.

        `scalars` are the dtypes of the inputs, then of the first output.
        """
        declared = self.params
        given = complete(self.name, declared, params)
        consts: list[tuple[str, bool | int | float]] = []
        types: list[tuple[str, Scalar]] = []
        values: list[bool | int | float] = []
        for item in declared:
            if item.composite is not None:
                values += composite(self.name, item.name, item.composite, given[item.name])
                continue
            value = number(self.name, item, given[item.name])
            if item.kind == "const":
                consts.append((item.name, value))
                continue
            if item.kind == "number":
                type = number_type(scalars[:-1] or scalars, value)
                value = fitted(self.name, item.name, type, value)
                types.append((item.name, type))
            values.append(value)
        return tuple(consts), tuple(types), values

    def _made(
        self, full: tuple[Any, ...], device: Device, key: Specs, consts: Consts, types: Types
    ) -> Runner:
        kinds, count = tuple((SCALARS[name], shape) for name, shape in key), len(self.inputs)
        given = (kinds[:count], kinds[count:], consts, types)
        task = specialized_task(self.name, self.definition, *given)
        runner = device.load(task)
        for known in list(self._launches):
            if len(self._launches) >= MOST_LAUNCHES or known[0].lost:
                self._launches.pop(known, None)
        self._launches[full] = runner
        _latest.append((weakref.ref(self), full))
        if len(_latest) > MOST_LAUNCHES_IN_ALL:
            owner, oldest = _latest.popleft()
            if (kernel := owner()) is not None:
                kernel._launches.pop(oldest, None)
        return runner

    # -- seeing ----------------------------------------------------------------------------------

    @edge
    def explain(
        self,
        inputs: Sequence[Buffer] | None = None,
        output: Outputs | None = None,
        params: Params | None = None,
        *,
        assembly: bool = False,
    ) -> str:
        """Returns the typed program and the code emitted for it, for these buffers or for f32 ones.

        Prints it, and gives it back. `assembly=True` adds the machine's own instructions.
        """
        if inputs is None or output is None:
            program = self.definition.lower(example_of(self.definition))
            code = CPU.explain(program, CPU.target(), assembly=assembly)
        else:
            device = check_buffers(self.name, self.inputs, inputs, output)
            key = tuple((item.scalar.name, item.shape) for item in (*inputs, *outputs_of(output)))
            runner = self.prepared(device, key, params)[0]
            program, code = runner.task.program, runner.explain(assembly=assembly)
        parts = [dump(program), code]
        explained = "\n\n".join(parts)
        print(explained)
        return explained

    # -- the registry ----------------------------------------------------------------------------

    @staticmethod
    @edge
    def register(
        name: str,
        source: str | Kernel | Callable[..., Any],
        inputs: int | Sequence[str] | None = None,
        params: Sequence[str] | Mapping[str, Any] | None = None,
        *,
        border: Border = "clamp",
        replace: bool = False,
        accumulate: bool = False,
        checks: bool | None = None,
        language: str = "dala",
        groups: Sequence[int] | Callable[[tuple[int, ...]], tuple[int, int, int]] | None = None,
    ) -> Kernel:
        """Returns a kernel known by name from now on: from text, a function, or another kernel.

        `inputs` (a count or names) and `params` (names) are checked against the source. `border`,
        `accumulate` and `checks` are those of `dala.kernel`.
        `language="wgsl"` takes WGSL text, for WebGPU devices (docs/devices.md); there `params` may
        be a mapping that gives defaults, and `groups` says how many workgroups there are.

        >>> from dala.gpu import compute
        >>> compute.Kernel.register("halve", "def halve(x): return x * 0.5", inputs=1)
        <Kernel halve(x)>
        >>> compute.Kernel.unregister("halve")
        """
        check_name(name)
        if name in KERNELS and not replace:
            raise ArgumentError(
                f"a kernel named {name!r} is registered already: choose another name, or give "
                f"replace=True."
            )
        if language not in ("dala", "wgsl"):
            raise ArgumentError(f"language {language!r} is not known: give 'dala' or 'wgsl'.")
        if language == "wgsl":
            from dala.runtime.kernels.wgsl import from_wgsl

            kernel_: Kernel = from_wgsl(name, source, params, groups)
            params = None if isinstance(params, Mapping) else params
        elif isinstance(source, Kernel):
            kernel_ = source
        elif isinstance(source, str):
            kernel_ = from_source(name, source, border, accumulate=accumulate, checks=checks)
        else:
            kernel_ = _checked(from_function(source), name, border, accumulate, checks)
        names = [item.name for item in kernel_.params]
        check_declared(kernel_.name, (inputs, kernel_.inputs), (params, names))
        KERNELS[name] = kernel_
        return kernel_

    @staticmethod
    def lookup(name: str) -> Kernel:
        """Returns the kernel of that name; raises an UnknownKernelError that suggests others."""
        found = KERNELS.get(name) if isinstance(name, str) else None
        if found is None and isinstance(name, str) and name in PROVIDERS:
            found = PROVIDERS[name]()
        if callable(name):
            raise UnknownKernelError(
                f"{name!r} is a Python function, not a kernel: decorate it with @dala.kernel. As "
                f"it is, it can be a filter of media.transcode() and gpu.filter_chain()."
            )
        if found is None:
            meant = hint(name, [*KERNELS, *PROVIDERS], 3) or " See compute.kernels()."
            raise UnknownKernelError(f"no kernel is named {name!r}.{meant}")
        return found

    @staticmethod
    def list() -> builtins.list[str]:
        """Returns the names of all kernels, sorted."""
        return sorted(KERNELS)

    @staticmethod
    def unregister(name: str) -> None:
        """Removes a kernel; what was built with it keeps working."""
        del KERNELS[Kernel.lookup(name).name if name not in KERNELS else name]


KERNELS: dict[str, Kernel] = {}
"""Every registered kernel by its name."""
PROVIDERS: dict[str, Callable[[], Kernel]] = {}
"""Callables that make a kernel when its name is first looked up, as models are loaded."""


_DALA = ModuleType("dala")
"""What `dala` means in a kernel that is given as text."""
vars(_DALA).update(NAMES)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...


@overload
def kernel(
    *,
    border: Border = "clamp",
    name: str | None = None,
    accumulate: bool = False,
    checks: bool | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...


@edge
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    border: Border = "clamp",
    name: str | None = None,
    accumulate: bool = False,
    checks: bool | None = None,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Returns a kernel made from a function that gives the output's element at each position.

    `border` says what a read outside an input gives: clamp, mirror, reflect, wrap or zero. With
    `accumulate`, one that writes to `out: dala.Out` starts from what is there instead of zeros.
    `checks` says whether `dala.check` checks anything: by default only if DALA_DEBUG is set.
    """
    border_rule(border)
    if function is None:
        return edge(lambda given: _checked(from_function(given), name, border, accumulate, checks))
    return _checked(from_function(function), name, border, accumulate, checks)


def from_source(
    name: str,
    text: str,
    border: str = "clamp",
    *,
    accumulate: bool = False,
    checks: bool | None = None,
) -> Kernel:
    """Returns a kernel from its text, not registered."""
    source = from_definitions(text, {**NAMES, "dala": _DALA}, f"<kernel {name}>")
    return _checked(source, name, border, accumulate, checks)


def function(given: Callable[..., Any]) -> Function:
    """Returns a function that kernels can call; it is inlined into them."""
    return Function(given)


def _checked(
    source: Source, name: str | None, border: str, accumulate: bool, checks: bool | None
) -> Kernel:
    definition = checked_definition(source, border, accumulate=accumulate, checks=checks)
    return Kernel(name or definition.name, definition.source.doc, lambda: definition)
