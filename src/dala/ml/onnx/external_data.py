"""Tensors in files beside a model, read once and handed on with it: no file is opened again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dala.base.record import record
from dala.errors import LimitError, ModelError
from dala.ml.onnx.external_files import Outside
from dala.ml.onnx.tensors import DATA_FIELDS, EXTERNAL, bytes_of

LARGEST_MODEL_BYTES = (1 << 31) - 1
"""How large a model may be in one piece: what Protocol Buffers allow."""


@record
class Bundle:
    """The bytes of a model, and of tensors that lie beside it, by the names it has for them."""

    data: bytes
    beside: Mapping[str, bytes]


def bundled(what: str, data: bytes, outside: Outside) -> Bundle:
    """Returns a checked model with its tensors from other files, which nobody has to open again.

    Initializers of the graph itself are given beside it, all others are put into it: ONNX Runtime
    would look for those of branches and functions in files, whatever it is given.
    """
    try:
        import onnx
    except ImportError as error:
        raise ModelError(
            f"{what} has tensors in other files, which are put together by onnx, which is not "
            "installed: pip install 'dala-gpu[ml]', or store all tensors in the model's own file."
        ) from error
    model = onnx.load_model_from_string(data)
    beside: dict[str, bytes] = {}
    for tensor in model.graph.initializer:
        content = _taken(what, tensor, outside)
        if content:
            name = f"tensor {len(beside)}"
            beside[name] = content
            tensor.data_location = EXTERNAL
            for key, text in (("location", name), ("offset", "0"), ("length", str(len(content)))):
                tensor.external_data.add(key=key, value=text)
    put_in = 0
    for tensor in _inner_tensors(model):
        content = _taken(what, tensor, outside)
        if content is not None:
            put_in += len(content)
            tensor.raw_data = content
    if len(data) + put_in > LARGEST_MODEL_BYTES:
        raise LimitError(
            f"{what} has {put_in:,} bytes in other files for tensors of its branches and nodes, of "
            f"at most {LARGEST_MODEL_BYTES:,} with all of its own: make them initializers."
        )
    return Bundle(model.SerializeToString(), beside)


def _taken(what: str, tensor: Any, outside: Outside) -> bytes | None:
    """Returns the bytes of a tensor that is in another file, which it does not name any more."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    is_outside = tensor.data_location == EXTERNAL
    del tensor.external_data[:]
    tensor.ClearField("data_location")
    if not is_outside:
        return None
    for field in DATA_FIELDS:
        tensor.ClearField(field)
    where = f"{what}: the tensor {tensor.name!r}"
    size_bytes = bytes_of(where, tensor.data_type, list(tensor.dims))
    return outside.read(where, entries["location"], int(entries.get("offset", "0")), size_bytes)


def _inner_tensors(model: Any) -> Iterator[Any]:
    """Yields the tensors of a model's attributes, branches and functions."""
    waiting = [*model.graph.node]
    for function in model.functions:
        waiting += function.node
        for attribute in function.attribute_proto:
            yield from _held(attribute, waiting)
    while waiting:
        for attribute in waiting.pop().attribute:
            yield from _held(attribute, waiting)


def _held(attribute: Any, waiting: list[Any]) -> Iterator[Any]:
    """Yields the tensors of an attribute; nodes of graphs in it wait for their turn."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    graphs = [attribute.g] if attribute.HasField("g") else []
    for graph in [*graphs, *attribute.graphs]:
        yield from graph.initializer
        waiting += graph.node
