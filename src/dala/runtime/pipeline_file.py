"""Pipelines as small documents: what runs on which named buffers, with which parameters.

Nothing in a document is ever executed but kernels, through the kernel language.
"""

from __future__ import annotations

import ast
import builtins
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dala.devices import current_device, using
from dala.errors import (
    ArgumentError,
    DalaError,
    DtypeError,
    KernelSourceError,
    ShapeError,
    UnknownKernelError,
)
from dala.lang.marks import NAMES
from dala.lang.source import Source
from dala.runtime.buffer import Buffer, scratch
from dala.runtime.kernel import KERNELS, Kernel, from_source
from dala.runtime.pipeline import Pipeline, StageEntry
from dala.runtime.recipe import Opaque, Recipe
from dala.runtime.textfile import read_text, write_text
from dala.runtime.wgsl_kernel import WgslKernel, from_wgsl

VERSION = 1
Buffers = Mapping[str, Buffer]
Kernels = Mapping[str, Kernel]
_OURS = Path(__file__).parent.parent / "kernels"
"""Where the kernels are that every dala has."""


# -- out -------------------------------------------------------------------------------------------


def save_pipeline(
    pipeline: Pipeline,
    path: str | os.PathLike[str],
    buffers: Buffers | None = None,
    kernels: Kernels | None = None,
) -> None:
    """Write a pipeline as a JSON document."""
    if Path(path).suffix.lower() == ".toml":
        raise ArgumentError(f"{path}: pipelines are written as JSON; .toml can only be read.")
    document = to_document(pipeline, buffers, kernels)
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def to_document(
    pipeline: Pipeline, buffers: Buffers | None = None, kernels: Kernels | None = None
) -> dict[str, Any]:
    """The pipeline as plain dicts, lists, texts and numbers; `Pipeline.to_dict` says more."""
    writer = _Writer(buffers or {}, kernels or {})
    stages = [writer.stage(i, entry) for i, entry in enumerate(pipeline.stages)]
    for name in writer.names.values():
        if name not in {**writer.buffers, **writer.scratch}:
            raise ArgumentError(f"buffers has {name!r}, which no stage uses.")
    return {
        "version": VERSION,
        "fuse": pipeline.fuse,
        "buffers": writer.buffers,
        "scratch": writer.scratch,
        "kernels": writer.kernels,
        "stages": stages,
    }


class _Writer:
    """The parts of a document, as its stages come to need them."""

    def __init__(self, buffers: Buffers, given: Kernels) -> None:
        self.names = {id(item): name for name, item in buffers.items()}
        if len(self.names) < len(buffers):
            raise ArgumentError("buffers has two names for one buffer: give it one.")
        self.given = given
        self.buffers: dict[str, Any] = {}
        self.scratch: dict[str, Any] = {}
        self.kernels: dict[str, Any] = {}
        self._known: dict[str, Kernel] = {}

    def stage(self, number: int, entry: StageEntry) -> dict[str, Any]:
        made: dict[str, Any] = {"op": entry.op, "name": entry.name}
        if entry.kernel is None or entry.output is None:
            return made
        with _at(f"stage {number} ({entry.name})"):
            if entry.op == "run_kernel":
                made["kernel"] = self._kernel(entry.kernel)
            made["inputs"] = [self._buffer(item) for item in entry.inputs]
            made["output"] = self._buffer(entry.output)
            if entry.params:
                made["params"] = {name: _plain(name, it) for name, it in entry.params.items()}
        return made

    def _buffer(self, buffer: Buffer) -> str:
        name = self.names.get(id(buffer))
        if name is None and not buffer.is_scratch:
            raise ArgumentError(f"{buffer!r} has no name: give buffers={{'name': it}}.")
        if name is None:
            name = self.names[id(buffer)] = self._free_name()
        there = self.scratch if buffer.is_scratch else self.buffers
        there[name] = {"shape": list(buffer.shape), "dtype": buffer.dtype}
        return name

    def _free_name(self) -> str:
        taken, count = set(self.names.values()), len(self.scratch)
        return next(f"scratch{i}" for i in range(count, 2**62) if f"scratch{i}" not in taken)

    def _kernel(self, kernel: Kernel) -> str:
        named = next((name for name, item in self.given.items() if item is kernel), None)
        name = named or kernel.name
        if self._known.setdefault(name, kernel) is not kernel:
            raise ArgumentError(f"two kernels are named {name!r}: give one of them another name.")
        if named is None and name not in self.kernels and not _is_built_in(kernel):
            self.kernels[name] = _described(kernel)
        return name


def _is_built_in(kernel: Kernel) -> bool:
    if KERNELS.get(kernel.name) is not kernel or isinstance(kernel, WgslKernel):
        return False
    return isinstance(kernel, Recipe) or Path(kernel.definition.source.file).parent == _OURS


def _described(kernel: Kernel) -> dict[str, Any]:
    """A kernel of a user's as text; a KernelSourceError where its text is not all of it."""
    if isinstance(kernel, WgslKernel):
        if callable(kernel.groups):
            raise _not_text(kernel, "its groups are a function")
        defaults = {item.name: item.default for item in kernel.params if not item.required}
        made = {"language": "wgsl", "source": kernel.module.text, "defaults": defaults}
        return made if kernel.groups is None else {**made, "groups": list(kernel.groups)}
    if isinstance(kernel, Recipe | Opaque):
        raise _not_text(kernel, "it is planned on the host")
    source = kernel.definition.source
    for name in _free_names(source.tree):
        if not _means_the_same(source, name):
            raise _not_text(kernel, f"it uses `{name}`, which is defined outside of it")
    text = "\n".join(source.lines[source.tree.lineno - 1 : source.tree.end_lineno])
    return {"language": "dala", "border": kernel.definition.border, "source": text}


def _free_names(tree: ast.FunctionDef) -> Iterator[str]:
    """The names that the function takes from outside; its decorators are not part of it."""
    parts = [*tree.body, tree.args]
    nodes = [node for part in parts for node in ast.walk(part)]
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    return (name for name in dict.fromkeys(used) if name not in own)


def _means_the_same(source: Source, name: str) -> bool:
    """Whether the name would mean in a text of its own what it means here."""
    meaning = source.resolve(name)
    if name == "dala":
        return getattr(meaning, "position", None) is NAMES["position"]
    return meaning is NAMES.get(name) or meaning is vars(builtins).get(name)


def _not_text(kernel: Kernel, why: str) -> KernelSourceError:
    return KernelSourceError(
        f"kernel {kernel.name!r} cannot be saved as text: {why}. Give it by name, "
        f"kernels={{{kernel.name!r}: it}}, both when saving and when loading."
    )


def _plain(place: str, value: Any) -> Any:
    """A parameter's value as JSON has it; an infinity or NaN as {"float": "inf"}."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(f"{place}[{i}]", item) for i, item in enumerate(value)]
    raise ArgumentError(
        f"parameter {place} is {type(value).__name__}, which cannot be saved: numbers, texts and "
        f"lists of them can."
    )


# -- in --------------------------------------------------------------------------------------------
