"""Filters that know of time: of the frames before, or of when a frame is shown."""

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
    """Makes a frame of an image and of what it has kept of those before."""

    def apply(self, image: Buffer) -> Buffer:
        """The next frame, on the device of the image, which is read only."""

    def state(self) -> State:
        """What it has kept, so that a run can go on later."""

    def restore(self, state: State) -> None:
        """Go on with what was kept."""


class TimedFilter(Protocol):
    """A filter that is there for some of the time only."""

    def step(self, time_s: float, shape: Shape) -> FilterStep | None:
        """The filter for a frame of that shape, shown at that time; None where there is nothing."""


TEMPORAL: dict[str, Callable[..., TemporalFilter]] = {
    "temporal_denoise": TemporalDenoise,
    "motion_blur": MotionBlur,
    "frame_mix": FrameMix,
}
TIMED: dict[str, Callable[..., TimedFilter]] = {"text": TextLayer, "image": ImageLayer}
"""Both by name: called with the parameters that follow the name."""

Link = FilterStep | TemporalFilter | TimedFilter


def video_filters_of(filters: Any) -> list[Link]:
    """The filters of a list, each alone or in a pair with its parameters, ready to be used."""
    return [_link(what, params) for what, params in listed_filters(filters)]


class FunctionFilter:
    """A function of the user's, which is told when each frame is shown."""

    def __init__(self, function: FrameFunction, params: Mapping[str, Any]) -> None:
        self._function, self._params = checked_function(function, params), params

    def step(self, time_s: float, shape: Shape) -> FilterStep | None:
        """The filter for a frame of that shape, shown at that time."""
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
