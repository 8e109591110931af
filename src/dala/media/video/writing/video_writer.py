"""Video files written frame by frame."""

from __future__ import annotations

import os
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.atomic_file import replace_file, temporary_path
from dala.base.file_path import checked_path
from dala.errors import ArgumentError, FileError
from dala.images.frames import frame_of
from dala.kernels.image.sizes import GivenSize
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.frame_conversion import (
    bits_per_channel,
    frame_from_image,
    image_from_frame,
)
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.uncompressed_source import RATE, checked_rate
from dala.media.video.reading.video_info import ColorTags, standard_colors
from dala.media.video.writing.encoding import EncodedFile, Encoding, FrameFormat, encoding_for
from dala.media.video.writing.sink import Sink, check_writable

_LEAST_TICKS_PER_S = 90_000
_DEEP_BITS = 10
_LEAST_SVT_EXTENT = 64
"""SVT-AV1 can hang on smaller frames."""


def writer(
    path: str | os.PathLike[str],
    size: GivenSize | None = None,
    rate: float | Fraction = RATE,
    *,
    codec: str | None = None,
    quality: float | None = None,
    preset: str | None = None,
) -> VideoWriter:
    """Opens a video file for writing frames; it appears under its name when it is closed.

    `size` is (width, height), by default that of the first frame; `rate` is the frame rate, for
    frames that are written without a time. `codec`, `quality` and `preset` are as for
    `media.transcode`. An error inside `with` discards the file.

    If the first frame is u16, f32 or f16, the file has 10 bits, if the codec supports that; if it
    comes from a video of more than 8 bits, as many as that, or as the codec has. Few browsers play
    10-bit H.264: for them, write u8, or av1.
    A file that starts with a frame of a video has its color tags, others those of sRGB.

    >>> from dala import media
    >>> with media.writer("out.mp4", rate=25) as out:  # doctest: +SKIP
    ...     for image in images:
    ...         out.write(image)
    """
    return VideoWriter(
        checked_path("a video file", path), size, checked_rate(rate), codec, quality, preset
    )


class VideoWriter(Sink):
    """A video file, open for writing."""

    def __init__(
        self,
        path: Path,
        size: GivenSize | None,
        rate: Fraction,
        codec: str | None,
        quality: float | None,
        preset: str | None,
    ) -> None:
        super().__init__(path, size)
        self._settings = (codec, quality, preset)
        encoding_for(path, 8, *self._settings)  # raises for wrong settings before the first frame
        check_writable(path)
        pyav()
        self._draft = temporary_path(path)
        self._rate = rate
        self._is_avi = path.suffix.lower() == ".avi"
        # Every frame of the rate falls on a tick, and other times on one nearby; an AVI has a frame
        # at every tick.
        finer = 1 if self._is_avi else -(-_LEAST_TICKS_PER_S // rate.numerator)
        self._time_base = 1 / (rate * finer)
        self._file: EncodedFile | None = None
        self._tick = -1
        self._colors: ColorTags

    def write(self, image: Any, time_s: float | None = None) -> None:
        """Adds a frame: an array, a Buffer, a Pillow image, or a frame of a video.

        It is shown from `time_s` on. Without it, a frame of a video keeps its time, and an image
        follows the previous one at the frame rate.
        """
        if isinstance(image, VideoFrame):
            when_s = image.time_s if time_s is None else time_s
            self._check(image.size, when_s)
            pixels: Any = image.decoded
        else:
            when_s = self._next_s() if time_s is None else time_s
            pixels = np.asarray(frame_of(self._what, image).pixels)
            self._check((pixels.shape[1], pixels.shape[0]), when_s)
        self._write(pixels, when_s)
        self._count(when_s)

    def _next_s(self) -> float:
        if self._last_s is None:
            return 0.0
        return float(
            Fraction(round(self._last_s / self._time_base)) * self._time_base + 1 / self._rate
        )

    def _write(self, image: Any, time_s: float) -> None:
        tick = round(time_s / self._time_base)
        if tick <= self._tick:
            raise ArgumentError(
                f"{self._what} is shown at {time_s:g} s, too soon after the one before: times "
                f"in this file are {float(self._time_base):g} s apart, or more."
            )
        assert self.size is not None
        if self._file is None:
            self._colors = _colors(image, self.size[1])
            self._file = self._open(_bits(image), self.size)
        frame = self._encodable(image, self._file.encoding.pixels)
        before = (frame.pts, frame.time_base) if frame is image else None
        frame.pts, frame.time_base = tick, self._time_base
        frame.pict_type = 0  # the encoder chooses its own key frames
        try:
            self._file.write(frame)
        finally:
            if before is not None:  # the frame belongs to the caller
                frame.pts, frame.time_base = before
        self._tick = tick

    def _open(self, bits: int, size: tuple[int, int]) -> EncodedFile:
        encoding = encoding_for(self.path, bits, *self._settings)
        if self._is_avi:
            # AVI has no time stamps, only decoding order, which B-frames would change.
            encoding = Encoding(encoding.encoder, encoding.pixels, _in_order(encoding))
        width, height = size
        odd = (width % 2, height % 2 if encoding.pixels.startswith("yuv420") else 0)
        if any(odd):
            raise ArgumentError(
                f"{self.path} would be {width} × {height}, but its pixels ({encoding.pixels}) come "
                f"in pairs: give frames of an even size, {width + odd[0]} × {height + odd[1]}."
            )
        if encoding.encoder == "libsvtav1" and min(size) < _LEAST_SVT_EXTENT:
            raise ArgumentError(
                f"{self.path} would be {width} × {height}, but av1 is written from "
                f"{_LEAST_SVT_EXTENT} × {_LEAST_SVT_EXTENT} on: give larger frames, or another "
                f"codec."
            )
        av = pyav()
        try:
            file = EncodedFile(
                self._draft,
                encoding,
                FrameFormat(size, self._rate, self._time_base, self._colors),
            )
        except av.error.FFmpegError as error:
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        file.path = self.path  # the name in errors
        return file

    def _encodable(self, image: Any, pixels: str) -> Any:
        if isinstance(image, np.ndarray):
            return frame_from_image(image, pixels, self._colors)
        if image.format.is_rgb or vars(ColorTags.of(image)) != vars(self._colors):
            return frame_from_image(image_from_frame(image), pixels, self._colors)
        return image if image.format.name == pixels else image.reformat(format=pixels)

    def _finish(self) -> None:
        assert self._file is not None
        self._file.close()
        replace_file(self._draft, self.path)

    def _drop(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # the disk may be full; the draft is removed anyway
                self._file.abandon()
        self._draft.unlink(missing_ok=True)


def _in_order(encoding: Encoding) -> dict[str, str]:
    """Returns encoder options without B-frames."""
    if encoding.encoder != "libx265":
        return {**encoding.options, "bf": "0"}
    params = [encoding.options.get("x265-params", ""), "bframes=0"]
    return {**encoding.options, "x265-params": ":".join(filter(None, params))}


def _colors(image: Any, height: int) -> ColorTags:
    """Returns the color tags for a video that starts with this frame."""
    if isinstance(image, np.ndarray) or image.format.is_rgb:
        return standard_colors(height)
    return ColorTags.of(image)


def _bits(image: Any) -> int:
    if isinstance(image, np.ndarray):
        return 8 if image.dtype == np.uint8 else _DEEP_BITS
    return bits_per_channel(image)
