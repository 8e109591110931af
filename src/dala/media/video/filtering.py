"""Decoded frames through filters, and into the pixels that an encoder takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dala.devices import current_device, using
from dala.errors import ArgumentError, MediaError, argument
from dala.images.frames import Frame, Shape
from dala.media.chain import Chain, Chains, FilterStep, filter_step
from dala.media.video.decoding import pyav
from dala.media.video.described import VideoInfo
from dala.media.video.pixels import PACKED, coded_of, has_alpha, image_of, is_packed
from dala.media.video.source import VideoFrame
from dala.media.video.stages import Link, State, TemporalFilter, links_of


class FrameFilter:
    """Filters frames one by one; those of 8 bits go from YUV to YUV without a detour.

    `pixels` is the format that an encoder takes, or None where images are wanted.
    """

    def __init__(
        self, info: VideoInfo, pixels: str | None, filters: Any, size: tuple[int, int] | None
    ) -> None:
        self._info = info
        self._pixels = pixels
        self._links: list[Link] = links_of(filters)
        if size is not None:
            width, height = size
            self._links.append(filter_step("resize", {"size": (height, width)}))
        self._chains = Chains()
        self._device = current_device()
        packed = pixels == "yuv420p" and is_packed(info.pixel_format, *info.size)
        self._packed = packed and bool(self._links)
        with using(self._device):
            self.size = self._checked_size()

    def _checked_size(self) -> tuple[int, int]:
        """Width and height of what comes out; a filter that is wrong is refused now."""
        channels = 4 if has_alpha(self._info.pixel_format) else 3
        dtype = np.uint8 if self._info.bits <= 8 else np.float32
        shape: Shape = (self._info.height, self._info.width, channels)
        for group in self._grouped(self._links, shape, 0.0):
            if isinstance(group, list):
                Chain(Frame(np.empty(shape, dtype), _itself), group)
                for step in group:
                    shape = step.output_shape(shape)
        self._made = {(): "gray", (3,): "rgb", (4,): "rgba"}[shape[2:]]
        height, width = shape[:2]
        if (
            self._pixels is not None
            and self._pixels.startswith("yuv420p")
            and (height % 2 or width % 2)
        ):
            even = width // 2 * 2, height // 2 * 2
            wanted = argument("size", str(even), f"{even[0]}x{even[1]}")
            raise ArgumentError(
                f"the video would be {width} × {height}, but its pixels ({self._pixels}) come in "
                f"pairs: give even numbers, such as {wanted}."
            )
        return width, height

    def image(self, frame: VideoFrame) -> np.ndarray:
        """The filtered frame as RGB, or RGBA where there is transparency."""
        self._check(frame)
        with using(self._device):
            return self._run(image_of(frame.coded), self._links, frame.time_s)

    def __call__(self, frame: VideoFrame) -> Any:
        """The frame as the encoder takes it, with the time stamp that it had."""
        self._check(frame)
        coded = frame.coded
        with using(self._device):
            made = self._filtered(coded, frame.time_s)
        made.pts, made.time_base = coded.pts, coded.time_base
        made.pict_type = 0  # the encoder chooses its own key frames
        return made

    def _check(self, frame: VideoFrame) -> None:
        coded = frame.coded
        if frame.size != self._info.size:
            raise MediaError(
                f"frame {frame.index} is {coded.width} × {coded.height}, but the video began with "
                f"{self._info.width} × {self._info.height}: split it there first."
            )

    def _filtered(self, coded: Any, time_s: float) -> Any:
        assert self._pixels is not None
        if not self._links and not coded.format.is_rgb:
            return (
                coded if coded.format.name == self._pixels else coded.reformat(format=self._pixels)
            )
        format = coded.format.name
        if not self._packed or format != self._info.pixel_format:
            image = self._run(image_of(coded), self._links, time_s)
            return coded_of(image, self._pixels, self._info.colours)
        ends = self._conversions(format)
        packed = self._run(coded.to_ndarray(), [ends[0], *self._links, ends[1]], time_s)
        return pyav().VideoFrame.from_numpy_buffer(packed, "yuv420p")

    def _conversions(self, format: str) -> tuple[FilterStep, FilterStep]:
        colours, height = self._info.colours, self._info.height
        given = {"matrix": colours.matrix_for(height), "range": colours.range_for(format)}
        into = filter_step("convert", {"from": PACKED[format], "to": "rgb", **given})
        back = filter_step("convert", {"from": self._made, "to": "yuv420p", **given})
        return into, back

    def _run(self, image: np.ndarray, links: list[Link], time_s: float) -> np.ndarray:
        frame = Frame(image, _itself)
        for group in self._grouped(links, frame.shape, time_s):
            if isinstance(group, list):
                frame = Frame(self._chains.run(frame, group, None), _itself)
            else:
                frame = Frame(group.apply(frame.buffer()), _itself)
        return np.asarray(frame.buffer())

    def _grouped(
        self, links: list[Link], shape: Shape, time_s: float
    ) -> Iterator[list[FilterStep] | TemporalFilter]:
        """Runs of filters that are planned together, between those that keep what was."""
        run: list[FilterStep] = []
        for link in links:
            if isinstance(link, TemporalFilter):
                if run:
                    yield run
                run = []
                yield link
                continue
            step = link if isinstance(link, FilterStep) else link.step(time_s, shape)
            if step is not None:
                run.append(step)
                shape = step.output_shape(shape)
        if run:
            yield run

    # -- what is kept between frames -------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """What filters have kept of earlier frames, by names that files can have."""
        return {
            f"{number}.{name}": array
            for number, link in self._temporal()
            for name, array in link.state().items()
        }

    def restore(self, state: State) -> None:
        """Go on with what was kept."""
        for number, link in self._temporal():
            mark = f"{number}."
            link.restore(
                {
                    name.removeprefix(mark): item
                    for name, item in state.items()
                    if name.startswith(mark)
                }
            )

    def _temporal(self) -> list[tuple[int, TemporalFilter]]:
        return [(i, item) for i, item in enumerate(self._links) if isinstance(item, TemporalFilter)]


def _itself(buffer: Any) -> Any:
    return buffer
