"""Kernels run as commands, from several threads, in forked children, and interrupted."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute
from dala.runtime.buffers import views
from dala.runtime.buffers.buffer import over
from dala.runtime.kernels import kernel as kernel_module


@dala.kernel
def saxpy(x, y, a: dala.f32 = 1.0, shift: dala.s32 = 0):
    return a * x + y + shift


def vectors(count=4, dtype="f32"):
    return [compute.buffer(range(count), (count,), dtype) for _ in range(3)]


def test_a_command_is_checked_when_it_is_submitted():
    x, y, out = vectors()
    for wrong in (
        {"op": "teleport"},
        {"kernel": saxpy, "inputs": [x], "output": out},
        {"kernel": saxpy, "inputs": [x, y]},
        {"kernel": saxpy, "inputs": [x, y], "output": out, "colour": 1},
        {"op": "copy_buffer", "inputs": [x, y], "output": out},
    ):
        with pytest.raises(errors.ArgumentError):
            compute.submit(wrong)
    with pytest.raises(errors.ShapeError):
        compute.submit(op="copy_buffer", inputs=[x], output=compute.buffer_zeros((5,), "f32"))


def test_a_failed_command_raises_its_own_error_when_waited_for():
    x, y, _ = vectors()
    command = compute.submit(kernel=saxpy, inputs=[x, y], output=compute.buffer_zeros((9,), "f32"))
    with pytest.raises(errors.ShapeError):
        compute.wait(command)
    assert compute.poll(command) == "failed"


def test_commands_can_be_awaited_together():
    x, y, out = vectors()

    async def main() -> None:
        await asyncio.gather(*(compute.run_kernel_async(saxpy, [x, y], out) for _ in range(5)))

    asyncio.run(main())
    assert compute.read_list(out) == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_computes_with_threads_of_its_own():
    count = 1 << 20
    x, out = compute.from_numpy(np.ones(count, np.float32)), compute.buffer_zeros((count,), "f32")
    compute.run_kernel("elementwise_add", [x, x], out)
    child = os.fork()
    if child == 0:
        compute.run_kernel("elementwise_add", [out, x], out)
        compute.wait(compute.submit(kernel="elementwise_add", inputs=[out, x], output=out))
        os._exit(0 if (compute.read(out) == 4.0).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (compute.read(out) == 2.0).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_a_call_that_its_parent_made_before():
    count = 1 << 20
    x, out = compute.from_numpy(np.ones(count, np.float32)), compute.buffer_zeros((count,), "f32")

    def call() -> bool:
        np.asarray(out)[:] = 0
        compute.run_kernel("elementwise_add", [x, x], out)
        return bool((compute.read(out) == 2.0).all())

    assert all(call() for _ in range(5))
    child = os.fork()
    if child == 0:
        os._exit(0 if all(call() for _ in range(5)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(call() for _ in range(5))


def test_two_threads_make_the_same_call_over_and_over():
    count = 1 << 20
    x, out = compute.from_numpy(np.ones(count, np.float32)), compute.buffer_zeros((count,), "f32")
    wrong: list[int] = []

    def work() -> None:
        for i in range(60):
            compute.run_kernel("elementwise_add", [x, x], out)
            if not (compute.read(out) == 2.0).all():
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_same_call_on_other_memory():
    """Whichever of its inputs and its output are the same, or overlap."""
    pool = np.random.default_rng(1).random(5 * 720 + 64).astype(np.float32)
    rng = np.random.default_rng(2)
    for turn in range(200):
        starts = [int(start) for start in 720 * rng.permutation(5)[:3]]
        kind = rng.integers(0, 6) if turn > 2 else 5
        if kind in (1, 5):
            starts[1] = starts[0] + (0 if kind == 1 else 16)  # the same, or overlapping
        elif kind > 1:
            starts[2] = starts[kind % 2] + (0 if kind < 4 else 16)  # in place, or overlapping
        x, y, out = (over(pool[start : start + 690]) for start in starts)
        want = 2 * np.array(x) + np.array(y)
        compute.run_kernel(saxpy, [x, y], out, {"a": 2.0})
        assert np.array_equal(compute.read(out), want)


@pytest.mark.parametrize("name", ["blur", "overlay", "resize", "rotate", "bilateral"])
def test_a_composite_kernel_on_other_memory(name):
    rng = np.random.default_rng(3)
    params = {"overlay": {"x": 5, "y": -3}, "rotate": {"degrees": 20.0}}.get(name, {})
    shape = (20, 31, 3) if name == "resize" else (60, 90, 3)
    layers = [rng.integers(0, 256, (40, 50, 4), np.uint8)] if name == "overlay" else []
    kept = []
    for _ in range(6):
        image = rng.integers(0, 256, (60, 90, 3), np.uint8)
        given = [compute.from_numpy(item) for item in (image, *layers)]
        out, want = (compute.buffer_zeros(shape, "u8") for _ in range(2))
        compute.run_kernel(name, given, out, params)
        compute.pipeline().add(name, given, want, params).run()
        assert np.array_equal(compute.read(out), compute.read(want))
        kept.append((given, out))  # so that the next ones lie elsewhere


def test_zeros_of_both_signs_are_different_parameters():
    @dala.kernel
    def divided(x, v: dala.f32):
        return x / v

    x, out = compute.buffer([1.0], (1,), "f32"), compute.buffer_zeros((1,), "f32")
    for value in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0):
        compute.run_kernel(divided, [x], out, {"v": value})
        assert compute.read_list(out) == [math.copysign(math.inf, value)]


def test_threads_are_not_held_up_by_python(device):
    """The workers finish while another thread keeps the interpreter busy."""
    stop = threading.Event()
    interval = sys.getswitchinterval()

    def spin() -> None:
        while not stop.is_set():
            pass

    spinner = threading.Thread(target=spin)
    sys.setswitchinterval(0.0001)
    spinner.start()
    try:
        count = 1 << 21
        x = compute.from_numpy(np.ones(count, np.float32))
        out = compute.buffer_zeros((count,), "f32")
        for _ in range(10):
            compute.run_kernel("elementwise_add", [x, x], out)
        assert (compute.read(out) == 2.0).all()
    finally:
        stop.set()
        spinner.join()
        sys.setswitchinterval(interval)


def test_many_shapes_from_many_threads_do_not_disturb_each_other():
    @dala.kernel
    def k(x):
        return x + 1.0

    problems: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for count in range(first, first + 300):
                x = compute.buffer_zeros((count,), "f32")
                compute.run_kernel(k, [x], x)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(1 + 300 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert len(k._launches) <= kernel_module.MOST_LAUNCHES + len(threads)


def test_an_interrupted_launch_is_over_before_it_raises():
    """Nothing writes into a buffer's memory once its launch has returned."""
    count = 1 << 22
    x = compute.from_numpy(np.ones(count, np.float32))
    out = compute.buffer_zeros((count,), "f32")
    source = "def slow(x):\n    for i in range(40):\n        x = sin(x)\n    return x"
    kernel = compute.Kernel.register("slow", source, replace=True)

    def run_until_interrupted() -> None:
        threading.Timer(0.01, lambda: signal.raise_signal(signal.SIGINT)).start()
        while True:
            compute.run_kernel(kernel, [x], out)

    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            run_until_interrupted()
        compute.write(out, np.zeros(count, np.float32))
        assert not np.asarray(out).any()
    compute.run_kernel(kernel, [x], out)
    assert np.ptp(np.asarray(out)) == 0
    compute.Kernel.unregister("slow")


@pytest.mark.parametrize(
    "command",
    [
        "relu",
        {"op": ["x"], "kernel": "relu"},
        {"kernel": "relu", "inputs": None, "output": None},
        {"kernel": "relu", "inputs": [], "output": None, "params": 3},
    ],
)
def test_commands_of_wrong_kinds_are_refused(command):
    with pytest.raises(errors.ArgumentError):
        compute.submit(command)


def test_all_kernels_together_remember_so_many_launches(monkeypatch):
    monkeypatch.setattr(kernel_module, "MOST_LAUNCHES_IN_ALL", len(kernel_module._latest) + 2)
    kernels = [
        compute.Kernel.register(f"only_{i}", f"def only_{i}(x): return x + {i}") for i in range(5)
    ]
    with compute.device("cpu"):
        x, y = (compute.buffer_zeros((2,), "s32") for _ in range(2))
        for item in kernels:
            compute.run_kernel(item, [x], y)
        assert len(kernel_module._latest) == kernel_module.MOST_LAUNCHES_IN_ALL
        compute.run_kernel(kernels[0], [x], y)  # what was forgotten is made again
        assert compute.read_list(y) == [0, 0]


def test_code_that_two_dtypes_share_takes_the_arguments_of_each(device):
    for dtype, value in [("u32", 2**32 - 1), ("s32", -1), ("u32", 7)]:
        out = compute.buffer_zeros((3,), dtype)
        compute.run_kernel("fill", [], out, {"value": value})
        assert compute.read_list(out) == [value] * 3


def test_a_call_that_is_made_again_computes_what_its_memory_holds_by_then(device):
    x, y, out = vectors()
    for start in range(5):
        compute.write(x, np.arange(4) + start)
        compute.run_kernel(saxpy, [x, y], out, {"a": 2.0})
        assert compute.read_list(out) == [2.0 * (i + start) + i for i in range(4)]


def test_other_parameters_shapes_and_memory_are_other_calls(device):
    given = np.arange(12, dtype=np.uint8)
    buffer, out = compute.from_numpy(given), compute.buffer_zeros((12,), "u8")
    for _ in range(4):
        for value in (0.1, 0.2):
            for shape in ((3, 4), (4, 3)):
                seen = [views.view(item, item.scalar, shape) for item in (buffer, out)]
                compute.run_kernel("flip", seen[:1], seen[1], {"direction": "vertical"})
                assert np.array_equal(compute.read(seen[1]), given.reshape(shape)[::-1])
                compute.run_kernel("brightness", seen[:1], seen[1], {"value": value})
                assert (
                    abs(compute.read(seen[1]) - (given.reshape(shape) + 255 * value)).max() < 0.51
                )


@pytest.mark.parametrize("kernel", ["invert", "flip", "blur"])
def test_a_call_that_was_made_before_is_refused_once_a_buffer_is_gone(device, kernel):
    image = np.random.default_rng(1).integers(0, 256, (8, 8, 3), np.uint8)
    x, out = compute.from_numpy(image), compute.buffer_zeros((8, 8, 3), "u8")
    for _ in range(4):
        compute.run_kernel(kernel, [x], out)
    with pytest.raises(errors.ArgumentError):
        compute.run_kernel(kernel, [x, x], out)
    with pytest.raises(errors.ArgumentError):
        compute.run_kernel(kernel, [x], out, {"colour": 1})
    x.free()
    with pytest.raises(errors.FreedError):
        compute.run_kernel(kernel, [x], out)


def test_calls_that_are_kept_keep_no_buffer(device):
    image = np.zeros((64, 64, 3), np.uint8)
    x, out = compute.from_numpy(image), compute.buffer_zeros(image.shape, "u8")
    for _ in range(4):
        compute.run_kernel("blur", [x], out)
    alive = [weakref.ref(item.memory) for item in (x, out)]
    del x, out
    gc.collect()
    assert [item() for item in alive] == [None, None]


def submitted(kernel, x, y, params=None):
    compute.submit(kernel=kernel, inputs=[x], output=y, params=params).wait()


def test_a_command_that_is_submitted_again_is_only_launched(monkeypatch):
    with compute.device("cpu"):
        x, y = compute.buffer([1.0, -2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
        for _ in range(3):
            submitted("relu", x, y, {"slope": 0.5})
        monkeypatch.setattr(kernel_module.Kernel, "prepared", None)
        compute.write(x, np.float32([-4.0, 3.0]))
        submitted("relu", x, y, {"slope": 0.5})
        assert compute.read_list(y) == [-2.0, 3.0]


def test_a_command_has_the_parameters_that_it_was_submitted_with(device):
    x, y = compute.buffer([-4.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    for slope in (0.5, 0.5, 0.5, 0.25):
        params = {"slope": slope}
        command = compute.submit(kernel="relu", inputs=[x], output=y, params=params)
        params["slope"] = 99.0
        command.wait()
        assert compute.read_list(y) == [-4.0 * slope, 2.0]


@pytest.mark.parametrize("kernel", ["invert", "flip", "blur"])
def test_a_command_that_was_submitted_before_is_checked_all_the_same(device, kernel):
    image = np.random.default_rng(1).integers(0, 256, (8, 8, 3), np.uint8)
    x, out = compute.from_numpy(image), compute.buffer_zeros((8, 8, 3), "u8")
    for _ in range(4):
        submitted(kernel, x, out)
    with pytest.raises(errors.ArgumentError):
        submitted(kernel, x, out, {"colour": 1})
    x.free()
    with pytest.raises(errors.FreedError):
        submitted(kernel, x, out)
