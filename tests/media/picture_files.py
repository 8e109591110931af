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
