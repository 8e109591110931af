"""Commands: calls that run in the background, one after another, and can be waited for.

Handing over and finishing work without a lock: each step that two threads could contend for is a
single operation of a list, a dict or a `SimpleQueue`, which are atomic. So a finaliser, a signal
handler or a forked child never finds a lock of ours taken.
"""

from __future__ import annotations

import copy
import itertools
import operator
import os
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

from dala.errors import (
    ArgumentError,
    CommandCancelledError,
    CommandTimeoutError,
    DeviceError,
    UnknownCommandError,
)

if TYPE_CHECKING:
    import asyncio

REMEMBERED = 10_000

Status: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]


class Command:
    """One submitted call: look at its `status`, `wait()` for it, or `await` it."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_queue",
        "_wakers",
        "error",
        "id",
        "status",
    )

    id: int
    status: Status
    error: BaseException | None

    def __init__(self, queue: Queue, number: int, call: Callable[[], None]) -> None:
        self.id = number
        self.status = "pending"
        self.error = None
        self._queue = queue
        self._calls = [call]  # whoever takes it out, to run or to cancel it, has claimed it
        self._wakers: list[Callable[[], object]] = []

    @property
    def done(self) -> bool:
        return self.status not in {"pending", "running"}

    def wait(self, timeout_s: float | None = None) -> None:
        """Return when the command is completed; raise its own error if it failed.

        When `timeout_s` is over first, that is a `CommandTimeoutError`, and the command goes on.
        """
        limit_s = _checked_timeout(timeout_s)
        if not self.done:
            self._sleep(limit_s)
        self._raise_error()

    def cancel(self) -> bool:
        """Whether the command was still pending and now will never run."""
        try:
            self._calls.pop()
        except IndexError:
            return False
        self._finish("cancelled", CommandCancelledError(f"command {self.id} was cancelled."))
        return True

    def add_done_callback(self, callback: Callable[[Command], object]) -> None:
        """Call `callback(command)` once it has ended, on the thread that ended it; or at once."""
        self._add_waker(partial(callback, self))

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done:
            import asyncio

            loop = asyncio.get_running_loop()
            future = loop.create_future()
            waker = partial(_wake_loop, loop, future)
            self._add_waker(waker)
            try:
                yield from future
            finally:
                self._remove_waker(waker)
        self._raise_error()

    def __repr__(self) -> str:
        return f"<Command {self.id} {self.status}>"

    def _sleep(self, limit_s: float) -> None:
        if threading.current_thread() is self._queue._thread:
            raise ArgumentError(
                f"command {self.id} cannot be waited for by a command or a callback of its own "
                f"queue: it runs only after that has returned."
            )
        asleep = threading.Lock()
        asleep.acquire()
        self._add_waker(asleep.release)
        if not asleep.acquire(timeout=limit_s):
            self._remove_waker(asleep.release)
            if not self.done:
                raise CommandTimeoutError(
                    f"command {self.id} was still {self.status} after {limit_s:g} s."
                )

    def _run(self) -> None:
        try:
            call = self._calls.pop()
        except IndexError:
            return  # cancelled
        self.status = "running"
        try:
            call()
        except BaseException as error:
            del call
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            _write_down_frames(error, f"Raised inside command {self.id}:\n")
            self._finish("failed", error)
        else:
            del call
            self._finish("completed", None)

    def _finish(self, status: Status, error: BaseException | None) -> None:
        self.error = error
        self.status = status
        self._queue._remember(self)
        self._wake()

    def _abandon(self) -> None:
        """End a command in a forked child, where nobody runs it and no waiter of it exists."""
        self._calls.clear()
        self._wakers.clear()
        self.error = CommandCancelledError(f"command {self.id} stayed in the process that forked.")
        self.status = "cancelled"

    def _add_waker(self, waker: Callable[[], object]) -> None:
        self._wakers.append(waker)
        if self.done:  # perhaps it ended before the waker was in the list
            self._wake()

    def _remove_waker(self, waker: Callable[[], object]) -> None:
        with suppress(ValueError):
            self._wakers.remove(waker)

    def _wake(self) -> None:
        while True:
            try:
                waker = self._wakers.pop(0)
            except IndexError:
                return
            try:
                waker()
            except Exception:
                import logging

                logging.getLogger("dala").exception("a callback of %r failed", self)

    def _raise_error(self) -> None:
        if self.error is not None:
            raise _fresh(self.error).with_traceback(None)


class Queue:
    """Runs calls one after another, in the order of their submission, on a thread of its own."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._inbox: SimpleQueue[Command | None] = SimpleQueue()
        self._known: dict[int, Command] = {}
        self._finished: deque[int] = deque()
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        _queues.add(self)

    def submit(self, call: Callable[[], None]) -> Command:
        """The command that will run `call` after all that were submitted before it."""
        if self._thread is None:
            self._start()
        command = Command(self, next(self._ids), call)
        self._known[command.id] = command
        self._inbox.put(command)
        return command

    def poll(self, command: Command | int) -> Status:
        """The status of a command, which is given itself or by its id."""
        return self._find(command).status

    def wait(self, command: Command | int, timeout_s: float | None = None) -> None:
        """Return when the command is completed; raise its own error if it failed."""
        self._find(command).wait(timeout_s)

    def _find(self, command: Command | SupportsIndex) -> Command:
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

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            # A daemon: the interpreter may exit while a command runs, and does not wait for it.
            thread = threading.Thread(
                target=_work, args=(self._inbox,), name="dala-commands", daemon=True
            )
            self._thread = thread
            try:
                thread.start()
            except RuntimeError as error:
                self._thread = None
                raise DeviceError(f"no thread could be started for commands: {error}") from error

    def _remember(self, command: Command) -> None:
        self._finished.append(command.id)
        if len(self._finished) > REMEMBERED:
            self._known.pop(self._finished.popleft(), None)

    def _start_afresh(self) -> None:
        self._inbox = SimpleQueue()
        self._starting = threading.RLock()
        self._thread = None
        for command in list(self._known.values()):
            if not command.done:
                command._abandon()
                self._finished.append(command.id)

    def __del__(self) -> None:
        self._inbox.put(None)


_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for queue in list(_queues):
        queue._start_afresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _work(inbox: SimpleQueue[Command | None]) -> None:
    # It holds the inbox, not the queue: a queue that nobody has any more sends None and ends this.
    while (command := inbox.get()) is not None:
        command._run()
        del command


def _checked_timeout(timeout_s: float | None) -> float:
    if timeout_s is None:
        return -1.0  # how a lock is told to wait for ever
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s >= 0:
        raise ArgumentError(f"timeout_s is {timeout_s!r}: give seconds, 0 or more, or None.")
    return min(float(timeout_s), threading.TIMEOUT_MAX)


def _wake_loop(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
        loop.call_soon_threadsafe(_settle, future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _write_down_frames(error: BaseException, heading: str) -> None:
    """Turn the traceback into a note of the error.

    A command is remembered for long, and its error's frames, which hold on to their functions,
    would keep every buffer alive that was used there.
    """
    with suppress(Exception):  # an error whose own methods fail must not end the worker
        error.add_note(heading + "".join(traceback.format_exception(error)))
    chain, seen = [error], {id(error)}
    while chain:
        link = chain.pop()
        link.__traceback__ = None
        for earlier in (link.__cause__, link.__context__):
            if earlier is not None and id(earlier) not in seen:
                seen.add(id(earlier))
                chain.append(earlier)


def _fresh(error: BaseException) -> BaseException:
    """A copy to raise, for raising adds the frames of whoever waits, with all that they hold."""
    try:
        fresh = copy.copy(error)
        if type(fresh) is not type(error) or str(fresh) != str(error):
            return error
    except Exception:
        return error
    fresh.__cause__ = error.__cause__
    fresh.__context__ = error.__context__
    fresh.__suppress_context__ = error.__suppress_context__
    return fresh
