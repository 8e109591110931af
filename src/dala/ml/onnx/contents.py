"""What an ONNX file says, as plain records: its nodes, its constants, what goes in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ModelError
from dala.ml.onnx.external_data import Bundle
from dala.ml.onnx.graph import key_of, sort_by_needs
from dala.ml.onnx.messages import SCHEMA
from dala.ml.onnx.nodes import Body, Node, inlined
from dala.ml.onnx.protobuf import Message, floats_in, integers_in, read_message
from dala.ml.onnx.signature import Axis, Tensor
from dala.ml.onnx.tensors import DTYPES, NUMPY_DTYPES, array_of

__all__ = ("Contents", "Node", "Source", "read_contents", "read_node")

Source = str | os.PathLike[str] | bytes | Bundle
DOMAINS = ("", "ai.onnx")


@record
class Contents:
    """All that is in a file; nodes stand in an order in which they can be computed."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    unreadable: Mapping[str, str]
    """Constants of types that NumPy has not, with the names of the types."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def read_contents(name: str, source: Source) -> Contents:
    """Reads an ONNX file that was checked before; `name` is the model's in errors."""
    data = bytes_of_source(source)
    model = read_message(name, memoryview(data), SCHEMA, "Model")
    beside = source.beside if isinstance(source, Bundle) else {}
    graph = model["graph"]
    versions = {e.get("domain", ""): e.get("version", 0) for e in model.get("opset_import", [])}
    opset = versions.get("", versions.get("ai.onnx", 0))
    tensors = {item.get("name", ""): item for item in graph.get("initializer", [])}
    arrays = {key: array_of(item, beside) for key, item in tensors.items()}
    unreadable = {
        key: DTYPES[tensors[key]["data_type"]][0] for key, item in arrays.items() if item is None
    }
    declared = graph["output"]
    if not all("shape" in item.get("type", {}).get("tensor", {}) for item in declared):
        declared = _inferred(name, data, declared)
    functions = {_key(item): item for item in model.get("functions", [])}
    return Contents(
        tuple(_written_out(_in_order(graph.get("node", [])), opset, functions, beside)),
        {key: item for key, item in arrays.items() if item is not None},
        unreadable,
        tuple(
            _tensor(name, item)
            for item in graph.get("input", [])
            if item.get("name", "") not in tensors
        ),
        tuple(_tensor(name, item) for item in declared),
    )


def bytes_of_source(source: Source) -> bytes:
    """The bytes of a model itself, without what lies beside it."""
    if isinstance(source, Bundle):
        return source.data
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def _node(given: Message, opset: int, beside: Mapping[str, bytes]) -> Node:
    attributes = {
        item.get("name", ""): _attribute(item, opset, beside) for item in given.get("attribute", [])
    }
    bodies = [item for item in attributes.values() if isinstance(item, Body)]
    domain = given.get("domain", "")
    foreign = "" if domain in DOMAINS else f"{domain}."
    return Node(
        foreign + given.get("op_type", ""),
        given.get("name", ""),
        tuple(given.get("input", [])),
        tuple(given.get("output", [])),
        attributes,
        opset,
        tuple(name for body in bodies for name in body.captures),
    )


def _key(function: Message) -> tuple[str, str, str]:
    return key_of({**function, "op_type": function.get("name", "")})


def _written_out(
    nodes: list[Message],
    opset: int,
    functions: Mapping[tuple[str, str, str], Message],
    beside: Mapping[str, bytes],
) -> Iterator[Node]:
    """Yields nodes, and in place of those that call functions of the file what these are made of.

    Functions were checked before: none calls itself, and together they make no more than a limit.
    """
    for item in nodes:
        function = functions.get(key_of(item))
        if function is None:
            yield _node(item, opset, beside)
            continue
        said = {entry.get("name", ""): entry for entry in function.get("attribute_proto", [])}
        said |= {entry.get("name", ""): entry for entry in item.get("attribute", [])}
        versions = {e.get("domain", ""): e.get("version", 0) for e in function["opset_import"]}
        own = versions.get("", versions.get("ai.onnx", opset))
        inner = [_filled_in(part, said) for part in function.get("node", [])]
        body = Body(
            tuple(_written_out(inner, own, functions, beside)),
            {},
            tuple(function.get("input", [])),
            tuple(function.get("output", [])),
        )
        inputs = [*item.get("input", []), *[""] * len(body.inputs)]
        outputs = item.get("output", [])
        given = dict(zip(body.inputs, inputs, strict=False))
        yield from inlined(body, f"{next(filter(None, outputs))} ", given, outputs)


def _filled_in(node: Message, said: Mapping[str, Message]) -> Message:
    """Returns a node of a function with the attributes that the function was called with."""
    attributes = []
    for item in node.get("attribute", []):
        name, inner = item.get("ref_attr_name"), item.get("g")
        if name in said:
            attributes.append({**said[name], "name": item.get("name", "")})
        elif inner is not None:
            nodes = [_filled_in(part, said) for part in inner.get("node", [])]
            attributes.append({**item, "g": {**inner, "node": nodes}})
        elif name is None:
            attributes.append(item)
    return {**node, "attribute": attributes}


def read_node(data: bytes, opset: int) -> Node:
    """Returns a node of ONNX's own, such as one of a function."""
    return _node(read_message("a function", memoryview(data), SCHEMA, "Node"), opset, {})


def _body(given: Message, opset: int, beside: Mapping[str, bytes]) -> Body:
    arrays = {item.get("name", ""): array_of(item, beside) for item in given.get("initializer", [])}
    return Body(
        tuple(_node(item, opset, beside) for item in given.get("node", [])),
        {name: item for name, item in arrays.items() if item is not None},
        tuple(item.get("name", "") for item in given.get("input", [])),
        tuple(item.get("name", "") for item in given.get("output", [])),
    )


def _attribute(given: Message, opset: int, beside: Mapping[str, bytes]) -> Any:
    """An attribute as numbers, text, arrays, or a graph inside of the node."""
    kinds: dict[int, Callable[[], Any]] = {
        1: lambda: given.get("f", 0.0),
        2: lambda: given.get("i", 0),
        3: lambda: _text(given.get("s", b"")),
        4: lambda: array_of(given["t"], beside),
        5: lambda: _body(given["g"], opset, beside),
        6: lambda: floats_in(given.get("floats", [])),
        7: lambda: integers_in(given.get("ints", [])),
        8: lambda: [_text(item) for item in given.get("strings", [])],
    }
    fields = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8}
    # Files of the first versions do not say which kind an attribute is of.
    held = next((kind for field, kind in fields.items() if field in given), 0)
    read = kinds.get(given.get("type", 0) or held)
    return given if read is None else read()


def _text(given: bytes | memoryview) -> str:
    """Returns a text; what is none has marks in it, and is no word that an operator knows."""
    return bytes(given).decode(errors="replace")


def _in_order(nodes: list[Message]) -> list[Message]:
    """Nodes after those whose results they read; the file may have them in any order."""
    makers = {name: i for i, node in enumerate(nodes) for name in node.get("output", []) if name}
    needs = [
        {makers[name] for name in _read_by(node) if name in makers and makers[name] != i}
        for i, node in enumerate(nodes)
    ]
    if all(max(needed, default=-1) < i for i, needed in enumerate(needs)):
        return nodes
    return [nodes[i] for i in sort_by_needs(needs)[0]]


def _read_by(node: Message) -> set[str]:
    """Returns the values that a node reads, graphs inside of it too."""
    found = set(node.get("input", []))
    for item in node.get("attribute", []):
        for inner in item.get("g", {}).get("node", []):
            found |= _read_by(inner)
    return found


def _tensor(model: str, given: Message) -> Tensor:
    """Returns what is declared about an input or output."""
    name, kind = given.get("name", ""), given.get("type", {})
    tensor = kind.get("tensor", {})
    number = tensor.get("elem_type", 0)
    if number not in NUMPY_DTYPES:
        held = DTYPES[number][0] if number in DTYPES else next(iter(kind), "nothing")
        raise ModelError(
            f"{model}: {name!r} is {held}, but only tensors of numbers can be given and taken."
        )
    axes = [_axis(item) for item in tensor["shape"].get("dim", [])] if "shape" in tensor else None
    return Tensor(name, None if axes is None else tuple(axes), NUMPY_DTYPES[number])


def _axis(given: Message) -> Axis:
    size = given.get("dim_value", -1)
    return size if size >= 0 else given.get("dim_param") or None


def _inferred(model: str, data: bytes, declared: list[Message]) -> list[Message]:
    """Returns what follows about outputs whose shapes are left out in the file.

    Without the onnx package they stay open, and are known when the model is laid out.
    """
    try:
        import onnx
    except ImportError:
        return declared
    try:
        known = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(data))
    except Exception as error:  # whatever its libraries raise
        raise ModelError(f"{model}: the shapes of its outputs cannot be inferred.") from error
    graph = read_message(model, memoryview(known.SerializeToString()), SCHEMA, "Model")["graph"]
    found: list[Message] = graph["output"]
    return found
