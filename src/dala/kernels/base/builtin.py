"""How a built-in kernel comes to be known by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dala.devices import using
from dala.ir.nodes import Border
from dala.kernels.base import language
from dala.kernels.base.limits import LIMITS, hold
from dala.lang.lower import Definition
from dala.lang.signature import REQUIRED, Parameter
from dala.lang.source import from_function, from_text
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import Params, check_buffers
from dala.runtime.kernels.kernel import KERNELS, Kernel
from dala.runtime.pipelines.composite import CompositeKernel, Expand, HostCallKernel, Library, Stage

Inputs = Sequence[Buffer]
Given = dict[str, Any]
"""The parameters of a recipe, by name, with their defaults filled in."""


def builtin(function: Callable[..., Any]) -> Kernel:
    """A kernel of the language, registered by the function's name; parsed when first run."""
    made = helper(function)
    KERNELS[made.name] = made
    return made


def helper(function: Callable[..., Any], border: Border = "clamp") -> Kernel:
    """A kernel of the language that recipes use, not registered."""
    doc = inspect.cleandoc(function.__doc__ or "")
    return Kernel(function.__name__, doc, lambda: Definition(from_function(function), border))


def zero_outside(function: Callable[..., Any]) -> Kernel:
    """A helper that reads zeros outside of its inputs."""
    return helper(function, "zero")


def written(name: str, text: str) -> Kernel:
    """A kernel whose text was made for a number of axes, not registered."""
    return Kernel(name, "", lambda: Definition(from_text(text, {"dala": language}, f"<{name}>")))


def library(*inputs: str) -> Callable[[Library], HostCallKernel]:
    """A step that a library computes on arrays, for recipes to use."""
    return lambda call: HostCallKernel(call.__name__, inputs, call)


def recipe(*inputs: str, **params: Any) -> Callable[[Expand], CompositeKernel]:
    """A kernel that its function expands into stages; `params` are names with their defaults."""
    return _registered(CompositeKernel, inputs, params)


def choice(*inputs: str, **params: Any) -> Callable[[Expand], CompositeKernel]:
    """A kernel that is one of several, depending on its buffers."""
    return _registered(Choice, inputs, params)


class Choice(CompositeKernel):
    """A recipe of one stage on the very buffers given, whose kernel sees to aliases itself."""

    def run(self, inputs: Sequence[Buffer], output: Buffer, params: Params | None = None) -> None:
        with using(check_buffers(self.name, self.inputs, inputs, output)):
            for stage in self.stages(inputs, output, params):
                stage.kernel.run(stage.inputs, stage.output, stage.params)


def _registered(
    kind: type[CompositeKernel], inputs: tuple[str, ...], params: dict[str, Any]
) -> Callable[[Expand], CompositeKernel]:
    declared = tuple(Parameter(name, "host", None, default) for name, default in params.items())
    optional = [name for name, default in params.items() if default is None]

    def register(expand: Expand) -> CompositeKernel:
        name, doc = expand.__name__, inspect.cleandoc(expand.__doc__ or "")

        def held(inputs: Sequence[Buffer], output: Buffer, given: Given) -> Iterator[Stage]:
            return expand(inputs, output, hold(name, given, optional))

        made = kind(name, doc, inputs, declared, held if name in LIMITS else expand)
        KERNELS[name] = made
        return made

    return register


__all__ = [
    "REQUIRED",
    "Given",
    "Inputs",
    "builtin",
    "choice",
    "helper",
    "library",
    "recipe",
    "written",
    "zero_outside",
]
