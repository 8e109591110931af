"""ONNX files, checked and described before ONNX Runtime sees them.

The header of a file is not believed: every size in it is compared with the bytes that are there, in
memory that the size of the file bounds.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from dala.base.binary_file import read_at_most
from dala.base.file_path import checked_path
from dala.base.record import record, value
from dala.errors import FileError, LimitError, ModelError
from dala.ml.onnx.control_flow import check_control_flow
from dala.ml.onnx.external_data import LARGEST_MODEL_BYTES, Bundle, bundled
from dala.ml.onnx.external_files import Outside
from dala.ml.onnx.graph import (
    OPSETS,
    Library,
    check_functions,
    check_graph,
    graphs_of,
    key_of,
    label_of,
    walk_nodes,
)
from dala.ml.onnx.messages import SCHEMA
from dala.ml.onnx.protobuf import Message, read_message
from dala.ml.onnx.tensors import DTYPES, LARGEST_VALUE_BYTES, check_tensor, element_count

NEWEST_IR_VERSION = 14

_OTHERS = {
    "a pickle, as PyTorch's .pt and .pth files and scikit-learn's are": re.compile(
        rb"\x80[\x02-\x05]|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n|[(\]}][lpdtq(]?[piq0-9]"
    ),
    "an archive of PyTorch (.pt, .pth)": re.compile(
        rb"PK\x03\x04.{26,300}(/data\.pkl|/constants\.pkl|/\.format_version)", re.DOTALL
    ),
    "a zip archive": re.compile(rb"PK\x03\x04|PK\x05\x06"),
    "a model of ONNX Runtime's own format (.ort)": re.compile(rb"..\0\0ORTM", re.DOTALL),
    "a TensorFlow Lite model (.tflite)": re.compile(rb"..\0\0TFL3", re.DOTALL),
    "safetensors": re.compile(rb".{4}\0{4}\{\s*\"", re.DOTALL),
    "an HDF5 file, as Keras writes": re.compile(rb"\x89HDF"),
    "a gzip archive": re.compile(rb"\x1f\x8b"),
    "a NumPy array": re.compile(rb"\x93NUMPY"),
    "GGUF": re.compile(rb"GGUF"),
    "a pointer of Git LFS, which stands for the file": re.compile(rb"version https://git-lfs"),
    "HTML or XML": re.compile(rb"\s*<[!?A-Za-z]"),
    "JSON, as a TensorFlow.js model.json is": re.compile(rb"\s*\{\s*\""),
}
"""How others begin that are met by mistake, or in the hope that they are run."""
_HEAD_BYTES = 400


@value
class Declared:
    """An input or output: its name, its shape with None for each free axis, its element type."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str


@record
class Described:
    """What an ONNX file says of itself; `operators` counts its nodes by what they do."""

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    opset: int
    ir_version: int
    producer: str
    operators: dict[str, int]
    outside_bytes: int
    """Of tensors in files beside it."""


def checked_model(
    source: str | os.PathLike[str] | bytes, links_within: Path | None = None
) -> bytes | Bundle:
    """Returns the bytes of an ONNX file that `check_onnx` has found in order, for whoever runs it.

    Where some of its tensors lie in other files, theirs are with it: no file is opened again. Links
    to these are followed only into the folder that is named for it.
    """
    if isinstance(source, bytes):
        check_onnx(source)
        return source
    path = checked_path("a model file", source)
    data = _read(path)
    with Outside(path.parent, links_within) as outside:
        found = _check(str(path), memoryview(data), outside)
        return bundled(str(path), data, outside) if found.outside_bytes else data


def check_onnx(source: str | os.PathLike[str] | bytes) -> Described:
    """Returns what is in an ONNX file, once all has been checked that can be without running it.

    `source` is the path of the file, or its bytes. Refused as a ModelError are files that are no
    ONNX, cut or damaged ones, tensors that claim other sizes than they have, or that lie in files
    outside of the model's folder, operators and versions that ONNX Runtime does not know, and
    graphs that could not run; as a LimitError what is too large to be held.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        what, data = "the model given as bytes", memoryview(source).cast("B")
        _refuse_others(what, bytes(data[:_HEAD_BYTES]), len(data))
        return _check(what, data, None)
    path = checked_path("a model file", source)
    with Outside(path.parent) as outside:
        return _check(str(path), memoryview(_read(path)), outside)


def _check(what: str, data: memoryview, outside: Outside | None) -> Described:
    model = read_message(what, data, SCHEMA, "Model")
    graph = model.get("graph")
    if graph is None:
        raise ModelError(f"{what} has no graph in it: it is no ONNX model, or it is cut.")
    versions = _check_versions(what, model)
    functions = {_function_key(function): function for function in model.get("functions", [])}
    library = Library(versions, functions)
    outside_bytes = _check_tensors(what, graph, functions, outside)
    nodes = list(walk_nodes(graph.get("node", [])))
    check_functions(what, nodes, library)
    check_graph(what, graph, library)
    check_control_flow(what, graph)
    for key, function in functions.items():
        _check_function(f"{what}: the function {key[1]!r}", function, functions)
    if not graph.get("output"):
        raise ModelError(f"{what} gives out nothing: its graph has no outputs.")
    constant = {tensor.get("name") for tensor in graph.get("initializer", [])}
    inputs = [given for given in graph.get("input", []) if given.get("name") not in constant]
    producer = f"{model.get('producer_name', '')} {model.get('producer_version', '')}".strip()
    return Described(
        tuple(_declared(what, "input", given) for given in inputs),
        tuple(_declared(what, "output", given) for given in graph["output"]),
        versions.get("", 0),
        model.get("ir_version", 0),
        producer,
        dict(Counter(_operator(node) for node in nodes).most_common()),
        outside_bytes,
    )


def _read(path: Path) -> bytes:
    """Returns all of the file, if it begins as no other does."""
    try:
        # A pipe would be waited for.
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileError(f"{path} cannot be read as a model: it is no plain file.")
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
            _refuse_others(str(path), head, size_bytes)
            file.seek(0)
            return read_at_most(str(path), file, LARGEST_MODEL_BYTES, size_bytes)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error


def _refuse_others(what: str, head: bytes, size_bytes: int) -> None:
    if not size_bytes:
        raise ModelError(f"{what} is empty: there is no model in it.")
    other = next((name for name, start in _OTHERS.items() if start.match(head)), None)
    if other is not None:
        raise ModelError(
            f"{what} is no ONNX file: it seems to be {other}. Whatever its name ends in, only ONNX "
            f"is loaded, and nothing is unpickled: export the model to ONNX where it was made."
        )
    if size_bytes > LARGEST_MODEL_BYTES:
        raise LimitError(
            f"{what} has {size_bytes:,} bytes, of at most {LARGEST_MODEL_BYTES:,}: a larger model "
            f"has its tensors in a file beside it (external data)."
        )


def _check_versions(what: str, model: Message) -> dict[str, int]:
    if model.get("training_info"):
        raise ModelError(f"{what} has training steps in it: export the model for inference.")
    ir_version = model.get("ir_version", 0)
    if not 1 <= ir_version <= NEWEST_IR_VERSION:
        raise ModelError(
            f"{what} is of version {ir_version} of the ONNX format; known are 1 to "
            f"{NEWEST_IR_VERSION}: save it as one of these (model.ir_version)."
        )
    versions = _versions(what, model)
    if not versions:
        raise ModelError(f"{what} names no opset: it is no ONNX model, or it is cut.")
    return versions


def _versions(what: str, imports: Message) -> dict[str, int]:
    """Returns the version of each set of operators that a model or a function imports."""
    found = [(entry.get("domain", ""), entry) for entry in imports.get("opset_import", [])]
    versions = {"" if domain == "ai.onnx" else domain: e.get("version", 0) for domain, e in found}
    for domain, newest in OPSETS.items():
        version = versions.get(domain, newest)
        if not 1 <= version <= newest:
            raise ModelError(
                f"{what} is of opset {version} of {domain or 'ai.onnx'}; known are 1 to "
                f"{newest}. Export or convert the model to one of these."
            )
    return versions


def _function_key(function: Message) -> tuple[str, str, str]:
    return key_of({**function, "op_type": function.get("name", "")})


def _check_function(where: str, function: Message, functions: dict[Any, Message]) -> None:
    body = {
        "node": function.get("node", []),
        "input": [{"name": name} for name in function.get("input", [])],
        "output": [{"name": name} for name in function.get("output", [])],
    }
    check_graph(where, body, Library(_versions(where, function), functions))
    check_control_flow(where, body)


def _check_tensors(
    what: str, graph: Message, functions: dict[Any, Message], files: Outside | None
) -> int:
    """The bytes of tensors in other files, once all were compared with what is behind them."""
    bodies = [graph, *functions.values()]
    outside = 0
    while bodies:
        body = bodies.pop()
        if body.get("sparse_initializer"):
            raise ModelError(f"{what} has sparse tensors, which are not read: store them dense.")
        for tensor in body.get("initializer", []):
            where = f"{what}: the initializer {tensor.get('name', '')!r}"
            outside += check_tensor(where, tensor, files)
        holders = [*body.get("node", []), {"attribute": body.get("attribute_proto", [])}]
        for node in holders:
            for attribute in node.get("attribute", []):
                where = f"{what}: {attribute.get('name', '')!r} of {label_of(node)}"
                if "sparse_tensor" in attribute or "sparse_tensors" in attribute:
                    raise ModelError(f"{where} is a sparse tensor: store it dense.")
                tensors = [attribute["t"]] if "t" in attribute else []
                for tensor in tensors + attribute.get("tensors", []):
                    outside += check_tensor(where, tensor, files)
            bodies += [inner for _, inner in graphs_of(node)]
    if outside > LARGEST_VALUE_BYTES:
        raise LimitError(
            f"{what} has tensors of {outside:,} bytes in other files, of at most "
            f"{LARGEST_VALUE_BYTES:,}."
        )
    return outside


def _declared(what: str, side: str, given: Message) -> Declared:
    name = given.get("name", "")
    kind = given.get("type", {})
    if "tensor" not in kind:
        return Declared(name, None, next((key.upper() for key in kind), "UNDEFINED"))
    where = f"{what}: the {side} {name!r}"
    number = kind["tensor"].get("elem_type", 0)
    if number not in DTYPES:
        raise ModelError(f"{where} has the element type {number}, which is not known.")
    dtype, bits = DTYPES[number]
    if "shape" not in kind["tensor"]:
        return Declared(name, None, dtype)
    # Some exporters write -1 for an axis that is free.
    sizes = [dim.get("dim_value", -1) for dim in kind["tensor"]["shape"].get("dim", [])]
    fixed = [size for size in sizes if size != -1]
    if element_count(where, fixed) * bits > 8 * LARGEST_VALUE_BYTES:
        raise LimitError(
            f"{where} has the shape {tuple(sizes)} of {dtype}, of at most {LARGEST_VALUE_BYTES:,} "
            f"bytes."
        )
    return Declared(name, tuple(None if size == -1 else size for size in sizes), dtype)


def _operator(node: Message) -> str:
    domain, name, _ = key_of(node)
    return f"{domain}.{name}" if domain else name
