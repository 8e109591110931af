"""TensorFlow.js graph models, made into ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dala.ml.importers.tfjs.weights import shard_names

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["from_tfjs", "shard_names"]


def from_tfjs(
    topology: Mapping[str, Any] | bytes,
    shards: bytes | Sequence[bytes],
    name: str = "model",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    outputs: Mapping[str, str] | None = None,
) -> ModelProto:
    """Returns an ONNX model that computes what a graph model does, from its JSON and its shards.

    The shards are in the order of `shard_names`. Inputs and outputs are called as the signature
    calls them, else as their nodes with ":0"; `outputs` takes the results of other nodes instead,
    by the names that they are to have. Every size is fixed: an open batch becomes 1, and other open
    sizes of inputs are given by `shapes`. The same arguments always give the same bytes.
    """
    from dala.ml.importers.tfjs.conversion import converted

    return converted(topology, shards, name, shapes or {}, outputs or {})
