"""What every test gets: the devices to run on, a compile cache of its own, a count of faults."""

import os
import re
import tempfile

import pytest

DEVICES = ["cpu"]

# Set on import, before any test module can load dala. The workers of xdist inherit the folder.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="dala-tests-")
    os.environ["DALA_CACHE_DIR"] = _cache.name

    def pytest_unconfigure() -> None:
        _cache.cleanup()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """The name of each device in turn."""
    return request.param


NUMBERED = re.compile(r"tests/(faults|devices)/.*::test_(\d\d)_")
"""Tests of the numbered faults: a fault passes when all of its tests do."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    outcomes: dict[str, bool] = {}
    for status in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(status, []):
            found = NUMBERED.search(report.nodeid)
            if found is not None:
                number = found.group(2)
                outcomes[number] = outcomes.get(number, True) and status == "passed"
    if outcomes:
        terminalreporter.write_line(f"faults: {sum(outcomes.values())}/{len(outcomes)} passed")
