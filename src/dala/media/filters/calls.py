"""Filters called on images, and contexts that filter frame after frame."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ArgumentError
from dala.images.frames import Frame, frame_of
from dala.media.filters.chain import (
    FILTER_NAME,
    Chains,
    Filter,
    FilterStep,
    filter_name,
    filter_step,
    filter_steps,
    listed_filters,
)
from dala.media.filters.context import Context
from dala.media.filters.model_filters import filter_kernel, filter_params, optional_images
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.result_command import ResultCommand
from dala.runtime.kernels.kernel import Kernel

MOST_DEVICES = 4


def apply_filter(image: Any, filter: Filter, /, *given: Any, out: Any = None, **params: Any) -> Any:
    """Returns the image with a filter applied, as the kind of thing that was given.

    A filter is a name, a kernel of your own, or a function that is called with the image as an
    array and with a time, which is 0, and returns an array like it. Bytes are followed by their
    width and height. Then come the images that the filter takes beside the first one, and its
    parameters, all of them in order or by their names. `out` is an array that the result is written
    into.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> gpu.apply_filter(np.full((1, 2), 100, np.uint8), "brightness", value=0.2)
    array([[151, 151]], dtype=uint8)
    """
    size = None
    if isinstance(image, bytes | bytearray | memoryview):
        size, given = _size(given, params)
    ((what, _),) = listed_filters([filter])
    frame = frame_of(filter_name(what), image, size)
    step = filter_step(what, _named(what, given, params))
    return _applied(frame, [step], out)


def filter_chain(
    image: Any,
    filters: Any,
    width: int | None = None,
    height: int | None = None,
    *,
    out: Any = None,
) -> Any:
    """Returns the image with several filters applied in order, as the kind of thing that was given.

    A filter is a name, a kernel of your own or a function of a frame and its time, or one of them
    and its parameters: `[("blur", {"radius": 3}), "grayscale", (my_kernel, {"amount": 2}), lambda
    frame, t: 255 - frame]`. Bytes need a width and a height.
    """
    size = None if width is None or height is None else (width, height)
    return _applied(frame_of("filter_chain", image, size), filter_steps(filters), out)


def start_pipeline(width: int, height: int) -> Context:
    """A context that filters frames of that size on the current device; also a `with` block."""
    return Context(width, height)


def process_frame(
    context: Context, frame: Any, filters: Any, *, out: Any = None, time_s: float = 0.0
) -> Any:
    """Returns the frame with the filters applied in order, as the kind of thing that was given.

    What was planned and compiled for these filters is used again for the next frame, also with
    other parameters. `out` is an array that the result is written into, `time_s` what functions
    among the filters are told about the frame's time.

    >>> import numpy as np
    >>> from dala.media import gpu
    >>> with gpu.start_pipeline(2, 1) as context:
    ...     gpu.process_frame(context, np.full((1, 2), 100, np.uint8), ["invert"])
    array([[155, 155]], dtype=uint8)
    """
    return _context(context).process(frame, filters, out, time_s)


def process_frame_async(
    context: Context, frame: Any, filters: Any, *, time_s: float = 0.0
) -> ResultCommand:
    """A command that processes the frame as it is now: `await` it, or `wait()` for the result."""
    return _context(context).process_async(frame, filters, time_s)


def stop_pipeline(context: Context) -> None:
    """Forget what the context has planned and compiled; it cannot be used any more."""
    _context(context).stop()


@cache
def filter_function(name: str) -> Callable[..., Any]:
    """Returns a filter as a function."""
    kernel = filter_kernel(name)

    def call(image: Any, *given: Any, out: Any = None, **params: Any) -> Any:
        return apply_filter(image, name, *given, out=out, **params)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = kernel.doc
    call.__signature__ = _signature(name)  # type: ignore[attr-defined]
    setattr(call, FILTER_NAME, name)
    return call


def _signature(name: str) -> inspect.Signature:
    """Returns what a filter's function takes, for help() and editors."""
    kind, optional = inspect.Parameter, optional_images(name)
    defaults: dict[str, Any] = {
        item: None if item in optional else kind.empty for item in filter_kernel(name).inputs
    }
    for item in filter_params(name):
        defaults[item.name] = kind.empty if item.required else item.default
    names = list(defaults)
    # What is a word of Python, such as `from`, can be given by its place only.
    places = max((1 + i for i, item in enumerate(names) if keyword.iskeyword(item)), default=0)
    arguments = [
        kind(
            item,
            kind.POSITIONAL_ONLY if i < places else kind.POSITIONAL_OR_KEYWORD,
            default=defaults[item],
        )
        for i, item in enumerate(names)
    ]
    arguments.append(kind("out", kind.KEYWORD_ONLY, default=None))
    return inspect.Signature(arguments)


def _applied(frame: Frame, steps: list[FilterStep], out: np.ndarray | None) -> Any:
    pixels = frame.pixels
    where = using(pixels.memory.device) if isinstance(pixels, Buffer) else nullcontext()
    with where:
        return _chains(current_device()).run(frame, steps, out)


@lru_cache(MOST_DEVICES)
def _chains(device: Device) -> Chains:
    """Returns what was planned for a device, so that the next image of the same size is quick."""
    return Chains()


def _size(
    given: tuple[Any, ...], params: dict[str, Any]
) -> tuple[tuple[int, int] | None, tuple[Any, ...]]:
    """The width and height that follow bytes, or are given by name, and what follows them."""
    if len(given) >= 2:
        return (given[0], given[1]), given[2:]
    if "width" in params and "height" in params:
        return (params.pop("width"), params.pop("height")), given
    return None, given


def _named(filter: Filter, given: tuple[Any, ...], params: dict[str, Any]) -> dict[str, Any]:
    """Returns all that a filter takes beside its image, by name."""
    called = filter_name(filter)
    if not isinstance(filter, str | Kernel):
        if given:
            raise ArgumentError(f"{called}: give what it takes beside the frame and t by name.")
        return params
    names = [*filter_kernel(filter).inputs[1:], *(item.name for item in filter_params(filter))]
    if len(given) > len(names):
        raise ArgumentError(
            f"{called} takes {len(names)} arguments beside the image "
            f"({', '.join(names) or 'none'}), but {len(given)} were given."
        )
    placed = dict(zip(names, given, strict=False))
    for name in params:
        if name in placed:
            raise ArgumentError(f"{called}: {name} was given twice, in its place and by name.")
    return placed | params


def _context(context: Any) -> Context:
    if isinstance(context, Context):
        return context
    raise ArgumentError(
        f"a context is what start_pipeline(width, height) gives, not {type(context).__name__}."
    )
