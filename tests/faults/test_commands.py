"""Faults 21 and 25 to 27: commands that are dropped, raced, or cut off by the end."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import numpy as np

from dala.gpu import compute


def test_21_a_dropped_handle_completes_and_does_not_leak(device):
    x = compute.buffer([1.0], (1,), "f32")
    outs = [compute.buffer_zeros((1,), "f32") for _ in range(100)]
    gc.collect()
    before = compute.memory().live_blocks
    for out in outs:
        compute.submit(kernel="elementwise_add", inputs=[x, x], output=out)
    compute.wait(compute.submit(op="copy_buffer", inputs=[x], output=x))
    assert [compute.read_list(out) for out in outs] == [[2.0]] * 100
    gc.collect()
    assert compute.memory().live_blocks == before


def test_25_eight_threads_of_a_thousand_submits_equal_serial(device):
    totals = [compute.buffer_zeros((4,), "s32") for _ in range(8)]
    one = compute.buffer([1, 2, 3, 4], (4,), "s32")
    problems: list[BaseException] = []

    def work(total: compute.Buffer) -> None:
        try:
            for _ in range(1000):
                last = compute.submit(kernel="elementwise_add", inputs=[total, one], output=total)
            compute.wait(last)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(total,)) for total in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert [compute.read_list(total) for total in totals] == [[1000, 2000, 3000, 4000]] * 8


def test_25_threads_that_run_kernels_at_once_do_not_disturb_each_other(device):
    values = np.arange(1_000_000, dtype=np.float32)
    wrong: list[int] = []

    def work(number: int) -> None:
        x = compute.from_numpy(values + number)
        out = compute.buffer_zeros(values.shape, "f32")
        for _ in range(20):
            compute.run_kernel("elementwise_add", [x, x], out)
            if not (np.asarray(out) == 2 * (values + number)).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


PROGRAM = """
import numpy as np
from dala.gpu import compute
x = compute.from_numpy(np.zeros(8_000_000, np.float32))
y = compute.buffer_zeros((8_000_000,), "f32")
for _ in range({count}):
    compute.submit(kernel="elementwise_add", inputs=[x, x], output=y)
"""


def test_26_the_interpreter_exits_with_work_in_flight(device):
    for count in (0, 1, 2000):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(count=count)],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_27_ten_thousand_cycles_do_not_grow(device):
    def cycle() -> None:
        with compute.buffer_zeros((64,), "f32") as x, compute.buffer_zeros((64,), "f32") as out:
            compute.run_kernel("elementwise_add", [x, x], out)

    cycle()
    before = compute.memory()
    objects = len(gc.get_objects())
    for _ in range(10_000):
        cycle()
    gc.collect()
    assert compute.memory().live_bytes == before.live_bytes
    assert len(gc.get_objects()) - objects < 200
