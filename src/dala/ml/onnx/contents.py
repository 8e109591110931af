"""What an ONNX file says, as plain records: its nodes, its constants, what goes in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ModelError
from dala.ml.onnx.external_data import Bundle
from dala.ml.onnx.graph import sort_by_needs
from dala.ml.onnx.messages import SCHEMA
from dala.ml.onnx.protobuf import Message, floats_in, integers_in, read_message
from dala.ml.onnx.signature import Axis, Tensor
from dala.ml.onnx.tensors import DTYPES, NUMPY_DTYPES, array_of

Source = str | os.PathLike[str] | bytes | Bundle
DOMAINS = ("", "ai.onnx")


@record
class Node:
    """One operation: names of values in and out, and its attributes as plain values."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int
    captures: tuple[str, ...] = ()
    """Values that graphs inside of it take from around it."""

    def __str__(self) -> str:
        return f"{self.op} ({self.name or self.outputs[0]})"

    @property
    def uses(self) -> tuple[str, ...]:
        """The values that it takes: its inputs, and what graphs inside of it take from outside."""
        return (*self.inputs, *self.captures)

    def has(self, index: int) -> bool:
        """Returns whether the input of that number is given; optional ones may be left out."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an attribute, or what stands for it where it is left out."""
        return self.attributes.get(name, default)


@record
class Body:
    """A graph inside of a node; what it takes from around it has no place among its inputs."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def captures(self) -> tuple[str, ...]:
        """The values that it takes from around it."""
        own = {*self.constants, *self.inputs, *(name for it in self.nodes for name in it.outputs)}
        taken = [*(name for it in self.nodes for name in it.uses), *self.outputs]
        return tuple(dict.fromkeys(name for name in taken if name and name not in own))


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
    return Contents(
        tuple(_node(item, opset, beside) for item in _in_order(graph.get("node", []))),
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
        {makers[name] for name in node.get("input", []) if name in makers and makers[name] != i}
        for i, node in enumerate(nodes)
    ]
    if all(max(needed, default=-1) < i for i, needed in enumerate(needs)):
        return nodes
    return [nodes[i] for i in sort_by_needs(needs)[0]]


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
