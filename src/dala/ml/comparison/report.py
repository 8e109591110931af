"""What a search for differences has found, as a record and as lines to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dala.base.record import record
from dala.ml.comparison.deviations import Deviation

MOST_LINES = 12
"""Nodes that are listed where not all are wanted: those that differ, then the farthest."""
HEADINGS = ("node", "operator", "inputs", "on", "largest", "relative", "ulp", "")


@record
class Row:
    """One node on one device, by itself or fused with those before it."""

    node: str
    number: int
    operator: str
    device: str
    fused: bool
    shapes: tuple[tuple[int, ...], ...]
    deviation: Deviation | None
    """None where it is refused."""
    refused: str

    @property
    def fits(self) -> bool:
        """Whether it is no further from the reference than its operators may be."""
        return self.deviation is None or self.deviation.fits

    def to_dict(self) -> dict[str, Any]:
        found = self.deviation
        return {
            "node": self.node,
            "number": self.number,
            "operator": self.operator,
            "device": self.device,
            "fused": self.fused,
            "shapes": [list(shape) for shape in self.shapes],
            "fits": self.fits,
            "largest": None if found is None else _plain(found.largest),
            "relative": None if found is None else _plain(found.relative),
            "ulps": None if found is None else _plain(found.ulps),
            "count": None if found is None else found.count,
            "note": self.refused if found is None else found.note,
        }


@record
class Fault:
    """The first node that differs, the fewest nodes that show it, and the file with these."""

    row: Row
    nodes: tuple[str, ...]
    path: Path | None


@record
class Report:
    """All that was compared; `bool(report)` is whether nothing differs."""

    model: str
    reference: str
    rows: tuple[Row, ...]
    first: Fault | None
    find_accumulated: Callable[[], Mapping[str, str]]

    @cached_property
    def accumulated(self) -> Mapping[str, str]:
        """By device, the node at which its own values first differ, each fed with its own."""
        return self.find_accumulated()

    def __bool__(self) -> bool:
        return self.first is None

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain values."""
        first = self.first
        return {
            "model": self.model,
            "reference": self.reference,
            "agrees": bool(self),
            "first": first
            and {
                **first.row.to_dict(),
                "nodes": list(first.nodes),
                "written": None if first.path is None else str(first.path),
            },
            "accumulated": dict(self.accumulated),
            "rows": [row.to_dict() for row in self.rows],
        }

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yields a table of nodes, and what was found, to be read."""
        shown = list(self.rows)
        if not every:
            shown.sort(key=_interest)
            shown = sorted(shown[:MOST_LINES], key=lambda row: row.number)
        table = [HEADINGS, *(_cells(row) for row in shown)]
        wide = [max(len(cells[column]) for cells in table) for column in range(len(HEADINGS))]
        for cells in table:
            padded = (f"{cell:<{width}}" for cell, width in zip(cells, wide, strict=True))
            yield "  ".join(padded).rstrip()
        if len(shown) < len(self.rows):
            yield f"… and {len(self.rows) - len(shown):,} more that fit as well or better"
        yield ""
        yield from self._summary()

    def _summary(self) -> Iterator[str]:
        refused = {row.node: row for row in self.rows if row.deviation is None}
        for row in refused.values():
            yield f"{row.node} is not computed on {row.device}: {row.refused}"
        for device, node in self.accumulated.items():
            if node:
                yield f"on {device}, differences add up past the tolerance of one node at {node}"
        if self.first is None:
            count = len(
                {row.number for row in self.rows} - {row.number for row in refused.values()}
            )
            yield f"{self.model}: {count:,} nodes agree with {self.reference}"
            return
        row = self.first.row
        with_others = (
            f", fused as {' → '.join(self.first.nodes)}" if len(self.first.nodes) > 1 else ""
        )
        yield (
            f"{self.model}: the first node that differs from {self.reference} is {row.node} "
            f"({row.operator}), on {row.device}{with_others}"
        )
        if self.first.path is not None:
            path = self.first.path
            yield f"it is shown by: dala parity {path} {path.with_suffix('.npz')}"


def _interest(row: Row) -> tuple[bool, float]:
    """Those that differ first, then the farthest."""
    found = row.deviation
    return row.fits, -(0.0 if found is None else found.relative)


def _cells(row: Row) -> tuple[str, ...]:
    found = row.deviation
    shapes = " ".join("×".join(map(str, shape)) or "1" for shape in row.shapes)
    start = (row.node, row.operator, shapes, row.device)
    if found is None:
        return (*start, "", "", "", "not computed")
    verdict = "" if found.fits else f"DIFFERS: {found.note or f'{found.count:,} elements'}"
    return (*start, f"{found.largest:.2g}", f"{found.relative:.1e}", f"{found.ulps:.3g}", verdict)


def _plain(number: float) -> float | None:
    """Returns a number as JSON has it, which knows no infinity."""
    return number if abs(number) < float("inf") else None
