"""Models that run on every n-th frame, and whose result is reused for the frames between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.devices import using
from dala.errors import ArgumentError
from dala.images.frames import new_buffer
from dala.media.filters.chain import FilterStep, filter_step
from dala.media.filters.model_filters import MASKED, every_of, filter_kernel, model_of
from dala.ml.models.annotation import draw, found
from dala.runtime.buffers.buffer import Buffer, from_numpy
from dala.runtime.profiling.profile import copy


def filter_with_model(name: str, params: Mapping[str, Any]) -> FilterStep | EveryNth:
    """Returns a filter that runs a model on every n-th frame of a video."""
    every = every_of(name, params)
    step = filter_step(name, {key: item for key, item in params.items() if key != "every"})
    if every == 1:
        return step
    return MaskedEveryNth(step, params, every) if name in MASKED else DetectEveryNth(step, every)


class EveryNth(ABC):
    """Reuses a model's result until it runs again."""

    def __init__(self, step: FilterStep, every: int) -> None:
        self._step = step
        self._every = every
        self._kept: Buffer | None = None
        self._age = 0
        """Frames since the model last ran."""
        # Uploaded once the device is known.
        self._restored: np.ndarray | None = None

    def apply(self, image: Buffer) -> Buffer:
        """Returns the filtered frame, on the image's device; the image is only read."""
        with using(image.memory.device) as device:
            if self._restored is not None:
                self._kept, self._restored = from_numpy(self._restored), None
            if self._kept is None or self._age >= self._every:
                self._kept, self._age = self._look(image), 0
            self._kept = self._kept.to(device)
            made = new_buffer(image.shape, image.dtype)
            self._make(image, self._kept, made)
        self._age += 1
        return made

    @abstractmethod
    def _look(self, image: Buffer) -> Buffer:
        """Runs the model and returns the result to reuse."""

    @abstractmethod
    def _make(self, image: Buffer, kept: Buffer, output: Buffer) -> None:
        """Writes the filtered image, given the model's result."""

    def state(self) -> dict[str, np.ndarray]:
        """Returns the state that a resumed run needs."""
        kept = self._restored if self._kept is None else np.array(self._kept)
        return {} if kept is None else {"kept": kept, "age": np.array(self._age)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from a saved state."""
        self._kept, self._restored, self._age = None, None, 0
        if not state:
            return
        if set(state) != {"kept", "age"}:
            raise ArgumentError(
                f"{self._step.kernel.name}: {sorted(state)} is no state that it gave: that is what "
                f"was kept, and its age in frames."
            )
        self._restored, self._age = np.array(state["kept"]), int(state["age"])


class MaskedEveryNth(EveryNth):
    """A masked filter whose mask comes from a model, on every n-th frame."""

    def __init__(self, step: FilterStep, params: Mapping[str, Any], every: int) -> None:
        from dala.ml.models.masks import mask_kernel, mask_shape

        super().__init__(step, every)
        name = step.kernel.name
        model = model_of(name, params)
        self._kernel = filter_kernel(name)
        self._masking = mask_kernel(name, model)
        self._shape = mask_shape(name, model)

    def _look(self, image: Buffer) -> Buffer:
        mask = new_buffer(self._shape, "f32")
        self._masking.run([image], mask)
        return mask

    def _make(self, image: Buffer, kept: Buffer, output: Buffer) -> None:
        others = [item.buffer() for item in self._step.others]
        self._kernel.run([image, *others, kept], output, self._step.params)


class DetectEveryNth(EveryNth):
    """Draws what a model finds in every n-th frame over that frame and those after it.

    The frame itself is the saved state: a resumed run finds the same in it.
    """

    def __init__(self, step: FilterStep, every: int) -> None:
        super().__init__(step, every)
        self._results: Any = None
        self._found_in: Buffer | None = None

    def _look(self, image: Buffer) -> Buffer:
        kept = new_buffer(image.shape, image.dtype)
        copy(image.memory.device, image.memory, kept.memory)
        return kept

    def _make(self, image: Buffer, kept: Buffer, output: Buffer) -> None:
        if self._found_in is not kept:
            self._results, self._found_in = found(kept, self._step.params), kept
        draw(self._results, image, output)
