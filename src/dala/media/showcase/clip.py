"""A generated sample video with moving objects and sound."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dala.base.atomic_file import atomic_path
from dala.base.file_path import checked_path
from dala.errors import ArgumentError, FileError
from dala.kernels.image.sizes import GivenSize, Size, exact_size
from dala.media.showcase import sample
from dala.media.showcase.canvas import Canvas, Field, color, disc, oval
from dala.media.video.reading.frame_conversion import frame_from_image
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.uncompressed_source import checked_rate
from dala.media.video.reading.video_info import standard_colors
from dala.media.video.writing.sink import check_writable

SAMPLES_PER_S = 48_000
# With its macroblock tree, x264 does not always make the same bytes of the same small frames.
_OPTIONS = {"preset": "veryfast", "crf": "20", "x264-params": "mbtree=0"}
_LARGEST_EXTENT = 4096
_LONGEST_S = 600.0
_ROOM = 1.08
"""The size of the scene relative to a frame."""
_NOTES_HZ = (523.25, 659.25, 783.99, 659.25, 698.46, 880.0, 783.99, 587.33, 659.25, 523.25)
_NOTE_S = 0.3
_OVERTONES = ((1, 1.0), (2, 0.35), (3, 0.12))


def write_clip(
    path: str | os.PathLike[str],
    seconds: float = 3.0,
    size: GivenSize = (640, 360),
    rate: float = 30,
) -> Path:
    """Writes the clip as H.264 and AAC: the sample picture, a balloon, a ball and birds passing.

    It is the same at every call. The suffix (.mp4, .mov or .mkv) chooses the container; the file is
    written atomically.
    """
    target = checked_path("a video file", path)
    per_second = checked_rate(rate)
    _check(target, seconds)
    extent = _even_size(size)
    try:
        with atomic_path(target) as draft:
            _encode(draft, round(seconds * per_second), extent, per_second, float(seconds))
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    return target


def _check(target: Path, seconds: Any) -> None:
    if target.suffix.lower() not in (".mp4", ".mov", ".mkv"):
        raise ArgumentError(f"{target}: the clip is written as .mp4, .mov or .mkv.")
    check_writable(target)
    if not isinstance(seconds, int | float) or not 0.1 <= seconds <= _LONGEST_S:
        raise ArgumentError(f"the clip is 0.1 to {_LONGEST_S:g} seconds long, not {seconds!r}.")


def _even_size(given: Any) -> Size:
    size = exact_size("the clip", given)
    if all(16 <= n <= _LARGEST_EXTENT and n % 2 == 0 for n in size):
        return size
    raise ArgumentError(
        f"the clip's size is (width, height), even numbers of 16 to {_LARGEST_EXTENT}, not "
        f"{given!r}."
    )


def _encode(
    draft: Path, frames: int, size: tuple[int, int], rate: Fraction, seconds: float
) -> None:
    av = pyav()
    colors = standard_colors(size[1])
    scene = _Scene(size)
    with av.open(f"file:{draft}", "w") as container:
        video: Any = container.add_stream("libx264", rate=rate, options=_OPTIONS)
        video.width, video.height = size
        video.pix_fmt = "yuv420p"
        colors.put_on(video.codec_context)
        audio: Any = container.add_stream("aac", rate=SAMPLES_PER_S, layout="mono")
        for packet in _sound_packets(audio, seconds):
            container.mux(packet)
        for number in range(frames):
            frame = frame_from_image(scene.frame(float(number / rate)), "yuv420p", colors)
            frame.pts, frame.time_base = number, 1 / rate
            container.mux(video.encode(frame))
        container.mux(video.encode(None))


# -- what is heard -------------------------------------------------------------------------------


def tune(seconds: float) -> np.ndarray:
    """Returns a tune as f32 samples in -1..1 at 48 kHz, repeated as needed."""
    at = np.arange(round(seconds * SAMPLES_PER_S)) / SAMPLES_PER_S
    sound = np.zeros(at.size)
    for number in range(int(seconds / _NOTE_S) + 1):
        since = at - number * _NOTE_S
        heard = (since >= 0) & (since < 4 * _NOTE_S)
        t, pitch = since[heard], _NOTES_HZ[number % len(_NOTES_HZ)]
        strike = np.minimum(t / 0.008, 1.0) * np.exp(-5.0 * t)
        for overtone, strength in _OVERTONES:
            sound[heard] += strike * strength * np.sin(2 * np.pi * pitch * overtone * t)
    fade = np.clip((seconds - at) / 0.15, 0.0, 1.0)
    return (0.25 * sound * fade).astype(np.float32)


def _sound_packets(stream: Any, seconds: float) -> list[Any]:
    sound = tune(seconds)
    packets: list[Any] = []
    for begin in range(0, sound.size, 1024):
        part = np.ascontiguousarray(sound[None, begin : begin + 1024])
        frame = pyav().AudioFrame.from_ndarray(part, format="fltp", layout="mono")
        frame.sample_rate, frame.pts = SAMPLES_PER_S, begin
        frame.time_base = Fraction(1, SAMPLES_PER_S)
        packets += stream.encode(frame)
    return packets + list(stream.encode(None))


# -- what is seen --------------------------------------------------------------------------------


class _Scene:
    """The sample picture, larger than a frame; flying objects pass behind the person."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        width, height = (round(extent * _ROOM) for extent in size)
        self._still = sample.picture(height, width)[..., :3].astype(np.float32) / 255
        self._before = sample.person_mask(height, width)[..., None].astype(np.float32) / 255
        self._scale = min(height / sample.HEIGHT, width / sample.WIDTH)
        blank = Canvas.blank(height, width, sample.HEIGHT, sample.WIDTH)
        self._u, self._v = blank.u.astype(np.float32), blank.v.astype(np.float32)

    def frame(self, time_s: float) -> np.ndarray:
        """Returns the frame at that time as u8 RGB."""
        pixels = self._still.copy()
        canvas = Canvas(self._u, self._v, pixels, self._scale)
        left, right = float(self._u[0, 0]), float(self._u[0, -1])
        _paint_birds(canvas, left + (right - left) * _there_and_on(0.05 + 0.11 * time_s), time_s)
        _paint_balloon(canvas, left + (right - left) * _there_and_on(0.52 + 0.06 * time_s), time_s)
        pixels += (self._still - pixels) * self._before
        _paint_ball(canvas, left + (right - left) * _there_and_on(0.06 + 0.22 * time_s))
        return self._view(pixels, time_s)

    def _view(self, pixels: np.ndarray, time_s: float) -> np.ndarray:
        """Returns the part of the scene that the slowly panning view shows."""
        width, height = self._size
        across = 0.5 - 0.5 * np.cos(0.9 * time_s)
        down = 0.5 + 0.5 * np.sin(0.6 * time_s)
        x = (pixels.shape[1] - width) * across
        y = (pixels.shape[0] - height) * down
        moved = _shifted(pixels, x, y)[:height, :width]
        levels: np.ndarray = np.rint(moved * 255).clip(0, 255)
        return levels.astype(np.uint8)


def _shifted(pixels: np.ndarray, x: float, y: float) -> np.ndarray:
    """Returns the pixels from a position on, interpolated bilinearly."""
    left, top = int(x), int(y)
    s, t = np.float32(x - left), np.float32(y - top)
    part = pixels[top:, left:]
    right = np.concatenate([part[:, 1:], part[:, -1:]], axis=1)
    part = part + (right - part) * s
    below = np.concatenate([part[1:], part[-1:]], axis=0)
    return np.asarray(part + (below - part) * t)


def _there_and_on(place: float) -> float:
    """Returns a position that wraps from right of the scene (1.1) to left of it (-0.1)."""
    return (place + 0.1) % 1.2 - 0.1


def _paint_balloon(canvas: Canvas, cu: float, time_s: float) -> None:
    """Paints a small striped balloon in the distance."""
    cv, radius = 84.0 + 5.0 * float(np.sin(1.3 * time_s)), 30.0
    part = canvas.part(cu - 40, cv - 40, cu + 40, cv + 66)
    u, v = part.u, part.v
    wide = radius * (1 - 0.3 * np.clip((v - cv) / radius, 0.0, 1.4) ** 2)
    envelope: Field = np.maximum(oval(u, v, cu, cv, radius, 36.0), np.abs(u - cu) - wide)
    stripe = np.floor(np.arcsin(np.clip((u - cu) / wide, -1, 1)) * 2.4 + 0.5).astype(int) % 2
    tint = np.stack([color("#ff7a1a"), color("#fff4d6")])[stripe]
    light = 0.7 + 0.35 * np.clip(0.6 - 0.5 * (u - cu) / radius, 0.0, 1.0)
    ropes = np.abs(np.abs(u - cu) - 5 - 7 * np.clip((cv + 50 - v) / 16, 0, 1)) - 0.5
    part.paint("#5d4030", part.cover(np.maximum(ropes, np.abs(v - cv - 42) - 9)))
    part.paint(np.clip(tint * light[..., None], 0, 1), part.cover(envelope))
    part.paint("#7a4a20", part.cover(np.maximum(np.abs(u - cu) - 6, np.abs(v - cv - 54) - 5)))


def _paint_ball(canvas: Canvas, cu: float) -> None:
    """Paints a beach ball that rolls over the meadow."""
    cv, radius = 440.0, 26.0
    part = canvas.part(cu - 70, cv - 30, cu + 70, cv + 50)
    x, y = (part.u - cu) / radius, (part.v - cv) / radius
    ground = np.hypot((x - 0.2) / 1.2, (y - 0.95) / 0.28)
    part.paint("#0d260c", 0.5 * np.clip(1.5 - 1.3 * ground, 0.0, 1.0))
    turn = np.arctan2(y, x) - cu / radius
    wedge = np.floor(turn / (np.pi / 3)).astype(int) % 3
    tint = np.stack([color(c) for c in ("#f4f4f4", "#e8212e", "#1e63d6")])[wedge]
    depth = np.sqrt(np.clip(1 - x * x - y * y, 0.0, 1.0))
    lit = np.clip(-0.48 * x - 0.58 * y + 0.66 * depth, 0.0, 1.0)
    body = tint * (0.4 + 0.7 * lit[..., None]) + 0.5 * (lit**24)[..., None]
    part.paint(np.clip(body, 0, 1), part.cover(disc(part.u, part.v, cu, cv, radius)))


def _paint_birds(canvas: Canvas, cu: float, time_s: float) -> None:
    """Paints three birds that flap their wings."""
    for number, (du, dv) in enumerate(((0.0, 0.0), (-26.0, 11.0), (-20.0, -14.0))):
        u0, v0 = cu + du, 172.0 + dv
        part = canvas.part(u0 - 14, v0 - 14, u0 + 14, v0 + 14)
        beat = float(np.sin(9.0 * time_s + 1.7 * number))
        x = np.abs(part.u - u0)
        wing = np.abs(part.v - v0 + beat * x * 0.7 * (1 - x / 24)) - 1.5 * (1 - x / 13)
        part.paint("#20242e", part.cover(np.maximum(wing, x - 11)))
