"""The filters of a video, including those that depend on time or on earlier frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dala.errors import ArgumentError
from dala.images.frames import Shape
from dala.media.filters.chain import Filter, FilterStep, filter_step, listed_filters
from dala.media.filters.functions import FrameFunction, checked_function
from dala.media.filters.model_filters import takes_model
from dala.media.video.filtering.every_nth_frame import filter_with_model
from dala.media.video.filtering.overlays import ImageLayer, TextLayer
from dala.media.video.filtering.temporal_filters import FrameMix, MotionBlur, TemporalDenoise
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import unknown_parameter
from dala.runtime.kernels.kernel import Kernel

State = Mapping[str, np.ndarray]


@runtime_checkable
class TemporalFilter(Protocol):
    """A filter that uses earlier frames."""

    def apply(self, image: Buffer) -> Buffer:
        """Returns the filtered frame, on the image's device; the image is only read."""

    def state(self) -> State:
        """Returns the state that a resumed run needs."""

    def restore(self, state: State) -> None:
        """Continues from a saved state."""


class TimedFilter(Protocol):
    """A filter that is applied for part of the time."""

    def step(self, time_s: float, shape: Shape) -> FilterStep | None:
        """Returns the filter step for a frame of that shape and time, or None if not shown."""


TEMPORAL: dict[str, Callable[..., TemporalFilter]] = {
    "temporal_denoise": TemporalDenoise,
    "motion_blur": MotionBlur,
    "frame_mix": FrameMix,
}
TIMED: dict[str, Callable[..., TimedFilter]] = {"text": TextLayer, "image": ImageLayer}
"""Both are called with the filter's parameters."""

Link = FilterStep | TemporalFilter | TimedFilter


def video_filters_of(filters: Any) -> list[Link]:
    """Returns ready filters for a list of names, or pairs of a name and its parameters."""
    return [_link(what, params) for what, params in listed_filters(filters)]


class FunctionFilter:
    """A user's function, which is called with each frame and its time."""

    def __init__(self, function: FrameFunction, params: Mapping[str, Any]) -> None:
        self._function, self._params = checked_function(function, params), params

    def step(self, time_s: float, shape: Shape) -> FilterStep | None:
        """Returns the filter step for a frame at that time."""
        return filter_step(self._function, self._params, time_s)


def _link(name: Filter, params: Mapping[str, Any]) -> Link:
    if not isinstance(name, str | Kernel):
        return FunctionFilter(name, params)
    if isinstance(name, Kernel):
        return filter_step(name, params)
    make = TEMPORAL.get(name) or TIMED.get(name)
    if make is None:
        made = filter_with_model if takes_model(name, params) else filter_step
        return made(name, params)
    declared = inspect.signature(make).parameters
    for given in params:
        if given not in declared:
            raise ArgumentError(unknown_parameter(name, given, list(declared)))
    for item in declared.values():
        if item.default is item.empty and item.name not in params:
            raise ArgumentError(f"{name}: parameter {item.name!r} is missing.")
    return make(**params)
