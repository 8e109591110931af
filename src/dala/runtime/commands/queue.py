"""The queue: gives commands their ids, has them run, and answers for them afterwards."""

from __future__ import annotations

import itertools
import operator
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue
from typing import SupportsIndex

from dala.errors import (
    ArgumentError,
    CommandTimeoutError,
    DeviceError,
    DroppedError,
    UnknownCommandError,
)
from dala.runtime.commands.command import Command, Status, Work
from dala.runtime.commands.hazards import Turn
from dala.runtime.commands.scheduler import Scheduler
from dala.runtime.commands.wakers import checked_timeout

REMEMBERED = 10_000


class Queue:
    """Runs work in an order that gives the bytes of running it as it was submitted."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._known: dict[int, Command] = {}
        self._finished: deque[int] = deque()
        self._scheduler = Scheduler()
        self._starting = threading.RLock()
        _queues.add(self)

    def submit(
        self,
        work: Work,
        priority: int = 0,
        begin_by_s: float | None = None,
        on_end: Callable[[Command], object] | None = None,
    ) -> Command:
        """Returns the command for the work; of those ready, higher priorities run first.

        `begin_by_s` is the time of `time.monotonic()` at which it is too late to begin, and
        `on_end` is called before all other callbacks.
        """
        if not self._scheduler.threads:
            self._start()
        command = self._make(work, begin_by_s, on_end)
        command._turn = turn = Turn(command, priority)
        self._scheduler.post(turn)
        return command

    def turn_away(
        self, work: Work, why: str, *, late: bool, on_end: Callable[[Command], object]
    ) -> Command:
        """Returns a command that was dropped before anything was done about it."""
        command = self._make(work, None, on_end)
        said = f"command {command.id} ({work.label}) was dropped: {why}"
        command._refuse(DroppedError(said, late=late))
        return command

    def _make(
        self,
        work: Work,
        begin_by_s: float | None,
        on_end: Callable[[Command], object] | None,
    ) -> Command:
        command = Command(self, next(self._ids), work, begin_by_s)
        if on_end is not None:
            command.add_done_callback(on_end)
        self._known[command.id] = command
        return command

    def poll(self, command: Command | SupportsIndex) -> Status:
        """Returns the status of a command, which is given itself or by its id."""
        return self.find(command).status

    def wait(self, command: Command | SupportsIndex, timeout_s: float | None = None) -> None:
        """Return when the command is completed; raise its own error if it failed."""
        self.find(command).wait(timeout_s)

    def wait_all(
        self, commands: Iterable[Command | SupportsIndex], timeout_s: float | None = None
    ) -> None:
        """Return when all have ended; raise the error of the first that did not complete."""
        limit_s = checked_timeout(timeout_s)
        found = self._find_all(commands)
        until_s = time.monotonic() + limit_s
        for command in reversed(found):  # most likely one sleep: the last one ends last
            if not command._sleep(limit_s if limit_s < 0 else max(0.0, until_s - time.monotonic())):
                raise _overdue(found, limit_s)
        for command in sorted(found, key=lambda each: each.id):
            command._raise_error()

    def as_completed(
        self, commands: Iterable[Command | SupportsIndex], timeout_s: float | None = None
    ) -> Iterator[Command]:
        """Returns each command when it has ended, in the order in which they do."""
        limit_s = checked_timeout(timeout_s)
        found = self._find_all(commands)
        for command in found:
            if not command.done:
                command._check_wait()
        return _as_completed(found, limit_s)

    def find(self, command: Command | SupportsIndex) -> Command:
        """Returns the command that is given itself or by its id."""
        if isinstance(command, Command):
            return command
        try:
            if isinstance(command, bool):
                raise TypeError
            number = operator.index(command)
        except TypeError:
            raise ArgumentError(
                f"{command!r} is no command: give what submit() returned, or its integer id."
            ) from None
        found = self._known.get(number)
        if found is None:
            raise UnknownCommandError(
                f"no command has the id {number}: it was never given out, or more than "
                f"{REMEMBERED:,} others have ended since."
            )
        return found

    def _find_all(self, commands: Iterable[Command | SupportsIndex]) -> list[Command]:
        if isinstance(commands, (Command, str)) or not isinstance(commands, Iterable):
            raise ArgumentError(
                f"commands is a list of commands or their ids, not {type(commands).__name__}: "
                f"write [command]."
            )
        return list(dict.fromkeys(self.find(command) for command in commands))

    # -- for commands ----------------------------------------------------------------------------

    def runs_here(self) -> bool:
        """Returns whether the caller is called by a command, or by a callback, of this queue."""
        return self._scheduler.runs_here()

    def withdraw(self, turn: Turn) -> None:
        """Have others not wait for a command that was cancelled."""
        self._scheduler.post(turn)

    def remember(self, command: Command) -> None:
        """Answer for a command that has ended, until enough others have ended too."""
        self._finished.append(command.id)
        if len(self._finished) > REMEMBERED:
            self._known.pop(self._finished.popleft(), None)

    # -- the process -----------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._scheduler.threads:
                return
            try:
                self._scheduler.start()
            except RuntimeError as error:
                raise DeviceError(f"no thread could be started for commands: {error}") from error

    def _start_afresh(self) -> None:
        self._scheduler = Scheduler()
        self._starting = threading.RLock()
        for command in list(self._known.values()):
            if not command.done:
                command._abandon()
                self._finished.append(command.id)

    def __del__(self) -> None:
        self._scheduler.stop()


_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for queue in list(_queues):
        queue._start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _as_completed(commands: list[Command], limit_s: float) -> Iterator[Command]:
    until_s = time.monotonic() + limit_s
    ended: SimpleQueue[Command] = SimpleQueue()
    early = sorted((each for each in commands if each.done), key=lambda each: each._ended)
    rest = set(commands) - set(early)
    for command in rest:
        command.add_done_callback(ended.put)
    yield from early
    while rest:
        wait_s = None if limit_s < 0 else max(0.0, until_s - time.monotonic())
        try:
            command = ended.get(timeout=wait_s)
        except Empty:
            raise _overdue(commands, limit_s) from None
        rest.remove(command)
        yield command


def _overdue(commands: list[Command], limit_s: float) -> CommandTimeoutError:
    rest = [str(command.id) for command in commands if not command.done]
    which = ", ".join(rest[:5]) + ", …" * (len(rest) > 5)
    return CommandTimeoutError(
        f"{len(rest)} of {len(commands)} commands had not ended after {limit_s:g} s: {which}."
    )
