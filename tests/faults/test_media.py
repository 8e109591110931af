"""Faults 30 and 31: pictures that claim too much, and pictures that are cut."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dala import errors, media
from dala.media import gpu


@pytest.fixture(autouse=True)
def the_next_good_picture_works(device, tmp_path):
    """After a fault, a good file is loaded and filtered on the device."""
    yield
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    media.save(image, tmp_path / "good.png")
    np.testing.assert_array_equal(gpu.invert(media.load(tmp_path / "good.png")), 255 - image)


def header_of_png(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(64))), (b"IEND", b""))
    )


def jpeg(**options: object) -> bytes:
    y, x = np.mgrid[0:64, 0:80]
    image = np.stack([x * 3, y * 4, (x * y) % 256], -1).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=90, **options)
    return stream.getvalue()


@pytest.mark.parametrize("size", [(60000, 60000), (2**31 - 1, 2**31 - 1), (1, 2**29)])
def test_30_a_header_that_claims_too_many_pixels_is_refused_before_decoding(tmp_path, size):
    path = tmp_path / "huge.png"
    path.write_bytes(header_of_png(*size))
    with pytest.raises(errors.LimitError) as caught:
        media.load(path)
    text = str(caught.value)
    for part in (str(path), f"{size[0]:,} × {size[1]:,}", f"{size[0] * size[1]:,}", "268,435,456"):
        assert part in text


@pytest.mark.parametrize("options", [{}, {"progressive": True}], ids=["baseline", "progressive"])
def test_31_a_jpeg_cut_anywhere_gives_no_pixels(tmp_path, options):
    data = jpeg(**options)
    path = tmp_path / "cut.jpg"
    path.write_bytes(data)
    assert media.load(path).shape == (64, 80, 3)
    ends = {len(data) * part // 64 for part in range(1, 64)}
    for end in sorted(ends | set(range(len(data) - 16, len(data)))):
        path.write_bytes(data[:end])
        with pytest.raises(errors.MediaError, match=r"cut\.jpg.*ends after [\d,]+ bytes"):
            media.load(path)


def test_31_an_empty_jpeg_gives_no_pixels(tmp_path):
    path = tmp_path / "cut.jpg"
    path.write_bytes(b"")
    with pytest.raises(errors.MediaError, match="empty"):
        media.load(path)
