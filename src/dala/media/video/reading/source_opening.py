"""Opens sources of frames by name: videos, pictures, folders, standard input."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from dala.base.file_path import checked_path
from dala.errors import ArgumentError, FileError, argument
from dala.kernels.image.sizes import GivenSize
from dala.media.pictures import containers
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.image_sequences import Animation, Pictures, is_pattern
from dala.media.video.reading.raw_frames import RawSource
from dala.media.video.reading.uncompressed_source import RATE, checked_rate
from dala.media.video.reading.video_file import VideoFile
from dala.media.video.reading.video_info import VideoInfo

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_HEAD_BYTES = 1 << 16
_WEBP_ANIMATED = 0x02
_AVIF_ANIMATED = b"avis"


class Source(Protocol):
    """A source of frames, which are read in order."""

    path: Path
    info: VideoInfo

    @property
    def time_base(self) -> Fraction:
        """The unit of time stamps, in seconds."""

    @property
    def first_pts(self) -> int:
        """The time stamp of the start."""

    def __iter__(self) -> Iterator[VideoFrame]: ...
    def seek(self, time_s: float) -> None:
        """Makes the next iteration start with the first frame at or after that time."""

    def close(self) -> None:
        """Closes the source; does nothing if it is closed."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *raised: Any) -> None: ...


def open_source(
    path: str | os.PathLike[str],
    *,
    rate: float | Fraction | None = None,
    size: GivenSize | None = None,
    pixel_format: str | None = None,
    largest_pixels: int | None = None,
) -> Source:
    """Opens a video, a GIF, a picture, a folder of pictures, or standard input for reading frames.

    The format is detected from a file's first bytes. A picture is a video of one frame, unless it
    is animated: all frames of a GIF, and of an animated PNG, WebP or AVIF, are read. The pictures
    of a folder, or of a pattern such as `frames/%05d.png`, are ordered by the numbers in their
    names; other files in the folder are ignored. `-` is raw frames on standard input: `size` is
    (width, height), and `pixel_format` rgba (the default), rgb, gray or yuv420p.
    `rate` is the frame rate, 30 by default, of sources without time stamps.
    `largest_pixels` is how many pixels a picture may have: see `media.load`.
    Nothing is fetched: URLs, with a scheme such as http:, are refused.
    """
    where = checked_path("a source", path)
    name = os.fspath(path)
    given = None if rate is None else checked_rate(rate)
    if name == "-":
        return RawSource(size, pixel_format or "rgba", given or RATE)
    if size is not None or pixel_format is not None:
        raise ArgumentError(
            f"{name}: {argument('size')} and {argument('pixel_format')} are for raw frames on "
            f"standard input (-); a file says both itself."
        )
    # A Path is always local; only a string can be a URL.
    scheme = _SCHEME.match(name)
    if scheme is not None and (isinstance(path, str) or not where.exists()):
        raise ArgumentError(
            f"{name} is an address ({scheme[0]}), but only files of this machine are opened: fetch "
            f"it first. For a file of such a name, give ./{name}."
        )
    if where.is_dir() or is_pattern(where):
        return Pictures.of_folder(where, given or RATE, largest_pixels)
    return _opened(where, given, largest_pixels)


def _opened(path: Path, rate: Fraction | None, largest_pixels: int | None) -> Source:
    head = _head(path)
    format = containers.format_of(head)
    if format == "WEBP" and head[12:16] == b"VP8X" and head[20] & _WEBP_ANIMATED:
        _refuse_rate(path, rate)
        return Animation(path, "WEBP", largest_pixels)
    if format == "AVIF" and head[8:12] == _AVIF_ANIMATED:
        _refuse_rate(path, rate)
        return Animation(path, "AVIF", largest_pixels)
    # An animated PNG has its acTL chunk before IDAT.
    is_animated = format == "GIF" or (format == "PNG" and b"acTL" in head.partition(b"IDAT")[0])
    if format is None or is_animated:
        _refuse_rate(path, rate)
        return VideoFile(path)
    return Pictures(path, [path], rate or RATE, largest_pixels)


def _head(path: Path) -> bytes:
    if not path.exists():
        raise FileError(f"{path} is not there.")
    if not path.is_file():
        raise FileError(f"{path} is not a file: for frames that come through a pipe, give -.")
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error


def _refuse_rate(path: Path, rate: Fraction | None) -> None:
    if rate is not None:
        raise ArgumentError(
            f"{path}: {argument('rate')} is for pictures and raw frames; a video has times of "
            f"its own."
        )
