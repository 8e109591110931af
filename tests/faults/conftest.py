"""Counts the numbered faults of `tests/faults`, and says how many came out as promised."""

from __future__ import annotations

import re

import pytest

NUMBERED = re.compile(r"tests/faults/.*::test_(\d\d)_")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes: dict[str, bool] = {}
    for status in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(status, []):
            found = NUMBERED.search(report.nodeid)
            if found is not None:
                number = found.group(1)
                outcomes[number] = outcomes.get(number, True) and status == "passed"
    if outcomes:
        terminalreporter.write_line(f"faults: {sum(outcomes.values())}/{len(outcomes)} passed")
