"""Raw frames on standard input, and the formats of raw frames."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.suggestions import hint
from dala.errors import ArgumentError, LimitError, MediaError, argument
from dala.kernels.image.sizes import GivenSize, exact_size
from dala.media.pictures.files import LARGEST_PIXELS
from dala.media.video.reading.uncompressed_source import UncompressedSource, uncompressed_info

FORMATS = {"rgba": "rgba", "rgb": "rgb24", "gray": "gray", "yuv420p": "yuv420p"}
"""The formats of raw frames, with PyAV's names for them."""


def frame_shape(size: tuple[int, int], pixel_format: str) -> tuple[int, ...]:
    """Returns the shape of a frame's bytes; YUV planes are stacked vertically."""
    width, height = size
    return {
        "rgba": (height, width, 4),
        "rgb": (height, width, 3),
        "gray": (height, width),
        "yuv420p": (height * 3 // 2, width),
    }[pixel_format]


def checked_raw_size(what: str, size: Any, pixel_format: Any) -> tuple[int, int]:
    """Returns the width and height of raw frames; raises if the format cannot have them."""
    if pixel_format not in FORMATS:
        raise ArgumentError(
            f"{what}: {argument('pixel_format')} {pixel_format!r} is not known: give one of "
            f"{', '.join(FORMATS)}.{hint(str(pixel_format), FORMATS)}"
        )
    if size is None:
        raise ArgumentError(
            f"{what}: raw frames have no size: give {argument('size', '(width, height)')}."
        )
    width, height = exact_size(what, size)
    if width * height > LARGEST_PIXELS:
        raise LimitError(
            f"{what}: {width:,} × {height:,} is {width * height:,} pixels in a frame, but at most "
            f"{LARGEST_PIXELS:,} are read."
        )
    if pixel_format == "yuv420p" and (width % 2 or height % 2):
        raise ArgumentError(
            f"{what}: {width} × {height} is no size for yuv420p, whose pixels come in pairs: give "
            f"even numbers, or rgb."
        )
    return width, height


class RawSource(UncompressedSource):
    """A source of raw frames on standard input, all of one size and format."""

    def __init__(self, size: GivenSize | None, pixel_format: str, rate: Fraction) -> None:
        width, height = checked_raw_size("standard input", size, pixel_format)
        if sys.stdin.isatty():
            raise ArgumentError(
                "standard input is a terminal: send raw frames into it, or name a file instead "
                "of -."
            )
        self._shape = frame_shape((width, height), pixel_format)
        self._read = 0
        self._stream: Any = sys.stdin.buffer
        info = uncompressed_info((width, height), rate, None, FORMATS[pixel_format], "rawvideo")
        super().__init__(Path("-"), info, 1 / rate)

    def _arrays(self, begin_s: float) -> Iterator[tuple[int, np.ndarray]]:
        array = np.empty(self._shape, np.uint8)
        room = array.data.cast("B")
        while True:
            filled = 0
            while filled < len(room) and (count := self._stream.readinto(room[filled:])):
                filled += count
            if not filled:
                return
            if filled < len(room):
                raise MediaError(
                    f"standard input ended within frame {self._read}: {len(room) - filled:,} bytes "
                    f"of its {len(room):,} are missing. Are {argument('size')} and "
                    f"{argument('pixel_format')} right?"
                )
            number, self._read = self._read, self._read + 1
            yield number, array
