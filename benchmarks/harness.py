"""Rows of the table: what is measured, how, and how it is shown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

SAMPLE_S = 0.002
SETTLED_S = 0.02
"""How long threads of OpenMP and others may look for more work before they sleep."""


@dataclass(frozen=True)
class Comparison:
    """The same work done twice; the bar is the highest ratio of our time to the peer's."""

    work: str
    bar: float
    ours: Callable[[], object]
    peer: Callable[[], object]
    check: Callable[[], None]
    sample_s: float = SAMPLE_S
    """Longer where threads wait for each other: how long that takes varies from call to call."""
    most_rounds: int | None = None
    """Fewer where a call takes seconds."""
    peer_name: str = ""
    """Who the peer is, where that was found out; else the work says it."""
    within: float | None = None
    """How far apart the results may be, where that is a number for the whole row."""
    others: tuple[str, ...] = ()
    """All who were compared, the peer among them."""

    def measure(self, rounds: int) -> Result:
        rounds = rounds if self.most_rounds is None else min(rounds, self.most_rounds)
        self.ours()
        self.peer()
        self.check()
        ours_repeats, peer_repeats = (
            repeats_for(work, self.sample_s) for work in (self.ours, self.peer)
        )
        ours, peer = [], []
        for _ in range(rounds):
            ours.append(warm_seconds_per_call(self.ours, ours_repeats))
            peer.append(warm_seconds_per_call(self.peer, peer_repeats))
        ratios = [a / b for a, b in zip(ours, peer, strict=True)]
        low, ratio, high = quartiles(ratios)
        return Result(
            work=self.work,
            ours_s=statistics.median(ours),
            peer_s=statistics.median(peer),
            ratio=ratio,
            bar=self.bar,
            holds=ratio <= self.bar,
            spread=(low, high),
            peer_name=self.peer_name,
            within=self.within,
            others=self.others,
        )


@dataclass(frozen=True)
class Duration:
    """Work that has a bar of its own, in seconds. A sample is the seconds that it took once."""

    work: str
    bar_s: float
    sample: Callable[[], float]

    def measure(self, rounds: int) -> Result:
        self.sample()
        low, median, high = quartiles([self.sample() for _ in range(rounds)])
        return Result(
            work=self.work,
            ours_s=median,
            peer_s=None,
            ratio=None,
            bar=self.bar_s,
            holds=median <= self.bar_s,
            spread=(low, high),
        )


@dataclass(frozen=True)
class Count:
    """Work that is to make no more than so many of something, each time."""

    work: str
    bar: int
    count: Callable[[], int]

    def measure(self, rounds: int) -> Result:
        counts = [self.count() for _ in range(rounds)]
        most = max(counts)
        return Result(
            work=self.work,
            ours_s=None,
            peer_s=None,
            ratio=None,
            bar=self.bar,
            holds=most <= self.bar,
            spread=(min(counts), most),
        )


Row = Comparison | Duration | Count


@dataclass(frozen=True)
class Result:
    """One measured row. Bar and spread are ratios, or else seconds, or else counts."""

    work: str
    ours_s: float | None
    peer_s: float | None
    ratio: float | None
    bar: float
    holds: bool
    spread: tuple[float, float]
    peer_name: str = ""
    within: float | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """A row that cannot be measured here."""

    work: str
    missing: str


@dataclass(frozen=True)
class Same:
    """A row whose sides make the same, and that was not measured."""

    work: str


@dataclass(frozen=True)
class Wrong:
    """A row whose sides do not make the same: a mistake of dala, or of the row."""

    work: str
    wrong: str


Outcome = Result | Missing | Same | Wrong


def seconds_per_call(work: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(repeats):
        work()
    return (time.perf_counter_ns() - start) / repeats / 1e9


def warm_seconds_per_call(work: Callable[[], object], repeats: int) -> float:
    """The time of a call in its own caches, when the threads of what ran before sleep."""
    end = time.perf_counter() + SETTLED_S
    while time.perf_counter() < end:
        work()
    return seconds_per_call(work, repeats)


def repeats_for(work: Callable[[], object], sample_s: float = SAMPLE_S) -> int:
    """How many calls make a sample long enough for the clock and the scheduler."""
    repeats = 1
    while (seconds := seconds_per_call(work, repeats) * repeats) < sample_s:
        repeats = max(2 * repeats, int(repeats * sample_s / max(seconds, 1e-9)))
    return repeats


def quartiles(samples: list[float]) -> tuple[float, float, float]:
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, median, high


COLUMNS = "{:<56} {:>9} {:>9} {:>7} {:>9}  {:<5}  {}"


def table_head() -> str:
    return COLUMNS.format("work", "ours", "peer", "ratio", "bar", "holds", "spread (middle half)")


def table_line(result: Outcome) -> str:
    if isinstance(result, Same):
        return f"{result.work:<56} the same"
    if isinstance(result, Missing):
        return f"{result.work:<56} not measured: {result.missing}"
    if isinstance(result, Wrong):
        return f"{result.work:<56} ERROR: {result.wrong}"
    work = f"{result.work} : {result.peer_name}" if result.peer_name else result.work
    low, high = result.spread
    ratio = peer = ""
    if result.ours_s is None:
        ours, bar, spread = f"{high:g}", f"{result.bar:g}", f"{low:g} – {high:g}"
    elif result.ratio is None:
        ours, bar = show_seconds(result.ours_s), show_bar(result.bar)
        spread = f"{show_seconds(low)} – {show_seconds(high)}"
    else:
        ours = show_seconds(result.ours_s)
        ratio, bar = f"{result.ratio:.3f}", f"{result.bar:.2f} ×"
        peer = show_seconds(result.peer_s or 0.0)
        spread = f"{low:.3f} – {high:.3f}"
    holds = "yes" if result.holds else "NO"
    return COLUMNS.format(work, ours, peer, ratio, "≤ " + bar, holds, spread)


def show_seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"


def show_bar(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:g} µs"
