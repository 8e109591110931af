"""The constants of a TensorFlow.js model, out of its shards of little-endian bytes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ModelError

STORED = {"float32": "<f4", "int32": "<i4", "uint8": "u1", "bool": "u1"}
MOST_AXES = 8
QUANTIZED = {"float16": "<f2", "uint8": "u1", "uint16": "<u2"}


@record
class Weight:
    """A constant: its shape and dtype, and how its bytes are kept."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    stored: str
    scale: float | None
    least: float

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.count * np.dtype(self.stored).itemsize


def read_weights(manifest: Any, shards: bytes | Sequence[bytes]) -> dict[str, np.ndarray]:
    """Each constant by its name; the shards have to hold exactly what the manifest claims."""
    parts = [shards] if isinstance(shards, bytes) else list(shards)
    weights = list(_entries(manifest))
    claimed, given = sum(each.size_bytes for each in weights), sum(map(len, parts))
    if claimed != given:
        place = 0
        for each in weights:
            place += each.size_bytes
            if place > given:
                raise ModelError(
                    f"its shards have {given:,} bytes, but the weights up to {each.name!r} "
                    f"({each.dtype} {each.shape}) take {place:,} and all of them {claimed:,}: a "
                    f"shard is missing or cut; give all of them, in the manifest's order."
                )
        raise ModelError(
            f"its shards have {given:,} bytes, but its weights take {claimed:,}: these shards "
            f"belong to another model."
        )
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    arrays: dict[str, np.ndarray] = {}
    offset = 0
    for each in weights:
        if each.name in arrays:
            raise ModelError(f"two of its weights are called {each.name!r}.")
        arrays[each.name] = _decoded(each, data, offset)
        offset += each.size_bytes
    return arrays


def shard_names(topology: Mapping[str, Any]) -> list[str]:
    """The names of the files that hold a model's shards, in the order in which they are read."""
    return [
        path
        for group in _groups(topology.get("weightsManifest"))
        for path in group.get("paths", [])
        if isinstance(path, str)
    ]


def _decoded(weight: Weight, data: bytes, offset: int) -> np.ndarray:
    values = np.frombuffer(data, weight.stored, weight.count, offset)
    with np.errstate(all="ignore"):
        if weight.scale is not None:
            # In double precision, as the numbers of JavaScript are.
            wide = values.astype(np.float64) * weight.scale + weight.least
            values = np.rint(wide) if weight.dtype == "int32" else wide
        return values.astype(weight.dtype).reshape(weight.shape)


def _groups(manifest: Any) -> list[Mapping[str, Any]]:
    if not isinstance(manifest, list) or not all(isinstance(each, Mapping) for each in manifest):
        raise ModelError("it has no weightsManifest, a list of groups of weights.")
    return manifest


def _entries(manifest: Any) -> Iterator[Weight]:
    for place, group in enumerate(_groups(manifest)):
        listed = group.get("weights")
        if not isinstance(listed, list):
            raise ModelError(f"weightsManifest[{place}] has no list of weights.")
        for index, entry in enumerate(listed):
            yield _weight(entry, f"weightsManifest[{place}].weights[{index}]")


def _weight(entry: Any, where: str) -> Weight:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise ModelError(f"{where} has no name.")
    name, shape, dtype = entry["name"], entry.get("shape"), entry.get("dtype")
    if not isinstance(shape, list) or not all(
        type(size) is int and 0 <= size < 2**31 for size in shape[: MOST_AXES + 1]
    ):
        raise ModelError(
            f"{where}: the shape of {name!r} is a list of integers from 0 to 2³¹ − 1, not "
            f"{shape!r}."
        )
    if len(shape) > MOST_AXES:
        raise ModelError(
            f"{where}: {name!r} has {len(shape)} axes, but at most {MOST_AXES} are read."
        )
    # Sizes beside a 0 are multiplied too, by NumPy.
    if math.prod(size or 1 for size in shape) >= 2**31:
        raise ModelError(f"{where}: {name!r} has the shape {shape}, which no memory holds.")
    if not isinstance(dtype, str) or dtype not in STORED:
        raise ModelError(
            f"{where}: {name!r} is {dtype!r}, but the dtypes that are known are "
            f"{', '.join(STORED)}."
        )
    stored, scale, least = STORED[dtype], None, 0.0
    quantization = entry.get("quantization")
    if quantization is not None:
        kind = quantization.get("dtype") if isinstance(quantization, Mapping) else quantization
        if not isinstance(kind, str) or kind not in QUANTIZED:
            raise ModelError(
                f"{where}: {name!r} is quantized as {kind!r}, but the ways that are known are "
                f"{', '.join(QUANTIZED)}."
            )
        if dtype not in ("float32", "int32"):
            raise ModelError(f"{where}: {name!r} is {dtype} and quantized; only numbers can be.")
        stored = QUANTIZED[kind]
        if kind != "float16":
            scale, least = (_number(quantization.get(key), name, where) for key in ("scale", "min"))
    return Weight(name, tuple(shape), dtype, stored, scale, least)


def _number(given: Any, name: str, where: str) -> float:
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not abs(given) <= sys.float_info.max
    ):
        raise ModelError(
            f"{where}: the quantization of {name!r} needs numbers scale and min, not {given!r}."
        )
    return float(given)
