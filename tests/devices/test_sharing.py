"""Threads that share a kernel, with parameters and buffers of their own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dala
from dala.gpu import compute

THREADS = 8
RUNS = 200


@dala.kernel
def mix(x, factor: dala.s32, added: dala.u8 = 0):
    return x * factor + added


@dala.kernel
def fill_row(x, factor: dala.s32):
    i, _ = dala.position(2)
    return sum(x[i, k] for k in range(x.shape[1])) * factor


@dala.kernel
def spread(x, factor: dala.s32, out: dala.Out):
    (i,) = dala.position(1)
    out[i] = x * factor
    out.add(i, 1)


def together(work):
    """Run `work(number)` on all threads at once; what went wrong there is raised here."""
    problems = []
    start = threading.Barrier(THREADS)

    def guarded(number):
        try:
            start.wait(30)
            work(number)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_25_a_run_uses_its_own_parameters_whatever_others_run(device):
    values = np.arange(5, dtype=np.int32)
    x = compute.from_numpy(values)
    results = [[] for _ in range(THREADS)]

    def work(number):
        with compute.device(device):
            outs = [compute.buffer_zeros((5,), "s32") for _ in range(RUNS)]
        for i, out in enumerate(outs):
            compute.run_kernel(mix, [x], out, {"factor": 1000 * number + i, "added": number})
        results[number] = [compute.read(out) for out in outs]

    together(work)
    for number in range(THREADS):
        for i, got in enumerate(results[number]):
            want = values * (1000 * number + i) + number
            assert np.array_equal(got, want), f"thread {number}, run {i}"


@pytest.mark.parametrize("kernel", [fill_row, spread], ids=["rows", "scattered"])
def test_25_runs_that_need_memory_of_their_own_do_not_share_it(device, kernel):
    shape = (3, 70) if kernel is fill_row else (210,)
    values = np.ones(shape, np.int32)
    each = 70 if kernel is fill_row else 1
    more = 0 if kernel is fill_row else 1
    wrong = []

    def work(number):
        with compute.device(device):
            x = compute.from_numpy(values)
        for i in range(25):
            factor = 1000 * number + i
            compute.run_kernel(kernel, [x], x, {"factor": factor})
            if not (compute.read(x) == each * factor + more).all():
                wrong.append((number, i))
            compute.write(x, values)

    together(work)
    assert wrong == []


def test_25_a_kernel_may_be_first_run_by_all_threads_at_once(device):
    text = "def k(x, by: f32):\n return x * by"
    kernel = compute.Kernel.register("first run", text)
    compute.Kernel.unregister("first run")
    found = {}

    def work(number):
        with compute.device(device):
            x = compute.buffer([1.0, 2.0, 3.0], (3,), "f32")
        compute.run_kernel(kernel, [x], x, {"by": number})
        found[number] = compute.read_list(x)

    together(work)
    assert found == {number: [number * 1.0, number * 2.0, number * 3.0] for number in range(8)}
