"""Filters one after another on frames of one size: planned once, run on each frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import dala.kernels  # noqa: F401  (registers the filters)
from dala.base.lru_cache import LruCache
from dala.base.record import record
from dala.devices import current_device
from dala.devices.cpu.memory import Borrowed
from dala.devices.device import forget_oldest
from dala.errors import ArgumentError, DalaError, FunctionError
from dala.images.frames import Frame, Shape, destination, frame_of, new_buffer
from dala.media.filters.functions import CALL, FrameFunction, checked_function, function_name
from dala.media.filters.model_filters import step_kernel
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.arguments import complete, params_key
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.executable import Executable
from dala.runtime.pipelines.pipeline import Pipeline

FILTER_NAME = "filter_name"
"""Where the functions of `dala.media.gpu` say which filter they are."""
MOST_CHAINS = 32
"""Chains of filters that are remembered, the latest ones."""
MOST_EXECUTABLES = 8
"""Combinations of parameters of a chain that are ready to run."""


@record
class FilterStep:
    """A filter with its parameters, and the images that it takes beside the frame."""

    kernel: Kernel
    others: tuple[Frame, ...]
    params: Mapping[str, Any]

    def output_shape(self, shape: Shape) -> Shape:
        """Returns the shape that it makes of a frame's."""
        return self.kernel.output_shape([shape, *(item.shape for item in self.others)], self.params)


Filter = str | Kernel | FrameFunction
"""A filter by its name, a kernel of the user's, or a function that makes a frame of a frame."""


def filter_step(what: Filter, params: Mapping[str, Any], time_s: float = 0.0) -> FilterStep:
    """Returns a filter for a frame that is shown at a time.

    Images beside the frame are among the parameters, by their names.
    """
    if not isinstance(what, str | Kernel):
        function = checked_function(what, params)
        return FilterStep(CALL, (), {"function": function, "time_s": time_s, "given": params})
    kernel, rest = step_kernel(what, params)
    name, others = kernel.name, []
    if not kernel.inputs:
        raise ArgumentError(f"{name} takes no image, and so it is no filter.")
    for wanted in kernel.inputs[1:]:
        if wanted not in rest:
            raise ArgumentError(
                f"{name} takes {len(kernel.inputs)} images ({', '.join(kernel.inputs)}): give "
                f"{wanted}=… too."
            )
        others.append(frame_of(f"{name}: {wanted}", rest.pop(wanted)))
    return FilterStep(kernel, tuple(others), complete(name, kernel.params, rest))


def listed_filters(filters: Any) -> list[tuple[Filter, Mapping[str, Any]]]:
    """The filters of a list with their parameters: each stands alone, or in a pair with them."""
    if isinstance(filters, str | Mapping) or not isinstance(filters, Iterable):
        raise ArgumentError(
            f"filters are a list such as [('blur', {{'radius': 3}}), 'grayscale'], not {filters!r}."
        )
    listed = []
    for item in filters:
        what, params = item if isinstance(item, tuple | list) and len(item) == 2 else (item, {})
        what = getattr(what, FILTER_NAME, what)
        if not isinstance(what, str) and not callable(what):
            raise ArgumentError(
                f"a filter is a name, a kernel or a function, or one of them and its parameters, "
                f"such as ('blur', {{'radius': 3}}), not {item!r}."
            )
        if not isinstance(params, Mapping):
            raise ArgumentError(
                f"{filter_name(what)}: parameters are a mapping such as {{'radius': 3}}, not "
                f"{params!r}."
            )
        listed.append((what, params))
    return listed


def filter_name(what: Filter) -> str:
    """Returns what a filter is called."""
    if isinstance(what, str):
        return what
    return what.name if isinstance(what, Kernel) else function_name(what)


def filter_steps(filters: Any, time_s: float = 0.0) -> list[FilterStep]:
    """The filters of a list, ready to be used; without any, a copy, which is its owner's alone."""
    return [filter_step(*item, time_s) for item in listed_filters(filters) or [("cast", {})]]


def chain_key(frame: Frame, steps: Sequence[FilterStep]) -> tuple[Any, ...]:
    """What a chain can be used again for: kernels and sizes, not the values of parameters."""
    shape, parts = frame.shape, []
    for step in steps:
        shape = step.output_shape(shape)
        others = tuple((item.shape, item.dtype) for item in step.others)
        parts.append((step.kernel.name, id(step.kernel), others, shape))
    return (frame.shape, frame.dtype, *parts)


class Chain:
    """A pipeline whose first input and last output are bound anew for each frame."""

    def __init__(self, frame: Frame, steps: Sequence[FilterStep]) -> None:
        shape, dtype = frame.shape, frame.dtype
        self._pipeline = Pipeline()
        self._executables: LruCache[Any, Executable] = LruCache(MOST_EXECUTABLES)
        self._source = here = scratch(shape, dtype)
        self._others: list[Buffer] = []
        for number, step in enumerate(steps):
            others = [scratch(item.shape, item.dtype) for item in step.others]
            shape = step.output_shape(shape)
            there = scratch(shape, dtype)
            self._pipeline.add(
                kernel=step.kernel,
                inputs=[here, *others],
                output=there,
                params=step.params,
                name=_stage_name(number, step),
            )
            self._others += others
            here = there
        self._output = here

    def run(self, frame: Frame, steps: Sequence[FilterStep], out: np.ndarray | None) -> Any:
        """Returns what the filters, with the parameters that they have now, make of a frame."""
        shape, dtype = self._output.shape, self._output.dtype
        made = new_buffer(shape, dtype) if out is None else destination(out, shape, dtype)
        others = [item.buffer() for step in steps for item in step.others]
        given = [frame.buffer(), *others]
        chosen = tuple([params_key(step.params) for step in steps])
        if None in chosen or not made.is_host or any(item.aliases(made) for item in given):
            self._run_anew(steps, [*given, made])
        else:
            known = self._executables.find(chosen, lambda: self._executable(steps))
            known.run([*given, made])
        return given_back(frame, made, out)

    @property
    def _stand_ins(self) -> list[Buffer]:
        return [self._source, *self._others, self._output]

    def _run_anew(self, steps: Sequence[FilterStep], buffers: Sequence[Buffer]) -> None:
        params = {_stage_name(i, step): step.params for i, step in enumerate(steps)}
        self._pipeline.run(params, dict(zip(self._stand_ins, buffers, strict=True)))

    def _executable(self, steps: Sequence[FilterStep]) -> Executable:
        """Returns the stages with these parameters, which run without being looked at again."""
        params = {_stage_name(i, step): step.params for i, step in enumerate(steps)}
        return self._pipeline.executable(params, self._stand_ins)


class Chains:
    """Chains that were planned, for the next frame; each is taken out while it runs.

    So several threads can run the same filters at once, without waiting for each other.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Chain] = {}

    def run(self, frame: Frame, steps: Sequence[FilterStep], out: np.ndarray | None) -> Any:
        """Returns what the filters make of a frame, by a chain that is known or is from now on."""
        if len(steps) == 1 and current_device().is_host:
            return _run_one(frame, steps[0], out)
        key = chain_key(frame, steps)
        with _plainly(len(steps)):
            chain = self._known.pop(key, None) or Chain(frame, steps)
            result = chain.run(frame, steps, out)
        self._known[key] = chain
        forget_oldest(self._known, MOST_CHAINS)
        return result


def _run_one(frame: Frame, step: FilterStep, out: np.ndarray | None) -> Any:
    """Returns what one filter makes of a frame: its kernel knows best how to run again."""
    shape = step.output_shape(frame.shape)
    made = new_buffer(shape, frame.dtype) if out is None else destination(out, shape, frame.dtype)
    step.kernel.run([frame.buffer(), *(item.buffer() for item in step.others)], made, step.params)
    return given_back(frame, made, out)


def given_back(frame: Frame, made: Buffer, out: np.ndarray | None) -> Any:
    """Returns a result as the caller wants it: in `out`, or as the frame was given."""
    if out is None:
        return frame.give_back(made)
    if not isinstance(made.memory, Borrowed):
        np.copyto(out, np.asarray(made))
    return out


@contextmanager
def _plainly(count: int) -> Iterator[None]:
    """Inside, an error about the only filter does not say which stage it is about."""
    try:
        yield
    except DalaError as error:
        cause = error.__cause__
        if count != 1 or isinstance(error, FunctionError) or not isinstance(cause, DalaError):
            raise
        error.__cause__ = None  # else each would be what the other comes from
        raise cause from None


def _stage_name(number: int, step: FilterStep) -> str:
    return f"{step.kernel.name}.{number}"
