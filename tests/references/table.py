"""The table in docs/filters.md: what each filter was held against, and how far off it was.

`./test tests/references --write-table` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "filters.md"
BEGIN, END = "<!-- agreement -->", "<!-- end of agreement -->"
DEVICES = {"cpu": "CPU", "webgpu": "WebGPU"}


def rows(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each filter and reference: how many comparisons, and the largest differences."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for report in reports:
        for name, value in report.user_properties:
            if name == "agreement":
                kernel, reference, device, most = value
                reference = reference.partition(",")[0]  # what follows tells cases apart
                by_device = found.setdefault((kernel, reference), {})
                by_device.setdefault(device, []).append(most)
    lines = [
        f"| filter | reference | comparisons | {' | '.join(DEVICES.values())} |",
        "|---|---|---|---|---|",
    ]
    for (kernel, reference), by_device in sorted(found.items()):
        count = max(map(len, by_device.values()))
        shown = [f"{max(by_device[key]):.2f}" if key in by_device else "–" for key in DEVICES]
        lines.append(f"| `{kernel}` | {reference} | {count} | {' | '.join(shown)} |")
    return lines


def write(reports: Iterable[pytest.TestReport]) -> None:
    """Put the table between its marks in the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(rows(reports))
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
