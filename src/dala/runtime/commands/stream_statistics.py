"""What a stream tells about itself: counts since it was made, and times of its latest commands."""

from __future__ import annotations

import math
from collections import deque

from dala.base.record import record
from dala.errors import DroppedError
from dala.runtime.commands.command import Command

SAMPLES = 1024
"""Completed commands, the latest ones, that latencies and throughput are told of."""


@record
class Stats:
    """What became of the commands of a stream.

    `dropped` counts those that were dropped because the stream was full or their deadline had
    passed; `late` are those of them whose deadline had passed. `forgotten` had ended but were not
    taken by who iterates over the stream. Latencies are from the call of `submit` to the end, those
    of the latest 1,024 completed commands, as is the throughput; without any they are NaN.
    """

    submitted: int
    completed: int
    failed: int
    cancelled: int
    dropped: int
    late: int
    forgotten: int
    latency_p50_ms: float
    latency_p95_ms: float
    latency_p99_ms: float
    throughput_per_s: float

    @property
    def in_flight(self) -> int:
        """Those that have not ended."""
        return self.submitted - self.completed - self.failed - self.cancelled - self.dropped


class Tally:
    """Counts commands. A command that ends is put down in one step, and counted by `settle`."""

    def __init__(self) -> None:
        self.submitted = 0
        self.forgotten = 0
        self._counts = {"completed": 0, "failed": 0, "cancelled": 0, "dropped": 0, "late": 0}
        self._ended: deque[tuple[str, float, float]] = deque()
        self._latencies_s: deque[float] = deque(maxlen=SAMPLES)
        self._ends_s: deque[float] = deque(maxlen=SAMPLES)

    def put_down(self, command: Command, started_s: float, ended_s: float) -> None:
        """Note how a command has ended, on whatever thread that was."""
        outcome: str = command.status
        if isinstance(command.error, DroppedError) and outcome == "cancelled":
            outcome = "late" if command.error.late else "dropped"
        self._ended.append((outcome, started_s, ended_s))

    @property
    def ended(self) -> int:
        """How many were counted."""
        return sum(self._counts.values())

    def settle(self) -> None:
        """Count what was put down."""
        while self._ended:
            outcome, started_s, ended_s = self._ended.popleft()
            self._counts[outcome] += 1
            if outcome == "completed":
                self._latencies_s.append(ended_s - started_s)
                self._ends_s.append(ended_s)

    def stats(self) -> Stats:
        """Returns all of it, up to now."""
        self.settle()
        counts = self._counts
        ordered = sorted(self._latencies_s)
        p50, p95, p99 = (_percentile_ms(ordered, percent) for percent in (50, 95, 99))
        return Stats(
            submitted=self.submitted,
            completed=counts["completed"],
            failed=counts["failed"],
            cancelled=counts["cancelled"],
            dropped=counts["dropped"] + counts["late"],
            late=counts["late"],
            forgotten=self.forgotten,
            latency_p50_ms=p50,
            latency_p95_ms=p95,
            latency_p99_ms=p99,
            throughput_per_s=self._throughput(),
        )

    def _throughput(self) -> float:
        if len(self._ends_s) < 2:
            return math.nan
        span_s = max(self._ends_s) - min(self._ends_s)
        return (len(self._ends_s) - 1) / span_s if span_s else math.inf


def _percentile_ms(ordered: list[float], percent: int) -> float:
    """Returns the smallest value that so many percent do not exceed."""
    if not ordered:
        return math.nan
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] * 1000
