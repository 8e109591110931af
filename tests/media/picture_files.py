"""Pictures and the bytes of their files, for tests to load."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageCms


def noise(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(8).integers(0, 256, shape, dtype=np.uint8)


def smooth(height: int = 40, width: int = 56) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 4, y * 5, 255 - x * 3], -1).astype(np.uint8)


def encoded(image: Image.Image, format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    if format == "HEIF":
        import pillow_heif

        pillow_heif.from_pillow(image).save(stream, **options)
    else:
        image.save(stream, format, **options)
    return stream.getvalue()


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def profile(space: str) -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile(space)).tobytes()


def tag_places(icc: bytes | bytearray) -> dict[bytes, int]:
    """Where a profile says at which offset, and how long, each of its parts is."""
    count = struct.unpack(">I", icc[128:132])[0]
    return {bytes(icc[132 + 12 * i : 136 + 12 * i]): 136 + 12 * i for i in range(count)}


def swapped_profile() -> bytes:
    """sRGB with red and green exchanged: a profile whose effect cannot be missed."""
    data = bytearray(profile("sRGB"))
    tags = tag_places(data)
    red, green = tags[b"rXYZ"], tags[b"gXYZ"]
    data[red : red + 8], data[green : green + 8] = data[green : green + 8], data[red : red + 8]
    return bytes(data)


def tiff(width: int, height: int, rows: int, strips: list[tuple[int, int]], body: bytes) -> bytes:
    """A gray TIFF that claims a size, and strips of so many rows at (place in body, length)."""
    compression = 8 if body[:1] == b"\x78" else 1
    entries = [
        (256, 4, [width]),
        (257, 4, [height]),
        (258, 3, [8]),
        (259, 3, [compression]),
        (262, 3, [1]),
        (273, 4, [8 + place for place, _ in strips]),
        (277, 3, [1]),
        (278, 4, [rows]),
        (279, 4, [length for _, length in strips]),
    ]
    directory, tail = b"", b""
    end = 8 + len(body) + 2 + 12 * len(entries) + 4
    for tag, kind, values in entries:
        raw = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        place = raw.ljust(4, b"\0") if len(raw) <= 4 else struct.pack("<I", end + len(tail))
        tail += raw if len(raw) > 4 else b""
        directory += struct.pack("<HHI", tag, kind, len(values)) + place
    head = b"II*\0" + struct.pack("<I", 8 + len(body)) + body
    return head + struct.pack("<H", len(entries)) + directory + bytes(4) + tail


def animated_webp(size: tuple[int, int], frame: tuple[int, int]) -> bytes:
    """An animation of one frame that claims another size."""
    still = encoded(Image.new("RGB", frame, (9, 8, 7)), "WEBP", lossless=True)[12:]
    where = bytes(6) + b"".join((each - 1).to_bytes(3, "little") for each in frame)
    chunks = [
        (b"VP8X", b"\2\0\0\0" + b"".join((each - 1).to_bytes(3, "little") for each in size)),
        (b"ANIM", bytes(6)),
        (b"ANMF", where + (100).to_bytes(3, "little") + b"\0" + still),
    ]
    data = b"WEBP" + b"".join(
        kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2) for kind, body in chunks
    )
    return b"RIFF" + struct.pack("<I", len(data)) + data


def resized_jpeg(data: bytes, width: int, height: int) -> bytes:
    """The same JPEG with another size in its header."""
    frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    return data[: frame + 5] + struct.pack(">HH", height, width) + data[frame + 9 :]


def as_stored(upright: np.ndarray, orientation: int) -> np.ndarray:
    """What a camera held that way would have stored, by the EXIF standard."""
    return {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.swapaxes(0, 1),
        6: np.rot90(upright, 1),
        7: upright[::-1, ::-1].swapaxes(0, 1),
        8: np.rot90(upright, -1),
    }[orientation]
