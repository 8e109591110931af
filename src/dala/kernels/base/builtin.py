"""How a built-in kernel is declared and comes to be known by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from dala.devices.device import Device
from dala.ir.nodes import Border
from dala.ir.types import Scalar
from dala.kernels.base import language
from dala.kernels.base.parameters import DeclaredParameter, Param, annotate, declare, held, hold
from dala.lang.lower import Definition
from dala.lang.source import from_function, from_text
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params
from dala.runtime.kernels.kernel import KERNELS, Kernel
from dala.runtime.kernels.specialization import Consts, Types
from dala.runtime.pipelines.composite import CompositeKernel, Expand, HostCallKernel, Library

Inputs = Sequence[Buffer]
Given = dict[str, Any]
"""The parameters of a composite kernel by name, checked, with their defaults filled in."""

FILTERS: dict[str, DeclaredKernel | BuiltinKernel] = {}
"""The kernels that make an image of an image, by name: those that were declared with a group."""


class DeclaredKernel(CompositeKernel):
    """A composite kernel whose parameters are checked by their declarations."""

    def __init__(
        self,
        name: str,
        doc: str,
        inputs: tuple[str, ...],
        params: tuple[DeclaredParameter, ...],
        expand: Expand,
        group: str = "",
    ) -> None:
        super().__init__(name, doc, inputs, params, expand)
        self.group = group

    @cached_property
    def _held(self) -> dict[str, Param]:
        return held(self.params)

    def complete(self, params: Params | None) -> dict[str, Any]:
        given = super().complete(params)
        # Defaults need no check: a test holds them to their declarations.
        return {**given, **hold(self.name, self._held, params or {})}


class DispatchedKernel(DeclaredKernel):
    """A composite kernel of one stage on the very buffers given, which sees to aliases itself."""

    def run_over_inputs(
        self, device: Device, inputs: Sequence[Buffer], output: Buffer, params: Params | None
    ) -> None:
        for stage in self.stages(inputs, output, params):
            stage.kernel.run(stage.inputs, stage.output, stage.params)


class BuiltinKernel(Kernel):
    """A function of the kernel language with declared parameters; parsed when first run."""

    def __init__(
        self, function: Callable[..., Any], declared: Mapping[str, Param], group: str = ""
    ) -> None:
        doc = inspect.cleandoc(function.__doc__ or "")
        super().__init__(
            function.__name__, doc, lambda: Definition(from_function(function), "clamp")
        )
        self.group = group
        self._declared = declared

    @property
    def params(self) -> tuple[DeclaredParameter, ...]:
        return self._annotated

    @cached_property
    def _held(self) -> dict[str, Param]:
        return held(self.params)

    @cached_property
    def _annotated(self) -> tuple[DeclaredParameter, ...]:
        return annotate(super().params, self._declared)

    def sort_params(
        self, scalars: tuple[Scalar, ...], params: Params | None
    ) -> tuple[Consts, Types, list[bool | int | float]]:
        if isinstance(params, Mapping) and self._held:
            params = hold(self.name, self._held, params)
        return super().sort_params(scalars, params)


@overload
def builtin(function: Callable[..., Any], /) -> BuiltinKernel: ...
@overload
def builtin(
    *, group: str = "", **params: Param
) -> Callable[[Callable[..., Any]], BuiltinKernel]: ...
def builtin(
    function: Callable[..., Any] | None = None, /, *, group: str = "", **params: Any
) -> Any:
    """A kernel of the language, registered by the function's name.

    Defaults are in the function's signature; all else about its parameters is declared here.
    """

    def register(function: Callable[..., Any]) -> BuiltinKernel:
        made = BuiltinKernel(function, params, group)
        KERNELS[made.name] = made
        if group:
            FILTERS[made.name] = made
        return made

    return register if function is None else register(function)


def helper(function: Callable[..., Any], border: Border = "clamp") -> Kernel:
    """A kernel of the language that composite kernels use, not registered."""
    doc = inspect.cleandoc(function.__doc__ or "")
    return Kernel(function.__name__, doc, lambda: Definition(from_function(function), border))


def accumulating(function: Callable[..., Any]) -> Kernel:
    """A helper that writes anywhere in its output, and leaves the rest of it as it is."""
    definition = Definition(from_function(function), accumulate=True)
    return Kernel(function.__name__, inspect.cleandoc(function.__doc__ or ""), lambda: definition)


def zero_outside(function: Callable[..., Any]) -> Kernel:
    """A helper that reads zeros outside of its inputs."""
    return helper(function, "zero")


def written(name: str, text: str) -> Kernel:
    """A kernel whose text was generated for a number of axes, not registered."""
    return Kernel(name, "", lambda: Definition(from_text(text, {"dala": language}, f"<{name}>")))


def host_call(*inputs: str) -> Callable[[Library], HostCallKernel]:
    """A step that a library computes on arrays of the host, for composite kernels to use."""
    return lambda call: HostCallKernel(call.__name__, inputs, call)


def composite(*inputs: str, group: str = "", **params: Param) -> Callable[[Expand], DeclaredKernel]:
    """A kernel that its function expands into stages; one with a group is a filter of images."""
    return _registered(DeclaredKernel, inputs, group, params)


def dispatch(*inputs: str, group: str = "", **params: Param) -> Callable[[Expand], DeclaredKernel]:
    """A kernel that is one of several, depending on its buffers."""
    return _registered(DispatchedKernel, inputs, group, params)


def _registered(
    kind: type[DeclaredKernel], inputs: tuple[str, ...], group: str, params: Mapping[str, Param]
) -> Callable[[Expand], DeclaredKernel]:
    def register(expand: Expand) -> DeclaredKernel:
        name, doc = expand.__name__, inspect.cleandoc(expand.__doc__ or "")
        made = kind(name, doc, inputs, declare(**params), expand, group)
        KERNELS[name] = made
        if group:
            FILTERS[name] = made
        return made

    return register
