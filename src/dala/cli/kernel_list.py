"""Describes kernels, as text or JSON."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from dala.cli import parameter_values
from dala.kernels.base.parameters import DeclaredParameter
from dala.lang.signature import Parameter
from dala.media.filters.catalog import FILTERS
from dala.runtime.kernels.kernel import Kernel

_SAMPLES: dict[str, Any] = {
    "color": "#00b140",
    "table": "warm.cube",
    "number": 0.5,
    "integer": 2,
    "low": 0.0,
    "high": 1.0,
}
_MATRICES = {
    "color_matrix": [[0.2, 0.8, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7]],
    "warp_affine": [[1, 0, 10], [0, 1, 20]],
}
_SEVERAL = {"*inputs": ("first", "second")}


def described(name: str) -> dict[str, Any]:
    """Returns the full description of one kernel."""
    kernel = Kernel.lookup(name)
    return {**kernel.describe(), "text": inspect.cleandoc(kernel.doc), "example": _example(kernel)}


def page(name: str, item: dict[str, Any], columns: int) -> Iterator[str]:
    """Yields the description of one kernel, wrapped to `columns`."""
    kernel = Kernel.lookup(name)
    said = ", ".join([*kernel.inputs, *map(str, kernel.params)])
    yield from wrap(f"{name}({said})", columns, subsequent_indent="    ")
    for paragraph in item["text"].split("\n\n"):
        yield ""
        yield from wrap(paragraph, columns, initial_indent="    ", subsequent_indent="    ")
    rows = [(other.lstrip("*"), _input(other)) for other in kernel.inputs]
    rows += [(param.name, _param(param)) for param in kernel.params]
    if rows:
        yield ""
    wide = max((len(key) for key, _ in rows), default=0)
    for key, about in rows:
        yield from wrap(f"    {key:<{wide}}  {about}", columns, subsequent_indent=" " * (wide + 6))
    yield ""
    yield f"    {item['example']}"
    if name in FILTERS:
        yield f"    As a filter: dala filters {name}"


def _input(name: str) -> str:
    if not name.startswith("*"):
        return "a buffer that is read"
    return "buffers that are read, one or more: " + ", ".join(_names(name))


def _param(param: Parameter) -> str:
    """Returns the text for a parameter: what it does, its values and its default."""
    default = "needed" if param.required else f"default {param.default!r}"
    about = f"{param.about.doc}: " if isinstance(param, DeclaredParameter) else ""
    return f"{about}{_kind(param)}; {default}"


def _kind(param: Parameter) -> str:
    known = _declared(param)
    if known.get("kind") in _PYTHON:
        return _PYTHON[known["kind"]]
    if param.kind == "host" and known.get("kind") in ("choice", "number", "integer"):
        return parameter_values.allowed(known)
    if "least" in known:
        return parameter_values.allowed(known)
    if param.type is not None:
        return f"a number, {param.type.name}"
    if param.kind == "const":
        return "a number that is compiled in"
    if param.kind == "number":
        return "a number of the inputs' dtype"
    return _OF_DEFAULTS.get(type(param.default), "a value")


def _declared(param: Parameter) -> dict[str, Any]:
    return param.about.describe() if isinstance(param, DeclaredParameter) else {}


_PYTHON = {
    "axes": "an integer, or several",
    "flag": "True or False",
    "color": "a color: a name, a code such as '#00b140', (r, g, b) in 0..1",
    "size": "two integers, or one for both",
    "shape": "two integers, or one for both",
    "matrix": "rows of numbers",
    "table": "a .cube file, or an array",
}
_OF_DEFAULTS: dict[type, str] = {
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a word",
    type(None): "left to the kernel unless given",
}


def _names(given: str) -> tuple[str, ...]:
    """Returns the names of the inputs that a starred name stands for."""
    if not given.startswith("*"):
        return (given,)
    return _SEVERAL.get(given) or tuple(given[1:].replace("_and_", "_").split("_"))


def _example(kernel: Kernel) -> str:
    """Returns an example call, with the required parameters or the first one."""
    inputs = [name for given in kernel.inputs for name in _names(given)]
    given = [item for item in kernel.params if item.default is not None]
    chosen = [item for item in given if item.required] or given[:1]
    params = {item.name: _sample(kernel.name, item) for item in chosen}
    said = f'compute.run_kernel("{kernel.name}", [{", ".join(inputs)}], output'
    return f"{said}, {params!r})" if params else f"{said})"


def _sample(kernel: str, param: Parameter) -> Any:
    if not param.required:
        return param.default
    known = _declared(param)
    if known.get("kind") == "matrix":
        return _MATRICES[kernel]
    if "choices" in known:
        return known["choices"][0 if param.name == "from" else 1]
    if "least" in known:
        return round((3 * known["most"] + known["least"]) / 4, 2)
    by_kind = _SAMPLES.get(known.get("kind", ""), _SAMPLES["number"])
    return _SAMPLES.get(param.name, by_kind)
