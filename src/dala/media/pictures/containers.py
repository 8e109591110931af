"""File signatures of picture formats, sizes from headers, and checks for truncated files.

Decoders differ in what they accept: Pillow opens a PNG without its IEND chunk. Here the end of the
file is checked by the rules of each format, before a pixel is decoded.
"""

from __future__ import annotations

import re

SIGNATURES = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "WEBP": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "TIFF": re.compile(rb"II[*+]\x00|MM\x00[*+]"),
    "BMP": re.compile(rb"BM.{4}\x00{4}.{2}\x00{2}", re.DOTALL),
    "GIF": re.compile(rb"GIF8[79]a"),
    # In the ftyp box the major brand comes first; compatible brands follow its version.
    "AVIF": re.compile(rb"\x00{3}.ftyp(avi[fs]|mif1.{4}(.{4})*?avif)", re.DOTALL),
    "HEIF": re.compile(rb"\x00{3}.ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL),
}
"""The first bytes of each supported format."""

OTHERS = {
    "PDF": re.compile(rb"%PDF"),
    "Photoshop": re.compile(rb"8BPS"),
    "JPEG 2000": re.compile(rb"\x00{3}\x0cjP  |\xff\x4f\xff\x51"),
    "JPEG XL": re.compile(rb"\x00{3}\x0cJXL |\xff\x0a"),
    "OpenEXR": re.compile(rb"v/1\x01"),
    "an icon": re.compile(rb"\x00\x00[\x01\x02]\x00"),
    "video": re.compile(rb".{4}ftyp|\x1aE\xdf\xa3", re.DOTALL),
    "PostScript": re.compile(rb"%!PS"),
    "SVG or HTML": re.compile(rb"\s*<"),
}
"""The first bytes of unsupported formats that users try to open."""

HEAD_BYTES = 64
_SHOWN_BYTES = 16

# What follows a 0xFF inside compressed data, but is no marker: a stuffed zero, a restart, a filler.
_JPEG_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
_JPEG_END = 0xD9
_GIF_TRAILER, _GIF_IMAGE = 0x3B, 0x2C
_BMP_HEADER, _BMP_PLAIN = 40, (0, 3, 6)


def format_of(head: bytes) -> str | None:
    """Returns the format that a file's first bytes belong to, or None if it is not supported."""
    return _matching(SIGNATURES, head)


def other_format(head: bytes) -> str | None:
    """Returns what an unsupported file seems to be, or None if that is unknown or a video."""
    other = _matching(OTHERS, head)
    return None if other == "video" else other


def describe(head: bytes) -> str:
    """Returns a phrase for errors about what a file seems to be, from its first bytes."""
    other = _matching(OTHERS, head)
    if other is not None:
        return f"it seems to be {other}"
    if head and all(byte in b"\t\n\r" or byte >= 32 for byte in head):
        start = head[:_SHOWN_BYTES].decode("utf-8", "replace")
        return f"it seems to be text, and begins with {start!r}"
    return f"it begins with the bytes {head[:8].hex(' ')}"


def _matching(signatures: dict[str, re.Pattern[bytes]], head: bytes) -> str | None:
    return next((name for name, start in signatures.items() if start.match(head)), None)


def webp_size(data: bytes) -> tuple[int, int] | None:
    """Returns (width, height) from a WebP header, before the decoder allocates that much."""
    kind, body = data[12:16], data[20:30]
    if len(body) < 10:
        return None
    if kind == b"VP8X":
        return 1 + _little(body[4:7]), 1 + _little(body[7:10])
    if kind == b"VP8L" and body[0] == 0x2F:
        bits = _little(body[1:5])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        return _little(body[6:8]) & 0x3FFF, _little(body[8:10]) & 0x3FFF
    return None


def missing_from(format: str, data: bytes) -> str | None:
    """Returns what is missing at the end of a file, or None if nothing is known to be."""
    match format:
        case "PNG":
            return _missing_from_png(data)
        case "JPEG":
            return _missing_from_jpeg(data)
        case "GIF":
            return _missing_from_gif(data)
        case "WEBP" | "BMP":
            wanted = _little(data[4:8]) + 8 if format == "WEBP" else _bmp_bytes(data)
            if wanted > len(data):
                return f"it ends after {len(data):,} bytes of {wanted:,}"
    return None


def _missing_from_png(data: bytes) -> str | None:
    at = 8
    while at + 12 <= len(data):
        if data[at + 4 : at + 8] == b"IEND":
            return None
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return f"it ends after {len(data):,} bytes, without its last part (IEND)"


def _missing_from_jpeg(data: bytes) -> str | None:
    at = 2
    while (marker := _JPEG_MARKER.search(data, at)) is not None:
        at = marker.end()
        if marker[1][0] == _JPEG_END:
            return None
        at += int.from_bytes(data[at : at + 2], "big")
    return f"it ends after {len(data):,} bytes, without the marker of its end"


def _missing_from_gif(data: bytes) -> str | None:
    """Walks the blocks up to the trailer; data blocks are chains of sub-blocks."""
    at = 13 + _palette_bytes(data[10:11])
    while at < len(data) and data[at] != _GIF_TRAILER:
        if data[at] == _GIF_IMAGE:
            at += 11 + _palette_bytes(data[at + 9 : at + 10])
        else:
            at += 2
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
    return None if at < len(data) else f"it ends after {len(data):,} bytes, without its last block"


def _palette_bytes(flags: bytes) -> int:
    """Returns the size of the color table that a GIF block declares."""
    return 3 << (flags[0] & 7) + 1 if flags and flags[0] & 0x80 else 0


def _bmp_bytes(data: bytes) -> int:
    """Returns the file size that an uncompressed BMP needs, else 0."""
    header, width, height = (_little(data[at : at + 4]) for at in (14, 18, 22))
    if header < _BMP_HEADER or _little(data[30:34]) not in _BMP_PLAIN:
        return 0
    height = min(height, (1 << 32) - height)  # negative in top-down bitmaps
    row = (width * _little(data[28:30]) + 31) // 32 * 4
    return _little(data[10:14]) + row * height


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
