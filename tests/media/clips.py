"""Small clips that tests make themselves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

WIDTH, HEIGHT = 64, 48


def picture(number: int, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """The frame of that number: waves that move, so that no two are alike."""
    y, x = np.mgrid[:height, :width]
    waves = [x / 9 + number * 0.3, y / 7 + number * 0.2, (x + y) / 12]
    return np.rint(128 + 100 * np.sin(np.stack(waves, -1))).astype(np.uint8)


def write_clip(
    path: Path,
    frames: int = 12,
    *,
    codec: str = "libx264",
    pixels: str = "yuv420p",
    size: tuple[int, int] = (WIDTH, HEIGHT),
    times: list[int] | None = None,
    sound: bool = False,
    rotation: int = 0,
    tags: dict[str, int] | None = None,
    chapters: list[dict[str, Any]] | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """A clip of 10 frames a second; `times` are time stamps in tenths, if not one after another."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=10, options=options or {"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        stream.codec_context.time_base = stream.time_base = Fraction(1, 10)
        for name, value in (tags or {}).items():
            setattr(stream.codec_context, name, value)
        if rotation:
            stream.set_display_rotation(rotation)
        if chapters:
            out.set_chapters(chapters)
        tune = out.add_stream("aac", rate=48_000) if sound else None
        for number, time in enumerate(times or range(frames)):
            frame = av.VideoFrame.from_ndarray(picture(number, *size), format="rgb24")
            frame = frame.reformat(format=pixels)
            frame.pts, frame.time_base = time, Fraction(1, 10)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if tune is not None:
            out.mux([packet for chunk in _sound(frames) for packet in tune.encode(chunk)])
            out.mux(tune.encode(None))
    return path


def _sound(frames: int) -> list[av.AudioFrame]:
    chunks = []
    for start in range(0, frames * 4800, 1024):
        wave = np.sin(np.arange(start, start + 1024) * 0.05).astype(np.float32)[None]
        chunk = av.AudioFrame.from_ndarray(np.repeat(wave, 2, 0), format="fltp", layout="stereo")
        chunk.sample_rate, chunk.pts, chunk.time_base = 48_000, start, Fraction(1, 48_000)
        chunks.append(chunk)
    return chunks


def frame_hashes(path: Path) -> list[str]:
    """A hash of the pixels of each decoded frame."""
    with av.open(str(path)) as container:
        return [
            hashlib.sha256(frame.to_ndarray().tobytes()).hexdigest()
            for frame in container.decode(video=0)
        ]


def planes(path: Path) -> list[np.ndarray]:
    """Every frame as it was coded."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray() for frame in container.decode(video=0)]


def images(path: Path) -> list[np.ndarray]:
    """Every frame as RGB."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def probed(path: Path) -> list[dict[str, Any]]:
    """The streams as ffprobe, another release of the library, sees them; it has no complaints."""
    if shutil.which("ffprobe") is None:
        assert "CI" not in os.environ, "CI has no ffprobe: see .ci/setup"
        pytest.skip("no ffprobe: apt install ffmpeg")
    command = ["ffprobe", "-v", "error", "-show_streams", "-of", "json", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stderr == ""
    return json.loads(said.stdout)["streams"]


def stream_bytes(path: Path, kind: str) -> bytes:
    """All packets of the first stream of a kind, one after another."""
    with av.open(str(path)) as container:
        stream = next(item for item in container.streams if item.type == kind)
        return b"".join(bytes(packet) for packet in container.demux(stream))
