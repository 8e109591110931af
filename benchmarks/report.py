"""What the rows of a run say together: how many are slower than a peer, by how much, and which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import geometric_mean

from benchmarks.harness import Missing, Outcome, Result

SLOWER = 1.1
"""A row above this has a peer that is faster, whatever the noise."""
LIMITS = (SLOWER, 1.5, 2.0)


def ratios(results: Iterable[Outcome]) -> list[float]:
    """Those of rows against the fastest of several peers."""
    return [x.ratio for x in results if isinstance(x, Result) and x.ratio and x.peer_name]


def worst(results: Mapping[str, Outcome]) -> list[str]:
    """The rows in which a peer is faster, the worst first."""
    measured = {
        name: item.ratio
        for name, item in results.items()
        if isinstance(item, Result) and item.ratio and item.ratio > SLOWER and item.peer_name
    }
    return sorted(measured, key=lambda name: -measured[name])


def summary(
    group: str,
    results: Mapping[str, Outcome],
    formats: Mapping[str, str] | None = None,
    bar: float | None = None,
) -> list[str]:
    """Lines about a group of rows: how many there are, how many are slow, and the mean."""
    found = ratios(results.values())
    if not found:
        return []
    slow = ", ".join(f"{sum(x > limit for x in found)} above {limit:g} ×" for limit in LIMITS)
    said = f", bar ≤ {bar:.2f} ×" if bar is not None else ""
    lines = [
        f"{group}: {len(found)} rows, {slow}; {geometric_mean(found):.3f} × on (geometric) "
        f"average{said}"
    ]
    if formats:
        lines.append(f"{group} by format: {', '.join(by_format(results, formats))}")
    missing = [name for name, item in results.items() if isinstance(item, Missing)]
    if missing:
        lines.append(f"{group}: {len(missing)} rows are not measured")
    return lines


def by_format(results: Mapping[str, Outcome], formats: Mapping[str, str]) -> list[str]:
    """The mean of each format, with the number of its rows."""
    shown = []
    for format in dict.fromkeys(formats[name] for name in results if name in formats):
        found = ratios(item for name, item in results.items() if formats.get(name) == format)
        if found:
            shown.append(f"{format} {geometric_mean(found):.3f} × ({len(found)})")
    return shown
