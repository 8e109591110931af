"""The frame loop: calls a function for each frame, at a steady rate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from dala.base.record import record
from dala.errors import ArgumentError
from dala.surfaces.surface import Surface

POLL_S = 1 / 30
"""The longest time between polls of a window's events."""
_ROUNDING = 1e-6
"""The share of a period by which a clock may be early and count as on time."""

End = Literal["closed", "stopped", "frames", "interrupted"]


@record
class Frame:
    """What the function of `loop` gets for each frame.

    `number` counts frames from 0. `time` is seconds since the loop started, `dt` seconds since the
    previous frame, 0.0 in the first. `dropped` is the number of frames skipped so far because
    earlier ones took too long.
    """

    number: int
    time: float
    dt: float
    dropped: int


@record
class LoopStats:
    """The result of a loop.

    `frames` were presented, and `dropped` skipped because earlier ones took too long. `fps` is the
    average rate. `ended` says why: the window was "closed" or the surface destroyed, the function
    "stopped" it, all "frames" were done, or the user "interrupted" it.
    """

    frames: int
    dropped: int
    seconds: float
    fps: float
    ended: End


class Clock(Protocol):
    """Tells the time, and lets it pass."""

    def now_s(self) -> float:
        """Seconds since some moment."""

    def sleep(self, duration_s: float) -> None:
        """Waits."""


class Wall:
    """The real clock."""

    def now_s(self) -> float:
        return time.perf_counter()

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)


class Pace:
    """Schedules frames at multiples of a period since the start, so that errors do not add up.

    A late frame starts at once. One whose whole period has passed is dropped.
    """

    def __init__(self, fps: float | None, start_s: float) -> None:
        self.dropped = 0
        self._fps = fps
        self._start_s = start_s
        self._slot = 0

    def wait_s(self, now_s: float) -> float:
        """Returns the time until the next frame is due."""
        if self._fps is None:
            return 0.0
        early = self._slot - (now_s - self._start_s) * self._fps
        return early / self._fps if early > _ROUNDING else 0.0

    def begin(self, now_s: float) -> None:
        """Starts the frame that is due now; missed ones before it are dropped."""
        if self._fps is not None:
            current = math.floor((now_s - self._start_s) * self._fps + _ROUNDING)
            self.dropped += max(0, current - self._slot)
            self._slot = max(self._slot, current) + 1


def loop(
    surface: Surface,
    fn: Callable[[Frame], Any],
    fps: float | None = 60,
    frames: int | None = None,
) -> LoopStats:
    """Calls `fn(frame)` and presents the surface `fps` times a second; returns statistics.

    It ends when the window is closed, when `fn` returns False (that frame is not shown), after
    `frames` frames, or when the user interrupts the program; none of them ends the program. With
    `fps=None` each frame starts as soon as the previous one is done, and none is dropped.
    """
    if not isinstance(surface, Surface):
        raise ArgumentError(
            f"loop: surface is what create_surface() makes, not {type(surface).__name__}."
        )
    if not callable(fn):
        raise ArgumentError(f"loop: fn is a function of a frame, not {fn!r}.")
    if fps is not None and not (_is_number(fps) and 0 < fps < math.inf):
        raise ArgumentError(f"loop: fps is a number above 0, or None for no pace, not {fps!r}.")
    if frames is not None and (isinstance(frames, bool) or not isinstance(frames, int)):
        raise ArgumentError(f"loop: frames is an integer, or None for no end, not {frames!r}.")
    if frames is not None and frames < 0:
        raise ArgumentError(f"loop: frames is 0 or more, not {frames}.")
    _ = surface.store  # raises if the surface was destroyed
    return run(surface, fn, fps, frames, Wall())


def run(
    surface: Surface,
    fn: Callable[[Frame], Any],
    fps: float | None,
    frames: int | None,
    clock: Clock,
) -> LoopStats:
    """Runs the loop with any clock."""
    start_s = before_s = clock.now_s()
    pace = Pace(fps, start_s)
    number = 0
    ended: End = "interrupted"
    try:
        while True:
            if number == frames:
                ended = "frames"
                break
            if not _wait(surface, pace, clock):
                ended = "closed"
                break
            now_s = clock.now_s()
            pace.begin(now_s)
            frame = Frame(number, now_s - start_s, now_s - before_s, pace.dropped)
            before_s = now_s
            if fn(frame) is False:
                ended = "stopped"
                break
            if not surface.closed:
                _show(surface)
                number += 1
    except KeyboardInterrupt:
        pass  # reported by `ended`
    seconds = clock.now_s() - start_s
    return LoopStats(number, pace.dropped, seconds, number / seconds if seconds else 0.0, ended)


def _show(surface: Surface) -> None:
    surface.present()
    if surface._canvas is None:
        # Nothing else waits for the GPU off-screen: unfinished frames would be counted.
        surface._device.synchronize()


def _wait(surface: Surface, pace: Pace, clock: Clock) -> bool:
    """Waits until the next frame is due; returns False if the surface is closed before."""
    while True:
        canvas = surface._canvas
        if canvas is not None:
            canvas.poll()
        if surface.closed:
            return False
        wait_s = pace.wait_s(clock.now_s())
        if not wait_s:
            return True
        clock.sleep(min(wait_s, POLL_S))


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)
