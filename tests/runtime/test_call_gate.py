"""Small calls that are made again by native code: that only such calls are, and rightly."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.runtime.buffers.buffer import over
from dala.runtime.kernels import call_gate
from dala.runtime.kernels.call_gate_layout import WAYS

LEARNED = 2
"""After so many calls, the next is made by the gate."""


def saxpy_kernel():
    """Returns a kernel of which the gate knows nothing yet."""

    @dala.kernel
    def saxpy(x, y, a: dala.f32 = 1.0, shift: dala.s32 = 0):
        return a * x + y + shift

    return saxpy


@pytest.fixture
def saxpy():
    return saxpy_kernel()


def filled(*values, dtype="f32"):
    return compute.buffer(values, (len(values),), dtype)


def called(run, inputs, out, params=None, times=LEARNED):
    for _ in range(times):
        compute.run_kernel(run, inputs, out, params)


@pytest.fixture
def pair(saxpy):
    """A kernel, its inputs and output, which the gate knows with a = 2."""
    x, y, out = filled(1.0, 2.0), filled(10.0, 20.0), filled(0.0, 0.0)
    called(saxpy, [x, y], out, {"a": 2.0})
    assert call_gate.again(saxpy, [x, y], out, {"a": 2.0})
    return saxpy, x, y, out


def test_a_call_is_made_by_the_gate_from_the_third_time_on(saxpy, monkeypatch):
    x, y, out = filled(1.0, 2.0), filled(10.0, 20.0), filled(0.0, 0.0)
    called(saxpy, [x, y], out)
    monkeypatch.setattr(type(saxpy), "run", None)
    compute.run_kernel(saxpy, [x, y], out)
    assert saxpy(x, y, out=out) is out
    compute.run_kernel(saxpy, (x, y), out, {})
    assert compute.read_list(out) == [11.0, 22.0]


def test_what_the_buffers_hold_now_is_computed(pair):
    saxpy, x, y, out = pair
    np.asarray(x)[:] = [5.0, 6.0]
    assert call_gate.again(saxpy, [x, y], out, {"a": 2.0})
    assert compute.read_list(out) == [20.0, 32.0]


def test_other_buffers_of_the_kinds_are_taken_where_they_lie(pair):
    saxpy, x, _, out = pair
    for _ in range(3):
        other, target = filled(3.0, 4.0), filled(0.0, 0.0)
        assert call_gate.again(saxpy, [other, x], target, {"a": 2.0})
        assert compute.read_list(target) == [7.0, 10.0]
    assert compute.read_list(out) == [12.0, 24.0]


def test_equal_floats_are_the_same_parameter_and_others_are_not(pair):
    saxpy, x, y, out = pair
    assert call_gate.again(saxpy, [x, y], out, {"a": float("2.0")})
    for other in (2, True, 2.5, -2.0, np.float64(2.0), None, "2.0"):
        assert not call_gate.again(saxpy, [x, y], out, {"a": other})
    assert not call_gate.again(saxpy, [x, y], out, {"shift": 2.0})
    assert not call_gate.again(saxpy, [x, y], out, {"a": 2.0, "shift": 0})
    assert not call_gate.again(saxpy, [x, y], out, None)
    assert not call_gate.again(saxpy, [x, y], out, [("a", 2.0)])


def test_zeros_of_both_signs_are_told_apart():
    @dala.kernel
    def halves(x, a: dala.f32):
        return x / a

    x, out = filled(1.0), filled(0.0)
    called(halves, [x], out, {"a": 0.0})
    assert not call_gate.again(halves, [x], out, {"a": -0.0})
    compute.run_kernel(halves, [x], out, {"a": -0.0})
    assert compute.read_list(out) == [-np.inf]


def test_arguments_that_are_changed_in_place_are_seen(pair):
    saxpy, x, y, out = pair
    inputs, params = [x, y], {"a": 2.0}
    compute.run_kernel(saxpy, inputs, out, params)
    params["a"] = 3.0
    compute.run_kernel(saxpy, inputs, out, params)
    assert compute.read_list(out) == [13.0, 26.0]
    inputs.reverse()
    compute.run_kernel(saxpy, inputs, out, params)
    assert compute.read_list(out) == [31.0, 62.0]
    inputs.pop()
    with pytest.raises(errors.ArgumentError):
        compute.run_kernel(saxpy, inputs, out, params)


@pytest.mark.parametrize("place", ["x", "y", "out"])
def test_freed_buffers_are_refused(pair, place):
    saxpy, x, y, out = pair
    {"x": x, "y": y, "out": out}[place].free()
    with pytest.raises(errors.FreedError):
        compute.run_kernel(saxpy, [x, y], out, {"a": 2.0})


@pytest.mark.parametrize(
    "other",
    [
        lambda: filled(1.0, 2.0, 3.0),
        lambda: filled(1.0, 2.0, dtype="f64"),
        lambda: compute.buffer([1.0, 2.0], (2, 1), "f32"),
        lambda: np.ones(2, np.float32),
        lambda: None,
        lambda: compute.scratch((2,), "f32"),
    ],
)
def test_buffers_of_other_kinds_are_left_to_python(pair, other):
    saxpy, x, y, out = pair
    assert not call_gate.again(saxpy, [other(), y], out, {"a": 2.0})
    assert not call_gate.again(saxpy, [x, y], other(), {"a": 2.0})
    assert not call_gate.again(saxpy, None, out, {"a": 2.0})
    assert not call_gate.again(None, [x, y], out, {"a": 2.0})


def test_buffers_that_lie_within_a_cache_line_elsewhere_are_left_to_python(pair):
    saxpy, x, _, out = pair
    array = np.zeros(40, np.float32)
    first = (-array.ctypes.data // 4) % 16
    assert call_gate.again(saxpy, [over(array[first : first + 2]), x], out, {"a": 2.0})
    assert not call_gate.again(saxpy, [over(array[first + 1 : first + 3]), x], out, {"a": 2.0})


def test_memory_is_shared_only_as_it_was():
    @dala.kernel
    def shifted(x):
        (i,) = dala.position(1)
        return x[i - 16] + 1.0

    array = np.arange(64, dtype=np.float32)
    apart = compute.buffer_zeros((32,), "f32")
    first = (-array.ctypes.data // 4) % 16
    source = over(array[first : first + 32])
    behind = over(array[first + 16 : first + 48])
    want = np.concatenate([np.repeat(array[first], 16), array[first : first + 16]]) + 1.0
    called(shifted, [source], apart)
    assert (compute.read(apart) == want).all()
    assert not call_gate.again(shifted, [source], behind, None)
    assert not call_gate.again(shifted, [source], source, None)
    compute.run_kernel(shifted, [source], behind)
    assert (compute.read(behind) == want).all()


def test_what_was_computed_in_place_is_not_told_to_write_elsewhere(saxpy):
    x, y, out = filled(1.0, 2.0), filled(10.0, 20.0), filled(0.0, 0.0)
    called(saxpy, [x, y], x)  # 11, 22, then 21, 42
    assert call_gate.again(saxpy, [x, y], x, None)
    assert compute.read_list(x) == [31.0, 62.0]
    assert not call_gate.again(saxpy, [x, y], out, None)
    assert call_gate.again(saxpy, [out, y], out, None)
    assert compute.read_list(out) == [10.0, 20.0]


def test_a_name_means_the_kernel_that_is_registered_now(saxpy):
    x, y, out = filled(1.0, 2.0), filled(10.0, 20.0), filled(0.0, 0.0)
    compute.Kernel.register("gated", saxpy)
    try:
        called("gated", [x, y], out)
        assert call_gate.again("gated", [x, y], out, None)
        compute.Kernel.register("gated", "def gated(x, y): return x - y", replace=True)
        compute.run_kernel("gated", [x, y], out)
        assert compute.read_list(out) == [-9.0, -18.0]
    finally:
        compute.Kernel.unregister("gated")
    with pytest.raises(errors.UnknownKernelError):
        compute.run_kernel("gated", [x, y], out)


def test_a_kernel_that_is_gone_is_forgotten(saxpy):
    x, y, out = filled(1.0), filled(10.0), filled(0.0)
    called(saxpy, [x, y], out)
    assert call_gate._gate is not None
    before = len(call_gate._gate._kept)
    del saxpy
    gc.collect()
    made = saxpy_kernel()
    called(made, [x, y], out)
    assert len(call_gate._gate._kept) <= before + 1
    assert call_gate.again(made, [x, y], out, None)


def test_buffers_are_not_kept_alive(saxpy):
    x, out = filled(1.0, 2.0), filled(0.0, 0.0)
    called(saxpy, [x, x], out)
    memories = [weakref.ref(item.memory) for item in (x, out)]
    del x, out
    gc.collect()
    assert [memory() for memory in memories] == [None, None]


def test_a_profile_sees_every_call(pair):
    saxpy, x, y, out = pair
    with compute.profile() as profile:
        compute.run_kernel(saxpy, [x, y], out, {"a": 2.0})
    assert [record.name for record in profile.records] == ["saxpy"]


def test_long_work_is_left_to_python(saxpy):
    x, out = compute.buffer_zeros((1 << 20,), "f32"), compute.buffer_zeros((1 << 20,), "f32")
    called(saxpy, [x, x], out)
    assert not call_gate.again(saxpy, [x, x], out, None)


def test_parameters_that_may_change_are_left_to_python():
    x, out = compute.buffer_zeros((2, 2, 4), "u8"), compute.buffer_zeros((2, 2, 4), "u8")
    params = {"matrix": [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]}
    called("color_matrix", [x], out, params)
    assert not call_gate.again("color_matrix", [x], out, params)


def test_a_composite_is_made_of_several_launches():
    source = np.random.default_rng(1).integers(0, 256, (40, 40, 3), np.uint8)
    image, out = compute.from_numpy(source), compute.buffer_zeros((40, 40, 3), "u8")
    params = {"radius": 7, "sigma": 3.0}
    called("blur", [image], out, params)
    want = compute.read(out)
    compute.run_kernel("fill", [], out, {"value": 0})
    assert call_gate.again("blur", [image], out, params)
    assert (compute.read(out) == want).all()


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_tables_are_those_of_the_parameters(value):
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    image, out = compute.from_numpy(levels), compute.buffer_zeros((16, 16), "u8")
    for _ in range(4):
        for given in (1.0, value, 3.0):
            compute.run_kernel("gamma", [image], out, {"value": given})
            want = 255 * (levels / 255.0) ** (1 / given)
            assert np.abs(compute.read(out) - want).max() <= 1.0


def test_more_calls_than_there_is_room_for_are_all_right(saxpy):
    buffers = [filled(*range(1, count + 1)) for count in range(1, 2 * WAYS + 1)]
    for _ in range(4):
        for x in buffers:
            out = compute.buffer_zeros(x.shape, "f32")
            compute.run_kernel(saxpy, [x, x], out)
            assert compute.read_list(out) == [2.0 * (i + 1) for i in range(x.shape[0])]


def test_threads_make_the_same_call_on_memory_of_their_own(saxpy):
    wrong: list[int] = []

    def work(number: int) -> None:
        x, out = filled(*[float(number)] * 100), compute.buffer_zeros((100,), "f32")
        for _ in range(2000):
            compute.run_kernel(saxpy, [x, x], out)
            if compute.read_list(out)[::33] != [2.0 * number] * 4:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_are_made_where_python_is_another(monkeypatch, saxpy):
    monkeypatch.setattr(call_gate, "_gate", None)
    monkeypatch.setattr(call_gate, "again", call_gate._no_call)
    monkeypatch.setattr(call_gate.sys.implementation, "name", "other")
    x, y, out = filled(1.0, 2.0), filled(10.0, 20.0), filled(0.0, 0.0)
    called(saxpy, [x, y], out, times=5)
    assert compute.read_list(out) == [11.0, 22.0]
    assert call_gate._gate is None


@pytest.mark.parametrize("in_place", [False, True])
def test_a_table_among_the_inputs_is_read_anew(in_place):
    @dala.kernel
    def look_up(x, table):
        return dala.u8(table[int(x)] * 255.0)

    levels = np.arange(64 * 64).reshape(64, 64).astype(np.uint8)
    image, table = levels.copy(), np.zeros(256, np.float32)
    x, given = over(image), over(table)
    out = x if in_place else compute.buffer_zeros(levels.shape, "u8")
    for shift in range(6):
        image[...], table[...] = levels, (np.arange(256) + shift) % 256 / 255
        compute.run_kernel(look_up, [x, given], out)
        np.testing.assert_array_equal(compute.read(out), levels + np.uint8(shift))
