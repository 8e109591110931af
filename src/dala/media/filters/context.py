"""What filters frame after frame: a context that keeps its planned chains."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.devices.device import Memory
from dala.errors import FreedError, ShapeError
from dala.images.frames import Frame, frame_of
from dala.kernels.base.shapes import number_within
from dala.media.filters.chain import Chains, FilterStep, filter_steps
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.commands.result_command import ResultCommand, submit_call


class Context:
    """Filters frames of one size on one device; what it has planned and compiled stays with it."""

    def __init__(self, width: int, height: int) -> None:
        for name, extent in (("width", width), ("height", height)):
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
                raise ShapeError(f"start_pipeline: {name} is an integer from 1 on, not {extent!r}.")
        self.width = width
        self.height = height
        self._device: Device = current_device()
        self._chains: Chains | None = Chains()

    @property
    def device(self) -> str:
        """The id of the device that it runs on."""
        return self._device.id

    @property
    def closed(self) -> bool:
        return self._chains is None

    def process(
        self, image: Any, filters: Any, out: np.ndarray | None = None, time_s: float = 0.0
    ) -> Any:
        """Returns the frame with all filters applied in order, as the kind that it was given."""
        frame, steps = self._prepare(image, filters, time_s)
        return self._run(frame, steps, out)

    def process_async(self, image: Any, filters: Any, time_s: float = 0.0) -> ResultCommand:
        """Returns a command that processes the frame as it is now."""
        frame, steps = self._prepare(image, filters, time_s)
        frame = frame.kept()
        steps = [
            FilterStep(step.kernel, tuple(item.kept() for item in step.others), step.params)
            for step in steps
        ]
        label = f"frame of {self.width} × {self.height}"
        call = partial(self._run, frame, steps, None)
        return submit_call(call, _memories(frame, steps), label)

    def _prepare(self, image: Any, filters: Any, time_s: float) -> tuple[Frame, list[FilterStep]]:
        self._check_open()
        size = None
        if isinstance(image, bytes | bytearray | memoryview):
            size = (self.width, self.height)
        frame = frame_of("process_frame", image, size)
        if frame.shape[:2] != (self.height, self.width):
            height, width = frame.shape[:2]
            raise ShapeError(
                f"process_frame: the frame is {width} × {height}, but the pipeline was started for "
                f"{self.width} × {self.height}: start another, or resize the frame."
            )
        return frame, filter_steps(filters, number_within("process_frame", "time_s", time_s))

    def _run(self, frame: Frame, steps: list[FilterStep], out: np.ndarray | None) -> Any:
        with using(self._device):
            return self._check_open().run(frame, steps, out)

    def _check_open(self) -> Chains:
        if self._chains is None:
            raise FreedError("the pipeline was stopped: start another with start_pipeline().")
        return self._chains

    def stop(self) -> None:
        """Forget what was planned and compiled; a second time does nothing."""
        self._chains = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = ", stopped" if self.closed else ""
        return f"<Context {self.width} × {self.height} {self.device}{state}>"


def _memories(frame: Frame, steps: list[FilterStep]) -> tuple[Memory, ...]:
    """Returns the memory of buffers that are read: what is written there before has to be done."""
    frames = [frame, *(item for step in steps for item in step.others)]
    return tuple(item.pixels.memory for item in frames if isinstance(item.pixels, Buffer))
