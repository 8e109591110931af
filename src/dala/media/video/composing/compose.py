"""Compositions: videos and pictures side by side, stacked, in a grid, or picture in picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dala.devices import current_device, using
from dala.errors import ArgumentError, ClosedError
from dala.images.frames import Frame
from dala.ir.types import U8, U16
from dala.kernels.base.shapes import integer_of, positive_number
from dala.kernels.image.paint import color_of
from dala.kernels.image.sizes import GivenSize, exact_size
from dala.media.filters.chain import Chains, FilterStep, filter_step
from dala.media.video.composing.inputs import FrameSampler, Input, inputs_of
from dala.media.video.composing.layouts import (
    LAYOUTS,
    Cell,
    columns_of,
    insets_of,
    natural_size,
    table_of,
)
from dala.media.video.filtering.placement import Place, Size
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.pyav import pyav
from dala.media.video.reading.video_file import Seekable
from dala.media.video.reading.video_info import ColorTags, StreamInfo, VideoInfo

Until = Literal["longest", "shortest"]

MOST_EXTENT = 16_384
MOST_RATE = 1000
_STILL_RATE = Fraction(25)
_TOLERANCE_S = 1e-3
"""A little more than the rounding of time stamps in milliseconds."""
_AT_ONCE = 4
"""Overlays per pass: more in one kernel take long to compile."""
_LIMITED, _UNSPECIFIED = 1, 2
_CODES = {"bt709": 1, "bt601": 6, "bt2020": 9}


def compose(
    sources: Sequence[Any],
    layout: str = "grid",
    *,
    size: GivenSize | None = None,
    rate: float | Fraction | None = None,
    gap: int = 0,
    color: Any = 0,
    position: Any = "bottom-right",
    scale: float = 0.25,
    margin: int | None = None,
    until: Until = "longest",
) -> Composition:
    """Returns a source whose frames are composed from several sources, paths and pictures.

    `layout` is "side_by_side", "stacked" or "grid", in which each is scaled to fit into its cell,
    with gaps of `gap` pixels and `color` as the background; or "picture_in_picture", in which the
    first fills the frame and the others, `scale` times its size, are stacked at `position`. `size`
    is (width, height), or a string such as "1280x720"; by default the first keeps its size. `rate`
    is the frame rate, by default the highest of all.

    Each frame shows every source's frame at that time. A source that has ended keeps its last
    frame; the composition ends with the longest source, or with the shortest by
    `until="shortest"`. Sound, subtitles and chapters are those of the first video. Closing the
    composition closes its sources.
    """
    if not isinstance(layout, str) or layout.replace("-", "_") not in LAYOUTS:
        raise ArgumentError(f"compose: layout {layout!r} is not known: give {', '.join(LAYOUTS)}.")
    if until not in ("longest", "shortest"):
        raise ArgumentError(f"compose: until is 'longest' or 'shortest', not {until!r}.")
    layout = layout.replace("-", "_")
    background = color_of("compose", "color", color)
    between = integer_of("compose", "gap", gap)
    if not 0 <= between <= MOST_EXTENT:
        raise ArgumentError(f"compose: gap is 0 to {MOST_EXTENT} pixels, not {between}.")
    place = Place.of("compose", position, margin)
    speed = None if rate is None else _rate(rate)
    wanted = None if size is None else exact_size("compose", size, MOST_EXTENT)
    inputs = inputs_of(sources)
    try:
        sizes = [item.size for item in inputs]
        whole = wanted or natural_size(layout, sizes[0], len(inputs), between)
        if layout == "picture_in_picture":
            cells = [Cell(0, 0, *whole).fitting(sizes[0])]
            cells += insets_of(whole, sizes[1:], place, scale, between)
        else:
            across = columns_of(layout, len(inputs))
            table = table_of(whole, len(inputs), across, between)
            cells = [cell.fitting(item) for cell, item in zip(table, sizes, strict=True)]
        return Composition(inputs, cells, whole, speed, background, until)
    except BaseException:
        for item in inputs:
            item.close()
        raise


class Composition(Seekable):
    """A source composed of others: iterate over it for frames, `seek` to start elsewhere."""

    def __init__(
        self,
        inputs: list[Input],
        cells: list[Cell],
        size: Size,
        rate: Fraction | None,
        background: tuple[float, float, float],
        until: Until,
    ) -> None:
        self._inputs = inputs
        self._cells = cells
        self._until = until
        self._background = background
        self._moving = [item.source for item in inputs if item.source is not None]
        infos = [item.info for item in self._moving]
        self._rate = rate or max([info.rate for info in infos], default=_STILL_RATE)
        self.info = _described(size, self._rate, infos, until)
        self.files = [path for item in inputs for path in item.files]
        self.path: Path = next(
            (item.path for item in inputs if item.source is not None), Path("composition")
        )
        self.sound: Path | None = next(filter(None, map(_sound_of, self._moving)), None)
        """The file whose sound is used: the first video."""
        self._device = current_device()
        self._chains = Chains()
        scalar = U8 if self.info.bits == 8 else U16
        canvas = np.empty((size[1], size[0], 3), scalar.numpy)
        canvas[:] = np.rint(np.array(background) * scalar.white)
        with using(self._device):
            self._canvas = Frame(Frame(canvas, _identity).buffer(), _identity)
        self._closed = False

    @property
    def time_base(self) -> Fraction:
        """The unit of time stamps, in seconds."""
        return 1 / self._rate

    @property
    def first_pts(self) -> int:
        """The time stamp of the start."""
        return 0

    # -- reading ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[VideoFrame]:
        self._check_open()
        number = math.ceil(self._from_s * self._rate - 1e-6)
        self._from_s = 0.0
        tolerance_s = min(_TOLERANCE_S, 0.25 / float(self._rate))
        begin_s = float(number / self._rate) + tolerance_s
        samplers = [
            None if item.source is None else FrameSampler(item.source, begin_s)
            for item in self._inputs
        ]
        index = 0
        while True:
            time_s = float(number / self._rate)
            # Rounded time stamps may be a moment late.
            frames = [
                None if sampler is None else sampler.at(time_s + tolerance_s)
                for sampler in samplers
            ]
            over = [
                sampler.is_over(time_s + tolerance_s) for sampler in samplers if sampler is not None
            ]
            ended = any(over) if self._until == "shortest" else all(over)
            if ended if over else number:
                return
            yield VideoFrame(self._composed(frames, number), index, time_s)
            index, number = index + 1, number + 1

    def _composed(self, frames: list[VideoFrame | None], number: int) -> Any:
        self._check_open()
        with using(self._device):
            made: Frame = self._canvas
            steps: list[FilterStep] = []
            for item, cell, frame in zip(self._inputs, self._cells, frames, strict=True):
                layer = item.layer(frame, cell, self._chains)
                alike = (layer.shape, layer.dtype) == (made.shape, made.dtype)
                if alike and (cell.x, cell.y) == (0, 0):
                    made, steps = Frame(layer, _identity), []  # it hides everything below
                else:
                    given = {"layer": layer, "x": cell.x, "y": cell.y}
                    steps.append(filter_step("overlay", given))
            for first in range(0, len(steps), _AT_ONCE):
                part = steps[first : first + _AT_ONCE]
                made = Frame(self._chains.run(made, part, None), _identity)
            image = np.asarray(made.pixels)
        frame = _frame_from(image)
        frame.pts, frame.time_base = number, self.time_base
        return frame

    def close(self) -> None:
        """Closes all of its sources; does nothing if they are closed."""
        self._closed = True
        for item in self._inputs:
            item.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the composition was closed: make another with media.compose().")

    def __enter__(self) -> Composition:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """Shows everything its frames depend on: a resumed run compares it."""
        parts = ", ".join(
            f"{item!r} in {cell}" for item, cell in zip(self._inputs, self._cells, strict=True)
        )
        width, height = self.info.size
        how = f"{width} × {height}, {self._rate} frames/s, {self._background}, {self._until}"
        return f"<Composition {how}: {parts}>"


# -- what is given ---------------------------------------------------------------------------------


def _rate(given: Any) -> Fraction:
    if positive_number("compose", "rate", given) > MOST_RATE:
        raise ArgumentError(f"compose: rate is at most {MOST_RATE} frames/s, not {given}.")
    return Fraction(given).limit_denominator(1001)


# -- what comes out --------------------------------------------------------------------------------


def _described(size: Size, rate: Fraction, infos: list[VideoInfo], until: Until) -> VideoInfo:
    count: int | None = 1
    if infos:
        durations = [info.duration_s for info in infos]
        known = [item for item in durations if item is not None]
        end_s = (min if until == "shortest" else max)(known, default=0.0)
        whole = len(known) == len(durations)
        count = max(1, math.ceil(end_s * rate - 0.25)) if whole else None
    bits = max([info.bits for info in infos], default=8)
    format = "rgb24" if bits <= 8 else "rgb48le"
    first = infos[0] if infos else None
    matrix = ColorTags(_UNSPECIFIED, _UNSPECIFIED, _UNSPECIFIED, _LIMITED).matrix_for(size[1])
    if first is not None:
        matrix = first.colors.matrix_for(first.height)
    primaries, transfer = _UNSPECIFIED, _UNSPECIFIED
    if first is not None:
        primaries, transfer = first.colors.primaries, first.colors.transfer
    others = [item for item in (first.streams if first else ()) if item.kind != "video"]
    return VideoInfo(
        width=size[0],
        height=size[1],
        rate=rate,
        duration_s=None if count is None else float(count / rate),
        frame_count=count,
        pixel_format=format,
        bits=max(8, bits),
        codec="rawvideo",
        rotation=0,
        colors=ColorTags(primaries, transfer, _CODES[matrix], _LIMITED),
        streams=(StreamInfo(0, "video", "rawvideo", None), *others),
    )


def _sound_of(source: Any) -> Path | None:
    return getattr(source, "sound", None)


def _frame_from(image: np.ndarray) -> Any:
    if image.dtype == np.uint8:
        return pyav().VideoFrame.from_numpy_buffer(np.ascontiguousarray(image), "rgb24")
    return pyav().VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb48le")


def _identity(buffer: Any) -> Any:
    return buffer
