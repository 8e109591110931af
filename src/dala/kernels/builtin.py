"""How a built-in kernel comes to be known by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dala.lang.lower import Definition
from dala.lang.signature import REQUIRED, Parameter
from dala.lang.source import from_function
from dala.runtime.kernel import KERNELS, Kernel
from dala.runtime.recipe import Expand, Recipe


def builtin(function: Callable[..., Any]) -> Kernel:
    """A kernel of the language, registered by the function's name; parsed when first run."""
    name, doc = function.__name__, inspect.cleandoc(function.__doc__ or "")
    made = Kernel(name, doc, lambda: Definition(from_function(function)))
    KERNELS[name] = made
    return made


def helper(function: Callable[..., Any]) -> Kernel:
    """A kernel of the language that recipes use, not registered."""
    name, doc = function.__name__, inspect.cleandoc(function.__doc__ or "")
    return Kernel(name, doc, lambda: Definition(from_function(function)))


def recipe(*inputs: str, **params: Any) -> Callable[[Expand], Recipe]:
    """A kernel that its function expands into stages; `params` are names with their defaults."""
    declared = tuple(Parameter(name, "host", None, default) for name, default in params.items())

    def register(expand: Expand) -> Recipe:
        name, doc = expand.__name__, inspect.cleandoc(expand.__doc__ or "")
        made = Recipe(name, doc, inputs, declared, expand)
        KERNELS[name] = made
        return made

    return register


__all__ = ["REQUIRED", "builtin", "helper", "recipe"]
