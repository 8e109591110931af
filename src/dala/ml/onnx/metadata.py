"""What a file says of itself in words: the properties that exporters write beside the graph."""

from __future__ import annotations

from dala.ml.onnx.contents import Source, bytes_of_source
from dala.ml.onnx.protobuf import read_message

_SCHEMA = {
    "Model": {14: "metadata_props Entry*"},
    "Entry": {1: "key text", 2: "value text"},
}


def read_metadata(name: str, source: Source) -> dict[str, str]:
    """The properties of a model that was checked before, by their names."""
    data = memoryview(bytes_of_source(source))
    model = read_message(name, data, _SCHEMA, "Model")
    return {item.get("key", ""): item.get("value", "") for item in model.get("metadata_props", [])}
