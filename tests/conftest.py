"""What every test gets: the devices to run on, a compile cache of its own, a count of faults."""

import os
import re
import signal
import tempfile
from collections.abc import Iterator

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


LESS_OFTEN = re.compile(
    r"tests/(kernels|devices|examples|faults|images|lang|media|ml|references|runtime|surfaces)/.*\[.*webgpu"
    r"|tests/kernels/.*\[.*(f64|s32|s64|u32|kernels-cpu)"
    r"|tests/media/test_catalog\.py::test_(both_ends|every_choice)"
    r"|tests/kernels/test_neighbourhoods\.py::test_(borders|neighbourhoods_convert|what_is_flat)"
)
"""What `--fast` leaves to the full run: the second device, most dtypes, most borders."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if LESS_OFTEN.search(item.nodeid):
            item.add_marker(pytest.mark.slow)


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
    if "DALA_WRITE_TABLE" in os.environ:
        from references import table

        table.write(terminalreporter.stats.get("passed", []))
    if outcomes:
        terminalreporter.write_line(f"faults: {sum(outcomes.values())}/{len(outcomes)} passed")
