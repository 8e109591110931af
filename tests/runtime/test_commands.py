"""Commands: in order, beside the caller, answerable for long, and never in the way of an exit."""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import weakref

import pytest

from dala.errors import (
    ArgumentError,
    CommandCancelledError,
    CommandTimeoutError,
    UnknownCommandError,
)
from dala.gpu import compute
from dala.runtime.commands import queue as queues
from dala.runtime.commands.command import Work
from dala.runtime.commands.queue import Queue

PATIENCE_S = 30.0  # far beyond what anything here takes: a hang becomes a failure


class InOrder(Queue):
    """A queue of calls that all write the same memory."""

    def submit(self, call):
        return super().submit(Work(call, (), (SHARED,), "test"))


SHARED = compute.buffer([1], (1,), "u8").to("cpu").memory


@pytest.fixture
def queue():
    return InOrder()


@pytest.fixture
def gate(queue):
    """An event that holds the queue up until it is set."""
    event = threading.Event()
    queue.submit(lambda: event.wait(PATIENCE_S))
    yield event
    event.set()


class Held:
    """Something that can be watched for being let go."""


def nothing():
    pass


def fail():
    raise ValueError("on purpose")


# Order and status


def test_commands_run_in_order_on_other_threads(queue):
    seen = []
    made = [queue.submit(lambda i=i: seen.append((i, threading.get_ident()))) for i in range(100)]
    made[-1].wait(PATIENCE_S)
    assert [i for i, _ in seen] == list(range(100))
    assert threading.get_ident() not in {ident for _, ident in seen}
    assert [command.id for command in made] == list(range(1, 101))


def test_the_status_follows_the_command(queue):
    started, release = threading.Event(), threading.Event()

    def call():
        started.set()
        release.wait(PATIENCE_S)

    first, second = queue.submit(call), queue.submit(nothing)
    assert started.wait(PATIENCE_S)
    assert (queue.poll(first), queue.poll(second.id)) == ("running", "pending")
    assert not first.done
    release.set()
    queue.wait(second.id, PATIENCE_S)
    assert (queue.poll(first.id), queue.poll(second)) == ("completed", "completed")
    assert first.done
    assert first.error is None
    assert repr(first) == "<Command 1 test completed>"


def test_wait_returns_only_after_the_call(queue):
    done = []
    queue.submit(lambda: (time.sleep(0.01), done.append(1))).wait(PATIENCE_S)
    assert done == [1]


def test_waiting_again_and_from_many_threads_is_fine(queue, gate):
    command = queue.submit(nothing)
    waiters = [threading.Thread(target=command.wait, args=(PATIENCE_S,)) for _ in range(8)]
    for waiter in waiters:
        waiter.start()
    gate.set()
    for waiter in waiters:
        waiter.join(PATIENCE_S)
    assert not any(waiter.is_alive() for waiter in waiters)
    command.wait()


# Failing


def test_a_failed_command_raises_its_own_error_each_time_and_the_queue_goes_on(queue):
    command = queue.submit(fail)
    for wait in (command.wait, lambda: queue.wait(command), lambda: queue.wait(command.id)):
        with pytest.raises(ValueError, match="on purpose") as caught:
            wait()
        (note,) = caught.value.__notes__
        assert "command 1 (test)" in note
        assert "in fail\n" in note
        assert "in execute\n" not in note
    assert queue.poll(command) == "failed"
    assert isinstance(command.error, ValueError)
    queue.submit(nothing).wait(PATIENCE_S)


def test_an_error_keeps_its_cause(queue):
    def call():
        try:
            fail()
        except ValueError as error:
            raise KeyError("second") from error

    with pytest.raises(KeyError) as caught:
        queue.submit(call).wait(PATIENCE_S)
    assert str(caught.value.__cause__) == "on purpose"
    assert "in fail\n" in caught.value.__notes__[0]


class PickyError(Exception):
    """Its copy fails."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class WordyError(Exception):
    """Its copy says something else."""

    def __init__(self, name):
        super().__init__(f"no {name}")


@pytest.mark.parametrize("error", [PickyError(1, 2), WordyError("such thing")])
def test_an_error_that_cannot_be_copied_is_raised_itself(queue, error):
    def call():
        raise error

    command = queue.submit(call)
    depths = set()
    for _ in range(3):
        with pytest.raises(type(error), match=rf"^{error}\n") as caught:
            command.wait(PATIENCE_S)
        depths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(depths) == 1  # it does not grow with each wait


def test_an_exit_inside_a_command_fails_it_and_spares_the_queue(queue):
    with pytest.raises(SystemExit):
        queue.submit(sys.exit).wait(PATIENCE_S)
    queue.submit(nothing).wait(PATIENCE_S)


# Time limits and cancelling


def test_a_wait_that_is_over_first_raises_and_the_command_goes_on(queue, gate):
    command = queue.submit(nothing)
    for timeout_s in (0, 0.01):
        with pytest.raises(CommandTimeoutError, match=f"command {command.id} was still pending"):
            command.wait(timeout_s)
    assert command._wakers == []
    gate.set()
    command.wait(PATIENCE_S)
    command.wait(0)
    assert queue.poll(command) == "completed"


def test_an_endless_timeout_is_one(queue):
    queue.submit(nothing).wait(float("inf"))


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), True, "1"])
def test_a_timeout_that_is_none_is_refused(queue, timeout_s):
    with pytest.raises(ArgumentError, match="timeout_s"):
        queue.submit(nothing).wait(timeout_s)


def test_a_pending_command_can_be_cancelled_and_never_runs(queue, gate):
    ran = []
    command = queue.submit(lambda: ran.append(1))
    assert command.cancel()
    assert not command.cancel()
    assert queue.poll(command.id) == "cancelled"
    with pytest.raises(CommandCancelledError):
        command.wait()
    gate.set()
    queue.submit(nothing).wait(PATIENCE_S)
    assert ran == []
    assert command.status == "cancelled"


def test_a_command_that_runs_or_has_run_cannot_be_cancelled(queue):
    answers = []
    command = queue.submit(lambda: answers.append(command.cancel()))
    command.wait(PATIENCE_S)
    assert [*answers, command.cancel()] == [False, False]
    assert command.status == "completed"


def test_cancelling_wakes_those_who_wait(queue, gate):
    command, outcome = queue.submit(nothing), []

    def wait():
        try:
            command.wait(PATIENCE_S)
        except CommandCancelledError as error:
            outcome.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not command._wakers:
        time.sleep(0.001)
    command.cancel()
    waiter.join(PATIENCE_S)
    assert len(outcome) == 1


def test_a_command_that_waits_for_a_later_one_is_told_so(queue):
    def call():
        queue.submit(nothing).wait()

    with pytest.raises(ArgumentError, match="its own queue"):
        queue.submit(call).wait(PATIENCE_S)


# Callbacks


def test_a_callback_is_called_once_when_added_before_or_after_the_end(queue, gate):
    command, called = queue.submit(nothing), []
    command.add_done_callback(called.append)
    gate.set()
    command.wait(PATIENCE_S)
    queue.submit(nothing).wait(PATIENCE_S)
    command.add_done_callback(called.append)
    assert called == [command, command]


def test_a_callback_that_fails_is_logged_and_the_others_are_called(queue, gate, caplog):
    command, called = queue.submit(nothing), []
    command.add_done_callback(lambda _: fail())
    command.add_done_callback(called.append)
    with caplog.at_level(logging.ERROR, "dala"):
        gate.set()
        command.wait(PATIENCE_S)
        queue.submit(nothing).wait(PATIENCE_S)
    assert called == [command]
    assert "on purpose" in caplog.text


# asyncio


def test_a_command_can_be_awaited(queue):
    async def main():
        await queue.submit(nothing)
        with pytest.raises(ValueError, match="on purpose"):
            await queue.submit(fail)
        commands = [queue.submit(nothing) for _ in range(100)]
        await asyncio.gather(*map(finished, commands))

    async def finished(command):
        await command
        assert command.status == "completed"

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_the_loop_goes_on_while_a_command_is_awaited(queue, gate):
    async def main():
        command = queue.submit(nothing)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        await command

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_cancelling_the_task_leaves_command_and_queue_usable(queue, gate):
    ran = []

    async def main():
        command = queue.submit(lambda: ran.append(1))

        async def wait():
            await command

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert command.status == "pending"
        assert command._wakers == []
        gate.set()
        await command
        await queue.submit(nothing)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert ran == [1]


def test_a_task_cancelled_just_after_the_command_ended_disturbs_nobody(queue, gate, caplog):
    async def main():
        command = queue.submit(nothing)

        async def wait():
            await command

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        gate.set()
        command.wait(PATIENCE_S)  # its waker is on the way to this loop
        queue.submit(nothing).wait(PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert caplog.text == ""


def test_a_loop_that_was_closed_before_the_end_disturbs_nobody(queue, gate, caplog):
    command = queue.submit(nothing)

    loop = asyncio.new_event_loop()
    waiting = command.__await__()
    loop.call_soon(lambda: (next(waiting), loop.stop()))
    loop.run_forever()
    loop.close()
    gate.set()
    command.wait(PATIENCE_S)
    queue.submit(nothing).wait(PATIENCE_S)
    assert caplog.text == ""


# Remembering


def test_ended_commands_stay_answerable_up_to_a_number_and_live_ones_always(monkeypatch):
    monkeypatch.setattr(queues, "REMEMBERED", 10)
    queue, gate = InOrder(), threading.Event()
    ended = [queue.submit(nothing) for _ in range(15)]
    live = queue.submit(lambda: gate.wait(PATIENCE_S))
    pending = [queue.submit(nothing) for _ in range(50)]
    ended[-1].wait(PATIENCE_S)
    assert [queue.poll(command.id) for command in ended[5:]] == ["completed"] * 10
    with pytest.raises(UnknownCommandError, match="id 5:"):
        queue.poll(ended[4].id)
    assert queue.poll(ended[4]) == "completed"
    assert {queue.poll(command.id) for command in pending} == {"pending"}
    gate.set()
    pending[-1].wait(PATIENCE_S)
    queue.submit(nothing).wait(PATIENCE_S)
    with pytest.raises(UnknownCommandError):
        queue.poll(live.id)
    assert len(queue._known) <= 11


@pytest.mark.parametrize("wrong", [True, False, 1.0, "1", None])
def test_what_is_no_id_is_refused(queue, wrong):
    queue.submit(nothing).wait(PATIENCE_S)
    for call in (queue.poll, queue.wait):
        with pytest.raises(ArgumentError, match="is no command"):
            call(wrong)


@pytest.mark.parametrize("unknown", [0, -1, 2, 10**30])
def test_an_id_never_given_out_is_unknown(queue, unknown):
    queue.submit(nothing).wait(PATIENCE_S)
    with pytest.raises(UnknownCommandError):
        queue.poll(unknown)


# Letting go


def test_a_dropped_handle_completes_and_holds_nothing(queue, gate):
    held, ran = Held(), []
    alive = weakref.ref(held)
    queue.submit(lambda held=held: ran.append(1))
    del held
    gc.collect()
    assert alive() is not None
    gate.set()
    queue.submit(nothing).wait(PATIENCE_S)
    assert ran == [1]
    assert alive() is None


@pytest.mark.parametrize("last", [nothing, fail])
def test_what_a_call_held_is_gone_when_the_callbacks_are_called(queue, gate, last):
    held, seen = Held(), []
    alive = weakref.ref(held)
    command = queue.submit(lambda held=held: last())
    command.add_done_callback(lambda _: seen.append(alive()))
    del held
    gate.set()
    queue.submit(nothing).wait(PATIENCE_S)
    assert seen == [None]


def test_a_cancelled_command_holds_nothing(queue, gate):
    held = Held()
    alive = weakref.ref(held)
    queue.submit(lambda held=held: None).cancel()
    del held
    Queue.submit(queue, Work(nothing, (), (), "free")).wait(PATIENCE_S)  # nobody looks at it now
    assert alive() is None


def test_a_failed_command_holds_neither_its_own_frames_nor_those_of_who_waited(queue):
    inside, outside = [], []

    def call():
        held = Held()
        inside.append(weakref.ref(held))
        try:
            fail()
        finally:
            del held.nothing

    def wait(command):
        held = Held()
        outside.append(weakref.ref(held))
        command.wait(PATIENCE_S)

    command = queue.submit(call)
    with pytest.raises(AttributeError) as caught:
        wait(command)
    del caught
    gc.collect()
    assert queue.poll(command.id) == "failed"
    assert (inside[0](), outside[0]()) == (None, None)


def test_a_queue_that_nobody_has_ends_its_threads():
    queue = InOrder()
    queue.submit(nothing).wait(PATIENCE_S)
    threads = list(queue._scheduler.threads)
    del queue
    gc.collect()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(threads) == 2
    assert not any(thread.is_alive() for thread in threads)


# Threads, processes


def test_eight_threads_of_a_thousand_submits_equal_serial(queue):
    order, total = [], [0]

    def submit(worker):
        def add(turn):
            order.append((worker, turn))
            total[0] += 1

        made = [queue.submit(lambda turn=turn: add(turn)) for turn in range(1000)]
        for command in made:
            command.wait(PATIENCE_S)

    threads = [threading.Thread(target=submit, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert total == [8000]
    for worker in range(8):
        assert [turn for who, turn in order if who == worker] == list(range(1000))
    assert sum(thread.name == "dala-commands" for thread in threading.enumerate()) >= 1


@pytest.mark.parametrize("call", ["sleep", "spin", "fill"])
def test_the_interpreter_exits_with_work_in_flight(call):
    program = f"""
import ctypes, time
from dala.runtime.buffers.buffer import buffer_zeros
from dala.runtime.commands.command import Work
from dala.runtime.commands.queue import Queue
buf = buffer_zeros(1 << 26, "u8")
def sleep():
    time.sleep(60)
def spin():
    while True:
        pass
def fill():
    memory = buf.memory
    while True:
        ctypes.memset(memory.address, 1, memory.size_bytes)
queue = Queue()
first = queue.submit(Work({call}, (), (buf.memory,), "test"))
rest = [queue.submit(Work(lambda: None, (), (buf.memory,), "test")) for _ in range(100)]
rest[-1].add_done_callback(print)
while first.status == "pending":
    time.sleep(0.001)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_starts_fresh(queue, gate):
    pending, ended = queue.submit(nothing), []
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that waits for its parent's thread would wait for ever
        try:
            pending.wait()
        except CommandCancelledError:
            queue.submit(lambda: ended.append(1)).wait()
        os._exit(0 if ended == [1] and queue.poll(pending.id) == "cancelled" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.set()
    pending.wait(PATIENCE_S)
