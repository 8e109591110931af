"""The inputs of a composition: videos that are sampled over time, and still pictures."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ArgumentError, MediaError
from dala.images.frames import Frame, frame_of
from dala.media.filters.chain import Chains, FilterStep, filter_step
from dala.media.video.composing.layouts import Cell
from dala.media.video.filtering.placement import Size
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.deep_frames import converts, deep_image
from dala.media.video.reading.frame_conversion import (
    KERNEL_FORMATS,
    image_from_frame,
    kernels_convert,
)
from dala.media.video.reading.image_sequences import Pictures
from dala.media.video.reading.source_opening import Source, open_source
from dala.runtime.buffers.buffer import Buffer

MOST_INPUTS = 64


class Input:
    """A source or picture, with the last layer rendered for its cell."""

    def __init__(self, source: Any, picture: Frame | None, path: Path) -> None:
        self.source = source
        self.path = path
        self.files: list[Path] = getattr(source, "files", [path])
        """The files that frames are read from."""
        self._picture = picture
        self._turned = 0 if source is None else source.info.rotation % 360
        if picture is not None:
            height, width = picture.shape[:2]
        else:
            width, height = source.info.size
            if self._turned % 180:
                width, height = height, width
        self.size: Size = (width, height)
        self._last: VideoFrame | None = None
        self._layer: Buffer | None = None

    def layer(self, frame: VideoFrame | None, cell: Cell, chains: Chains) -> Buffer:
        """Returns the layer for the cell, rendered again only when the frame changes."""
        if self._layer is None or frame is not self._last:
            given, steps = self._frame_and_steps(frame, cell)
            shape = given.shape
            for step in steps:
                shape = step.output_shape(shape)
            if shape[:2] != (cell.height, cell.width):
                shrinks = shape[0] >= cell.height and shape[1] >= cell.width
                resized = {
                    "size": (cell.width, cell.height),
                    "method": "area" if shrinks else "bilinear",
                    # Converted frames are opaque; only RGBA inputs may be transparent.
                    "premultiply": given.shape[2:] == (4,),
                }
                steps.append(filter_step("resize", resized))
            self._layer = chains.run(given, steps, None) if steps else given.buffer()
            self._last = frame
        return self._layer

    def _frame_and_steps(
        self, frame: VideoFrame | None, cell: Cell
    ) -> tuple[Frame, list[FilterStep]]:
        """Returns the pixels, and the filter steps that turn them into an upright image."""
        if frame is None:
            assert self._picture is not None
            pixels = self._picture.pixels
            if isinstance(pixels, Buffer):
                pixels = pixels.to(current_device())
            return Frame(pixels, _identity), []
        info, decoded = self.source.info, frame.decoded
        if frame.size != info.size:
            raise MediaError(
                f"{self.path}: frame {frame.index} is {decoded.width} × {decoded.height}, but the "
                f"video began with {info.width} × {info.height}: split it there first."
            )
        steps = []
        format = decoded.format.name
        if kernels_convert(format, *frame.size):
            pixels = decoded.to_ndarray()
            colors = {
                "matrix": info.colors.matrix_for(info.height),
                "range": info.colors.range_for(format),
            }
            # Four channels are resized faster; three need no further conversion.
            target = "rgb" if self.size == (cell.width, cell.height) else "rgba"
            steps.append(
                filter_step("convert", {"from": KERNEL_FORMATS[format], "to": target, **colors})
            )
        elif converts(format):
            pixels = deep_image(decoded, info.colors)
        else:
            pixels = image_from_frame(decoded)
        if self._turned:
            steps.append(filter_step("rotate", {"degrees": self._turned, "expand": True}))
        return Frame(pixels, _identity), steps

    def __repr__(self) -> str:
        if self.source is not None:
            return f"{self.source!r} {_stamp(self.path)}"
        assert self._picture is not None
        pixels = np.ascontiguousarray(self._picture.pixels)
        return f"picture {pixels.shape} {hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}"

    def close(self) -> None:
        self._layer = self._last = None
        if self.source is not None:
            self.source.close()


class FrameSampler:
    """Samples the frames of a source at increasing times."""

    def __init__(self, source: Any, begin_s: float) -> None:
        self._period_s = 1 / float(source.info.rate)
        self._name = source.path
        self._frames = _from_shown_at(source, begin_s, self._period_s)
        self._now: VideoFrame | None = next(self._frames, None)
        self._next: VideoFrame | None = next(self._frames, None)

    def at(self, time_s: float) -> VideoFrame:
        """Returns the frame that is on screen at that time, else the first."""
        if self._now is None:
            raise MediaError(f"{self._name} has no frame to show.")
        while self._next is not None and self._next.time_s <= time_s:
            self._now, self._next = self._next, next(self._frames, None)
        return self._now

    def is_over(self, time_s: float) -> bool:
        """Returns whether the last frame has ended."""
        assert self._now is not None
        return self._next is None and time_s >= self._now.time_s + self._period_s


def _from_shown_at(source: Any, time_s: float, period_s: float) -> Iterator[VideoFrame]:
    """Yields frames, starting with the one that is on screen at the given time."""
    back_s = 2 * period_s
    # Past the end, the last frame stays.
    last_s = time_s if source.info.duration_s is None else min(time_s, source.info.duration_s)
    while True:
        begin_s = max(0.0, last_s - back_s)
        if begin_s:  # pipes cannot seek, but start at 0
            source.seek(begin_s)
        frames = iter(source)
        first = next(frames, None)
        if begin_s == 0 or (first is not None and first.time_s <= time_s):
            break
        back_s *= 4
    if first is not None:
        yield first
        yield from frames


def inputs_of(sources: Any) -> list[Input]:
    """Returns the inputs for a list of sources, paths and pictures; paths are opened."""
    if isinstance(sources, str | bytes | np.ndarray) or not isinstance(sources, Sequence):
        raise ArgumentError(
            f"compose: sources are a list of videos, paths and pictures, not {sources!r}."
        )
    if not 1 <= len(sources) <= MOST_INPUTS:
        raise ArgumentError(f"compose: it takes 1 to {MOST_INPUTS} sources, not {len(sources)}.")
    made: list[Input] = []
    opened: list[Any] = []
    try:
        for number, item in enumerate(sources):
            is_source = all(hasattr(item, name) for name in ("info", "seek", "close"))
            if is_source and any(item is other for other in sources[:number]):
                raise ArgumentError(
                    f"compose: {item!r} is given twice, but reads one frame at a time: open it "
                    f"twice, or give its path."
                )
            if is_source:
                made.append(Input(item, None, Path(item.path)))
            elif not isinstance(item, str | os.PathLike):
                picture = frame_of(f"compose: source {number + 1}", item).kept()
                made.append(Input(None, picture, Path(f"picture {number + 1}")))
            else:
                opened.append(open_source(item))
                made.append(_opened(opened[-1]))
            if 0 in made[-1].size:
                raise ArgumentError(f"compose: source {number + 1} has no pixels.")
    except BaseException:
        for item in opened:
            item.close()
        raise
    return made


def _stamp(path: Path) -> str:
    """Returns a stamp that changes with the file's content: path, size and time."""
    if not path.is_file():
        return str(path)
    stat = path.stat()
    return f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}"


def _opened(source: Source) -> Input:
    """Returns the input for an opened source; a single picture lasts as long as the others."""
    if isinstance(source, Pictures) and source.info.frame_count == 1:
        with source:
            (frame,) = source
        return Input(None, Frame(frame.image(), _identity), source.files[0])
    return Input(source, None, source.path)


def _identity(buffer: Any) -> Any:
    return buffer
