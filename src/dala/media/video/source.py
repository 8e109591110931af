"""Sources of frames: video files, and what else can stand for one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dala.errors import ArgumentError, ClosedError, MediaError
from dala.ir.record import record
from dala.media.video.decoding import open_file, telling
from dala.media.video.described import ColourTags, StreamInfo, VideoInfo
from dala.media.video.pixels import image_of

_SEEK_AGAIN_S = 10.0


LATEST_S = 1e9
"""As far as is searched for: beyond it time stamps no longer fit into a file."""


@record
class VideoFrame:
    """A decoded frame, and when it is shown."""

    coded: Any
    """PyAV's frame, in the pixel format of the file."""
    index: int
    """How many frames were read before it."""
    time_s: float

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.coded.width, self.coded.height

    def image(self) -> np.ndarray:
        """The pixels as RGB, or RGBA where there is transparency: u8, or f32 for deeper ones."""
        return image_of(self.coded)


class VideoFile:
    """A video that is read: iterate over it for its frames, `seek` to begin elsewhere.

    >>> from dala import media
    >>> with media.open("clip.mp4") as clip:  # doctest: +SKIP
    ...     for frame in clip:
    ...         show(frame.time_s, frame.image())
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._container: Any = open_file(path)
        try:
            self._stream = self._first_stream()
            self.info = self._described()
        except BaseException:
            self._container.close()
            raise
        self._from_s: float | None = None

    def _first_stream(self) -> Any:
        streams = self._container.streams.video
        moving = [item for item in streams if not item.disposition & item.disposition.attached_pic]
        if not moving:
            kinds = ", ".join(sorted({item.type for item in self._container.streams})) or "nothing"
            raise MediaError(f"{self.path} has no video in it, only {kinds}.")
        moving[0].thread_type = "AUTO"
        return moving[0]

    def _described(self) -> VideoInfo:
        stream, codec = self._stream, self._stream.codec_context
        if not codec.width or not codec.height or codec.format is None:
            raise MediaError(f"{self.path}: its video has no size: the file is damaged or cut off.")
        duration_s = None
        if stream.duration is not None:
            duration_s = float(stream.duration * stream.time_base)
        elif self._container.duration is not None:
            duration_s = self._container.duration / 1e6
        return VideoInfo(
            width=codec.width,
            height=codec.height,
            rate=Fraction(stream.average_rate or stream.guessed_rate or 25),
            duration_s=duration_s,
            frame_count=stream.frames or None,
            pixel_format=codec.format.name,
            bits=max(component.bits for component in codec.format.components),
            codec=codec.name,
            rotation=self._rotation(),
            colours=ColourTags.of(codec),
            streams=tuple(
                StreamInfo(item.index, item.type, _codec_name(item), item.language)
                for item in self._container.streams
            ),
        )

    def _rotation(self) -> int:
        """What the first frame says: the stream itself does not tell."""
        with telling(self.path):
            first = next(self._container.decode(self._stream), None)
            if first is None:
                raise MediaError(f"{self.path} has a video stream, but not a single frame in it.")
            self._container.seek(0, stream=self._stream, backward=True)
        return int(first.rotation)

    @property
    def time_base(self) -> Fraction:
        """The unit of time stamps, in seconds."""
        return Fraction(self._stream.time_base)

    @property
    def first_pts(self) -> int:
        """The time stamp at which it begins."""
        return int(self._stream.start_time or 0)

    # -- reading ---------------------------------------------------------------------------------

    def seek(self, time_s: float) -> None:
        """Have the next iteration begin with the first frame at that time or after it."""
        if not isinstance(time_s, int | float) or not 0 <= time_s < float("inf"):
            raise ArgumentError(f"seek: the time is in seconds from 0 on, not {time_s!r}.")
        self._from_s = float(time_s)

    def __iter__(self) -> Iterator[VideoFrame]:
        self._check_open()
        base, start = self.time_base, self.first_pts
        begin_s = self._from_s or 0.0
        self._from_s = None
        with telling(self.path):
            index = 0
            for frame in self._decoded_from(begin_s):
                if frame.pts is None:
                    raise MediaError(f"{self.path}: frame {index} has no time stamp.")
                time_s = float((frame.pts - start) * base)
                if time_s + 1e-9 >= begin_s:
                    yield VideoFrame(frame, index, time_s)
                    index += 1

    def _decoded_from(self, begin_s: float) -> Iterator[Any]:
        """Frames from a key frame on that is not after the time.

        Where a file has no index, as MPEG-TS, a seek can go past that key frame, and the decoder
        then waits for the next: so a seek that went too far is done again from earlier on.
        """
        start = self.first_pts
        for earlier_s in (0.0, _SEEK_AGAIN_S, begin_s):
            from_s = max(0.0, begin_s - earlier_s)
            at = start + int(from_s / self.time_base) if from_s else min(start, 0)
            self._container.seek(at, stream=self._stream, backward=True)
            frames = self._container.decode(self._stream)
            first = next(frames, None)
            if first is not None and first.pts is not None and from_s:
                first_s = float((first.pts - start) * self.time_base)
                if first_s <= begin_s + 1e-9:
                    break
            if not from_s:
                break
        return iter(()) if first is None else chain([first], frames)

    @property
    def chapters(self) -> list[Any]:
        return list(self._check_open().chapters())

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self._check_open().metadata)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._container is not None:
            self._container.close()
            self._container = None

    def _check_open(self) -> Any:
        if self._container is None:
            raise ClosedError(f"{self.path} was closed: open it again with media.open().")
        return self._container

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        length = "" if info.duration_s is None else f" {info.duration_s:.2f} s"
        return f"<VideoFile {self.path.name} {info.width} × {info.height}{length}>"


def _codec_name(stream: Any) -> str:
    context = stream.codec_context
    return "unknown" if context is None else str(context.name)
