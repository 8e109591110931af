"""The scheduler: independent commands side by side, all others as if one after another."""

import gc
import itertools
import random
import threading
import time

import numpy as np
import pytest

from dala.devices.device import Memory
from dala.errors import ArgumentError, CommandCancelledError, CommandTimeoutError
from dala.gpu import compute
from dala.runtime.commands.command import Work
from dala.runtime.commands.hazards import FEWEST_KEPT, MOST_CELLS, MOST_READERS, Hazards, Turn
from dala.runtime.commands.queue import Queue
from dala.runtime.commands.scheduler import RUNNERS

PATIENCE_S = 30.0  # far beyond what anything here takes: a hang becomes a failure


@pytest.fixture
def queue():
    return Queue()


ARRAY = np.zeros(256, np.uint8)


def host(*extents):
    """Memories over parts of one array."""
    with compute.device("cpu"):
        return [compute.from_dlpack(ARRAY[first:last]).memory for first, last in extents]


def nothing():
    pass


def fail():
    raise ValueError("on purpose")


def work(call=nothing, reads=(), writes=(), label="test"):
    return Work(call, tuple(reads), tuple(writes), label)


def flush(queue, running=1):
    """Return when whatever was submitted or cancelled before and can run has run."""
    queue.submit(work()).wait(PATIENCE_S)
    wait_until(lambda: queue._scheduler._running <= running)


def wait_until(ready):
    """Return when it is so; for what nobody tells of."""
    end = time.monotonic() + 2 * PATIENCE_S
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.001)


# What may overlap


SAME, LEFT, MIDDLE, RIGHT, EMPTY = host((0, 256), (0, 64), (32, 96), (64, 128), (32, 32))

SLICES = host(*[(i, i + 1) for i in range(250)])


class Apart(Memory):
    """Memory as devices have it that share nothing."""

    device = SAME.device


ELSEWHERE, OTHER = Apart(), Apart()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"reads": [SAME]}, {"reads": [SAME]}),
        ({"reads": [SAME]}, {"reads": [LEFT]}),
        ({"writes": [LEFT]}, {"writes": [RIGHT]}),
        ({"writes": [LEFT]}, {"reads": [RIGHT]}),
        ({"writes": [MIDDLE]}, {"writes": [EMPTY]}),
        ({"writes": [ELSEWHERE]}, {"reads": [OTHER]}),
        ({"writes": [ELSEWHERE]}, {"writes": [SAME]}),
        ({"reads": [ELSEWHERE]}, {"reads": [ELSEWHERE]}),
    ],
)
def test_what_does_not_disturb_each_other_runs_side_by_side(queue, first, second):
    both = threading.Barrier(2)
    commands = [
        queue.submit(work(lambda: both.wait(PATIENCE_S), **used)) for used in (first, second)
    ]
    queue.wait_all(commands, PATIENCE_S)


CONFLICTS = [
    ({"writes": [SAME]}, {"writes": [SAME]}),
    ({"writes": [SAME]}, {"reads": [SAME]}),
    ({"reads": [SAME]}, {"writes": [SAME]}),
    ({"writes": [LEFT]}, {"reads": [MIDDLE]}),
    ({"writes": [MIDDLE]}, {"writes": [LEFT]}),
    ({"writes": [SAME]}, {"reads": [RIGHT]}),
    ({"reads": [RIGHT]}, {"writes": [SAME]}),
    ({"reads": [LEFT], "writes": [RIGHT]}, {"reads": [RIGHT], "writes": [RIGHT]}),
    ({"writes": [ELSEWHERE]}, {"reads": [ELSEWHERE]}),
    ({"reads": [ELSEWHERE]}, {"writes": [ELSEWHERE]}),
]


@pytest.mark.parametrize(("first", "second"), CONFLICTS)
def test_what_shares_bytes_that_are_written_runs_in_order(queue, first, second):
    seen, gate = [], threading.Event()

    def slow():
        gate.wait(PATIENCE_S)
        seen.append("first")

    commands = [
        queue.submit(work(slow, **first)),
        queue.submit(work(lambda: seen.append("second"), **second)),
    ]
    flush(queue)
    assert commands[1].status == "pending"
    gate.set()
    queue.wait_all(commands, PATIENCE_S)
    assert seen == ["first", "second"]


def test_as_many_run_at_a_time_as_there_are_runners_and_no_more(queue):
    everyone, gate = threading.Barrier(RUNNERS + 1), threading.Event()

    def call():
        everyone.wait(PATIENCE_S)
        gate.wait(PATIENCE_S)

    running = [queue.submit(work(call)) for _ in range(RUNNERS)]
    more = [queue.submit(work()) for _ in range(10)]
    everyone.wait(PATIENCE_S)
    assert {command.status for command in running} == {"running"}
    assert {command.status for command in more} == {"pending"}
    assert len(queue._scheduler.threads) == RUNNERS + 1
    gate.set()
    queue.wait_all([*running, *more], PATIENCE_S)
    assert len(queue._scheduler.threads) == RUNNERS + 1


# Failing and cancelling


def test_those_after_a_failed_command_run(queue):
    failed = queue.submit(work(fail, writes=[SAME]))
    after = queue.submit(work(reads=[SAME]))
    after.wait(PATIENCE_S)
    assert (failed.status, after.status) == ("failed", "completed")


@pytest.mark.parametrize("when", ["before", "after"])
def test_those_after_a_cancelled_command_wait_for_those_before_it(queue, when):
    seen, gate = [], threading.Event()

    def slow():
        gate.wait(PATIENCE_S)
        seen.append("first")

    first = queue.submit(work(slow, reads=[LEFT]))
    cancelled = queue.submit(work(lambda: seen.append("cancelled"), writes=[MIDDLE]))
    flush(queue)
    if when == "before":
        assert cancelled.cancel()
        flush(queue)
    last = queue.submit(work(lambda: seen.append("last"), writes=[MIDDLE]))
    free = queue.submit(work(reads=[RIGHT]))
    if when == "after":
        flush(queue)
        assert cancelled.cancel()
    flush(queue)
    assert last.status == "pending"
    gate.set()
    queue.wait_all([first, last, free], PATIENCE_S)
    assert seen == ["first", "last"]


def test_a_cancelled_command_that_waits_for_nothing_lets_the_others_go(queue):
    gate = threading.Event()
    busy = [queue.submit(work(lambda: gate.wait(PATIENCE_S))) for _ in range(RUNNERS)]
    wait_until(lambda: all(command.status == "running" for command in busy))
    cancelled = queue.submit(work(writes=[SAME]))
    after = queue.submit(work(reads=[SAME]))
    assert cancelled.cancel()
    gate.set()
    after.wait(PATIENCE_S)


def test_cancelled_commands_leave_nothing_behind_while_others_run(queue):
    before = _count_turns()
    gate = threading.Event()
    slow = queue.submit(work(lambda: gate.wait(PATIENCE_S), writes=[SAME]))
    wait_until(lambda: slow.status == "running")
    for used in ({"writes": [SAME]}, {"reads": [LEFT]}, {"reads": [LEFT], "writes": [RIGHT]}):
        for _ in range(1000):
            assert queue.submit(work(**used)).cancel()
    flush(queue)
    assert slow._turn.followers == {}
    # Those that are still in a cell wait for the slow one at most, and for no other.
    assert _count_turns() - before < 200
    gate.set()


def _count_turns():
    gc.collect()
    return sum(issubclass(type(each), Turn) for each in gc.get_objects())


def test_cancelled_commands_leave_nothing_behind_while_all_runners_are_busy(queue):
    gate = threading.Event()
    busy = [queue.submit(work(lambda: gate.wait(PATIENCE_S))) for _ in range(RUNNERS)]
    wait_until(lambda: all(command.status == "running" for command in busy))
    for _ in range(5):
        made = [queue.submit(work()) for _ in range(500)]
        wait_until(lambda: not queue._scheduler._news)
        assert all(command.cancel() for command in made)
        wait_until(lambda: not queue._scheduler._news)
    assert len(queue._scheduler._ready) <= 2 * FEWEST_KEPT
    gate.set()


def test_many_readers_and_many_parts_let_the_others_go(queue):
    seen, gate = [], threading.Event()
    first = queue.submit(work(lambda: gate.wait(PATIENCE_S), writes=[SAME]))
    commands = [
        queue.submit(work(lambda item=item: seen.append(item), **used))
        for item, used in [
            *[("read", {"reads": [SAME]})] * (3 * MOST_READERS),
            ("write", {"writes": [SAME]}),
            *[("part", {"reads": [each], "writes": [each]}) for each in SLICES],
            *[("read again", {"reads": [SAME]})] * 3,
            ("write again", {"writes": [MIDDLE]}),
        ]
    ]
    gate.set()
    queue.wait_all([first, *commands], PATIENCE_S)
    want = ["read"] * 3 * MOST_READERS + ["write"] + ["part"] * len(SLICES)
    assert seen == [*want, *["read again"] * 3, "write again"]


# Priority


def test_the_higher_priority_goes_first_and_equals_in_order(queue):
    seen, gate, last = [], threading.Event(), threading.Event()
    busy = [queue.submit(work(lambda: last.wait(PATIENCE_S))) for _ in range(RUNNERS - 1)]
    busy.append(queue.submit(work(lambda: gate.wait(PATIENCE_S))))
    wait_until(lambda: all(command.status == "running" for command in busy))
    order = [0, -1, 5, 0, 5, -1]
    commands = [
        queue.submit(work(lambda item=item: seen.append(item)), priority=item[0])
        for item in zip(order, itertools.count(), strict=False)
    ]
    gate.set()  # one runner for all of them
    queue.wait_all(commands, PATIENCE_S)
    last.set()
    assert seen == [(5, 2), (5, 4), (0, 0), (0, 3), (-1, 1), (-1, 5)]


def test_a_priority_never_changes_the_bytes(queue):
    seen, gate = [], threading.Event()
    first = queue.submit(work(lambda: gate.wait(PATIENCE_S), writes=[SAME]))
    commands = [
        queue.submit(work(lambda i=i: seen.append(i), writes=[SAME]), priority=i) for i in range(9)
    ]
    gate.set()
    queue.wait_all([first, *commands], PATIENCE_S)
    assert seen == list(range(9))


# Callbacks


def test_a_callback_that_takes_long_does_not_hold_up_those_after_its_command(queue):
    gate, done, waited = threading.Event(), threading.Event(), []
    first = queue.submit(work(lambda: gate.wait(PATIENCE_S), writes=[SAME]))
    first.add_done_callback(lambda _: waited.append(done.wait(PATIENCE_S)))
    queue.submit(work(done.set, writes=[SAME]))
    flush(queue)
    gate.set()
    wait_until(lambda: waited)
    assert waited == [True]


def test_a_callback_may_submit_but_not_wait(queue):
    said, last = [], []

    def callback(_):
        last.append(queue.submit(work()))
        gate = threading.Event()
        pending = queue.submit(work(lambda: gate.wait(PATIENCE_S)))
        for wait in (
            pending.wait,
            lambda: queue.wait_all([pending]),
            lambda: queue.as_completed([pending]),
        ):
            try:
                wait()
            except ArgumentError as error:
                said.append(str(error))
        gate.set()

    command = queue.submit(work())
    command.add_done_callback(callback)
    wait_until(lambda: len(said) == 3)
    assert all("its own queue" in each for each in said)
    last[0].wait(PATIENCE_S)


# Waiting for many


def test_wait_all_raises_the_first_error_in_order_of_submission_after_all_have_ended(queue):
    gate, both = threading.Event(), threading.Barrier(2)

    def first():
        both.wait(PATIENCE_S)
        gate.wait(PATIENCE_S)
        raise KeyError("first")

    def second():
        both.wait(PATIENCE_S)
        raise ValueError("second")

    commands = [queue.submit(work(first)), queue.submit(work(second)), queue.submit(work())]
    wait_until(lambda: commands[1].done)
    gate.set()
    for given in (commands, commands[::-1], [command.id for command in commands], iter(commands)):
        with pytest.raises(KeyError, match="first"):
            queue.wait_all(given, PATIENCE_S)
        assert all(command.done for command in commands)
    queue.wait_all([])
    queue.wait_all([commands[2]])


def test_as_completed_gives_them_in_the_order_in_which_they_end(queue):
    gates = [threading.Event() for _ in range(3)]
    commands = [
        queue.submit(work(lambda gate=gate: gate.wait(PATIENCE_S) and fail())) for gate in gates
    ]
    ended = queue.as_completed(commands, PATIENCE_S)
    for i in (2, 0, 1):
        gates[i].set()
        assert next(ended) is commands[i]
        assert commands[i].status == "failed"
    assert list(ended) == []
    assert list(queue.as_completed(command.id for command in commands)) == [
        commands[i] for i in (2, 0, 1)
    ]


def test_waiting_for_many_has_one_time_limit_and_says_who_is_late(queue):
    gate = threading.Event()
    slow = queue.submit(work(lambda: gate.wait(PATIENCE_S)))
    quick = queue.submit(work())
    quick.wait(PATIENCE_S)
    said = f"1 of 2 commands had not ended after 0.01 s: {slow.id}."
    with pytest.raises(CommandTimeoutError) as caught:
        queue.wait_all([slow, quick], 0.01)
    assert str(caught.value) == said
    ended = queue.as_completed([slow, quick], 0.01)
    assert next(ended) is quick
    with pytest.raises(CommandTimeoutError) as caught:
        next(ended)
    assert str(caught.value) == said
    gate.set()
    slow.wait(PATIENCE_S)


@pytest.mark.parametrize("wrong", [1, "12", None, [1.5], [True]])
def test_what_is_no_list_of_commands_is_refused(queue, wrong):
    for call in (queue.wait_all, queue.as_completed):
        with pytest.raises(ArgumentError, match=r"is no command|is a list of commands"):
            call(wrong)
    with pytest.raises(ArgumentError, match=r"write \[command\]"):
        queue.wait_all(queue.submit(work()))


# The books


def ancestors(turns):
    """For each turn all that it waits for, directly or not; joins are passed through."""
    known = {}

    def of(turn):
        if turn not in known:
            known[turn] = set(turn.waits).union(*map(of, turn.waits))
        return known[turn]

    return [of(turn) & set(turns) for turn in turns]


def conflict(first, second):
    return any(
        a.overlaps(b)
        for mine, others in ((first[1], second[0] + second[1]), (first[0], second[1]))
        for a in mine
        for b in others
    )


@pytest.mark.parametrize("seed", range(40))
def test_turns_wait_for_just_those_that_they_have_to(seed):
    chance = random.Random(seed)
    memories = [*host(*[sorted(chance.choices(range(17), k=2)) for _ in range(6)]), ELSEWHERE]
    uses = [
        (chance.choices(memories, k=chance.randrange(3)), chance.choices(memories, k=1))
        for _ in range(30)
    ]
    hazards, turns = Hazards(), [Turn() for _ in uses]
    for turn, use in zip(turns, uses, strict=True):
        hazards.admit(turn, *use)
    for i, found in enumerate(ancestors(turns)):
        wanted = set()
        for j in range(i - 1, -1, -1):
            if turns[j] not in wanted and conflict(uses[j], uses[i]):
                wanted |= {turns[j], *ancestors(turns)[j]}
        assert found == wanted, f"turn {i}"


@pytest.mark.parametrize(
    "uses",
    [
        [([SAME], [])] * 9 + [([], [SAME])],
        [([SAME], [])],
        [([], [each]) for each in SLICES] + [([SAME], [])] * 250,
        [([SAME], [])] * 250 + [([each], []) for each in SLICES],
        [([SAME, LEFT, MIDDLE], [MIDDLE]), *[([each], [each]) for each in SLICES[:90]]],
    ],
    ids=["read and write", "read", "parts and the whole", "the whole and parts", "in place"],
)
def test_what_a_turn_costs_does_not_grow_with_the_number_in_flight(uses):
    hazards, turns = Hazards(), []
    most = (MOST_CELLS + 2) * (MOST_READERS + 2)
    for use in itertools.islice(itertools.cycle(uses), 5000):
        turn = Turn()
        hazards.admit(turn, *use)
        turns.append(turn)
        assert turn not in turn.waits
        assert len(hazards) <= 600
    assert max(len(turn.waits) for turn in turns) <= most
    assert sum(len(turn.waits) for turn in turns) <= 40 * len(turns)
    for before, after in itertools.pairwise(turns):
        assert len(before.followers) <= len(turns)
        assert before not in after.followers


def test_a_merged_read_is_not_waited_for_by_itself():
    hazards = Hazards()
    for each in SLICES:
        hazards.admit(Turn(), [], [each])
    hazards.admit(Turn(), [LEFT], [])
    turn = Turn()
    hazards.admit(turn, [LEFT, SAME], [SAME])
    seen, rest = set(), [turn]
    while rest:
        for each in rest.pop().waits - seen:
            seen.add(each)
            rest.append(each)
    assert turn not in seen
    assert len(seen) >= len(SLICES)


def test_memory_that_is_not_in_use_any_more_is_forgotten(queue):
    for _ in range(30):
        made = [compute.buffer([1], (1,), "u8").memory for _ in range(100)]
        queue.wait_all([queue.submit(work(writes=[each])) for each in made], PATIENCE_S)
    assert len(queue._scheduler._hazards) <= 500


# All of it, on devices


@pytest.mark.parametrize("seed", range(6))
def test_random_commands_give_the_bytes_of_serial_execution(device, seed):
    chance = random.Random(f"{device} {seed}")
    plan = [
        (chance.choice(["elementwise_add", "elementwise_mul", "scale", "copy", "reverse"]), k)
        for k in (chance.choices(range(9), k=3) for _ in range(250))
    ]
    got, submitted = pool_of_buffers(), []
    for i, (op, (a, b, out)) in enumerate(plan):
        inputs = [got[a], got[b]] if op.startswith("elementwise") else [got[a]]
        if op == "copy":
            command = compute.submit(op="copy_buffer", inputs=inputs, output=got[out])
        else:
            params = {"factor": 3} if op == "scale" else {}
            kernel = REVERSE if op == "reverse" else op
            command = compute.submit(kernel=kernel, inputs=inputs, output=got[out], params=params)
        submitted.append(command)
        if i % 17 == 0:
            submitted[chance.randrange(len(submitted))].cancel()
    for command in submitted:
        try:
            command.wait(PATIENCE_S)
        except CommandCancelledError:
            assert command.status == "cancelled"
    want = pool_of_buffers()
    for command, (op, (a, b, out)) in zip(submitted, plan, strict=True):
        if command.status == "cancelled":
            continue
        inputs = [want[a], want[b]] if op.startswith("elementwise") else [want[a]]
        if op == "copy":
            want[out].memory.device.copy(want[a].memory, want[out].memory)
        else:
            params = {"factor": 3} if op == "scale" else {}
            compute.run_kernel(REVERSE if op == "reverse" else op, inputs, want[out], params)
    for i in range(9):
        assert compute.read_list(got[i]) == compute.read_list(want[i]), f"buffer {i}"


REVERSE = compute.Kernel.register(
    "reverse_for_test", "def k(x):\n    (i,) = position(1)\n    return x[39 - i]"
)
compute.Kernel.unregister("reverse_for_test")


def pool_of_buffers():
    """Nine buffers: on the CPU six of them are parts of one array, and two the same part."""
    values = np.random.default_rng(7).integers(-9, 9, 200, np.int32)
    parts = [values[start : start + 40] for start in (0, 20, 40, 60, 100, 100)]
    made = [compute.from_dlpack(part) for part in parts]
    return [*made, *[compute.from_numpy(parts[i] + i) for i in range(3)]]


def test_a_buffer_may_be_freed_while_a_command_needs_it(device):
    gate = threading.Event()
    x, y = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    z = compute.buffer_zeros((2,), "f32")
    first = compute.submit(Custom(work(lambda: gate.wait(PATIENCE_S), writes=[x.memory])))
    second = compute.submit(kernel="elementwise_add", inputs=[x, x], output=y)
    third = compute.submit(op="copy_buffer", inputs=[y], output=z)
    compute.free_many([x, y])
    gate.set()
    compute.wait_all([first, second, third], PATIENCE_S)
    assert compute.read_list(z) == [2.0, 4.0]


class Custom:
    """Something that says itself what there is to do."""

    def __init__(self, given):
        self.given = given

    def work(self):
        return self.given


def test_what_says_itself_what_to_do_is_submitted_as_it_is():
    ran = []
    command = compute.submit(Custom(work(lambda: ran.append(1), label="mine")))
    compute.wait(command, PATIENCE_S)
    assert ran == [1]
    assert command.label == "mine"
    with pytest.raises(ArgumentError, match="'inputs' was"):
        compute.submit(Custom(work()), inputs=[])
    with pytest.raises(ArgumentError, match="not object"):
        compute.submit(object())


def test_a_command_is_completed_when_its_device_is(device, monkeypatch):
    asked = []
    x = compute.buffer_zeros((2,), "f32")
    there = x.memory.device
    monkeypatch.setattr(there, "synchronize", lambda: asked.append(there))
    command = compute.submit(Custom(work(writes=[x.memory, x.memory])))
    compute.wait(command, PATIENCE_S)
    assert asked == [there]
