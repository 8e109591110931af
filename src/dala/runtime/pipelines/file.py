"""Pipelines as small documents: what runs on which named buffers, with which parameters.

Nothing in a document is executed but kernels, through the kernel language or as WGSL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dala.base.suggestions import hint
from dala.base.text_file import read_text, write_text
from dala.devices import current_device, using
from dala.errors import ArgumentError, DtypeError, ShapeError, UnknownKernelError, argument
from dala.ir.types import dtype_of
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import KERNELS, PROVIDERS, Kernel
from dala.runtime.pipelines.document import at, key, mapping, plain, sequence, text, value
from dala.runtime.pipelines.kernel_text import is_built_in, read_kernel, write_kernel
from dala.runtime.pipelines.pipeline import Pipeline
from dala.runtime.pipelines.stages import StageEntry
from dala.runtime.pipelines.versions import READ, VERSION, brought_up

Buffers = Mapping[str, Buffer]
Kernels = Mapping[str, Kernel]
_KEYS = ("version", "fuse", "buffers", "scratch", "kernels", "stages", "swaps")


# -- out -------------------------------------------------------------------------------------------


def write_document(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write a document as JSON; `Pipeline.save` says more."""
    if str(path).lower().endswith(".toml"):
        raise ArgumentError(f"{path}: a pipeline is written as JSON; .toml can only be read.")
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def to_document(pipeline: Pipeline, buffers: Buffers, kernels: Kernels) -> dict[str, Any]:
    """Returns the pipeline as plain dicts, lists, texts and numbers."""
    _check_given(buffers, kernels)
    writer = _Writer(buffers, kernels)
    stages = [writer.stage(number, entry) for number, entry in enumerate(pipeline.stages)]
    _check_used("buffers", buffers, [*writer.buffers, *writer.scratch])
    swaps = [[writer.names[id(item)] for item in pair] for pair in pipeline.swaps]
    return {
        "version": VERSION,
        "fuse": pipeline.fuse,
        "buffers": writer.buffers,
        "scratch": writer.scratch,
        "kernels": writer.kernels,
        "stages": stages,
        **({"swaps": swaps} if swaps else {}),
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
        found: dict[str, Any] = {"op": entry.op, "name": entry.name}
        if entry.kernel is None:
            return found
        with at(f"stage {number} ({entry.name})"):
            if entry.op == "run_kernel":
                found["kernel"] = self._kernel(entry.kernel)
            found["inputs"] = [self._buffer(item) for item in entry.inputs]
            outputs = [self._buffer(item) for item in entry.outputs]
            found["output"] = outputs if len(outputs) > 1 else outputs[0]
            if entry.params:
                found["params"] = {k: plain(v, f"params.{k}") for k, v in entry.params.items()}
        return found

    def _buffer(self, buffer: Buffer) -> str:
        name = self.names.get(id(buffer))
        if name is None:
            if not buffer.is_scratch:
                raise ArgumentError(f"{buffer!r} has no name: give it one in buffers={{…}}.")
            taken = set(self.names.values())
            free = (f"scratch{i}" for i in range(len(taken) + 1))
            name = self.names[id(buffer)] = next(item for item in free if item not in taken)
        there = self.scratch if buffer.is_scratch else self.buffers
        there[name] = {"shape": list(buffer.shape), "dtype": buffer.dtype}
        return name

    def _kernel(self, kernel: Kernel) -> str:
        named = next((name for name, item in self.given.items() if item is kernel), None)
        name = named or kernel.name
        if self._known.setdefault(name, kernel) is not kernel:
            raise ArgumentError(f"two kernels are named {name!r}: give one of them another name.")
        if named is None and name not in self.kernels and not is_built_in(kernel):
            self.kernels[name] = write_kernel(kernel)
        return name


# -- in --------------------------------------------------------------------------------------------


def load_pipeline(
    path: str | os.PathLike[str],
    buffers: Buffers | None = None,
    kernels: Kernels | None = None,
) -> Pipeline:
    """Returns the pipeline of a JSON or TOML file, on buffers given by their names in it.

    Scratch is made anew. A kernel is the one in `kernels`, else the file's own, else the registered
    one of that name. The file's own kernels are registered where their names are still free.
    """
    found = read_text(path)
    kind = "TOML" if Path(path).suffix.lower() == ".toml" else "JSON"
    try:
        if kind == "TOML":
            import tomllib

            document = tomllib.loads(found)
        else:
            document = json.loads(found)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path} is not {kind}: {error}.") from error
    try:
        with at(os.fspath(path)):
            return from_document(document, buffers or {}, kernels or {})
    except RecursionError as error:
        raise ArgumentError(f"{path} is nested too deeply.") from error


def from_document(document: Any, buffers: Buffers, kernels: Kernels) -> Pipeline:
    """Returns the pipeline of plain dicts and lists; errors name the place of a mistake."""
    _check_given(buffers, kernels)
    whole = mapping(document, "$")
    version = whole.get("version")
    if type(version) is not int or version not in READ:
        allowed = " and ".join(map(str, READ))
        raise ArgumentError(f"$.version: {version!r} is not known here: {allowed} are.")
    for name in whole:
        if name not in _KEYS:
            raise ArgumentError(f"{key('$', name)} is not one of {', '.join(_KEYS)}.")
    fuse = whole.get("fuse", True)
    if not isinstance(fuse, bool):
        raise ArgumentError(f"$.fuse: true or false is needed, not {fuse!r}.")
    there = _buffers(whole, buffers)
    own = {}
    for name, given in mapping(whole.get("kernels", {}), "$.kernels").items():
        with at(key("$.kernels", name)):
            own[name] = read_kernel(name, given)
    known = {**KERNELS, **own, **kernels}
    pipeline = Pipeline(fuse=fuse)
    stages = sequence(whole.get("stages"), "$.stages")
    for i, stage in enumerate(stages):
        place = f"$.stages[{i}]"
        current = brought_up(mapping(stage, place), version, {*own, *kernels})
        read = _stage(current, place, there, known)
        with at(place):
            pipeline.add(read)
    _swap(pipeline, whole.get("swaps", []), there)
    _check_used("kernels", kernels, [str(stage.get("kernel")) for stage in stages])
    for name, kernel in own.items():
        KERNELS.setdefault(name, kernel)
    return pipeline


def _swap(pipeline: Pipeline, given: Any, buffers: Buffers) -> None:
    for i, pair in enumerate(sequence(given, "$.swaps")):
        place = f"$.swaps[{i}]"
        names = [str(name) for name in sequence(pair, place)]
        if len(names) != 2 or not set(names) <= set(buffers):
            raise ArgumentError(f"{place}: two names of buffers are needed, not {pair!r}.")
        with at(place):
            pipeline.swap(buffers[names[0]], buffers[names[1]])


def _buffers(whole: Mapping[str, Any], given: Buffers) -> dict[str, Buffer]:
    """Returns every buffer by name: those given, as the document wants them, and its scratch."""
    wanted = mapping(whole.get("buffers", {}), "$.buffers")
    _check_used("buffers", given, wanted)
    found: dict[str, Buffer] = {}
    for name, kind in wanted.items():
        place = key("$.buffers", name)
        shape, dtype = _kind(kind, place)
        if name not in given:
            raise ArgumentError(f"{place}: no such buffer was given: buffers={{{name!r}: it}}.")
        if list(given[name].shape) != shape:
            raise ShapeError(f"{place}.shape: {given[name]!r} was given, but it has to be {shape}.")
        if given[name].dtype != dtype:
            raise DtypeError(f"{place}.dtype: {given[name]!r} was given, but it has to be {dtype}.")
        found[name] = given[name]
    device = next((item.memory.device for item in found.values()), current_device())
    for name, kind in mapping(whole.get("scratch", {}), "$.scratch").items():
        place = key("$.scratch", name)
        shape, dtype = _kind(kind, place)
        if name in found:
            raise ArgumentError(f"{place}: $.buffers has one of that name too.")
        with at(place), using(device):
            found[name] = scratch(shape, dtype_of(dtype))
    return found


def _stage(
    stage: Mapping[str, Any], place: str, buffers: Buffers, kernels: Kernels
) -> dict[str, Any]:
    """Returns a stage as `Pipeline.add` takes it, with names resolved."""
    read = dict(stage)
    if "inputs" in read:
        read["inputs"] = _all_named(read["inputs"], f"{place}.inputs", buffers)
    if isinstance(read.get("output"), list):
        read["output"] = _all_named(read["output"], f"{place}.output", buffers)
    elif "output" in read:
        read["output"] = _named(read["output"], f"{place}.output", buffers)
    if "kernel" in read:
        name = text(read["kernel"], f"{place}.kernel")
        if name not in kernels and name not in PROVIDERS:
            raise UnknownKernelError(
                f"{place}.kernel: no kernel is named {name!r}.{hint(name, kernels)} One of your "
                f"own is given by {argument('kernels', f'{{{name!r}: it}}', 'FILE')}."
            )
        read["kernel"] = kernels[name] if name in kernels else Kernel.lookup(name)
    if "name" in read:
        text(read["name"], f"{place}.name")
    if "params" in read:
        params = mapping(read["params"], f"{place}.params")
        read["params"] = {k: value(v, key(f"{place}.params", k)) for k, v in params.items()}
    return read


def _all_named(given: Any, place: str, buffers: Buffers) -> list[Buffer]:
    names = sequence(given, place)
    return [_named(name, f"{place}[{i}]", buffers) for i, name in enumerate(names)]


def _named(name: Any, place: str, buffers: Buffers) -> Buffer:
    if text(name, place) not in buffers:
        raise ArgumentError(
            f"{place}: no buffer or scratch is named {name!r}.{hint(name, buffers)}"
        )
    return buffers[name]


def _kind(given: Any, place: str) -> tuple[list[int], str]:
    """Returns the shape and the dtype of a buffer."""
    kind = mapping(given, place)
    if sorted(kind) != ["dtype", "shape"]:
        raise ArgumentError(f"{place}: shape and dtype are needed, not {', '.join(kind) or '{}'}.")
    dtype = text(kind["dtype"], f"{place}.dtype")
    with at(f"{place}.dtype"):
        return sequence(kind["shape"], f"{place}.shape"), dtype_of(dtype).name


def _check_given(buffers: Any, kernels: Any) -> None:
    for what, given, kind in (("buffers", buffers, Buffer), ("kernels", kernels, Kernel)):
        pairs = given.items() if isinstance(given, Mapping) else [(None, None)]
        if not all(isinstance(name, str) and isinstance(item, kind) for name, item in pairs):
            raise ArgumentError(f"{what} is a mapping of names to {what}, not {given!r}.")


def _check_used(what: str, given: Mapping[str, Any], used: Iterable[str]) -> None:
    for name in given:
        if name not in used:
            raise ArgumentError(f"{what} has {name!r}, which no stage uses.{hint(name, used)}")
