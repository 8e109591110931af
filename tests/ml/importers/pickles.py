"""State dicts as PyTorch writes them, put together here instruction by instruction."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any, NamedTuple

import numpy as np

REBUILD = "torch._utils._rebuild_tensor_v2"
MAGIC = 0x1950A86A20F9469CFC6C
SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2}}
STORAGES = {"f4": "Float", "f2": "Half", "f8": "Double", "i8": "Long", "i4": "Int", "u1": "Byte"}


class Named(NamedTuple):
    """A class or function of that name."""

    name: str


class Called(NamedTuple):
    """What a function gives for these arguments."""

    function: str
    arguments: tuple[Any, ...]


class Kept(NamedTuple):
    """What is kept beside the pickle."""

    id: Any


def instructions(value: Any) -> bytes:
    match value:
        case None | True | False:
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        case Named(name):
            module, _, last = name.rpartition(".")
            return f"c{module}\n{last}\n".encode()
        case Called(function, arguments):
            return instructions(Named(function)) + instructions(arguments) + b"R"
        case Kept(id):
            return instructions(id) + b"Q"
        case int():
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8a" + bytes([len(data)]) + data
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case tuple():
            return b"(" + b"".join(map(instructions, value)) + b"t"
        case list():
            return b"](" + b"".join(map(instructions, value)) + b"e"
        case dict():
            items = b"".join(instructions(k) + instructions(v) for k, v in value.items())
            return b"}(" + items + b"u"
        case _:
            raise TypeError(type(value))


def pickled(value: Any) -> bytes:
    return b"\x80\x02" + instructions(value) + b"."


def tensor(
    key: str,
    elements: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    offset: int = 0,
    kind: str = "f4",
) -> Called:
    """A tensor over the storage `key`."""
    storage = Kept(("storage", Named(f"torch.{STORAGES[kind]}Storage"), key, "cpu", elements))
    hooks = Called("collections.OrderedDict", ())
    return Called(REBUILD, (storage, offset, shape, strides, False, hooks))


def legacy(value: Any, storages: dict[str, np.ndarray]) -> bytes:
    """A file of the older format: a row of pickles, then each storage after its length."""
    row = [MAGIC, 1001, SYSTEM, value, list(storages)]
    kept = [struct.pack("<q", data.size) + data.tobytes() for data in storages.values()]
    return b"".join(map(pickled, row)) + b"".join(kept)


def archive(
    value: Any, storages: dict[str, np.ndarray], packing: int = zipfile.ZIP_STORED
) -> bytes:
    """A file of the format of today: a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as file:
        file.writestr("archive/data.pkl", pickled(value))
        file.writestr("archive/byteorder", b"little")
        for key, data in storages.items():
            file.writestr(f"archive/data/{key}", data.tobytes())
    return stream.getvalue()
