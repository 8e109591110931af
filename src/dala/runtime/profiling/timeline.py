"""A picture of what ran when: SVG, written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Protocol

WIDTH, MARGIN, LANE, BAR = 1200, 20, 34, 24
LABELS = 170
"""Room at the left for what the lanes are called."""
CHARACTER = 6.6
"""How wide a character of a label is, about."""
LEAST_BAR = 0.75
"""Pixels that the shortest run still takes."""
MOST_NAMED = 24
"""Names up to which the legend goes."""
COLORS = (
    *("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#9c755f", "#d4a50f"),
    *("#d37295", "#499894", "#86bc86", "#79706e"),
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.small{font-size:11px;fill:#555}"
    ".in{fill:#fff}.head{font-weight:600}.grid{stroke:#ddd}"
)


class Run(Protocol):
    """What the picture needs to know about a run."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def start_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def bandwidth(self) -> float: ...
    @property
    def thread_id(self) -> int: ...
    @property
    def thread(self) -> str: ...


def drawn(runs: Sequence[Run]) -> str:
    """Returns an SVG with a time axis, a lane for each device and thread, and a legend."""
    first_s = min((run.start_s for run in runs), default=0.0)
    last_s = max((run.start_s + run.duration_s for run in runs), default=0.0)
    span_s = max(last_s - first_s, 1e-6)
    spent_s: dict[str, float] = {}
    for run in runs:
        spent_s[run.name] = spent_s.get(run.name, 0.0) + run.duration_s
    names = sorted(spent_s, key=lambda name: -spent_s[name])
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(names)}
    lanes: dict[tuple[str, int], tuple[int, str]] = {}
    for run in runs:
        label = f"{run.device} · {run.thread}"
        lanes.setdefault((run.device, run.thread_id), (len(lanes), label))

    scale = (WIDTH - LABELS - 2 * MARGIN) / span_s
    left, top = MARGIN + LABELS, 58
    bottom = top + LANE * max(1, len(lanes))
    parts = _axis(span_s, scale, left, top, bottom)
    for number, label in lanes.values():
        y = top + LANE * number + LANE / 2 + 4
        parts.append(_text(MARGIN, y, _cut(label, LABELS - 10)))
    for run in runs:
        number, _ = lanes[run.device, run.thread_id]
        x = left + (run.start_s - first_s) * scale
        parts.append(_bar(run, x, top + LANE * number, run.duration_s * scale, colors[run.name]))
    legend, height = _legend(names, spent_s, colors, bottom + 30)
    count = f"{len(runs):,} run{'s' * (len(runs) != 1)}"
    busy = f"{_time(sum(spent_s.values()))} of work in {_time(span_s)}"
    title = _text(MARGIN, 26, f"{count}, {busy}", "head")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">'
    )
    back = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    body = [head, f"<style>{STYLE}</style>", back, title, *parts, *legend, "</svg>"]
    return "\n".join(body) + "\n"


def _axis(span_s: float, scale: float, left: float, top: float, bottom: float) -> list[str]:
    """Lines at round times, with what they stand for."""
    rough = span_s / 8
    power = 10.0 ** math.floor(math.log10(rough))
    step_s = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    parts = []
    for i in range(int(span_s / step_s + 1e-9) + 1):
        x = left + i * step_s * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, top - 12, _time(i * step_s), "small", "middle"))
    return parts


def _bar(run: Run, x: float, lane_top: float, width: float, color: str) -> str:
    """Returns one run: its name inside where there is room, all of it when pointed at."""
    y, width = lane_top + (LANE - BAR) / 2, max(width, LEAST_BAR)
    said = (
        f"{run.name}: {_time(run.duration_s)} ({run.clock} clock), {run.bytes_moved:,} bytes, "
        f"{run.bandwidth:.2f} GB/s"
    )
    parts = [
        f"<g><title>{_escaped(said)}</title>",
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{BAR}" rx="2" fill="{color}"/>',
    ]
    label = _cut(run.name, width - 8)
    if len(label) > 3 or label == run.name:
        parts.append(_text(x + 4, y + BAR / 2 + 4, label, "in"))
    return "".join([*parts, "</g>"])


def _legend(
    names: Sequence[str], spent_s: dict[str, float], colors: dict[str, str], top: float
) -> tuple[list[str], int]:
    """Returns the legend, longest total time first, and the height at which it ends."""
    parts, y = [], top
    for name in names[:MOST_NAMED]:
        parts.append(
            f'<rect x="{MARGIN}" y="{y - 10}" width="12" height="12" rx="2" fill="{colors[name]}"/>'
        )
        shown = _cut(name, WIDTH - 2 * MARGIN - 120)
        parts.append(_text(MARGIN + 20, y, f"{shown} · {_time(spent_s[name])}"))
        y += 20
    if len(names) > MOST_NAMED:
        parts.append(_text(MARGIN + 20, y, f"and {len(names) - MOST_NAMED} more", "small"))
        y += 20
    return parts, round(y)


def _text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    where = f'x="{x:.1f}" y="{y:.1f}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f"<text {where}{style}>{_escaped(said)}</text>"


def _cut(said: str, width: float) -> str:
    """As much of it as there is room for."""
    most = int(width / CHARACTER)
    return said if len(said) <= most else said[: max(0, most - 1)] + "…" if most > 1 else ""


def _escaped(said: str) -> str:
    """Returns the text as XML takes it, which has no control characters."""
    return escape("".join(char if char.isprintable() else " " for char in said))


def _time(seconds: float) -> str:
    """As people write it, with a unit that suits it."""
    if not seconds:
        return "0"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs"
