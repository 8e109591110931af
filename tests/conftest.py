"""What every test gets: the devices to run on, a compile cache of its own, a count of faults."""

import os
import re
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DEVICES = ["cpu", "webgpu"]
"""Every device that the suite is run on: one more joins by its name here."""

# A shell that starts the tests in the background has them ignore Ctrl-C, of which some are.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Set on import, before any test module can load dala. The workers of xdist inherit the folder.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="dala-tests-")
    os.environ["DALA_CACHE_DIR"] = _cache.name

    def pytest_unconfigure() -> None:
        _cache.cleanup()


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """The kernels that are registered are the same after a test as before it."""
    from dala.runtime.kernels.kernel import KERNELS

    before = dict(KERNELS)
    yield
    KERNELS.clear()
    KERNELS.update(before)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of each device in turn, on which new buffers are made."""
    from dala.gpu import compute

    name = request.param
    if name == "webgpu":
        need_webgpu()
    with compute.device(name):
        yield name


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where the inputs, then the output, of each launch on the CPU lie in memory."""
    from dala.runtime.kernels.kernel import Kernel

    seen: list[int] = []
    launch = Kernel.run

    def run(self, inputs, output, params=None) -> None:
        seen.extend(item.memory.address for item in (*inputs, output))
        launch(self, inputs, output, params)

    monkeypatch.setattr(Kernel, "run", run)
    return seen


@pytest.fixture
def webgpu() -> Iterator[str]:
    """The WebGPU device alone, for what is its own."""
    from dala.gpu import compute

    need_webgpu()
    with compute.device("webgpu") as opened:
        yield opened.id


def need_webgpu() -> None:
    """Skip a test where there is no adapter; in CI there has to be one."""
    from dala.devices import devices

    if not any(info["backend"] == "webgpu" for info in devices()):
        assert "CI" not in os.environ, "CI has no WebGPU adapter: see .ci/setup"
        pytest.skip("no WebGPU adapter: apt install mesa-vulkan-drivers, pip install wgpu")


SLOW = Path(__file__).with_name("slow.txt")
"""Names of tests that take longer than most; `./test --write-slow` writes it."""
SLOW_S = 0.3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow what `--fast` leaves out: all cases of a test but the first, and slow tests."""
    taken = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        name, _, case = item.nodeid.partition("[")
        if "webgpu" in case or name in taken:
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") is None:
            taken.add(name)


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
    if "DALA_WRITE_SLOW" in os.environ:
        passed = terminalreporter.stats.get("passed", [])
        slow = {report.nodeid.partition("[")[0] for report in passed if report.duration > SLOW_S}
        SLOW.write_text("\n".join([*sorted(slow), ""]), encoding="utf-8")
    if "DALA_WRITE_TABLE" in os.environ:
        from references import table

        table.write(terminalreporter.stats.get("passed", []))
    if outcomes:
        terminalreporter.write_line(f"faults: {sum(outcomes.values())}/{len(outcomes)} passed")
