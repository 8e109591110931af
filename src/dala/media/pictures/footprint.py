"""Limits on the memory that decoding a picture takes.

A header is cheap to forge, and decoders allocate what it claims before they see a pixel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.errors import LimitError, MemoryLimitError, argument

LARGEST_BYTES = 1 << 31
"""The memory limit for decoding, unless `largest_pixels` is raised."""
_USUAL_PIXELS = 1 << 28
_BAND_BYTES = 1 << 22
# Bytes for a pixel at the most, with the array that it ends up in, by Pillow's mode.
_BYTES = {"1": 3, "L": 3, "RGB": 8, "RGBA": 8, "RGBX": 8, "P": 12, "LA": 14, "CMYK": 14}
_BYTES["deep"] = 24  # both halves of 16 bits, as images and arrays, and their sum
_OTHER_BYTES = 16
# The decoder of WebP has a canvas, and the one before it; a profile makes another image.
_WEBP_BYTES, _PROFILE_BYTES = 8, 8


def check_footprint(
    name: str,
    format: str,
    size: tuple[int, int],
    largest_pixels: int,
    mode: str = "RGBA",
    *,
    profile: bool = False,
) -> None:
    """Raises LimitError if decoding the picture would take too much memory."""
    each = _BYTES.get(mode, _OTHER_BYTES)
    each += _WEBP_BYTES * (format == "WEBP") + _PROFILE_BYTES * profile
    needed = size[0] * size[1] * each
    allowed = LARGEST_BYTES
    if largest_pixels > _USUAL_PIXELS:
        allowed = largest_pixels * (_OTHER_BYTES + _WEBP_BYTES + _PROFILE_BYTES)
    if needed > allowed:
        raise LimitError(
            f"{name} is {size[0]:,} × {size[1]:,}: to decode it takes about {needed:,} bytes of "
            f"memory, but at most {allowed:,} are taken: if you trust the file, give a "
            f"{argument('largest_pixels')} of more than {_USUAL_PIXELS:,}."
        )


@contextmanager
def within_memory(name: str) -> Iterator[None]:
    """Turns a MemoryError inside the block into a MemoryLimitError that names the picture."""
    try:
        yield
    except MemoryLimitError:
        raise
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name} cannot be decoded: the system did not give the memory that it takes. Free "
            f"some, or give a smaller picture."
        ) from error


def array_of(image: Any) -> np.ndarray:
    """Returns the image as an array, copied in bands so that it is never in memory twice."""
    width, height = image.size
    bands = len(image.getbands())
    pixels = np.empty((height, width) if bands == 1 else (height, width, bands), np.uint8)
    rows = max(1, _BAND_BYTES // max(1, width * bands))
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        pixels[top:bottom] = np.asarray(image.crop((0, top, width, bottom)))
    return pixels
