"""Video files that are open for reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

from dala.base.file_path import checked_path
from dala.base.printable import printable
from dala.errors import ArgumentError, ClosedError, MediaError, argument
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.pyav import open_container, translated_errors
from dala.media.video.reading.video_info import ColorTags, StreamInfo, VideoInfo, standard_colors

_SEEK_AGAIN_S = 10.0


LATEST_S = 1e9
"""The latest time to seek to: later time stamps do not fit into a file."""


class Seekable:
    """A source that can start at another time."""

    _from_s: float = 0.0

    def seek(self, time_s: float) -> None:
        """Makes the next iteration start with the first frame at or after that time."""
        if not isinstance(time_s, int | float) or not 0 <= time_s < float("inf"):
            raise ArgumentError(f"seek: the time is in seconds from 0 on, not {time_s!r}.")
        self._from_s = float(time_s)


class VideoFile(Seekable):
    """An open video: iterate over it for frames, `seek` to start elsewhere.

    >>> from dala import media
    >>> with media.open("clip.mp4") as clip:  # doctest: +SKIP
    ...     for frame in clip:
    ...         show(frame.time_s, frame.image())
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = checked_path("a video file", path)
        self._open()
        try:
            self.info = self._described()
        except BaseException:
            self.close()
            raise
        self._rewind()

    @property
    def sound(self) -> Path | None:
        """The file whose sound goes with the frames."""
        return self.path

    def _open(self) -> None:
        self._container: Any = open_container(self.path)
        try:
            self._stream = self._first_stream()
        except BaseException:
            self.close()
            raise

    def _rewind(self) -> None:
        """Reopens the file: in a truncated one, no seek finds the start."""
        self._container.close()
        self._open()
        self._is_fresh = True

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
            colors=standard_colors(codec.height) if _is_rgb(codec) else ColorTags.of(codec),
            streams=tuple(
                StreamInfo(item.index, item.type, _codec_name(item), item.language)
                for item in self._container.streams
            ),
        )

    def _rotation(self) -> int:
        """Returns the first frame's rotation, which the stream does not have."""
        with translated_errors(self.path):
            first = next(self._container.decode(self._stream), None)
            if first is None:
                raise MediaError(f"{self.path} has a video stream, but not a single frame in it.")
        return int(first.rotation)

    @property
    def time_base(self) -> Fraction:
        """The unit of time stamps, in seconds."""
        return Fraction(self._stream.time_base)

    @property
    def first_pts(self) -> int:
        """The time stamp of the start."""
        return int(self._stream.start_time or 0)

    # -- reading ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[VideoFrame]:
        self._check_open()
        base, start = self.time_base, self.first_pts
        begin_s = min(self._from_s, LATEST_S)
        self._from_s = 0.0
        index = 0
        with translated_errors(self.path):
            for frame in self._decoded_from(begin_s):
                if frame.pts is None:
                    raise MediaError(f"{self.path}: frame {index} has no time stamp.")
                time_s = float((frame.pts - start) * base)
                if time_s + 1e-9 >= begin_s:
                    yield VideoFrame(frame, index, time_s)
                    index += 1
        if not begin_s:
            self._check_whole(index)

    def _check_whole(self, count: int) -> None:
        """Raises MediaError if the file is truncated; a few frames may be hidden."""
        promised = self.info.frame_count
        if promised is not None and count < 0.9 * promised - 2:
            raise MediaError(
                f"{self.path} ends after {count} of {promised} frames: it is cut off. Give "
                f"{argument('end')} a time before that to use what is there."
            )

    def _decoded_from(self, begin_s: float) -> Iterator[Any]:
        """Returns frames from a key frame at or before the time.

        In files without an index, such as MPEG-TS, a seek can overshoot, and the decoder then waits
        for the next key frame: such a seek is repeated from earlier on.
        """
        start = self.first_pts
        for earlier_s in (0.0, _SEEK_AGAIN_S):
            from_s = begin_s - earlier_s
            if from_s <= 0:
                break
            at = start + int(from_s / self.time_base)
            self._is_fresh = False
            self._container.seek(at, stream=self._stream, backward=True)
            frames = self._container.decode(self._stream)
            first = next(frames, None)
            if first is None or first.pts is None:
                continue
            if float((first.pts - start) * self.time_base) <= begin_s + 1e-9:
                return chain([first], frames)
        if not self._is_fresh:
            self._rewind()
        self._is_fresh = False
        return iter(self._container.decode(self._stream))

    @property
    def chapters(self) -> list[Any]:
        return list(self._check_open().chapters())

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self._check_open().metadata)

    def close(self) -> None:
        """Closes the file; does nothing if it is closed."""
        if self._container is not None:
            self._container.close()
            self._container = None

    def _check_open(self) -> Any:
        if self._container is None:
            raise ClosedError(f"{self.path} was closed: open it again with media.open().")
        return self._container

    def __enter__(self) -> VideoFile:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        length = "" if info.duration_s is None else f" {info.duration_s:.2f} s"
        return f"<VideoFile {printable(self.path.name)} {info.width} × {info.height}{length}>"


def _is_rgb(codec: Any) -> bool:
    return bool(codec.format.is_rgb) or codec.format.name == "pal8"


def _codec_name(stream: Any) -> str:
    context = stream.codec_context
    return "unknown" if context is None else str(context.name)
