"""Buffers between devices: what is refused, what moves, and what of a GPU is a copy."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import DeviceError
from dala.gpu import compute


@pytest.fixture
def here_and_there(webgpu):
    """A buffer on the CPU and one on the GPU."""
    with compute.device("cpu"):
        here = compute.buffer([1.0, -2.0, 3.0], (3,), "f32")
    return here, compute.buffer([4.0, 5.0, 6.0], (3,), "f32")


@pytest.mark.parametrize("name", ["elementwise_add", "concat", "gather"])
def test_a_kernel_over_buffers_of_two_devices_names_both_and_how_to_move(here_and_there, name):
    here, there = here_and_there
    output = compute.buffer_zeros((6,), "f32")
    with pytest.raises(DeviceError) as raised:
        compute.run_kernel(name, [here, there], output)
    for part in (name, "input 0 is on cpu", "the output is on webgpu", ".to('webgpu')"):
        assert part in str(raised.value)


def test_the_input_that_is_elsewhere_is_told(here_and_there):
    here, there = here_and_there
    with pytest.raises(
        DeviceError, match=r"input 1 is on webgpu, but the output is on cpu.*\.to\("
    ):
        compute.run_kernel("elementwise_add", [here, there], here)


def test_commands_over_two_devices_are_refused_when_they_are_submitted(here_and_there):
    here, there = here_and_there
    for given in (
        {"kernel": "relu", "inputs": [here], "output": there},
        {"op": "copy_buffer", "inputs": [here], "output": there},
    ):
        with pytest.raises(DeviceError, match=r"cpu.*webgpu"):
            compute.submit(given)


@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "s64", "u32", "u8"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (2, 3, 5)], ids=str)
def test_a_buffer_comes_back_as_it_went(webgpu, dtype, shape):
    values = np.random.default_rng(1).integers(0, 200, shape)
    with compute.device("cpu"):
        x = compute.buffer(values, shape, dtype)
    there = x.to("webgpu")
    back = there.to("cpu")
    for moved, device in ((there, "webgpu"), (back, "cpu")):
        assert (moved.device, moved.dtype, moved.shape) == (device, dtype, shape)
        assert np.array_equal(compute.read(moved), values)
    assert there.to("webgpu") is there
    assert back.to("cpu") is back


def test_a_moved_buffer_is_a_copy(here_and_there):
    here, _ = here_and_there
    there = here.to("webgpu")
    compute.write(here, [7.0, 8.0, 9.0])
    assert compute.read_list(there) == [1.0, -2.0, 3.0]
    compute.run_kernel("relu", [there], there)
    assert compute.read_list(here) == [7.0, 8.0, 9.0]
    assert compute.read_list(there) == [1.0, 0.0, 3.0]


@pytest.mark.parametrize("see", [np.asarray, np.from_dlpack, memoryview, compute.read])
def test_what_is_seen_of_a_gpu_is_a_copy(here_and_there, see):
    _, there = here_and_there
    seen = see(there)
    assert np.asarray(seen).tolist() == [4.0, 5.0, 6.0]
    compute.write(there, [7.0, 8.0, 9.0])
    assert np.asarray(seen).tolist() == [4.0, 5.0, 6.0]
    other = np.array(see(there))
    other[:] = 0.0
    assert compute.read_list(there) == [7.0, 8.0, 9.0]


def test_a_gpu_is_not_seen_without_a_copy(here_and_there):
    _, there = here_and_there
    for see in (lambda: there.__array__(copy=False), lambda: there.__dlpack__(copy=False)):
        with pytest.raises(DeviceError, match=r"without a copy.*to\('cpu'\)"):
            see()


def test_a_tensor_is_copied_to_the_gpu(webgpu):
    values = np.arange(5, dtype=np.float32)
    x = compute.from_dlpack(values)
    assert x.device == "webgpu"
    values[:] = 0.0
    assert compute.read_list(x) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert compute.read_list(compute.from_dlpack(x)) == [0.0, 1.0, 2.0, 3.0, 4.0]
