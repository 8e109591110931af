"""Filters decoded frames, and converts them to the encoder's pixel format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.devices import current_device, using
from dala.errors import ArgumentError, DalaError, MediaError, argument
from dala.images.frames import Frame, Shape
from dala.kernels.image.sizes import WantedSize
from dala.media.filters.chain import Chain, Chains, FilterStep, filter_step
from dala.media.video.filtering.video_filters import (
    FunctionFilter,
    Link,
    State,
    TemporalFilter,
    video_filters_of,
)
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.deep_formats import deep_format
from dala.media.video.reading.deep_frames import converts, deep_frame, deep_image
from dala.media.video.reading.frame_conversion import (
    KERNEL_FORMATS,
    frame_from_image,
    has_alpha,
    image_from_frame,
    kernels_convert,
)
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.video_info import VideoInfo
from dala.runtime.buffers.buffer import Buffer

_PAIRED = ("yuv420p", "yuv422p")
"""Formats with subsampled chroma."""


class FrameFilter:
    """Filters frames one by one; YUV is converted by kernels on the device.

    `pixels` is the encoder's pixel format, or None for images. Filters see upright frames, and the
    size is that of upright frames: rotation metadata is applied before the filters, and undone
    after them for an encoder, whose file has the same metadata.
    """

    def __init__(
        self, info: VideoInfo, pixels: str | None, filters: Any, size: WantedSize | None
    ) -> None:
        self._info = info
        self._pixels = pixels
        self._channels = 4 if has_alpha(info.pixel_format) else 3
        self._turned = info.rotation % 360 if info.rotation % 90 == 0 else 0
        self._chains = Chains()
        self._device = current_device()
        self._done = 0
        with using(self._device):
            self._links: list[Link] = self._linked(video_filters_of(filters), size)
            packed = pixels == "yuv420p" and kernels_convert(info.pixel_format, *info.size)
            self._packed = packed and bool(self._links)
            self.size = self._checked_size()
        self.shown_size = self.size
        """Width and height as a player shows them."""
        if pixels is not None and self._turned % 180:
            self.shown_size = self.size[::-1]

    def _linked(self, links: list[Link], size: WantedSize | None) -> list[Link]:
        """Returns the filters and the final resize, between rotations that make frames upright."""
        width, height = self._info.size
        if self._turned % 180:
            width, height = height, width
        if size is not None:
            shape: Shape = (height, width, self._channels)
            for group in self._grouped(links, shape, 0.0):
                shape = _shape_after(group, shape)
            even = self._pixels is not None and self._pixels.startswith(_PAIRED)
            made = size.of(shape[1], shape[0], even=even)
            if made != (shape[1], shape[0]):
                given = size if size.kind == "fill" else made
                links = [*links, filter_step("resize", {"size": given})]
        if not self._turned or (not links and self._pixels is not None):
            return links
        upright = filter_step("rotate", {"degrees": self._turned, "expand": True})
        if self._pixels is None:
            return [upright, *links]
        return [upright, *links, filter_step("rotate", {"degrees": -self._turned, "expand": True})]

    def _checked_size(self) -> tuple[int, int]:
        """Returns the width and height of filtered frames; raises for filters that cannot run."""
        dtype = np.uint8 if self._info.bits <= 8 else np.uint16
        shape: Shape = (self._info.height, self._info.width, self._channels)
        for group in self._grouped(self._links, shape, 0.0):
            if isinstance(group, list):
                Chain(Frame(np.empty(shape, dtype), _identity), group)
            shape = _shape_after(group, shape)
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
        """Returns the filtered frame as RGB, or RGBA if it has transparency."""
        self._check(frame)
        with using(self._device), self._numbered(frame):
            made = self._run(self._image(frame.decoded), self._links, frame.time_s)
            return np.asarray(made)

    def __call__(self, frame: VideoFrame) -> Any:
        """Returns the filtered frame in the encoder's format, with its time stamp."""
        self._check(frame)
        decoded = frame.decoded
        with using(self._device), self._numbered(frame):
            made = self._filtered(decoded, frame.time_s)
        made.pts, made.time_base = decoded.pts, decoded.time_base
        made.pict_type = 0  # the encoder chooses its own key frames
        return made

    @contextmanager
    def _numbered(self, frame: VideoFrame) -> Iterator[None]:
        """Adds the frame's number to errors raised by functions inside the block."""
        try:
            yield
        except DalaError as error:
            if not any(isinstance(link, FunctionFilter) for link in self._links):
                raise
            place = f"frame {self._done}, at {frame.time_s:.3f} s"
            raise type(error)(f"{place}: {error}") from error.__cause__
        self._done += 1

    def _check(self, frame: VideoFrame) -> None:
        decoded = frame.decoded
        if frame.size != self._info.size:
            raise MediaError(
                f"frame {frame.index} is {decoded.width} × {decoded.height}, but the video began "
                f"with {self._info.width} × {self._info.height}: split it there first."
            )

    def _filtered(self, decoded: Any, time_s: float) -> Any:
        assert self._pixels is not None
        if not self._links and not decoded.format.is_rgb:
            return (
                decoded
                if decoded.format.name == self._pixels
                else decoded.reformat(format=self._pixels)
            )
        format = decoded.format.name
        if not self._packed or format != self._info.pixel_format:
            image = self._run(self._image(decoded), self._links, time_s)
            if deep_format(self._pixels) is not None:
                return deep_frame(image, self._pixels, self._info.colors)
            return frame_from_image(np.asarray(image), self._pixels, self._info.colors)
        ends = self._conversions(format)
        packed = self._run(decoded.to_ndarray(), [ends[0], *self._links, ends[1]], time_s)
        return pyav().VideoFrame.from_numpy_buffer(np.asarray(packed), "yuv420p")

    def _image(self, decoded: Any) -> np.ndarray | Buffer:
        """Returns the frame as RGB or RGBA; of more than 8 bits, on the device."""
        if converts(decoded.format.name):
            return deep_image(decoded, self._info.colors)
        return image_from_frame(decoded)

    def _conversions(self, format: str) -> tuple[FilterStep, FilterStep]:
        colors, height = self._info.colors, self._info.height
        given = {"matrix": colors.matrix_for(height), "range": colors.range_for(format)}
        into = filter_step("convert", {"from": KERNEL_FORMATS[format], "to": "rgb", **given})
        back = filter_step("convert", {"from": self._made, "to": "yuv420p", **given})
        return into, back

    def _run(self, image: np.ndarray | Buffer, links: list[Link], time_s: float) -> Buffer:
        frame = Frame(image, _identity)
        for group in self._grouped(links, frame.shape, time_s):
            if isinstance(group, list):
                frame = Frame(self._chains.run(frame, group, None), _identity)
            else:
                frame = Frame(group.apply(frame.buffer()), _identity)
        return frame.buffer()

    def _grouped(
        self, links: list[Link], shape: Shape, time_s: float
    ) -> Iterator[list[FilterStep] | TemporalFilter]:
        """Yields temporal filters by themselves, and the filters between them as lists."""
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

    # -- state between frames --------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Returns the filters' state from earlier frames, by names that are valid in files."""
        return {
            f"{number}.{name}": array
            for number, link in self._temporal()
            for name, array in link.state().items()
        }

    def restore(self, state: State) -> None:
        """Continues from a saved state."""
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


def _shape_after(group: list[FilterStep] | TemporalFilter, shape: Shape) -> Shape:
    """Returns the shape of a frame after the filters."""
    for step in group if isinstance(group, list) else ():
        shape = step.output_shape(shape)
    return shape


def _identity(buffer: Any) -> Any:
    return buffer
