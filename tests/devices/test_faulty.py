"""The device whose operations fail when a test wants them to."""

import pytest

from dala.devices import CPU, find_device
from dala.devices.fault_injection import Faulty
from dala.errors import ArgumentError, DeviceError, DeviceLostError, MemoryLimitError
from dala.gpu import compute


def buffers():
    return compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")


def test_without_a_plan_nothing_fails_and_everything_is_counted():
    faulty = Faulty(CPU)
    with compute.device(faulty):
        x, y = buffers()
        compute.run_kernel("relu", [x], y)
        compute.submit(op="copy_buffer", inputs=[y], output=x).wait(30)
        assert compute.read_list(x) == [0.0, 2.0]
    assert faulty.counts == {"allocate": 2, "write": 1, "submit": 2, "read": 1, "map": 1}


def test_only_the_wanted_allocation_runs_out_of_memory():
    with compute.device(Faulty(CPU, allocate=2)):
        compute.buffer_zeros((2,), "f32")
        with pytest.raises(MemoryLimitError, match="allocate 2"):
            compute.buffer_zeros((2,), "f32")
        compute.buffer_zeros((2,), "f32")


@pytest.mark.parametrize("operation", ["read", "map"])
def test_a_failed_read_is_a_device_error_and_the_next_one_works(operation):
    with compute.device(Faulty(CPU, **{operation: 1})):
        x, _ = buffers()
        with pytest.raises(DeviceError, match=f"{operation} 1"):
            compute.read(x)
        assert compute.read_list(x) == [-1.0, 2.0]


def test_a_failed_write_is_a_device_error():
    with compute.device(Faulty(CPU, write=2)):
        x, _ = buffers()
        with pytest.raises(DeviceError, match="write 2"):
            compute.write(x, [3.0, 4.0])
        assert compute.read_list(x) == [-1.0, 2.0]


def test_a_failed_submission_loses_the_device_for_good():
    faulty = Faulty(CPU, submit=2)
    with compute.device(faulty):
        x, y = buffers()
        compute.run_kernel("relu", [x], y)
        with pytest.raises(DeviceLostError):
            compute.run_kernel("relu", [x], y)
        assert faulty.lost
        for use in (lambda: compute.read(y), lambda: compute.run_kernel("relu", [x], y)):
            with pytest.raises(DeviceLostError):
                use()
        assert compute.buffer_zeros((2,), "f32").memory.device is CPU


def test_a_failed_submission_really_loses_a_gpu(gpu):
    with compute.device(Faulty(gpu, submit=1)):
        x, y = buffers()
        with pytest.raises(DeviceLostError):
            compute.run_kernel("relu", [x], y)
        assert gpu.lost
        fresh = compute.buffer_zeros((2,), "f32")
        assert fresh.memory.device is find_device("webgpu")
        assert compute.read_list(fresh) == [0.0, 0.0]


def test_a_library_of_the_host_is_not_given_wrapped_memory():
    with compute.device(Faulty(CPU)) as faulty:
        x, y = compute.buffer_zeros((4, 4), "f32"), compute.buffer_zeros((4, 4), "f32")
        compute.run_kernel("matmul", [x, x], y)
        assert faulty.counts["submit"] >= 1


@pytest.mark.parametrize("failing", [{"think": 1}, {"read": 0}])
def test_a_plan_that_cannot_be_is_refused(failing):
    with pytest.raises(ArgumentError, match="allocate, write, submit, read, map"):
        Faulty(CPU, **failing)
