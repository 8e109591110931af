"""Users' kernels as text in a document, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dala.errors import ArgumentError, KernelError, KernelSourceError
from dala.runtime.kernels.kernel import KERNELS, PROVIDERS, Kernel, from_source
from dala.runtime.kernels.wgsl import WgslKernel, from_wgsl
from dala.runtime.pipelines.composite import CompositeKernel, HostCallKernel
from dala.runtime.pipelines.definition_text import NotTextError, text_with_definitions

_OURS = Path(__file__).parents[2] / "kernels"
"""Where the kernels are that every dala has."""
_KEYS = {
    "dala": {"source", "border", "accumulate", "checks"},
    "wgsl": {"source", "defaults", "groups"},
}


def is_built_in(kernel: Kernel) -> bool:
    """Returns whether every dala knows the kernel by its name."""
    if kernel.name in PROVIDERS and kernel.name not in KERNELS:
        return PROVIDERS[kernel.name]() is kernel
    if KERNELS.get(kernel.name) is not kernel or isinstance(kernel, WgslKernel):
        return False
    if isinstance(kernel, CompositeKernel):
        return True
    return _OURS in Path(kernel.definition.source.file).parents


def write_kernel(kernel: Kernel) -> dict[str, Any]:
    """Returns a kernel as text for `read_kernel`; raises KernelSourceError where that cannot be.

    It is not where the kernel uses what is defined outside of it, but for functions and classes of
    named tuples, which are written along.
    """
    if isinstance(kernel, WgslKernel):
        if callable(kernel.groups):
            raise _not_text(kernel, "its groups are a function")
        defaults = {item.name: item.default for item in kernel.params if not item.required}
        text = {"language": "wgsl", "source": kernel.module.text, "defaults": defaults}
        return text if kernel.groups is None else {**text, "groups": list(kernel.groups)}
    if isinstance(kernel, CompositeKernel | HostCallKernel):
        raise _not_text(kernel, "it is planned on the host")
    source, border = kernel.definition.source, kernel.definition.border
    try:
        written = text_with_definitions(source)
    except NotTextError as reason:
        raise _not_text(kernel, str(reason)) from None
    found: dict[str, Any] = {"language": "dala", "border": border, "source": written}
    for key in ("accumulate", "checks"):
        if getattr(kernel.definition, key):
            found[key] = True
    try:
        read_kernel(kernel.name, found)
    except KernelError as error:
        raise _not_text(kernel, f"alone, it is refused ({error})") from error
    return found


def read_kernel(name: str, given: Any) -> Kernel:
    """Returns the kernel that such a description is of, not registered."""
    if not name or not isinstance(given, Mapping):
        raise ArgumentError(
            f"a kernel has a name, and is write_kernel by a mapping, not {type(given).__name__}."
        )
    language = given.get("language", "dala")
    if language not in ("dala", "wgsl"):
        raise ArgumentError(f"language {language!r} is not known: there are 'dala' and 'wgsl'.")
    for key in given:
        if key not in _KEYS[language] | {"language"}:
            allowed = ", ".join(sorted(_KEYS[language]))
            raise ArgumentError(f"a kernel in {language!r} has {allowed}; not {key!r}.")
    if not isinstance(given.get("source"), str):
        raise ArgumentError("a kernel has a text `source`.")
    if language == "wgsl":
        defaults = given.get("defaults", {})
        numbers = isinstance(defaults, Mapping) and defaults.values()
        if numbers is False or not all(isinstance(item, int | float) for item in numbers):
            raise ArgumentError("`defaults` is a mapping of parameters to numbers.")
        return from_wgsl(name, given["source"], defaults, given.get("groups"))
    said = {key: given[key] for key in ("accumulate", "checks") if key in given}
    for key, value in said.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"`{key}` is true or false, not {value!r}.")
    return from_source(name, given["source"], given.get("border", "clamp"), **said)


def _not_text(kernel: Kernel, why: str) -> KernelSourceError:
    return KernelSourceError(
        f"kernel {kernel.name!r} cannot be saved as text: {why}. Give it by name, "
        f"kernels={{{kernel.name!r}: it}}, when saving and again when loading."
    )
