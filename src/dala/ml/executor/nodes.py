"""What an ONNX file says, as plain records: its nodes, its constants, what goes in and out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.base.record import record
from dala.ml.onnx.external_data import Bundle

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

    def __str__(self) -> str:
        return f"{self.op} ({self.name or self.outputs[0]})"

    def has(self, index: int) -> bool:
        """Whether the input of that number is given; optional ones may be left out."""
        return index < len(self.inputs) and bool(self.inputs[index])

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, or what stands for it where it is left out."""
        return self.attributes.get(name, default)


@record
class Declared:
    """An input or output: its name, its shape with names for free axes, ONNX's type of elements."""

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype[Any]


@record
class Contents:
    """All that is in a file; nodes stand in an order in which they can be computed."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]
    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]


def read_contents(source: str | os.PathLike[str] | bytes | Bundle) -> Contents:
    """What is in an ONNX file, which was checked before."""
    import onnx

    if isinstance(source, Bundle):
        model = onnx.load_model_from_string(source.data)
        _put_in(model.graph.initializer, source.beside)
    elif isinstance(source, bytes):
        model = onnx.load_model_from_string(source)
    else:
        model = onnx.load_model(source, load_external_data=False)
    graph = model.graph
    versions = {entry.domain: entry.version for entry in model.opset_import}
    opset = versions.get("", versions.get("ai.onnx", 0))
    constants = {item.name: onnx.numpy_helper.to_array(item) for item in graph.initializer}
    nodes = tuple(_node(item, opset) for item in graph.node)
    inputs = tuple(_declared(item) for item in graph.input if item.name not in constants)
    return Contents(nodes, constants, inputs, tuple(_declared(item) for item in graph.output))


def _put_in(tensors: Any, beside: Mapping[str, bytes]) -> None:
    """Give tensors that lie beside a model their bytes."""
    for tensor in tensors:
        for entry in tensor.external_data:
            if entry.key == "location":
                tensor.raw_data = beside[entry.value]
                tensor.ClearField("data_location")


def _node(given: Any, opset: int) -> Node:
    attributes = {item.name: _plain(item) for item in given.attribute}
    foreign = "" if given.domain in DOMAINS else f"{given.domain}."
    outputs = tuple(given.output)
    return Node(foreign + given.op_type, given.name, tuple(given.input), outputs, attributes, opset)


def _plain(attribute: Any) -> Any:
    """An attribute as numbers, text, or arrays; graphs inside of nodes stay what they are."""
    import onnx

    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value


def _declared(given: Any) -> Declared:
    import onnx

    kind = given.type.tensor_type
    sizes = [item.dim_value or item.dim_param or "?" for item in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return Declared(given.name, tuple(sizes), np.dtype(dtype))
