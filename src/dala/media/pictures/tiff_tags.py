"""Directories of TIFF files, changed where Pillow and libtiff do not write or read them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

_ENTRY_BYTES = 12
_SHORT, _LONG = 3, 4
"""The TIFF types of numbers of 16 bits, and of an offset."""
_WIDTH, _BITS, _PHOTOMETRIC, _SAMPLES, _PLANES = 256, 258, 262, 277, 284
_PLACES = (273, 279, 324, 325)
"""The offsets and sizes of strips, and of tiles."""
_LAYOUT = (256, 257, 259, 266, 274, 278, 317, 322, 323)
"""What a plane has in common with its picture: size, compression, orientation, strips, tiles."""
_DARK_IS_ZERO = 1
_HEADS = {"<": b"II*\0\0\0\0\0", ">": b"MM\0*\0\0\0\0"}


def _order(tiff: bytes) -> str:
    return "<" if tiff.startswith(b"II") else ">"


def _entries(tiff: bytes) -> range:
    """Returns where each entry of the main directory begins."""
    order = _order(tiff)
    (at,) = struct.unpack_from(f"{order}L", tiff, 4)
    (count,) = struct.unpack_from(f"{order}H", tiff, at)
    return range(at + 2, at + 2 + count * _ENTRY_BYTES, _ENTRY_BYTES)


def as_wide_bytes(pixels: np.ndarray) -> np.ndarray:
    """Returns u16 pixels as the bytes of a picture of 8 bits that is twice as wide."""
    channels = pixels.shape[2:]
    height, width = pixels.shape[:2]
    return np.ascontiguousarray(pixels).view(np.uint8).reshape(height, 2 * width, *channels)


def with_deep_samples(tiff: bytes) -> bytes:
    """Returns a file that was written of `as_wide_bytes` as that of the u16 pixels themselves.

    Without a predictor, both have the same bytes in their strips: only the width and the bits per
    sample differ. The file is in this machine's byte order, as libtiff writes it.
    """
    order, made = _order(tiff), bytearray(tiff)
    for at in _entries(tiff):
        tag, kind, count = struct.unpack_from(f"{order}HHL", tiff, at)
        each = "H" if kind == _SHORT else "L"
        if tag == _WIDTH:
            (width,) = struct.unpack_from(f"{order}{each}", tiff, at + 8)
            struct.pack_into(f"{order}{each}", made, at + 8, width // 2)
        elif tag == _BITS:
            place = at + 8
            if count > 2:
                (place,) = struct.unpack_from(f"{order}L", tiff, at + 8)
            struct.pack_into(f"{order}{count}H", made, place, *[16] * count)
    return bytes(made)


def gray_planes(tiff: bytes, tags: Any) -> Iterator[bytes]:
    """Yields each plane of a file whose channels are stored apart as a gray file of 16 bits.

    `tags` is Pillow's main directory of it.
    """
    order, count = _order(tiff), int(tags[_SAMPLES])
    start = len(tiff) + len(tiff) % 2  # directories start at even offsets
    head = _HEADS[order][:4] + struct.pack(f"{order}L", start)
    shared = {tag: [int(tags[tag])] for tag in _LAYOUT if tag in tags}
    shared |= {_BITS: [16], _PHOTOMETRIC: [_DARK_IS_ZERO], _SAMPLES: [1], _PLANES: [1]}
    for plane in range(count):
        places = {}
        for tag in (tag for tag in _PLACES if tag in tags):
            each = len(tags[tag]) // count
            places[tag] = tags[tag][plane * each : (plane + 1) * each]
        directory = _directory(order, start, {**shared, **places})
        yield head + tiff[8:] + bytes(start - len(tiff)) + directory


def _directory(order: str, start: int, tags: Mapping[int, Sequence[int]]) -> bytes:
    """Returns a directory of integers for that place in a file, which it is the last of."""
    made, tail = struct.pack(f"{order}H", len(tags)), b""
    end = start + 2 + len(tags) * _ENTRY_BYTES + 4
    for tag, values in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(values)}L", *values)
        if len(values) > 1:
            packed, tail = struct.pack(f"{order}L", end + len(tail)), tail + packed
        made += struct.pack(f"{order}HHL", tag, _LONG, len(values)) + packed
    return made + bytes(4) + tail


def with_exif_directories(tiff: bytes, parts: Mapping[int, Mapping[int, Any]]) -> bytes:
    """Returns the file with the directories appended, and tags in its main one that point to them.

    Existing data stays in place; the main directory is rewritten at the end of the file.
    """
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    order = _order(tiff)
    head = _HEADS[order]
    entries = [tiff[at : at + _ENTRY_BYTES] for at in _entries(tiff)]
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
