"""Two devices as one: how far apart they may be, and what is said when they are further."""

import numpy as np
import pytest

from dala.devices import CPU, find_device
from dala.devices.fault_injection import Faulty, FaultyRunner
from dala.devices.parity import Parity
from dala.devices.result_comparison import difference
from dala.errors import ArgumentError, KernelTimeoutError, ParityError
from dala.gpu import compute

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("dtype", "got", "want"),
    [
        ("u1", [7, 0, 255], [8, 1, 254]),
        ("i4", [-5, 6], [-5, 6]),
        ("f4", [1.000009], [1.0]),
        ("f4", [NAN, INF, -INF], [NAN, INF, -INF]),
        ("f4", [0.0], [-0.0]),
        ("f4", [1e-6, 1.0], [0.0, 1.0]),
        ("f4", [4e-45], [0.0]),
        ("f8", [1 + 9e-13], [1.0]),
        ("f8", [1e-13, 1.0], [0.0, 1.0]),
        ("f4", [], []),
        ("u1", [], []),
    ],
)
def test_results_that_may_differ_so_much_agree(dtype, got, want):
    assert difference(np.array(got, dtype), np.array(want, dtype)) is None


@pytest.mark.parametrize(
    ("dtype", "got", "want", "largest"),
    [
        ("u1", [7], [9], 2),
        ("u1", [0], [255], 255),
        ("i4", [-5], [-6], 1),
        ("i4", [2**31 - 1], [-(2**31)], 2**32 - 1),
        ("i8", [2**63 - 1], [2**63 - 2], 1),
        ("u4", [0], [1], 1),
        ("f4", [1.00002], [1.0], 2e-5),
        ("f4", [2e-6], [0.0], 2e-6),
        ("f4", [3e-6, 1.0], [0.0, 1.0], 3e-6),
        ("f4", [NAN], [1.0], INF),
        ("f4", [1.0], [NAN], INF),
        ("f4", [INF], [-INF], INF),
        ("f4", [3e38], [INF], INF),
        ("f8", [1 + 2e-12], [1.0], 2e-12),
    ],
)
def test_results_that_are_further_apart_differ(dtype, got, want, largest):
    found = difference(np.array(got, dtype), np.array(want, dtype))
    assert found is not None
    assert (found.index, found.count) == ((0,), 1)
    assert found.largest == pytest.approx(largest, rel=0.1)


def test_the_first_the_count_and_the_largest_difference_are_told():
    want = np.zeros((2, 3), np.int32)
    got = np.array([[0, 0, 5], [0, 9, 0]], np.int32)
    found = difference(got, want)
    assert (found.index, found.got, found.want) == ((0, 2), 5, 0)
    assert (found.count, found.largest) == (2, 9.0)


def test_arrays_of_different_kinds_are_not_compared():
    with pytest.raises(ArgumentError, match="float32"):
        difference(np.zeros(2, np.float32), np.zeros(2, np.int32))
    with pytest.raises(ArgumentError, match=r"\(3,\)"):
        difference(np.zeros(2, np.int32), np.zeros(3, np.int32))


class Off(Faulty):
    """The CPU, but what kernels whose name begins so compute is off by a little."""

    def __init__(self, kernel, by):
        super().__init__(CPU)
        self.id = "off"
        self.kernel = kernel
        self.by = by

    def load(self, task):
        return OffRunner(self, task)


class OffRunner(FaultyRunner):
    def run(self, inputs, outputs, params):
        super().run(inputs, outputs, params)
        output = outputs[-1]
        if self.task.name.startswith(self.device.kernel):
            values = self.device.read(output).view(self.task.outputs[-1][0].numpy)
            values[1] += values.dtype.type(self.device.by)
            self.device.write(output, values)


def run_relu(device):
    with compute.device(device):
        x, y = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
        try:
            compute.run_kernel("relu", [x], y)
        finally:
            device.written = y.memory
        return y


def test_a_difference_is_an_error_that_names_kernel_element_and_both_values():
    parity = Parity(CPU, Off("relu", 0.5))
    with pytest.raises(ParityError) as raised:
        run_relu(parity)
    said = str(raised.value)
    for part in ("relu", "element (1,)", "2.0 on cpu", "2.5 on off", "difference is 0.5"):
        assert part in said
    assert isinstance(raised.value, AssertionError)
    both = parity.written
    assert CPU.read(both.first).view(np.float32).tolist() == [1.0, 2.0]
    assert parity.second.read(both.second).view(np.float32).tolist() == [1.0, 2.5]


def test_a_difference_that_may_be_is_not_carried_into_the_next_stage():
    parity = Parity(CPU, Off("relu", 1e-5))
    y = run_relu(parity)
    assert parity.second.read(y.memory.second).view(np.float32).tolist() == [1.0, 2.0]


def test_the_stage_that_differs_is_named():
    parity = Parity(CPU, Off("", 0.5))
    with compute.device(parity):
        x, y = compute.buffer([[1.0, 2.0]], (1, 2), "f32"), compute.buffer_zeros((1, 2), "f32")
        with pytest.raises(ParityError) as raised:
            compute.run_kernel("softmax", [x], y)
    assert str(raised.value).split(":")[0] != "softmax"


def test_memory_is_on_both_and_read_from_the_first():
    off = Off("none", 0)
    parity = Parity(CPU, off)
    with compute.device(parity):
        x = compute.buffer([1, 2, 3], (3,), "u8")
        y = compute.buffer_zeros((3,), "u8")
        compute.submit(op="copy_buffer", inputs=[x], output=y).wait(30)
    for memory in (x.memory, y.memory):
        assert CPU.read(memory.first).tolist() == [1, 2, 3]
        assert off.read(memory.second).tolist() == [1, 2, 3]
    off.write(y.memory.second, np.array([9, 9, 9], np.uint8))
    assert compute.read_list(y) == [1, 2, 3]
    assert x.device == "parity"


def test_a_kernel_that_one_device_refuses_is_refused():
    class Refusing(Off):
        def load(self, task):
            raise ArgumentError("not here")

    with compute.device(Parity(CPU, Refusing("", 0))):
        x, y = compute.buffer_zeros((2,), "f32"), compute.buffer_zeros((2,), "f32")
        with pytest.raises(ArgumentError, match="not here"):
            compute.run_kernel("relu", [x], y)


def test_explain_shows_the_code_of_both(gpu, capsys):
    with compute.device("parity"):
        x, y = compute.buffer_zeros((2,), "f32"), compute.buffer_zeros((2,), "f32")
        shown = compute.Kernel.lookup("relu").explain([x], y)
    assert "LLVM IR" in shown
    assert "WGSL" in shown


def test_parity_is_one_device_until_the_gpu_is_another(gpu):
    parity = find_device("parity")
    assert find_device("parity") is parity
    assert (parity.first, parity.second) == (CPU, gpu)
    assert [info["id"] for info in parity.info()["devices"]] == ["cpu", "webgpu"]
    assert (parity.info()["id"], parity.info()["backend"]) == ("parity", "webgpu")
    gpu.lose()
    assert parity.lost
    assert find_device("parity") is not parity


@pytest.mark.parametrize("name", ["relu", "exp", "softmax"])
def test_the_cpu_and_the_gpu_agree(gpu, name):
    values = np.random.default_rng(3).standard_normal((33, 65)).astype(np.float32)
    with compute.device("parity"):
        x, y = compute.from_numpy(values), compute.buffer_zeros(values.shape, "f32")
        compute.run_kernel(name, [x], y)
        assert np.isfinite(compute.read(y)).all()


@pytest.mark.usefixtures("webgpu")
def test_a_kernel_that_fails_on_one_of_the_two_changes_neither():
    endless = compute.Kernel.register(
        "endless", "def k(x):\n    while x == x:\n        x = x + 1.0\n    return x", replace=True
    )
    with compute.device("parity") as parity:
        x, out = compute.buffer([1.0], (1,), "f32"), compute.buffer([5.0], (1,), "f32")
        with pytest.raises(KernelTimeoutError):
            compute.run_kernel(endless, [x], out)
        memory = out.memory
        for device, half in ((parity.first, memory.first), (parity.second, memory.second)):
            assert device.read(half).view(np.float32).tolist() == [5.0]
