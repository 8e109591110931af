"""Sources of uncompressed frames: arrays without a file that says their rate and colors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dala.base.printable import printable
from dala.errors import ArgumentError, ClosedError, argument
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.video_file import Seekable
from dala.media.video.reading.video_info import StreamInfo, VideoInfo, standard_colors

Opened = TypeVar("Opened", bound="UncompressedSource")

RATE = Fraction(30)
"""The default frame rate."""
_FASTEST = 1000
_NTSC = Fraction(1000, 1001)


def checked_rate(rate: Any) -> Fraction:
    """Returns the frame rate as a fraction; 29.97 becomes 30000/1001."""
    known = isinstance(rate, int | float | Fraction) and not isinstance(rate, bool)
    if not known or not 0 < rate <= _FASTEST:
        raise ArgumentError(
            f"{argument('rate')} is frames in a second, more than 0 and at most {_FASTEST}, not "
            f"{rate!r}."
        )
    exact = Fraction(rate).limit_denominator(1001)
    if isinstance(rate, float) and exact.denominator != 1:
        ntsc = round(exact / _NTSC) * _NTSC
        return ntsc if abs(ntsc - exact) < Fraction(1, 200) else exact
    return exact


def uncompressed_info(
    size: tuple[int, int],
    rate: Fraction,
    frames: int | None,
    pixel_format: str,
    codec: str,
    bits: int = 8,
) -> VideoInfo:
    """Returns the VideoInfo of frames at a constant rate."""
    return VideoInfo(
        width=size[0],
        height=size[1],
        rate=rate,
        duration_s=None if frames is None else float(frames / rate),
        frame_count=frames,
        pixel_format=pixel_format,
        bits=bits,
        codec=codec,
        rotation=0,
        colors=standard_colors(size[1]),
        streams=(StreamInfo(0, "video", codec, None),),
    )


class UncompressedSource(Seekable, ABC):
    """A source whose frames are arrays, at multiples of `time_base`."""

    first_pts = 0

    def __init__(self, path: Path, info: VideoInfo, time_base: Fraction) -> None:
        self.path = path
        self.info = info
        self.time_base = time_base
        self._closed = False

    def __iter__(self) -> Iterator[VideoFrame]:
        self._check_open()
        begin_s, self._from_s = self._from_s, 0.0
        index = 0
        for pts, array in self._arrays(begin_s):
            time_s = float(pts * self.time_base)
            if time_s + 1e-9 < begin_s:
                continue
            yield VideoFrame(self._frame(array, pts), index, time_s)
            index += 1

    @abstractmethod
    def _arrays(self, begin_s: float) -> Iterable[tuple[int, np.ndarray]]:
        """Yields each frame with its time stamp; frames before `begin_s` may be left out."""

    def _frame(self, array: np.ndarray, pts: int) -> Any:
        frame = pyav().VideoFrame.from_ndarray(array, format=self.info.pixel_format)
        frame.pts, frame.time_base = pts, self.time_base
        return frame

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self.path} was closed: open it again.")

    def close(self) -> None:
        """Closes the source; does nothing if it is closed."""
        self._closed = True

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        return f"<{type(self).__name__} {printable(self.path)} {info.width} × {info.height}>"
