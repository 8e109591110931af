"""What tests of devices share: kernels run on arrays, and a WebGPU device to be lost."""

import numpy as np
import pytest

from dala.devices import find_device
from dala.gpu import compute


@pytest.fixture
def gpu(webgpu):
    """The device itself, which a test may lose: the next one gets another."""
    return find_device(webgpu)


@pytest.fixture
def run(device):
    """Run a kernel on an array; what becomes of an output that held something else before."""

    def call(kernel, values, shape=None):
        shape = values.shape if shape is None else shape
        output = compute.from_numpy(np.full(shape, 77, values.dtype))
        compute.run_kernel(kernel, [compute.from_numpy(values)], output)
        return compute.read(output)

    return call
