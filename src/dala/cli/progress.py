"""Progress of a run: a bar on a terminal, occasional lines elsewhere, or nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Protocol

from rich.console import RenderableType
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from dala.cli.terminal import errors, label, say

LINE_EVERY_S = 5.0
_BAR_COLUMNS = 20


class Step(Protocol):
    """The progress after a frame."""

    @property
    def frames(self) -> int: ...
    @property
    def of_frames(self) -> int | None: ...
    @property
    def read_s(self) -> float: ...
    @property
    def filter_s(self) -> float: ...
    @property
    def write_s(self) -> float: ...


class Meter:
    """Measures a run: frames, frame rate, time left, time in each stage."""

    def __init__(self) -> None:
        self.started_s = time.perf_counter()
        self.step: Step | None = None
        self._before = 0

    def count(self, step: Step) -> None:
        """Counts a frame; those of an earlier run do not count for the speed."""
        if self.step is None:
            self._before = step.frames - 1
        self.step = step

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.started_s

    @property
    def frames_per_s(self) -> float:
        if self.step is None:
            return 0.0
        return (self.step.frames - self._before) / max(self.elapsed_s, 1e-6)

    @property
    def left_s(self) -> float | None:
        """The estimated time left, if it is known."""
        if self.step is None or not self.step.of_frames or not self.frames_per_s:
            return None
        return max(0, self.step.of_frames - self.step.frames) / self.frames_per_s

    @property
    def stages_s(self) -> dict[str, float]:
        """The time spent in each stage; stages overlap."""
        if self.step is None:
            return {}
        step = self.step
        found = {"read": step.read_s, "filter": step.filter_s, "write": step.write_s}
        return {name: round(value, 3) for name, value in found.items()}

    def stages(self) -> str:
        """The stages as text."""
        return ", ".join(f"{name} {seconds(value)}" for name, value in self.stages_s.items())

    def count_text(self) -> str:
        """The frames done, of the total."""
        if self.step is None:
            return ""
        whole = f" of {self.step.of_frames}" if self.step.of_frames else ""
        return f"{self.step.frames}{whole} frames"


def seconds(value: float) -> str:
    """Returns a duration as text: 0.4 s, 12 s, 3:05, 1:02:03."""
    if value < 60:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Report:
    """Shows the progress of one run; call it with each step."""

    def __init__(self, name: str, *, quiet: bool = False) -> None:
        self.name = name
        self.meter = Meter()
        self._quiet = quiet
        self._said_s = self.meter.started_s
        self._bars: _Bars | None = None
        if not quiet and errors().is_terminal:
            self._bars = _Bars(self.meter, name)

    def __call__(self, step: Step) -> None:
        self.meter.count(step)
        if self._bars is not None:
            self._bars.move(step)
        elif not self._quiet:
            self._say_now_and_then()

    def _say_now_and_then(self) -> None:
        now_s = time.perf_counter()
        if now_s - self._said_s < LINE_EVERY_S:
            return
        self._said_s = now_s
        left_s = self.meter.left_s
        left = "" if left_s is None else f", {seconds(left_s)} left"
        rate = f"{self.meter.frames_per_s:.1f} frames/s"
        say(f"{self.name}: {self.meter.count_text()}, {rate}{left} ({self.meter.stages()})")

    def __enter__(self) -> Report:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()


class _Bars(Bars):
    """Shows a bar, and below it the time in each stage, until the run ends."""

    def __init__(self, meter: Meter, name: str) -> None:
        self._meter = meter  # drawn as soon as it is constructed
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_COLUMNS),
            _Column(meter),
            console=errors(),
            transient=True,
        )
        self._task = self.add_task(label(name, _BAR_COLUMNS), total=None)

    def move(self, step: Step) -> None:
        self.update(self._task, completed=step.frames, total=step.of_frames)

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(self._meter.stages(), style="dim")


class _Column(ProgressColumn):
    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def render(self, task: Task) -> Text:
        if self._meter.step is None:
            return Text("starting")
        done: list[Any] = [self._meter.count_text(), f"{self._meter.frames_per_s:.1f}/s"]
        if self._meter.left_s is not None:
            done.append(f"{seconds(self._meter.left_s)} left")
        return Text(" · ".join(done))
