"""Whole videos against the `ffmpeg` command and against a loop of PyAV and OpenCV.

A clip of 300 frames of 1080p, H.264, preset veryfast, written again each time: both sides decode,
filter and encode it with as many threads as they like. Strengths are alike, not the same: what is
compared first is that the same frames came out, about as bright and as colored.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Comparison, Row
from benchmarks.peers import need, need_program
from dala import media

FRAMES, RATE = 300, 30
SIZE = (1920, 1080)
FILTERS = [
    ("blur", {"radius": 3, "sigma": 1.5}),
    ("sharpen", {"amount": 0.5}),
    ("saturation", {"value": 0.2}),
]
GRAPH = "gblur=sigma=1.5,unsharp=3:3:1.0,eq=saturation=1.2"


@cache
def folder() -> Path:
    """A folder for clips, which is gone when the process is."""
    made = tempfile.TemporaryDirectory(prefix="dala-bench-")
    _kept.append(made)
    return Path(made.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def clip() -> Path:
    """A clip with edges that move, slopes and some noise."""
    path = folder() / "clip.mp4"
    height, width = SIZE[1], SIZE[0]
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(1).integers(-6, 7, (height, width, 1))
    with media.writer(path, rate=RATE, preset="veryfast") as writer:
        for number in range(FRAMES):
            planes = [x // 8 + 2 * number, y // 5 + number, ((x + 5 * number) ^ y) // 3]
            levels = np.stack([plane % 256 for plane in planes], -1) + np.roll(noise, number, 1)
            writer.write(np.clip(levels, 0, 255).astype(np.uint8))
    return path


def ours(name: str, filters: list[tuple[str, dict[str, float]]]) -> Path:
    return media.transcode(clip(), folder() / f"{name}.mp4", filters, preset="veryfast").path


def ffmpeg(name: str, graph: str | None) -> None:
    command = [
        need_program("ffmpeg"),
        "-hide_banner",
        "-loglevel",
        "error",
        "-y",
        "-i",
        str(clip()),
    ]
    command += ["-vf", graph] if graph else []
    command += ["-c:v", "libx264", "-preset", "veryfast", str(folder() / f"{name}.mp4")]
    subprocess.run(command, check=True)


def loop_of_libraries(name: str) -> None:
    """What people write: decode to RGB, filter with OpenCV, encode."""
    import av
    import cv2

    cross = np.array([[0, -0.5, 0], [-0.5, 3, -0.5], [0, -0.5, 0]], np.float32)
    luma = np.array([0.299, 0.587, 0.114])
    matrix = (1.2 * np.eye(3) - 0.2 * luma).astype(np.float32)
    with av.open(str(clip())) as source, av.open(str(folder() / f"{name}.mp4"), "w") as target:
        stream = target.add_stream("libx264", rate=RATE, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        source.streams.video[0].thread_type = "AUTO"
        for frame in source.decode(video=0):
            image = cv2.GaussianBlur(frame.to_ndarray(format="rgb24"), (7, 7), 1.5)
            image = cv2.transform(cv2.filter2D(image, -1, cross), matrix)
            target.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        target.mux(stream.encode(None))


def compared(work: str, bar: float, filters: list, peer: Callable[[str], object]) -> Comparison:
    clip()

    def check() -> None:
        with media.open(folder() / "ours.mp4") as a, media.open(folder() / "peer.mp4") as b:
            pairs = list(zip(a, b, strict=True))
            assert len(pairs) == FRAMES
            for one, other in pairs[:: FRAMES // 5]:
                apart = np.abs(one.image().astype(int) - other.image())
                assert apart.mean() < 12, f"{work}: {apart.mean():.1f} levels apart"

    return Comparison(
        work, bar, partial(ours, "ours", filters), partial(peer, "peer"), check, most_rounds=3
    )


def against_ffmpeg(work: str, bar: float, filters: list, graph: str | None) -> Comparison:
    need_program("ffmpeg")  # before a clip is made, which takes a while
    return compared(work, bar, filters, partial(ffmpeg, graph=graph))


def against_libraries() -> Comparison:
    need("av", "cv2")
    return compared("video, 3 filters : PyAV and OpenCV", 0.7, FILTERS, loop_of_libraries)


ROWS: dict[str, Callable[[], Row]] = {
    "video": partial(against_ffmpeg, "video, 3 filters : ffmpeg", 1.0, FILTERS, GRAPH),
    "video-loop": against_libraries,
    "video-plain": partial(against_ffmpeg, "video, no filter : ffmpeg", 1.1, [], None),
}
