"""What every test gets: the devices to run on, and a compile cache of its own."""

import os
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
