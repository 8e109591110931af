"""Streams: bounded in flight, urgent ones first, late ones dropped, results in order."""

import asyncio
import gc
import math
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

from dala.errors import (
    ArgumentError,
    ClosedError,
    CommandCancelledError,
    DroppedError,
    ShapeError,
)
from dala.gpu import compute
from dala.runtime.commands import stream as streams
from dala.runtime.commands.command import Command, Work
from dala.runtime.commands.hazards import Turn
from dala.runtime.commands.run import queue
from dala.runtime.commands.scheduler import RUNNERS

PATIENCE_S = 30.0  # far beyond what anything here takes: a hang becomes a failure


class Task:
    """A command of its own: it makes a call."""

    def __init__(self, call=lambda: None, writes=()):
        self._work = Work(call, (), tuple(writes), "task")

    def work(self):
        return self._work


@pytest.fixture
def gate():
    """An event that commands wait for."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def held(gate):
    """A command that runs until the gate is opened."""
    return Task(lambda: gate.wait(PATIENCE_S))


def wait_until(ready):
    """Return when it is so; for what nobody tells of."""
    end = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.001)


def is_running(command):
    return command.status == "running"


# What is asked for


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"priority": 1.0}, "priority is 1.0"),
        ({"priority": True}, "priority is True"),
        ({"max_in_flight": 0}, "max_in_flight is 0: give an integer from 1 on"),
        ({"max_in_flight": 2.0}, "max_in_flight is 2.0"),
        ({"max_in_flight": True}, "max_in_flight is True"),
        ({"when_full": "drop"}, "'drop': give one of block, drop_oldest, drop_newest"),
        ({"when_full": None}, "when_full is None"),
        ({"deadline_ms": 0}, "deadline_ms is 0: give milliseconds, more than 0"),
        ({"deadline_ms": -1.5}, "deadline_ms is -1.5"),
        ({"deadline_ms": float("nan")}, "deadline_ms is nan"),
        ({"deadline_ms": float("inf")}, "deadline_ms is inf"),
        ({"deadline_ms": True}, "deadline_ms is True"),
        ({"deadline_ms": "5"}, "deadline_ms is '5'"),
    ],
)
def test_what_a_stream_cannot_be_is_refused(given, said):
    with pytest.raises(ArgumentError, match=said):
        compute.stream(**given)


def test_a_stream_takes_what_submit_takes_and_refuses_the_rest(device):
    x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    with compute.stream(priority=-3) as stream:
        command = stream.submit({"kernel": "relu", "inputs": [x]}, output=y)
        stream.submit(op="copy_buffer", inputs=[y], output=x)
        with pytest.raises(ArgumentError, match="not int"):
            stream.submit(7)
        with pytest.raises(ShapeError):
            stream.submit(op="copy_buffer", inputs=[y], output=compute.buffer_zeros((3,), "f32"))
    assert isinstance(command, Command)
    assert compute.poll(command.id) == "completed"
    assert compute.read_list(x) == [0.0, 2.0]
    assert stream.stats().submitted == 2


def test_streams_and_other_commands_share_the_order_of_their_buffers(device):
    total = compute.buffer_zeros((4,), "s32")
    one = compute.buffer([1, 2, 3, 4], (4,), "s32")
    double = {"kernel": "elementwise_add", "inputs": [total, total], "output": total}
    add = {"kernel": "elementwise_add", "inputs": [total, one], "output": total}
    want, step = np.zeros(4, np.int64), np.array([1, 2, 3, 4])
    with compute.stream(priority=5) as urgent, compute.stream(priority=-5) as patient:
        for i in range(24):
            (urgent if i % 3 == 0 else patient if i % 3 == 1 else compute).submit(
                add if i % 2 else double
            )
            want = want + step if i % 2 else 2 * want
        last = compute.submit(add)
    last.wait(PATIENCE_S)
    assert compute.read_list(total) == (want + step).tolist()


# Full


def test_a_full_stream_blocks_until_there_is_room(held, gate):
    stream = compute.stream(max_in_flight=2)
    first = [stream.submit(held) for _ in range(2)]
    entered = []

    def submit():
        entered.append(stream.submit(Task()))

    producer = threading.Thread(target=submit, daemon=True)
    producer.start()
    wait_until(lambda: stream._changed)  # it sleeps
    assert not entered
    assert stream.stats().submitted == 2
    gate.set()
    producer.join(PATIENCE_S)
    assert [command.status for command in first].count("completed") >= 1
    entered[0].wait(PATIENCE_S)
    stream.close()
    assert stream.stats().dropped == 0


def test_any_of_those_in_flight_makes_room(held, gate):
    stream = compute.stream(max_in_flight=2)
    slow = stream.submit(held)
    for _ in range(50):
        stream.submit(Task())  # blocks until the one before it has ended
    assert not slow.done
    gate.set()
    stream.close()
    assert stream.stats().completed == 51


def test_a_full_stream_drops_the_oldest_that_has_not_begun(held, gate):
    stream = compute.stream(max_in_flight=3, when_full="drop_oldest")
    with compute.device("cpu"):
        memory = compute.buffer_zeros((1,), "u8").memory
    ran = []
    running = stream.submit(Task(lambda: gate.wait(PATIENCE_S), [memory]))
    wait_until(lambda: is_running(running))
    rest = [stream.submit(Task(lambda i=i: ran.append(i), [memory])) for i in range(5)]
    assert [command.status for command in rest] == ["cancelled"] * 3 + ["pending"] * 2
    with pytest.raises(DroppedError, match=rf"command {rest[0].id} \(task\) was dropped for a "):
        rest[0].wait()
    assert isinstance(rest[0].error, CommandCancelledError)
    assert not rest[0].error.late
    gate.set()
    stream.close()
    assert ran == [3, 4]
    assert running.status == "completed"


@pytest.mark.parametrize("when_full", ["drop_oldest", "drop_newest"])
def test_a_stream_in_which_all_run_drops_the_newest(held, gate, when_full):
    stream = compute.stream(max_in_flight=2, when_full=when_full)
    running = [stream.submit(held) for _ in range(2)]
    wait_until(lambda: all(map(is_running, running)))
    dropped = stream.submit(Task(lambda: pytest.fail("it ran")))
    assert compute.poll(dropped.id) == "cancelled"
    with pytest.raises(DroppedError, match="its stream had 2 in flight"):
        dropped.wait()
    gate.set()
    stream.close()
    assert stream.stats().dropped == 1
    assert stream.stats().completed == 2


def test_a_full_stream_drops_the_newest(held, gate):
    stream = compute.stream(max_in_flight=1, when_full="drop_newest")
    first = stream.submit(held)
    assert [stream.submit(Task()).status for _ in range(5)] == ["cancelled"] * 5
    gate.set()
    first.wait(PATIENCE_S)
    stream.submit(Task()).wait(PATIENCE_S)
    assert (stream.stats().dropped, stream.stats().completed) == (5, 2)


def test_a_callback_is_not_blocked_by_a_full_stream(held, gate):
    stream, said = compute.stream(max_in_flight=1), []

    def submit_again(_):
        try:
            stream.submit(Task())
        except ArgumentError as error:
            said.append(str(error))

    other = compute.submit(Task())
    other.wait(PATIENCE_S)
    stream.submit(held)
    trigger = threading.Event()
    command = compute.submit(Task(lambda: trigger.wait(PATIENCE_S)))
    command.add_done_callback(submit_again)
    trigger.set()
    wait_until(lambda: said)
    assert "cannot be waited for by a command or a callback" in said[0]
    gate.set()
    stream.close()


def test_user_callbacks_of_a_dropped_command_may_use_the_stream_from_elsewhere(held, gate):
    stream = compute.stream(max_in_flight=2, when_full="drop_oldest")
    with compute.device("cpu"):
        memory = compute.buffer_zeros((1,), "u8").memory
    first = stream.submit(Task(lambda: gate.wait(PATIENCE_S), [memory]))
    wait_until(lambda: is_running(first))
    seen = []

    def look(_):
        other = threading.Thread(target=lambda: seen.append(stream.stats()), daemon=True)
        other.start()
        other.join(PATIENCE_S)

    stream.submit(Task(writes=[memory])).add_done_callback(look)
    stream.submit(Task(writes=[memory]))
    assert len(seen) == 1
    gate.set()
    stream.close()


# Priority and deadline


def test_among_what_is_ready_the_higher_priority_goes_first(gate):
    ran, one = [], threading.Event()
    busy = [compute.submit(Task(lambda: gate.wait(PATIENCE_S))) for _ in range(RUNNERS - 1)]
    busy.append(compute.submit(Task(lambda: one.wait(PATIENCE_S))))
    wait_until(lambda: all(map(is_running, busy)))
    made = {priority: compute.stream(priority, 10) for priority in (0, -2, 7)}
    for turn in range(3):
        for priority, stream in made.items():
            stream.submit(Task(lambda item=(priority, turn): ran.append(item)))
    one.set()  # one runner for all of them
    for stream in made.values():
        stream.close()
    assert ran == [(priority, turn) for priority in (7, 0, -2) for turn in range(3)]


def behind(gate):
    """A memory that a running command holds until the gate is opened, and that command."""
    with compute.device("cpu"):
        memory = compute.buffer_zeros((1,), "u8").memory
    command = compute.submit(Task(lambda: gate.wait(PATIENCE_S), [memory]))
    wait_until(lambda: is_running(command))
    return memory, command


@pytest.mark.parametrize("how", ["wait", "await", "results", "turn"])
def test_a_command_that_has_not_begun_by_its_deadline_is_dropped_and_says_so(gate, how):
    memory, before = behind(gate)
    stream = compute.stream(deadline_ms=1)
    late = stream.submit(Task(lambda: pytest.fail("it ran"), [memory]))
    if how == "results":
        assert next(stream.results()) is late
    elif how == "await":
        with pytest.raises(DroppedError):
            asyncio.run(asyncio.wait_for(awaited(late), PATIENCE_S))
    elif how == "turn":
        wait_until(lambda: time.monotonic() > late._begin_by_s)
        assert late.status == "pending"
        gate.set()
        before.wait(PATIENCE_S)
        wait_until(lambda: late.done)
    with pytest.raises(DroppedError, match="deadline passed before it had begun") as caught:
        late.wait(PATIENCE_S)
    assert caught.value.late
    assert late.status == "cancelled"
    assert (before.status == "completed") == (how == "turn")  # who waits is told at once
    stats = stream.stats()
    assert (stats.dropped, stats.late, stats.in_flight) == (1, 1, 0)


async def awaited(command):
    await command


def test_a_command_that_begins_in_time_may_end_after_its_deadline(held, gate):
    stream = compute.stream(deadline_ms=200_000)
    command = stream.submit(held)
    wait_until(lambda: is_running(command))
    command._begin_by_s = time.monotonic() - 1
    assert not command._drop_if_late()
    gate.set()
    command.wait(PATIENCE_S)
    assert stream.stats().late == 0


def test_late_commands_make_room_and_one_without_room_is_late_itself(gate):
    memory, _ = behind(gate)
    stream = compute.stream(max_in_flight=2, deadline_ms=5)
    made = [stream.submit(Task(writes=[memory])) for _ in range(6)]  # none of them blocks for ever
    assert made[0].status == "cancelled"
    stream.close()
    assert {command.status for command in made} == {"cancelled"}
    assert stream.stats().late == 6
    full = compute.stream(max_in_flight=1, deadline_ms=5)
    full._in_flight.append(compute.submit(Task(lambda: gate.wait(PATIENCE_S))))
    command = full.submit(Task())
    with pytest.raises(DroppedError, match="before there was room in its stream"):
        command.wait()


# Results


def test_results_come_in_order_of_submission_also_if_they_end_in_another(gate):
    stream = compute.stream(max_in_flight=4)
    made = [stream.submit(Task(lambda: gate.wait(PATIENCE_S)))]
    made += [stream.submit(Task()) for _ in range(3)]
    wait_until(lambda: all(command.done for command in made[1:]))
    seen = []

    def consume():
        seen.extend(stream.results())

    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    wait_until(lambda: made[0]._wakers)
    assert not seen
    gate.set()
    made.append(stream.submit(Task(lambda: 1 / 0)))
    stream.close()
    consumer.join(PATIENCE_S)
    assert seen == made
    assert [command.status for command in seen] == ["completed"] * 4 + ["failed"]
    assert list(stream.results()) == []


def test_async_for_gives_results_in_order_while_the_loop_goes_on():
    async def main():
        stream, made, seen = compute.stream(max_in_flight=3), [], []

        async def produce():
            for _ in range(50):
                made.append(stream.submit(Task()))
                await asyncio.sleep(0)
            stream.close(wait=False)

        producer = asyncio.ensure_future(produce())
        async for command in stream:
            assert command.done
            seen.append(command)
        await producer
        return made, seen

    made, seen = asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert seen == made
    assert len(seen) == 50


def test_a_consumer_that_is_cancelled_loses_nothing(held, gate):
    async def main():
        stream = compute.stream()
        command = stream.submit(held)

        async def consume():
            async for found in stream:
                return found

        task = asyncio.ensure_future(consume())
        while not command._wakers:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        assert await consume() is command
        stream.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


# Closing


def test_leaving_the_block_waits_for_what_is_in_flight_and_closes(gate):
    ran = []
    threading.Timer(0.01, gate.set).start()
    with compute.stream() as stream:
        made = [stream.submit(Task(lambda: gate.wait(PATIENCE_S) and ran.append(1)))]
        made.append(stream.submit(Task(lambda: 1 / 0)))
    assert ran == [1]
    assert all(command.done for command in made)
    assert stream.closed
    assert "closed" in repr(stream)
    with pytest.raises(ClosedError, match="takes no more commands"):
        stream.submit(Task())
    stream.close()


def test_closing_wakes_a_producer_that_is_blocked(held, gate):
    stream, said = compute.stream(max_in_flight=1), []
    stream.submit(held)

    def produce():
        try:
            stream.submit(Task())
        except ClosedError as error:
            said.append(error)

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    wait_until(lambda: stream._changed)
    stream.close(wait=False)
    producer.join(PATIENCE_S)
    assert len(said) == 1
    gate.set()


# Stats


def test_stats_add_up(gate):
    stream = compute.stream(max_in_flight=4, when_full="drop_newest")
    memory, _ = behind(gate)
    waiting = [stream.submit(Task(writes=[memory])) for _ in range(3)]
    failing = stream.submit(Task(lambda: 1 / 0, [memory]))
    stream.submit(Task())
    waiting[0].cancel()
    stats = stream.stats()
    assert (stats.submitted, stats.in_flight, stats.dropped, stats.cancelled) == (5, 3, 1, 1)
    assert math.isnan(stats.latency_p50_ms)
    assert math.isnan(stats.throughput_per_s)
    gate.set()
    stream.close()
    wait_until(lambda: stream.stats().in_flight == 0)
    stats = stream.stats()
    assert (stats.completed, stats.failed, stats.cancelled, stats.dropped) == (2, 1, 1, 1)
    assert failing.status == "failed"
    assert 0 < stats.latency_p50_ms <= stats.latency_p95_ms <= stats.latency_p99_ms
    assert stats.throughput_per_s > 0


def test_percentiles_and_throughput_are_those_of_the_latest(monkeypatch):
    from dala.runtime.commands.stream_statistics import SAMPLES, Tally

    tally, ended = Tally(), compute.submit(Task())
    ended.wait(PATIENCE_S)
    for i in range(1, 101):
        tally.put_down(ended, started_s=10.0 * i - i / 1000, ended_s=10.0 * i)
    stats = tally.stats()
    found = [stats.latency_p50_ms, stats.latency_p95_ms, stats.latency_p99_ms]
    assert found == pytest.approx([50, 95, 99])
    assert stats.throughput_per_s == pytest.approx(0.1)
    for i in range(2 * SAMPLES):
        tally.put_down(ended, started_s=2000.0 + i, ended_s=2000.25 + i)
    stats = tally.stats()
    assert stats.completed == 100 + 2 * SAMPLES
    assert stats.latency_p99_ms == pytest.approx(250)
    assert stats.throughput_per_s == pytest.approx(1)
    assert len(tally._latencies_s) == len(tally._ends_s) == SAMPLES
    assert not tally._ended


# Bounded


class Frame:
    """Something large that a command holds."""


@pytest.mark.parametrize("when_full", ["block", "drop_oldest", "drop_newest"])
@pytest.mark.parametrize("consumed", [False, True])
def test_a_producer_that_is_too_fast_does_not_make_memory_grow(
    monkeypatch, gate, when_full, consumed
):
    monkeypatch.setattr(streams, "KEPT", 20)
    with compute.device("cpu"):
        memory = compute.buffer_zeros((1,), "u8").memory
    stream = compute.stream(max_in_flight=3, when_full=when_full)
    frames, most, seen = weakref.WeakSet(), [], []
    turns = threading.Semaphore(0)
    consumer = threading.Thread(target=lambda: seen.extend(c.id for c in stream.results()))
    if consumed:
        consumer.start()
    for i in range(2000):
        frame = Frame()
        frames.add(frame)
        if i % 10 == 0 or when_full == "block":
            turns.release()  # the stream does a tenth of what is asked of it
        stream.submit(Task(lambda frame=frame: turns.acquire(timeout=PATIENCE_S), [memory]))
        del frame
        most.append(len(frames))
        if i % 100 == 99:
            assert len(stream._results) <= 23 or consumed
            assert len(stream._tally._ended) <= 10
    queue().submit(Work(lambda: None, (), (), "flush"), priority=9).wait(PATIENCE_S)
    gc.collect()
    assert max(most) <= 3 + 10  # those in flight, and those that somebody is about to let go
    assert sum(issubclass(type(each), Turn) for each in gc.get_objects()) < 300
    for _ in range(10):
        turns.release()
    stream.close()
    if consumed:
        consumer.join(PATIENCE_S)
        assert len(seen) + stream.stats().forgotten == 2000
        assert seen == sorted(seen)
    stats = stream.stats()
    assert stats.submitted == 2000
    assert stats.completed + stats.dropped == 2000
    assert (stats.dropped == 0) == (when_full == "block")
    assert len(stream._tally._ended) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_finds_the_stream_usable(held, gate):
    stream = compute.stream(max_in_flight=1)
    stream.submit(held)
    holder = threading.Thread(target=stream._lock.acquire)  # another thread has it at that moment
    holder.start()
    holder.join()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        command = stream.submit(Task())
        command.wait()
        os._exit(0 if command.status == "completed" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
