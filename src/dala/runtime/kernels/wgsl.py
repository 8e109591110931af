"""Kernels that are WGSL text: they run on WebGPU devices, as they are written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dala.devices.device import Device, WgslRunner
from dala.errors import ArgumentError, DtypeError, InternalError
from dala.ir.types import Scalar
from dala.lang.signature import Parameter
from dala.lang.wgsl_module import Groups, WgslModule, read_module
from dala.plan.task import Kind, Shape
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, check_buffers, complete, number, one_output
from dala.runtime.kernels.call import Outputs, kind_of_first, only
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.profiling.profile import ACTIVE, measure

Grouping = Groups | Callable[[tuple[int, ...]], Groups]
"""How many workgroups there are, or a function of the output's shape that says so."""


class WgslKernel(Kernel):
    """A kernel given as WGSL text; `groups` are its workgroups where the output does not say."""

    has_function = False

    def __init__(self, name: str, module: WgslModule, groups: Grouping | None = None) -> None:
        super().__init__(name, "WGSL text.", _no_definition)
        self.module = module
        self.groups = groups
        self._runners: dict[Device, WgslRunner] = {}

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.module.of_kind("input"))

    @property
    def params(self) -> tuple[Parameter, ...]:
        return self.module.params

    def result_kinds(
        self,
        inputs: tuple[Kind, ...],
        params: Params,
        shapes: tuple[Shape, ...] = (),
        scalars: tuple[Scalar, ...] = (),
    ) -> tuple[Kind, ...]:
        own, extents = kind_of_first(self.name, inputs, only(self.name, "shape", shapes))
        scalar = only(self.name, "dtype", scalars)
        return ((scalar or self.module.of_kind("output")[0].dtype_for(own), extents),)

    def run(self, inputs: Sequence[Buffer], output: Outputs, params: Params | None = None) -> None:
        output = one_output(self.name, output)
        device = check_buffers(self.name, self.inputs, inputs, output)
        given = complete(self.name, self.params, params)
        values = [number(self.name, item, given[item.name]) for item in self.params]
        bindings = (*self.module.of_kind("input"), *self.module.of_kind("output"))
        for item, buffer in zip(bindings, (*inputs, output), strict=True):
            if not item.takes(buffer.scalar):
                raise DtypeError(
                    f"{self.name}: {item.name} is array<{item.element}> in its text, but "
                    f"{buffer.dtype} was given."
                )
        runner = self._runners.get(device)
        if runner is None:
            runner = device.load_wgsl(self.name, self.module)
            there = {known: old for known, old in self._runners.items() if not known.lost}
            self._runners = {**there, device: runner}
        if not output.size:
            return
        groups = self._groups_for(output)
        packed = self.module.pack(values) if values else b""
        memories, target = [item.memory for item in inputs], output.memory
        if ACTIVE:
            call = partial(runner.run, memories, target, packed, groups)
            measure(self.name, device, memories, (target,), call)
        else:
            runner.run(memories, target, packed, groups)

    def _groups_for(self, output: Buffer) -> Groups:
        if self.groups is None:
            return self.module.groups(output.shape, output.size, output.scalar)
        if callable(self.groups):
            return _groups(self.name, self.groups(output.shape))
        return self.groups

    def explain(self, *_: Any, **__: Any) -> str:
        """Returns the text itself."""
        print(self.module.text)
        return self.module.text


def from_wgsl(
    name: str,
    text: Any,
    params: Sequence[str] | Mapping[str, Any] | None,
    groups: Sequence[int] | Callable[[tuple[int, ...]], Groups] | None,
) -> WgslKernel:
    """Returns a kernel from WGSL text; `params` as a mapping gives defaults."""
    if not isinstance(text, str):
        raise ArgumentError(f"WGSL is given as text, not as {type(text).__name__}.")
    defaults = params if isinstance(params, Mapping) else {}
    module = read_module(name, inspect.cleandoc(text), defaults)
    names = [item.name for item in module.params]
    for given in defaults:
        if given not in names:
            raise ArgumentError(
                f"kernel {name!r}: params has {given!r}, but its text takes {names}."
            )
    return WgslKernel(name, module, _checked(name, groups))


def _checked(
    name: str, groups: Sequence[int] | Callable[[tuple[int, ...]], Groups] | None
) -> Grouping | None:
    return groups if groups is None or callable(groups) else _groups(name, groups)


def _groups(name: str, given: Any) -> Groups:
    numbers = tuple(given) if isinstance(given, tuple | list) else ()
    if len(numbers) != 3 or not all(isinstance(item, int) and item > 0 for item in numbers):
        raise ArgumentError(f"kernel {name!r}: groups is three numbers from 1 on, not {given!r}.")
    x, y, z = numbers
    return (x, y, z)


def _no_definition() -> Any:
    raise InternalError("a kernel that is WGSL text has no source in the kernel language.")
