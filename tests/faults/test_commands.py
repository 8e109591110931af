"""Faults 19, 21 to 23 and 25 to 27: commands that are lost, dropped, raced, or cut off."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

from dala.devices import find_device
from dala.devices.fault_injection import Faulty
from dala.errors import CommandTimeoutError, DeviceLostError
from dala.gpu import compute
from dala.runtime.commands.command import Work

PATIENCE_S = 30.0  # far beyond what anything here takes: a hang becomes a failure


class Held:
    """A command that keeps a buffer until it is told to let go."""

    def __init__(self, buffer: compute.Buffer) -> None:
        self.gate = threading.Event()
        self._memory = buffer.memory

    def work(self) -> Work:
        return Work(lambda: self.gate.wait(PATIENCE_S) and None, (), (self._memory,), "held")


def works() -> bool:
    x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    compute.submit(kernel="relu", inputs=[x], output=y).wait(PATIENCE_S)
    return compute.read_list(y) == [0.0, 2.0]


@pytest.mark.parametrize("shared", [True, False], ids=["one output", "many outputs"])
def test_19_every_pending_command_of_a_lost_device_fails_by_itself(device, shared):
    # A submission of its own per command: the eleventh loses the device.
    faulty = Faulty(find_device(device), submit=11)
    with compute.device(faulty):
        x = compute.buffer([1.0], (1,), "f32")
        outs = [compute.buffer_zeros((1,), "f32") for _ in range(1 if shared else 40)]
    held = Held(x)
    first = compute.submit(held)
    commands = [
        compute.submit(kernel="elementwise_add", inputs=[x, x], output=outs[i % len(outs)])
        for i in range(40)
    ]
    stream = compute.stream(max_in_flight=100)
    more = [stream.submit(op="copy_buffer", inputs=[x], output=outs[0]) for _ in range(5)]
    assert {command.status for command in (*commands, *more)} == {"pending"}
    held.gate.set()
    ended = list(compute.as_completed([first, *commands, *more], PATIENCE_S))
    assert len(ended) == 46
    lost = [command for command in commands if command.status == "failed"]
    assert len(lost) >= 30  # and those that ran beside the one that lost it
    assert not shared or lost == commands[10:]
    assert all(isinstance(command.error, DeviceLostError) for command in (*lost, *more))
    with pytest.raises(DeviceLostError):
        compute.wait_all(commands, PATIENCE_S)
    assert works()


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


def test_22_a_wait_that_is_over_first_raises_and_a_later_poll_is_right(device):
    x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    held = Held(x)
    compute.submit(held)
    command = compute.submit(kernel="relu", inputs=[x], output=y)
    for wait in (
        lambda: compute.wait(command, 0.01),
        lambda: compute.wait(command.id, 0),
        lambda: compute.wait_all([command], 0.01),
        lambda: list(compute.as_completed([command], 0.01)),
    ):
        with pytest.raises(TimeoutError) as caught:
            wait()
        assert isinstance(caught.value, CommandTimeoutError)
        assert compute.poll(command) == "pending"
    held.gate.set()
    compute.wait(command, PATIENCE_S)
    assert compute.poll(command.id) == "completed"
    assert compute.read_list(y) == [0.0, 2.0]


def test_23_cancelling_a_task_leaves_the_device_usable(device):
    x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    held = Held(x)

    async def main() -> None:
        first = compute.submit(held)
        command = compute.run_kernel_async("relu", [x], y)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(finished(command), 0.01)
        assert compute.poll(command) == "pending"
        held.gate.set()
        await command
        assert first.status == "completed"

    async def finished(command: compute.Command) -> None:
        await command

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert compute.read_list(y) == [0.0, 2.0]
    assert works()


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


def test_25_eight_threads_that_share_a_buffer_equal_serial(device):
    total = compute.buffer_zeros((4,), "s32")
    ones = [compute.buffer([i, 2 * i, 3, 4], (4,), "s32") for i in range(8)]
    problems: list[BaseException] = []

    def work(one: compute.Buffer) -> None:
        try:
            compute.wait_all(
                [
                    compute.submit(kernel="elementwise_add", inputs=[total, one], output=total)
                    for _ in range(1000)
                ]
            )
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in ones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert compute.read_list(total) == [28_000, 56_000, 24_000, 32_000]


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
    gc.collect()  # what earlier tests left in cycles
    before = compute.memory()
    objects = len(gc.get_objects())
    for _ in range(10_000):
        cycle()
    gc.collect()
    assert compute.memory().live_bytes == before.live_bytes
    assert len(gc.get_objects()) - objects < 200
