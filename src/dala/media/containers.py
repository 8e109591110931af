"""Image files seen from outside: which format they are, how large, and whether all is there.

Decoders differ in what they let pass, and say little about it: Pillow takes a PNG without its end.
Here the end is looked for by the rules of each format, before a pixel is decoded.
"""

from __future__ import annotations

import re

SIGNATURES = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "JPEG": re.compile(rb"\xff\xd8\xff"),
    "WEBP": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "TIFF": re.compile(rb"II[*+]\x00|MM\x00[*+]"),
}
"""How a file of each format begins that is read."""

OTHERS = {
    "GIF": re.compile(rb"GIF8"),
    "BMP": re.compile(rb"BM.{4}\x00{4}", re.DOTALL),
    "PDF": re.compile(rb"%PDF"),
    "AVIF or HEIC": re.compile(rb".{4}ftyp(avi|hei|hev|mif)", re.DOTALL),
    "video": re.compile(rb".{4}ftyp|\x1aE\xdf\xa3", re.DOTALL),
    "PostScript": re.compile(rb"%!PS"),
    "SVG or HTML": re.compile(rb"\s*<"),
}
"""How others begin that are met by mistake."""

HEAD_BYTES = 16

# What follows a 0xFF inside compressed data, but is no marker: a stuffed zero, a restart, a filler.
_JPEG_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
_JPEG_END = 0xD9


def format_of(head: bytes) -> str | None:
    """The format that these first bytes of a file belong to, if it is one that is read."""
    return _matching(SIGNATURES, head)


def describe(head: bytes) -> str:
    """What a file seems to be instead, from its first bytes."""
    other = _matching(OTHERS, head)
    if other is not None:
        return f"it seems to be {other}"
    if head and all(byte in b"\t\n\r" or byte >= 32 for byte in head):
        return f"it seems to be text, and begins with {head.decode('utf-8', 'replace')!r}"
    return f"it begins with the bytes {head[:8].hex(' ')}"


def _matching(signatures: dict[str, re.Pattern[bytes]], head: bytes) -> str | None:
    return next((name for name, start in signatures.items() if start.match(head)), None)


def webp_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) by the header of a WebP file, whose decoder makes room before it tells."""
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
    """What is missing at the end of a PNG, JPEG or WebP file; None where nothing is known to be."""
    match format:
        case "PNG":
            return _missing_from_png(data)
        case "JPEG":
            return _missing_from_jpeg(data)
        case "WEBP":
            wanted = _little(data[4:8]) + 8
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


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
