"""Pixels of 16 bits for PNG files: Pillow writes those of gray only."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

_SIGNATURE_BYTES = 8
_DEPTH_AT = 8
"""Where the header has the bits per channel, after its width and height."""
_BAND_BYTES = 1 << 24
_CHUNK_BYTES = 1 << 24
_SUB, _UP = 1, 2
_LEVEL = 4
"""Higher levels of zlib take longer, and save nothing of the noise in the lower bytes."""


def with_deep_pixels(png: bytes, pixels: np.ndarray) -> bytes:
    """Returns the PNG with u16 pixels in place of its 8-bit ones of the same size and channels."""
    made = bytearray(png[:_SIGNATURE_BYTES])
    at, is_written = _SIGNATURE_BYTES, False
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size
        if kind == b"IHDR":
            body = body[:_DEPTH_AT] + b"\x10" + body[_DEPTH_AT + 1 :]
        if kind != b"IDAT":
            made += _chunk(kind, body)
        elif not is_written:
            is_written = True
            for part in _compressed(pixels):
                made += _chunk(b"IDAT", part)
    return bytes(made)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _compressed(pixels: np.ndarray) -> Iterator[bytes]:
    """Yields the compressed rows in pieces."""
    packer, waiting = zlib.compressobj(_LEVEL, strategy=zlib.Z_FILTERED), bytearray()
    for band in _filtered(pixels):
        waiting += packer.compress(band)
        if len(waiting) >= _CHUNK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting + packer.flush())


def _filtered(pixels: np.ndarray) -> Iterator[bytes]:
    """Yields bands of rows as differences to the left or to the row above, whichever is smaller."""
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    step = 2 * channels
    above = np.zeros((1, width * step), np.uint8)
    count = max(1, _BAND_BYTES // (width * step))
    for top in range(0, height, count):
        band = np.ascontiguousarray(pixels[top : top + count]).astype(">u2")
        rows = band.view(np.uint8).reshape(len(band), -1)
        left = rows.copy()
        left[:, step:] -= rows[:, :-step]
        up = rows - np.concatenate([above, rows[:-1]])
        takes_up = _magnitude(up) < _magnitude(left)
        made = np.empty((len(rows), 1 + rows.shape[1]), np.uint8)
        made[:, 0] = np.where(takes_up, _UP, _SUB)
        made[:, 1:] = np.where(takes_up[:, None], up, left)
        above = rows[-1:]
        yield made.tobytes()


def _magnitude(differences: np.ndarray) -> np.ndarray:
    """Returns the sum over each row of how far its bytes, taken as signed, are from zero."""
    # In u8 the magnitude of -128 is 128, which s8 does not hold.
    return np.asarray(np.minimum(differences, -differences).sum(1, dtype=np.int64))
