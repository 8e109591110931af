"""ONNX models with something wrong in them, put together without the checks of the onnx package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def node(operator: str, inputs: str, outputs: str, name: str = "", **options: Any) -> Any:
    """A node whose inputs and outputs are given as words; `_` is one that is left out."""
    named = [["" if word == "_" else word for word in words.split()] for words in (inputs, outputs)]
    return helper.make_node(operator, *named, name=name, **options)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: str = "x",
    outputs: str = "y",
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.GraphProto:
    """A graph whose inputs and outputs, given as words, are f32 (1, 4)."""
    declared = [
        [helper.make_tensor_value_info(word, FLOAT, [1, 4]) for word in words.split()]
        for words in (inputs, outputs)
    ]
    return helper.make_graph(list(nodes), "small", *declared, list(initializers))


def model(
    made: onnx.GraphProto,
    *,
    opset: int = 17,
    ir_version: int = 8,
    domains: Sequence[str] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> bytes:
    """The bytes of a model with that graph, whatever it is."""
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    return helper.make_model(
        made, opset_imports=opsets, ir_version=ir_version, functions=list(functions)
    ).SerializeToString()


def of_nodes(*nodes: onnx.NodeProto, **options: Any) -> bytes:
    """The bytes of a model from `x` to `y`."""
    return model(graph(nodes), **options)


def function(name: str, *nodes: onnx.NodeProto) -> onnx.FunctionProto:
    """A function of the domain `own`, from `a` to `b`."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], list(nodes), opsets)


def tensor(name: str, dims: Sequence[int], data: bytes = b"", **fields: Any) -> onnx.TensorProto:
    """A tensor of f32 that claims these dims, whatever is behind them."""
    return TensorProto(name=name, dims=dims, data_type=FLOAT, raw_data=data, **fields)


def in_file(name: str, dims: Sequence[int], **entries: Any) -> onnx.TensorProto:
    """A tensor of f32 that says that it is in another file: location, offset, length."""
    made = TensorProto(name=name, dims=dims, data_type=FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        made.external_data.add(key=key, value=str(value))
    return made


def adding(weights: onnx.TensorProto, **options: Any) -> bytes:
    """A model that adds the tensor `w` to its input."""
    return model(graph([node("Add", "x w", "y", "add")], initializers=[weights]), **options)
