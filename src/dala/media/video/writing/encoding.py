"""Encoders and their settings: codec, pixel format, quality and preset."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from dala.base.record import record
from dala.base.suggestions import hint
from dala.errors import ArgumentError, MediaError, argument
from dala.media.video.reading.deep_formats import deep_format
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.video_info import ColorTags

PRESETS = (
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
)  # fmt: skip


@record
class Codec:
    """An encoder, its pixel formats from the fewest bits to the most, and its quality scale."""

    encoder: str
    pixels: tuple[str, ...]
    worst: int | None = None
    """The largest constant rate factor, if it has one."""

    def pixels_for(self, bits: int) -> str:
        """Returns the first format that holds so many bits, else the one with the most."""
        return next((item for item in self.pixels if bits_of(item) >= bits), self.pixels[-1])


def bits_of(pixels: str) -> int:
    """Returns the bits per channel of an encoder's pixel format."""
    format = deep_format(pixels)
    return 8 if format is None else format.bits


_EIGHT, _TEN, _TWELVE, _SIXTEEN = "yuv420p", "yuv420p10le", "yuv420p12le", "yuv420p16le"
CODECS = {
    "h264": Codec("libx264", (_EIGHT, _TEN), 51),
    "hevc": Codec("libx265", (_EIGHT, _TEN, _TWELVE), 51),
    "vp9": Codec("libvpx-vp9", (_EIGHT,), 63),
    "av1": Codec("libsvtav1", (_EIGHT, _TEN), 63),
    "ffv1": Codec("ffv1", (_EIGHT, _TEN, _TWELVE, _SIXTEEN)),
    "prores": Codec("prores_ks", ("yuv422p10le",)),
}
SUFFIXES = {
    ".mp4": "h264",
    ".m4v": "h264",
    ".mov": "h264",
    ".mkv": "h264",
    ".avi": "h264",
    ".webm": "vp9",
}
"""The default codec for each suffix."""


SMALL_PIXELS = 320 * 240
"""Below this, x264 is only deterministic without mbtree."""
X265_MOVED = 2
"""The frames that x265 moves others over, at most."""
LEAST_AV1_SIDE = 64
"""SVT-AV1 hangs on smaller frames."""
_QUIETLY = {"libx265": {"x265-params": "log-level=error"}}


@record
class Encoding:
    """An encoder with its settings."""

    encoder: str
    pixels: str
    options: dict[str, str]


def encoding_for(
    path: Path, bits: int, codec: str | None, quality: float | None, preset: str | None
) -> Encoding:
    """Returns the encoder for a file; `quality` is 0 to 100."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(
            f"{path}: no video is written as {suffix or 'a file without a suffix'!r}: give one of "
            f"{', '.join(SUFFIXES)}."
        )
    name = {"h265": "hevc"}.get(codec or "", codec) or SUFFIXES[suffix]
    if codec is None and name == "vp9" and bits > 8:
        name = "av1"  # the WebM codec with more than 8 bits
    if name not in CODECS:
        raise ArgumentError(
            f"{argument('codec')} {codec!r} is not known: give one of {', '.join(CODECS)}."
            f"{hint(name, CODECS)}"
        )
    chosen = CODECS[name]
    pixels = chosen.pixels_for(bits)
    if bits > 8 and bits_of(pixels) == 8:
        deep = ", ".join(item for item in CODECS if bits_of(CODECS[item].pixels[-1]) > 8)
        raise ArgumentError(
            f"{path}: {name} would cut the {bits} bits of the source to 8: as {argument('codec')} "
            f"give one of {deep}."
        )
    options = _options(chosen, quality, preset)
    return Encoding(chosen.encoder, pixels, options)


def _options(codec: Codec, quality: float | None, preset: str | None) -> dict[str, str]:
    options = dict(_QUIETLY.get(codec.encoder, {}))
    if quality is not None:
        if (
            isinstance(quality, bool)
            or not isinstance(quality, int | float)
            or not 0 <= quality <= 100
        ):
            raise ArgumentError(
                f"{argument('quality')} is a number from 0 to 100, not {quality!r}."
            )
        if codec.worst is not None:
            options["crf"] = f"{round(codec.worst * (100 - quality) / 100)}"
        if codec.encoder == "libvpx-vp9":
            options["b"] = "0"
    if preset is not None:
        if preset not in PRESETS:
            raise ArgumentError(
                f"{argument('preset')} {preset!r} is not known: give one of {', '.join(PRESETS)}."
                f"{hint(preset, PRESETS)}"
            )
        options |= _speed(codec.encoder, PRESETS.index(preset))
    return options


def _speed(encoder: str, place: int) -> dict[str, str]:
    """Returns the encoder's options for a preset, if it has speeds."""
    if encoder in ("libx264", "libx265"):
        return {"preset": PRESETS[place]}
    if encoder == "libsvtav1":
        return {"preset": str(12 - place)}
    if encoder == "libvpx-vp9":
        return {"cpu-used": str(max(0, 8 - place)), "deadline": "good", "row-mt": "1"}
    return {}


@record
class FrameFormat:
    """What an encoder has to know about the frames: size, rate, time base and colors."""

    size: tuple[int, int]
    rate: Fraction
    time_base: Fraction
    colors: ColorTags


def configure(codec: Any, encoding: Encoding, frame_format: FrameFormat) -> None:
    """Configures an encoder so that the same frames always give the same bytes."""
    if encoding.encoder == "libsvtav1" and min(frame_format.size) < LEAST_AV1_SIDE:
        width, height = frame_format.size
        raise ArgumentError(
            f"av1 takes frames of at least {LEAST_AV1_SIDE} pixels a side, not {width} × {height}: "
            f"give another {argument('codec')}."
        )
    codec.width, codec.height = frame_format.size
    codec.pix_fmt = encoding.pixels
    codec.framerate = frame_format.rate
    codec.time_base = frame_format.time_base
    codec.options = encoding.options
    if encoding.encoder == "libx264" and frame_format.size[0] * frame_format.size[1] < SMALL_PIXELS:
        codec.options = {**encoding.options, "x264-params": "mbtree=0"}
    codec.thread_type = "AUTO"
    frame_format.colors.put_on(codec)


class Encoder:
    """Encodes frames into packets, which are muxed later."""

    def __init__(self, encoding: Encoding, frame_format: FrameFormat) -> None:
        av = pyav()
        self._codec = av.CodecContext.create(encoding.encoder, "w")
        configure(self._codec, encoding, frame_format)
        # Parameter sets go into the container's header, not into each segment's packets.
        self._codec.flags |= av.codec.context.Flags.global_header
        self._frames = 0

    def encode(self, frame: Any) -> list[Any]:
        """Returns the packets that are ready; for None, all that remain."""
        av = pyav()
        self._frames += frame is not None
        try:
            return _timed(self._codec.encode(frame), self._codec.name, self._frames)
        except av.error.FFmpegError as error:
            raise MediaError(f"frames cannot be encoded: {error.strerror or error}.") from error


def _timed(packets: list[Any], encoder: str, frames: int) -> list[Any]:
    """Returns the packets of so many frames so far, each with the time at which it is decoded.

    x265 knows that time once there is a frame to be moved before others, and gives what happens to
    be in its memory if there never is one. Its packets are in order then.
    """
    if encoder == "libx265" and frames <= X265_MOVED:
        for packet in packets:
            packet.dts = packet.pts
    return packets


class EncodedFile:
    """A video file with one stream, open for writing."""

    def __init__(
        self,
        path: Path,
        encoding: Encoding,
        frame_format: FrameFormat,
        *,
        format: str | None = None,
        rotation: int = 0,
    ) -> None:
        av = pyav()
        self.path = path
        self.encoding = encoding
        self._container: Any = av.open(f"file:{path}", "w", format=format)
        stream = self._container.add_stream(encoding.encoder, rate=frame_format.rate)
        configure(stream.codec_context, encoding, frame_format)
        stream.time_base = frame_format.time_base
        if rotation:
            stream.set_display_rotation(rotation)
        self._stream = stream
        self._frames = 0

    def write(self, frame: Any) -> None:
        """Encodes a frame, whose time stamp is in the file's time base."""
        av = pyav()
        self._frames += frame is not None
        try:
            packets = self._stream.encode(frame)
            for packet in _timed(packets, self.encoding.encoder, self._frames):
                self._container.mux(packet)
        except av.error.FFmpegError as error:
            raise MediaError(
                f"{self.path} cannot be written: {error.strerror or error}."
            ) from error

    def close(self) -> None:
        """Flushes the encoder and closes the file."""
        if self._container is not None:
            try:
                self.write(None)
            finally:
                self._container.close()
                self._container = None

    def abandon(self) -> None:
        """Closes the file without flushing the encoder."""
        if self._container is not None:
            container, self._container = self._container, None
            container.close()
