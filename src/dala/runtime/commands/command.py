"""Commands: calls that run in the background and can be waited for.

Handing over and finishing work without a lock: each step that two threads could contend for is a
single operation of a list or a dict, which are atomic. So a finaliser, a signal handler or a forked
child never finds a lock of ours taken.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dala.base.record import record
from dala.devices.device import Memory
from dala.errors import ArgumentError, CommandCancelledError, CommandTimeoutError, DroppedError
from dala.runtime.commands.failures import fresh, write_down_frames
from dala.runtime.commands.hazards import Turn
from dala.runtime.commands.wakers import FOR_EVER_S, Wakers, checked_timeout

if TYPE_CHECKING:
    from dala.runtime.commands.queue import Queue

Status: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled"]

_endings = itertools.count(1)


@record
class Work:
    """A call that is to be made, and all the memory that it reads and writes."""

    call: Callable[[], None]
    reads: tuple[Memory, ...]
    writes: tuple[Memory, ...]
    label: str


class Command:
    """One submitted call: look at its `status`, `wait()` for it, or `await` it."""

    __slots__ = (
        "__weakref__",
        "_begin_by_s",
        "_ended",
        "_queue",
        "_turn",
        "_wakers",
        "_works",
        "error",
        "id",
        "label",
        "status",
    )

    id: int
    label: str
    status: Status
    error: BaseException | None

    def __init__(
        self, queue: Queue, number: int, work: Work, begin_by_s: float | None = None
    ) -> None:
        self.id = number
        self.label = work.label
        self.status = "pending"
        self.error = None
        self._queue = queue
        self._works = [work]  # whoever takes it out, to run or to cancel it, has claimed it
        self._wakers = Wakers()
        self._begin_by_s = begin_by_s
        self._turn: Turn | None = None
        self._ended = 0  # its place in the order in which commands end

    @property
    def done(self) -> bool:
        return self.status not in {"pending", "running"}

    def wait(self, timeout_s: float | None = None) -> None:
        """Return when the command is completed; raise its own error if it failed.

        When `timeout_s` is over first, that is a `CommandTimeoutError`, and the command goes on.
        """
        limit_s = checked_timeout(timeout_s)
        if not self.done and not self._sleep(limit_s):
            raise CommandTimeoutError(
                f"command {self.id} was still {self.status} after {limit_s:g} s."
            )
        self._raise_error()

    def cancel(self) -> bool:
        """Returns whether the command was still pending and now will never run."""
        return self._refuse(CommandCancelledError(f"command {self.id} was cancelled."))

    def add_done_callback(self, callback: Callable[[Command], object]) -> None:
        """Call `callback(command)` once it has ended, on the thread that ended it; or at once."""
        self._wakers.append(partial(callback, self))
        if self.done:  # perhaps it ended before the waker was in the list
            self.announce()

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done:
            yield from self._awaken().__await__()
        self._raise_error()

    def __repr__(self) -> str:
        return f"<Command {self.id} {self.label} {self.status}>"

    # -- waiting ---------------------------------------------------------------------------------

    def _sleep(self, limit_s: float = FOR_EVER_S) -> bool:
        """Returns whether it ended, however it did, before the time was over."""
        if self.done:
            return True
        self._check_wait()
        if self._begin_by_s is not None:
            # Who waits is told when it is too late, not when its turn comes.
            spell_s = max(0.0, self._begin_by_s - time.monotonic())
            if limit_s < 0 or spell_s < limit_s:
                if self._wakers.sleep(self._is_done, spell_s):
                    return True
                self._drop_if_late()
                limit_s = limit_s if limit_s < 0 else limit_s - spell_s
        return self._wakers.sleep(self._is_done, limit_s)

    async def _awaken(self) -> None:
        """Return when it has ended, however it did."""
        import asyncio

        timer = None
        if self._begin_by_s is not None:
            delay_s = self._begin_by_s - time.monotonic()
            timer = asyncio.get_running_loop().call_later(delay_s, self._drop_if_late)
        try:
            await self._wakers.awaken(self._is_done)
        finally:
            if timer is not None:
                timer.cancel()

    def _is_done(self) -> bool:
        return self.done

    def _check_wait(self) -> None:
        if self._queue.runs_here():
            raise ArgumentError(
                f"command {self.id} cannot be waited for by a command or a callback of its own "
                f"queue: it may run only after that has returned."
            )

    def _raise_error(self) -> None:
        if self.error is not None:
            raise fresh(self.error).with_traceback(None)

    # -- running: see hazards.Job ----------------------------------------------------------------

    def plan(self) -> tuple[Sequence[Memory], Sequence[Memory]] | None:
        try:
            work = self._works[0]
        except IndexError:
            return None
        return work.reads, work.writes

    def execute(self) -> None:
        if self._drop_if_late():
            return
        try:
            work = self._works.pop()
        except IndexError:
            return  # cancelled
        self.status = "running"
        try:
            work.call()
            for device in {memory.device for memory in work.writes}:
                device.synchronize()  # a GPU computes on after a call
        except BaseException as error:
            del work
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            write_down_frames(error, f"Raised inside command {self.id} ({self.label}):\n")
            self._end("failed", error)
        else:
            del work
            self._end("completed", None)

    def is_awaited(self) -> bool:
        return bool(self._wakers)

    def announce(self) -> None:
        if self.done:  # else somebody is about to cancel it, and will tell
            self._wakers.wake(self)

    # -- ending ----------------------------------------------------------------------------------

    def _refuse(self, error: CommandCancelledError) -> bool:
        """End it before it begins; whether that was still possible."""
        try:
            self._works.pop()
        except IndexError:
            return False
        turn = self._turn
        self._end("cancelled", error)
        if turn is not None:
            self._queue.withdraw(turn)
        self.announce()
        return True

    def _drop_if_late(self) -> bool:
        if self._begin_by_s is None or time.monotonic() < self._begin_by_s:
            return False
        return self._refuse(
            DroppedError(
                f"command {self.id} ({self.label}) was dropped: its deadline passed before it had "
                f"begun.",
                late=True,
            )
        )

    def _end(self, status: Status, error: BaseException | None) -> None:
        self.error = error
        self._turn = None
        self._ended = next(_endings)
        self.status = status
        self._queue.remember(self)

    def _abandon(self) -> None:
        """End a command in a forked child, where nobody runs it and no waiter of it exists."""
        self._works.clear()
        self._wakers.clear()
        self._turn = None
        self.error = CommandCancelledError(f"command {self.id} stayed in the process that forked.")
        self.status = "cancelled"
