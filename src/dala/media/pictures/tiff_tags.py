"""Adds EXIF directories to TIFF files: libtiff, which compresses, cannot write them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

_ENTRY_BYTES = 12
_LONG = 4
"""The TIFF type of an offset."""


def with_exif_directories(tiff: bytes, parts: Mapping[int, Mapping[int, Any]]) -> bytes:
    """Returns the file with the directories appended, and tags in its main one that point to them.

    Existing data stays in place; the main directory is rewritten at the end of the file.
    """
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    order = "<" if tiff.startswith(b"II") else ">"
    head = b"II*\0\0\0\0\0" if order == "<" else b"MM\0*\0\0\0\0"
    (at,) = struct.unpack_from(f"{order}L", tiff, 4)
    (count,) = struct.unpack_from(f"{order}H", tiff, at)
    entries = [
        tiff[start : start + _ENTRY_BYTES]
        for start in range(at + 2, at + 2 + count * _ENTRY_BYTES, _ENTRY_BYTES)
    ]
    made = bytearray(tiff)
    for tag, values in parts.items():
        made += bytes(len(made) % 2)  # directories start at even offsets
        directory = ImageFileDirectory_v2(head, group=tag)
        for key, value in values.items():
            directory[key] = value
        entries.append(struct.pack(f"{order}HHLL", tag, _LONG, 1, len(made)))
        made += directory.tobytes(len(made))
    made += bytes(len(made) % 2)
    struct.pack_into(f"{order}L", made, 4, len(made))
    made += struct.pack(f"{order}H", len(entries))
    made += b"".join(sorted(entries, key=lambda entry: struct.unpack_from(f"{order}H", entry)))
    return bytes(made + bytes(4))
