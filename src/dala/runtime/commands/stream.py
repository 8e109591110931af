"""Streams: commands that come one after another for ever, of which only so many are in flight."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from dala.errors import ArgumentError, ClosedError, DroppedError
from dala.runtime.commands.command import Command, Work
from dala.runtime.commands.run import CommandFields, Submittable, queue, work_of
from dala.runtime.commands.stream_statistics import Stats, Tally
from dala.runtime.commands.wakers import FOR_EVER_S, Wakers

if TYPE_CHECKING:
    from typing import Unpack

OnEnd = Callable[[Command], object]
WhenFull = Literal["block", "drop_oldest", "drop_newest"]

KEPT = 1000
"""Ended commands that wait to be taken by whoever iterates over the stream."""


class Stream:
    """Commands with a priority, a limit on how many are in flight, and a deadline.

    Iterating gives them in the order of their submission, each when it has ended, until the stream
    is closed: `async for command in stream`, or `for command in stream.results()`. Each is given
    once. If nobody takes them, the latest 1,000 are kept and earlier ones are forgotten.
    """

    def __init__(
        self,
        priority: int,
        max_in_flight: int,
        when_full: WhenFull,
        deadline_ms: float | None,
    ) -> None:
        self.priority = priority
        self.max_in_flight = max_in_flight
        self.when_full = when_full
        self.deadline_ms = deadline_ms
        self.closed = False
        self._in_flight: deque[Command] = deque()
        self._results: deque[Command] = deque()
        self._tally = Tally()
        self._changed = Wakers()
        # Held for moments only, never during a wait; its owner may come again, in a finaliser.
        self._lock = threading.RLock()
        _streams.add(self)

    def submit(
        self,
        command: Mapping[str, Any] | Submittable | None = None,
        /,
        **given: Unpack[CommandFields],
    ) -> Command:
        """Queue a command, given as `compute.submit` takes it.

        A full stream blocks until there is room, or drops a command, as it was told.
        """
        started_s = time.monotonic()
        begin_by_s = None if self.deadline_ms is None else started_s + self.deadline_ms / 1000
        work, on_end = work_of(command, given), partial(self._note_end, started_s)
        while (made := self._enter(work, begin_by_s, on_end)) is None:
            if self.when_full == "block":
                self._wait_for_room(begin_by_s)
            elif self.when_full == "drop_newest" or not self._drop_oldest():
                why = f"its stream had {self.max_in_flight} in flight."
                made = self._turn_away(work, why, on_end)
                break
        self._changed.wake(self)
        return made

    def results(self) -> Iterator[Command]:
        """Yields the commands in the order of their submission, each when it has ended."""
        while True:
            closed = self.closed
            command = self._take_result()
            if command is None:
                if closed:
                    return
                self._changed.sleep(self._has_results, FOR_EVER_S)
                continue
            try:
                command._sleep()
            except BaseException:
                self._results.appendleft(command)
                raise
            yield command

    async def __aiter__(self) -> AsyncIterator[Command]:
        while True:
            closed = self.closed
            command = self._take_result()
            if command is None:
                if closed:
                    return
                await self._changed.awaken(self._has_results)
                continue
            try:
                if not command.done:
                    await command._awaken()
            except BaseException:
                self._results.appendleft(command)
                raise
            yield command

    def stats(self) -> Stats:
        """Returns counts of commands submitted, completed, dropped; latency and throughput."""
        with self._lock:
            return self._tally.stats()

    def close(self, *, wait: bool = True) -> None:
        """Take no more commands; returns when those in flight have ended, unless told not to."""
        with self._lock:
            self.closed = True
            rest = list(self._in_flight)
        self._changed.wake(self)
        if wait:
            for command in rest:
                command._sleep()
            while not self._all_noted():
                self._changed.sleep(self._all_noted, FOR_EVER_S)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return (
            f"<Stream priority={self.priority} max_in_flight={self.max_in_flight} "
            f"when_full={self.when_full!r} deadline_ms={self.deadline_ms}{state}>"
        )

    # -- room ------------------------------------------------------------------------------------

    def _enter(self, work: Work, begin_by_s: float | None, on_end: OnEnd) -> Command | None:
        """Returns the command, in flight or too late for it; None if there is no room."""
        if begin_by_s is not None:
            for command in list(self._in_flight):
                command._drop_if_late()
            if time.monotonic() >= begin_by_s:
                why = "its deadline passed before there was room in its stream."
                return self._turn_away(work, why, on_end, late=True)
        with self._lock:
            self._check_open()
            if not self._has_room():
                return None
            made = queue().submit(work, self.priority, begin_by_s, on_end)
            self._in_flight.append(made)
            self._count(made)
            return made

    def _turn_away(self, work: Work, why: str, on_end: OnEnd, *, late: bool = False) -> Command:
        with self._lock:
            self._check_open()
            made = queue().turn_away(work, why, late=late, on_end=on_end)
            self._count(made)
            return made

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("the stream was closed: it takes no more commands.")

    def _count(self, made: Command) -> None:
        self._tally.settle()
        self._tally.submitted += 1
        self._results.append(made)
        if len(self._results) > KEPT + self.max_in_flight:
            self._results.popleft()
            self._tally.forgotten += 1

    def _has_room(self) -> bool:
        with self._lock:
            while self._in_flight and self._in_flight[0].done:
                self._in_flight.popleft()
            if len(self._in_flight) >= self.max_in_flight:  # some may have overtaken the first
                self._in_flight = deque(each for each in self._in_flight if not each.done)
            return len(self._in_flight) < self.max_in_flight

    def _may_enter(self) -> bool:
        return self.closed or self._has_room()

    def _drop_oldest(self) -> bool:
        """Drop the oldest that has not begun; whether there was one, or room without that."""
        for command in list(self._in_flight):
            error = DroppedError(
                f"command {command.id} ({command.label}) was dropped for a later one: its stream "
                f"had {self.max_in_flight} in flight."
            )
            if command._refuse(error):
                return True
        return self._has_room()

    def _wait_for_room(self, begin_by_s: float | None) -> None:
        if queue().runs_here():
            raise ArgumentError(
                "a full stream cannot be waited for by a command or a callback: what is in flight "
                "may end only after that has returned. Make it with when_full='drop_oldest'."
            )
        # Those in flight came earlier: their deadlines, which make room, pass before this one's.
        times = [each._begin_by_s for each in list(self._in_flight) if each.status == "pending"]
        known = [each for each in (*times, begin_by_s) if each is not None]
        limit_s = max(0.0, min(known) - time.monotonic()) if known else FOR_EVER_S
        self._changed.sleep(self._may_enter, limit_s)

    # -- results ---------------------------------------------------------------------------------

    def _has_results(self) -> bool:
        return self.closed or bool(self._results)

    def _take_result(self) -> Command | None:
        try:
            return self._results.popleft()
        except IndexError:
            return None

    def _note_end(self, started_s: float, command: Command) -> None:
        self._tally.put_down(command, started_s, time.monotonic())
        self._changed.wake(self)

    def _all_noted(self) -> bool:
        with self._lock:
            self._tally.settle()
            return self._tally.ended >= self._tally.submitted

    def _start_afresh(self) -> None:
        """In a forked child: whoever held the lock, or waited, is not there."""
        self._lock = threading.RLock()
        self._changed.clear()


def stream(
    priority: int = 0,
    max_in_flight: int = 2,
    when_full: WhenFull = "block",
    deadline_ms: float | None = None,
) -> Stream:
    """Returns a stream: commands of which at most `max_in_flight` are pending or running at a time.

    Among what is ready to run, the higher `priority` goes first. What is submitted to a full stream
    blocks the submitter (`"block"`), has the oldest command dropped that has not begun
    (`"drop_oldest"`), or is dropped itself (`"drop_newest"`, and if all others have begun). A
    command that has not begun `deadline_ms` after it was submitted is dropped too. A dropped
    command ends as `"cancelled"`, with a `DroppedError` that says why.

    >>> from dala.gpu import compute
    >>> x, y = compute.buffer([-1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    >>> with compute.stream(max_in_flight=3) as stream:
    ...     for _ in range(10):
    ...         command = stream.submit(kernel="relu", inputs=[x], output=y)
    >>> {command.status for command in stream.results()}
    {'completed'}
    >>> stream.stats().completed
    10
    """
    if not _is_whole(priority):
        raise ArgumentError(f"priority is {priority!r}: give an integer; higher goes first.")
    if not _is_whole(max_in_flight) or max_in_flight < 1:
        raise ArgumentError(f"max_in_flight is {max_in_flight!r}: give an integer from 1 on.")
    if when_full not in get_args(WhenFull):
        raise ArgumentError(
            f"when_full is {when_full!r}: give one of {', '.join(get_args(WhenFull))}."
        )
    if deadline_ms is not None and not (
        isinstance(deadline_ms, (int, float))
        and not isinstance(deadline_ms, bool)
        and 0 < deadline_ms < math.inf
    ):
        raise ArgumentError(
            f"deadline_ms is {deadline_ms!r}: give milliseconds, more than 0, or None."
        )
    return Stream(priority, max_in_flight, when_full, deadline_ms)


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in list(_streams):
        each._start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
