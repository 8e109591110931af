"""The functions that ONNX defines operators by, as nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.ml.onnx.contents import read_node
from dala.ml.onnx.nodes import Body, Node, inlined


@record
class Kind:
    """What is known of an input when a function is written out: ONNX's element type, its shape."""

    number: int
    shape: tuple[int, ...]


def has_function(node: Node) -> bool:
    """Returns whether ONNX defines the operator of a node by others."""
    schema = _schema(node)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def function_nodes(node: Node, kinds: Sequence[Kind | None]) -> Iterator[Node]:
    """Yields the nodes that ONNX defines an operator by, for inputs of these kinds."""
    import onnx

    schema = _schema(node)
    proto = _proto(node)
    if schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, node.opset)
        types = [b"" if kind is None else _type(kind) for kind in kinds]
        text = schema.get_context_dependent_function_with_opset_version(
            version, proto.SerializeToString(), types
        )
    else:
        text = schema.get_function_with_opset_version(
            _newest(schema.function_opset_versions, node.opset)
        )
    function = onnx.FunctionProto.FromString(text)
    opset = next((e.version for e in function.opset_import if e.domain == ""), node.opset)
    said = {item.name: item for item in proto.attribute}
    for name, default in schema.attributes.items():
        if name not in said and default.default_value.name:
            said[name] = default.default_value
    for item in function.node:
        _fill_in(item, said)
    nodes = tuple(read_node(item.SerializeToString(), opset) for item in function.node)
    body = Body(nodes, {}, tuple(function.input), tuple(function.output))
    inputs = [*node.inputs, *[""] * len(function.input)]
    given = dict(zip(function.input, inputs, strict=False))
    prefix = f"{next(filter(None, node.outputs))} {node.op} "
    yield from inlined(body, prefix, given, node.outputs)


def _schema(node: Node) -> Any:
    try:
        from onnx import defs
    except ImportError:
        return None
    if not node.opset or not defs.has(node.op, node.opset, ""):
        return None
    return defs.get_schema(node.op, node.opset, "")


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((item for item in versions if item <= opset), default=max(versions))


def _proto(node: Node) -> Any:
    from onnx import helper, numpy_helper

    attributes = {
        key: numpy_helper.from_array(item) if isinstance(item, np.ndarray) else item
        for key, item in node.attributes.items()
        if not isinstance(item, Body)
    }
    return helper.make_node(node.op, node.inputs, node.outputs, **attributes)


def _type(kind: Kind) -> bytes:
    from onnx import helper

    return bytes(helper.make_tensor_type_proto(kind.number, kind.shape).SerializeToString())


def _fill_in(node: Any, said: Mapping[str, Any]) -> None:
    """Put the attributes that a function was called with into a node of it, bodies included."""
    kept = []
    for item in node.attribute:
        if item.ref_attr_name:
            if item.ref_attr_name in said:
                found = type(item).FromString(said[item.ref_attr_name].SerializeToString())
                found.name = item.name
                kept.append(found)
            continue
        for inner in item.g.node:
            _fill_in(inner, said)
        kept.append(item)
    held = [type(item).FromString(item.SerializeToString()) for item in kept]
    del node.attribute[:]
    node.attribute.extend(held)
