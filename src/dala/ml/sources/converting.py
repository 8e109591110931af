"""The files of a package made into one ONNX file, by the importer of their format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dala.errors import ModelError
from dala.ml.catalog.entries import Entry

if TYPE_CHECKING:
    from onnx import ModelProto


def need_onnx(entry: Entry) -> None:
    """Refuse to begin where what is downloaded could not be converted."""
    if find_spec("onnx") is None:
        raise ModelError(
            f"{entry.name} is not here, and to convert it takes onnx, which is not installed: pip "
            'install "dala-gpu[ml]".'
        )


def convert(entry: Entry, files: Mapping[str, bytes]) -> bytes:
    """The ONNX file of a model, from its package's: a graph and its shards, weights, or itself."""
    first, *shards = (files[item.path] for item in entry.package.files)
    if entry.package.files[0].path.endswith(".onnx"):
        return first
    is_graph = entry.package.files[0].path.endswith(".json")
    model = _of_graph(entry, first, shards) if is_graph else _of_weights(first)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def _of_graph(entry: Entry, graph: bytes, shards: list[bytes]) -> ModelProto:
    from dala.ml.importers.tfjs import from_tfjs

    shapes = {} if entry.open_input is None else {entry.open_input: (1, *entry.shape, 3)}
    return from_tfjs(graph, shards, entry.name, shapes=shapes)


def _of_weights(weights: bytes) -> ModelProto:
    from dala.ml.importers.mobilenet import mobilenet_v2
    from dala.ml.importers.state_dict import read_state_dict

    return mobilenet_v2(read_state_dict(weights))
