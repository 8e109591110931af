"""What filters frame after frame: a context that keeps its planned chains."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.devices.device import Memory
from dala.errors import FreedError, ShapeError
from dala.images.frames import Frame, frame_of
from dala.media.chain import Chains, FilterStep, filter_steps
from dala.runtime.buffer import Buffer
from dala.runtime.commands import Command, Status, Work
from dala.runtime.run import submit


class Context:
    """Filters frames of one size on one device; what it has planned and compiled stays with it."""

    def __init__(self, width: int, height: int) -> None:
        for name, extent in (("width", width), ("height", height)):
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
                raise ShapeError(
                    f"start_pipeline: {name} is a whole number from 1 on, not {extent!r}."
                )
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

    def process(self, image: Any, filters: Any, out: np.ndarray | None = None) -> Any:
        """The frame with all filters applied in order, as the kind that it was given."""
        frame, steps = self._prepare(image, filters)
        return self._run(frame, steps, out)

    def process_async(self, image: Any, filters: Any) -> FrameCommand:
        """A command that processes the frame as it is now."""
        frame, steps = self._prepare(image, filters)
        frame = frame.kept()
        steps = [
            FilterStep(step.kernel, tuple(item.kept() for item in step.others), step.params)
            for step in steps
        ]
        done: list[Any] = []
        call = lambda: done.append(self._run(frame, steps, None))  # noqa: E731
        work = Work(call, _memories(frame, steps), (), f"frame of {self.width} × {self.height}")
        return FrameCommand(submit(_Prepared(work)), done)

    def _prepare(self, image: Any, filters: Any) -> tuple[Frame, list[FilterStep]]:
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
        return frame, filter_steps(filters)

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


class FrameCommand:
    """A frame that is being processed: look at its `status`, `wait()` for it, or `await` it.

    `compute.poll`, `compute.wait` and the others take it as they take any command.
    """

    def __init__(self, command: Command, done: list[Any]) -> None:
        self._command = command
        self._done = done

    @property
    def id(self) -> int:
        return self._command.id

    @property
    def status(self) -> Status:
        return self._command.status

    @property
    def done(self) -> bool:
        return self._command.done

    def cancel(self) -> bool:
        """Whether the command was still pending and now will never run."""
        return self._command.cancel()

    def wait(self, timeout_s: float | None = None) -> Any:
        """The frame, once it is there; raises the command's own error if it failed."""
        self._command.wait(timeout_s)
        return self._done[0]

    def __await__(self) -> Generator[Any, None, Any]:
        yield from self._command.__await__()
        return self._done[0]

    def __index__(self) -> int:
        return self._command.id

    def __repr__(self) -> str:
        return repr(self._command)


class _Prepared:
    """Work that can be submitted."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def work(self) -> Work:
        return self._work


def _memories(frame: Frame, steps: list[FilterStep]) -> tuple[Memory, ...]:
    """The memory of buffers that are read: what is written there before has to be done."""
    frames = [frame, *(item for step in steps for item in step.others)]
    return tuple(item.pixels.memory for item in frames if isinstance(item.pixels, Buffer))
