"""A WebGPU device for the tests that are about it."""

import pytest

from dala.devices import find_device


@pytest.fixture
def gpu(webgpu):
    """The device itself, which a test may lose: the next one gets another."""
    return find_device(webgpu)
