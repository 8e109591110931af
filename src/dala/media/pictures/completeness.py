"""Checks that a file holds enough data for the size that its header claims.

Decoders fill missing data with gray or black: a file of 100 bytes could become 200 million pixels
of nothing.
"""

from __future__ import annotations

import re
from typing import Any

MOST_CLEAR_PIXELS = 1 << 24
"""How many pixels of an animated WebP may lie outside its first frame."""

_WIDTH, _HEIGHT = 256, 257
_STRIPS, _STRIP_BYTES, _STRIP_ROWS = 273, 279, 278
_TILES, _TILE_BYTES, _TILE_WIDTH, _TILE_HEIGHT = 324, 325, 322, 323
_SAMPLES, _PLANES, _APART = 277, 284, 2
# Markers of frames coded by Huffman's codes, which take a bit at least; arithmetic ones may not.
_JPEG_FRAMES = {0xC0: 2, 0xC1: 2, 0xC2: 1}
_JPEG_OTHER_FRAMES = {*range(0xC3, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_SEGMENT = re.compile(rb"\xff+([\x01-\xfe])")
_ALONE = {0x01, *range(0xD0, 0xDA)}


def missing_pixel_data(format: str, image: Any, data: bytes) -> str | None:
    """Returns what the file lacks for its claimed size, or None if nothing is known to be missing.

    `image` is opened by Pillow, but not decoded yet.
    """
    match format:
        case "TIFF":
            return _tiff(image, len(data))
        case "WEBP":
            return _webp(image.size, data)
        case "JPEG":
            return _jpeg(data)
    return None


def _tiff(image: Any, size_bytes: int) -> str | None:
    """Checks that strips or tiles cover the whole picture and fit into the file."""
    tags = image.tag_v2
    width, height = (_first(tags, tag, 0) for tag in (_WIDTH, _HEIGHT))
    if _TILES in tags:
        across, down = _first(tags, _TILE_WIDTH, width), _first(tags, _TILE_HEIGHT, height)
        wanted, offsets, counts, what = -(-width // max(across, 1)), _TILES, _TILE_BYTES, "tiles"
        wanted *= -(-height // max(down, 1))
    else:
        rows = min(_first(tags, _STRIP_ROWS, height), height)
        wanted, offsets, counts, what = -(-height // max(rows, 1)), _STRIPS, _STRIP_BYTES, "strips"
    if _first(tags, _PLANES, 1) == _APART:
        wanted *= _first(tags, _SAMPLES, 1)
    found = len(_all(tags, offsets))
    if found < wanted:
        return f"it has {found:,} {what}, but {width:,} × {height:,} takes {wanted:,}"
    claimed = sum(_all(tags, counts))
    if claimed > size_bytes:
        return f"its {what} claim {claimed:,} bytes, and the file has {size_bytes:,}"
    return None


def _webp(size: tuple[int, int], data: bytes) -> str | None:
    """Checks that the first frame of an animation covers most of the canvas."""
    at = data.find(b"ANMF") + 8
    if data[12:16] != b"VP8X" or at < 8:
        return None  # the decoder itself checks still pictures
    width, height = (1 + _little(data[at + place : at + place + 3]) for place in (6, 9))
    clear = size[0] * size[1] - width * height
    if clear <= MOST_CLEAR_PIXELS:
        return None
    return (
        f"its first frame is {width:,} × {height:,} of {size[0]:,} × {size[1]:,}, which leaves "
        f"{clear:,} pixels that nothing is in, of at most {MOST_CLEAR_PIXELS:,}"
    )


def _jpeg(data: bytes) -> str | None:
    """Checks that there are enough bits for the 8 × 8 blocks of every component."""
    at = 2
    while (marker := _JPEG_SEGMENT.match(data, at)) is not None:
        kind, at = marker[1][0], marker.end()
        if kind in _JPEG_OTHER_FRAMES:
            return None
        if kind in _JPEG_FRAMES:
            blocks = _jpeg_blocks(data[at : at + 8 + 3 * 255])
            least = blocks * _JPEG_FRAMES[kind] // 8
            if least > len(data):
                return f"its {blocks:,} blocks take {least:,} bytes, and the file has {len(data):,}"
            return None
        if kind not in _ALONE:
            at += max(2, int.from_bytes(data[at : at + 2], "big"))
    return None


def _jpeg_blocks(frame: bytes) -> int:
    """Returns the number of blocks in a frame, according to its header."""
    height, width = (int.from_bytes(frame[at : at + 2], "big") for at in (3, 5))
    factors = [(part[1] >> 4, part[1] & 15) for part in _parts(frame)]
    if not factors or 0 in (number for pair in factors for number in pair):
        return 0
    most = [max(pair[axis] for pair in factors) for axis in range(2)]
    return sum(
        -(-width * across // (8 * most[0])) * -(-height * down // (8 * most[1]))
        for across, down in factors
    )


def _parts(frame: bytes) -> list[bytes]:
    count = frame[7] if len(frame) > 7 else 0
    parts = [frame[8 + 3 * i : 11 + 3 * i] for i in range(count)]
    return [part for part in parts if len(part) == 3]


def _all(tags: Any, tag: int) -> tuple[int, ...]:
    found = tags.get(tag, ())
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _first(tags: Any, tag: int, default: int) -> int:
    return int(next(iter(_all(tags, tag)), default))


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
