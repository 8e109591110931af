"""The syntax of filters on the command line: `blur:radius=3,sigma=1.5`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dala.base.suggestions import hint
from dala.cli import parameter_values
from dala.errors import ArgumentError, DalaError
from dala.ir.types import BOOL
from dala.kernels.base.parameters import held, hold
from dala.kernels.image.paint import names
from dala.media.filters.catalog import FILTERS, filters
from dala.media.filters.model_filters import filter_params
from dala.media.video.filtering.video_filters import TEMPORAL, TIMED
from dala.ml.catalog.entries import MODELS
from dala.runtime.kernels.kernel import KERNELS, Kernel

Filter = tuple[str, dict[str, Any]]
_NEXT_PARAM = re.compile(r"(?<!\\),(?=\s*[A-Za-z_]\w*\s*=)")
_BY_NAME = {"text": "text", "source": "image", "font": "file", "position": "place"}
_BY_NAME |= dict.fromkeys(("color", "outline_color", "box"), "color")
_BY_TYPE = {"float": "number", "int": "integer", "bool": "flag", "str": "text"}
"""The kinds of parameters of filters that are not in the catalog."""
_FILES = ("image", "table", "file")


def read_filters(
    texts: Sequence[str], own: Sequence[str] = (), largest_pixels: int | None = None
) -> list[Filter]:
    """Returns the filters for texts, in order; `own` are the names of the user's kernels."""
    return [read_filter(text, own, largest_pixels) for text in texts]


def read_filter(text: str, own: Sequence[str] = (), largest_pixels: int | None = None) -> Filter:
    """Returns a filter and its parameters; raises ArgumentError for syntax and value errors."""
    name, _, rest = text.partition(":")
    name = name.strip()
    takes = params_of(name, own)
    given: dict[str, Any] = {}
    for key, value in _pairs(name, rest, takes):
        if key in given:
            raise ArgumentError(f"{name}: {key} is given twice.")
        given[key] = _value(name, key, value, takes[key], largest_pixels)
    return checked(name, given, takes)


def given_filter(
    name: str,
    params: Mapping[str, Any],
    own: Sequence[str],
    base: Path,
    largest_pixels: int | None = None,
) -> Filter:
    """Returns a filter of a document; its paths are relative to the document."""
    takes = params_of(name, own)
    made = {}
    for key, value in params.items():
        param = _param(name, key, takes)
        if isinstance(value, str):
            is_file = param["kind"] in _FILES or (param["kind"] == "model" and value not in MODELS)
            beside = is_file and not parameter_values.is_nothing(value, param)
            typed = str(base / value) if beside else value
            made[key] = _value(name, key, typed, param, largest_pixels)
        else:
            made[key] = value
    return checked(name, made, takes)


def checked(name: str, given: dict[str, Any], takes: Mapping[str, Any]) -> Filter:
    """Returns the filter; raises ArgumentError if a parameter is missing."""
    missing = [key for key, param in takes.items() if "default" not in param and key not in given]
    if missing:
        what = " and ".join(f"{key} ({parameter_values.allowed(takes[key])})" for key in missing)
        raise ArgumentError(f"{name} needs {what}: -f {name}:{missing[0]}=…")
    return name, hold(name, held(filter_params(name)), given) if name in FILTERS else given


def knows_time(filters: Sequence[Filter]) -> bool:
    """Returns whether a filter depends on time, and so is not for pictures."""
    return any(
        name in TEMPORAL or name in TIMED or params.get("every", 1) != 1 for name, params in filters
    )


def known_filters(own: Sequence[str] = ()) -> list[str]:
    """Returns every name that `-f` takes."""
    return [*FILTERS, *sorted({*TEMPORAL, *TIMED}.difference(FILTERS)), *own]


def params_of(name: str, own: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Returns what a filter takes besides the image: other images, then parameters."""
    if name in own:
        return _of_kernel(KERNELS[name])
    if name in TEMPORAL or name in TIMED:
        described = filters().get(name)
        if described:
            return _typed(described["params"])
        return _of_call(TEMPORAL.get(name) or TIMED[name])
    if name in FILTERS:
        found = filters()[name]
        images: dict[str, dict[str, Any]] = {
            other: {"kind": "image", **({"default": None} if other in found["optional"] else {})}
            for other in found["inputs"][1:]
        }
        return {**images, **_typed(found["params"])}
    near = hint(name, known_filters(own)) or " `dala filters` lists them."
    raise ArgumentError(f"no filter is named {name!r}.{near}")


def _typed(params: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the parameters that can be typed; `shape` is for Python only."""
    return {key: param for key, param in params.items() if param["kind"] != "shape"}


def _of_kernel(kernel: Kernel) -> dict[str, dict[str, Any]]:
    takes: dict[str, dict[str, Any]] = {other: {"kind": "image"} for other in kernel.inputs[1:]}
    for item in kernel.params:
        kind = "any"
        if item.type is not None:
            kind = "flag" if item.type == BOOL else "number" if item.type.is_float else "integer"
        takes[item.name] = {"kind": kind} | ({} if item.required else {"default": item.default})
    return takes


def _of_call(call: Any) -> dict[str, dict[str, Any]]:
    takes = {}
    for item in inspect.signature(call).parameters.values():
        said = str(getattr(item.annotation, "__name__", item.annotation)).removesuffix(" | None")
        kind = _BY_NAME.get(item.name) or _BY_TYPE.get(said, "any")
        default = {} if item.default is item.empty else {"default": item.default}
        takes[item.name] = {"kind": kind, **default}
    return takes


def _pairs(name: str, rest: str, takes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields names and texts of parameters; the first may omit its name."""
    if not rest.strip():
        return
    for place, part in enumerate(_NEXT_PARAM.split(rest)):
        key, equals, value = part.partition("=")
        if not equals or not re.fullmatch(r"\s*[A-Za-z_]\w*\s*", key):
            if place or not takes:
                raise ArgumentError(_not_a_pair(name, part, takes))
            key, value = next(iter(takes)), part
        _param(name, key.strip(), takes)
        yield key.strip(), value.strip().replace("\\,", ",")


def _not_a_pair(name: str, part: str, takes: Mapping[str, Any]) -> str:
    if not takes:
        return f"{name} takes no parameters, but {part!r} was given."
    return f"{name}: {part!r} is not name=value; it takes {', '.join(takes)}."


def _param(name: str, key: str, takes: Mapping[str, Any]) -> dict[str, Any]:
    if key in takes:
        found: dict[str, Any] = takes[key]
        return found
    if not takes:
        raise ArgumentError(f"{name} takes no parameters, but {key!r} was given.")
    raise ArgumentError(
        f"{name} has no parameter {key!r}; it takes {', '.join(takes)}.{hint(key, takes)}"
    )


def _value(
    name: str, key: str, text: str, param: dict[str, Any], largest_pixels: int | None
) -> Any:
    try:
        value = parameter_values.read(param["kind"], text, param)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {key}: {error}") from None
    if param["kind"] != "image" or value is None:
        return value
    from dala.media.pictures.files import load

    try:
        return load(value, largest_pixels=largest_pixels)
    except DalaError as error:
        raise type(error)(f"{name}: {key}: {error}") from error


def completions(incomplete: str, own: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yields completions for `-f` with help: names, then parameters, then choices."""
    name, colon, rest = incomplete.partition(":")
    if not colon:
        described = filters()
        for known in known_filters(own):
            if known.startswith(name):
                yield known, described[known]["doc"] if known in described else "a filter"
        return
    try:
        takes = params_of(name, own)
    except ArgumentError:
        return
    done, comma, last = rest.rpartition(",")
    head = f"{name}:{done}{comma}"
    key, equals, value = last.partition("=")
    if equals:
        param = takes.get(key, {})
        words = {"flag": ("yes", "no"), "model": tuple(MODELS), "color": tuple(names())}
        offered = words.get(param.get("kind", ""), ())
        for choice in param.get("choices", offered):
            if choice.startswith(value):
                yield f"{head}{key}={choice}", ""
        return
    for known, param in takes.items():
        if known.startswith(key):
            yield f"{head}{known}=", parameter_values.allowed(param)
