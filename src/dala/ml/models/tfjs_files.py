"""Graph models of TensorFlow.js, `model.json` with its shards beside it, as ONNX."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dala.base.file_path import checked_path
from dala.errors import FileError, LimitError, ModelError
from dala.ml.onnx.external_files import Outside

LARGEST_JSON_BYTES = 1 << 28
LARGEST_SHARDS_BYTES = 1 << 31


def read_tfjs(source: Path, name: str, shapes: Mapping[str, Sequence[int]] | None = None) -> bytes:
    """The ONNX model of what a JSON file and its shards hold.

    `shapes` fix, by the names of inputs, what they leave open. Shards lie below its folder
    and are plain files: links are not followed.
    """
    from dala.ml.importers.tfjs import from_tfjs, shard_names

    path = checked_path("a model file", source)
    try:
        if path.stat().st_size > LARGEST_JSON_BYTES:
            raise LimitError(f"{path} has more than {LARGEST_JSON_BYTES:,} bytes of JSON.")
        text = path.read_bytes()
        topology = json.loads(text)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is no JSON, so no model of TensorFlow.js: {error}.") from error
    if not isinstance(topology, dict):
        raise ModelError(f"{path} is JSON, but no model of TensorFlow.js: that is an object.")
    shards = []
    with Outside(path.parent) as beside:
        total = 0
        for shard in shard_names(topology):
            where = f"{path}: the shard {shard!r}"
            size_bytes = beside.size_bytes(where, shard)
            total += size_bytes
            if total > LARGEST_SHARDS_BYTES:
                raise LimitError(
                    f"{path}: its shards have more than {LARGEST_SHARDS_BYTES:,} bytes."
                )
            shards.append(beside.read(where, shard, 0, size_bytes))
    made: bytes = from_tfjs(text, shards, name, shapes=shapes).SerializeToString(deterministic=True)
    return made
