"""The tensors in a state dict of PyTorch, read without PyTorch and without running any of it."""

from __future__ import annotations

import io
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.binary_file import read_at_most
from dala.base.file_path import checked_path
from dala.base.record import record
from dala.errors import FileError, LimitError, ModelError
from dala.ml.importers.tensor_pickle import Global, TensorPickle

LARGEST_BYTES = 1 << 32
"""How large a file may be, and a tensor in it."""

STORAGES = {
    "torch.DoubleStorage": "<f8",
    "torch.FloatStorage": "<f4",
    "torch.HalfStorage": "<f2",
    "torch.LongStorage": "<i8",
    "torch.IntStorage": "<i4",
    "torch.ShortStorage": "<i2",
    "torch.CharStorage": "|i1",
    "torch.ByteStorage": "|u1",
    "torch.BoolStorage": "|b1",
}
"""The element type of each storage that is read."""
_ORDERED_DICT = "collections.OrderedDict"
_REBUILD = "torch._utils._rebuild_tensor_v2"
ALLOWED = frozenset({_ORDERED_DICT, _REBUILD, *STORAGES})
"""All that a state dict may name. It is recognised by its name, never imported or called."""

_LEGACY_MAGIC, _LEGACY_PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_LARGEST_RANK, _LARGEST_ENTRIES = 32, 100_000
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    KeyError,
    IndexError,
    OSError,
    EOFError,
)
"""What Python's reader of archives raises for those that are broken."""


@record
class _Storage:
    key: str
    dtype: np.dtype[Any]
    elements: int


@record
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_state_dict(source: bytes | str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a .pth or .pt file by name, as arrays that share the memory of their storage.

    `source` is the path of the file, or its bytes: what `torch.save(model.state_dict(), …)` wrote,
    in the format of today (a zip archive) or the one before. It is taken for data: it may name
    `ALLOWED` and nothing else, no code of it or for it is run, and every size is compared with
    the bytes that are there. The arrays are read-only; they hold floats, halves, integers or bools.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        what, data = "the state dict given as bytes", bytes(source)
    else:
        path = checked_path("a state dict", source)
        what, data = str(path), _read(path)
    read = _read_archive if data[:2] == b"PK" else _read_legacy
    tensors, bytes_of = read(what, data)
    arrays: dict[str, np.ndarray] = {}
    storages: dict[str, np.ndarray] = {}
    for name, tensor in tensors.items():
        storage = tensor.storage
        if storage.key not in storages:
            storages[storage.key] = np.frombuffer(bytes_of(storage), np.uint8)
        arrays[name] = _array(what, name, tensor, storages[storage.key])
    return arrays


def _read(path: Path) -> bytes:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise FileError(f"{path} cannot be read as a state dict: it is no plain file.")
        if found.st_size > LARGEST_BYTES:
            raise LimitError(f"{path} has {found.st_size:,} bytes, of at most {LARGEST_BYTES:,}.")
        with path.open("rb") as file:
            return read_at_most(str(path), file, LARGEST_BYTES, found.st_size)
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {getattr(error, 'strerror', error)}.") from error


# -- the two formats -----------------------------------------------------------------------------

Found = tuple[dict[str, _Tensor], Callable[[_Storage], bytes | memoryview]]


def _read_archive(what: str, data: bytes) -> Found:
    """Returns the tensors in a zip archive, and how to get at a storage's bytes in it."""
    entries = data.count(b"PK\x01\x02")
    if entries > _LARGEST_ENTRIES:
        raise LimitError(f"{what} has {entries:,} entries, of at most {_LARGEST_ENTRIES:,}.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _ZIP_ERRORS as error:
        raise ModelError(
            f"{what} is a cut or damaged zip archive: {error}. Get the file again."
        ) from error
    names = {entry.filename: entry for entry in archive.infolist()}
    pickles = [name for name in names if re.fullmatch(r"[^/]*/data\.pkl", name)]
    if len(pickles) != 1:
        raise ModelError(
            f"{what} is a zip archive, but no state dict: it has {len(pickles)} entries data.pkl "
            f"in a folder, not 1."
        )
    folder = pickles[0].rpartition("/")[0]
    bytes_left = len(data)

    def read(name: str, wanted_bytes: int | None = None) -> bytes:
        nonlocal bytes_left
        entry = names.get(name)
        if entry is None:
            raise ModelError(f"{what} lacks the entry {name!r}: it is cut, or no state dict.")
        if wanted_bytes not in (None, entry.file_size):
            raise ModelError(
                f"{what}: the entry {name!r} has {entry.file_size:,} bytes, not {wanted_bytes:,} "
                f"as its tensors say."
            )
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ModelError(f"{what}: the entry {name!r} is packed, which PyTorch does not do.")
        bytes_left -= entry.file_size
        if bytes_left < 0:
            raise ModelError(
                f"{what} is damaged: its entries are more than its {len(data):,} bytes."
            )
        try:
            found = archive.read(entry)
        except _ZIP_ERRORS as error:
            raise ModelError(f"{what} is damaged at the entry {name!r}: {error}.") from error
        if len(found) != entry.file_size:
            raise ModelError(f"{what} is cut at the entry {name!r}.")
        return found

    if f"{folder}/byteorder" in names and read(f"{folder}/byteorder") != b"little":
        raise ModelError(f"{what} was written by a big-endian machine, which is not read.")
    found = _pickle(what, memoryview(read(pickles[0]))).load()
    return _tensors_of(what, found), lambda storage: read(
        f"{folder}/data/{storage.key}", storage.elements * storage.dtype.itemsize
    )


def _read_legacy(what: str, data: bytes) -> Found:
    """Returns the tensors in a row of pickles, and how to get at the storages that follow it."""
    view = memoryview(data)
    at = 0
    row: list[Any] = []
    for _ in range(5):
        pickle = _pickle(what, view, at)
        row.append(pickle.load())
        at = pickle.at
        if row[0] != _LEGACY_MAGIC:
            raise ModelError(f"{what} is no state dict of PyTorch: it is another kind of pickle.")
    _, protocol, system, found, keys = row
    if protocol != _LEGACY_PROTOCOL or not isinstance(system, dict) or not isinstance(keys, list):
        raise ModelError(f"{what} is no state dict, or is damaged: its heads are not of one.")
    if system.get("little_endian") is not True:
        raise ModelError(f"{what} was written by a big-endian machine, which is not read.")
    tensors = _tensors_of(what, found)
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    places: dict[str, memoryview] = {}
    for key in keys:
        storage = storages.get(key) if isinstance(key, str) else None
        if storage is None or key in places:
            raise ModelError(f"{what} has a storage twice, or one that is of no tensor.")
        size_bytes = storage.elements * storage.dtype.itemsize
        head = bytes(view[at : at + 8])
        if int.from_bytes(head, "little") != storage.elements or len(view) < at + 8 + size_bytes:
            raise ModelError(
                f"{what} is cut or damaged at byte {at:,}: a storage of {size_bytes:,} bytes has "
                f"to be there, and {len(view) - at:,} are left. Get the file again."
            )
        places[key] = view[at + 8 : at + 8 + size_bytes]
        at += 8 + size_bytes
    missing = storages.keys() - places.keys()
    if missing:
        raise ModelError(f"{what} is cut or damaged: it lacks {len(missing)} of its storages.")
    return tensors, lambda storage: places[storage.key]


# -- what is in them -----------------------------------------------------------------------------


def _pickle(what: str, data: memoryview, at: int = 0) -> TensorPickle:
    storages: dict[str, _Storage] = {}

    def find(name: str) -> Global:
        if name not in ALLOWED:
            raise ModelError(
                f"{what} names {name[:200]!r}, which is no part of a state dict, and nothing is "
                f"run for it. Only tensors are read ({', '.join(sorted(ALLOWED))}): save "
                f"model.state_dict(), not the model."
            )
        return Global(name)

    def build(called: Global, arguments: tuple[Any, ...]) -> Any:
        if called.name == _ORDERED_DICT and not arguments:
            return {}
        if called.name == _REBUILD:
            return _tensor(what, arguments)
        raise ModelError(f"{what} calls {called.name} in a way that a state dict does not.")

    def persistent(given: Any) -> _Storage:
        match given:
            case ("storage", Global(name=name), str(key), str(), int(elements), *rest) if (
                name in STORAGES and elements >= 0 and rest in ([], [None])
            ):
                storage = _Storage(key, np.dtype(STORAGES[name]), elements)
            case _:
                raise ModelError(f"{what} has a storage of a kind that is not read, or is damaged.")
        known = storages.setdefault(key, storage)
        if (known.dtype, known.elements) != (storage.dtype, storage.elements):
            raise ModelError(f"{what} has two storages of the name {key[:80]!r}.")
        return known

    return TensorPickle(what, data, at, find=find, build=build, persistent=persistent)


def _tensor(what: str, arguments: tuple[Any, ...]) -> _Tensor:
    match arguments:
        case (_Storage() as storage, int(offset), tuple(shape), tuple(strides), *_) if len(
            shape
        ) == len(strides) <= _LARGEST_RANK and all(
            type(n) is int and 0 <= n < 1 << 62 for n in (offset, *shape, *strides)
        ):
            return _Tensor(storage, offset, shape, strides)
    raise ModelError(f"{what} has a tensor whose sizes and strides do not fit, or is damaged.")


def _tensors_of(what: str, found: Any) -> dict[str, _Tensor]:
    if not isinstance(found, dict):
        raise ModelError(
            f"{what} holds something of type {type(found).__name__.strip('_')}, not a dict of "
            f"tensors: save model.state_dict()."
        )
    for name, item in found.items():
        if not isinstance(name, str) or not isinstance(item, _Tensor):
            raise ModelError(
                f"{what} holds something of type {type(item).__name__.strip('_')} under "
                f"{str(name)[:80]!r}, where only tensors by name are read: save model.state_dict() "
                f"alone."
            )
    return found


def _array(what: str, name: str, tensor: _Tensor, stored: np.ndarray) -> np.ndarray:
    storage, size = tensor.storage, tensor.storage.dtype.itemsize
    elements = math.prod(tensor.shape)
    # Sizes beside a 0 are multiplied too, by NumPy.
    claimed_bytes = math.prod(n or 1 for n in tensor.shape) * size
    axes = list(zip(tensor.shape, tensor.strides, strict=True))
    end = tensor.offset + sum((n - 1) * stride for n, stride in axes) + 1 if elements else 0
    if end > storage.elements:
        raise ModelError(
            f"{what}: {name!r} of shape {tensor.shape} ends at element {end:,} of a storage that "
            f"has {storage.elements:,}."
        )
    if claimed_bytes > LARGEST_BYTES:
        raise LimitError(
            f"{what}: {name!r} of shape {tensor.shape} has {claimed_bytes:,} bytes, of at most "
            f"{LARGEST_BYTES:,}."
        )
    if not elements:
        return np.zeros(tensor.shape, storage.dtype)
    # What the step along an axis of one element is does not matter, and may be anything.
    steps = [stride * size if n > 1 else size for n, stride in axes]
    return np.ndarray(tensor.shape, storage.dtype, stored.data, tensor.offset * size, steps)
