"""Those who sleep until something has happened, woken without a lock.

Each step that two threads could contend for is a single operation of a list, which is atomic: so a
finaliser, a signal handler or a forked child never finds a lock of ours taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from dala.errors import ArgumentError

if TYPE_CHECKING:
    import asyncio

FOR_EVER_S = -1.0
"""How a lock is told to wait without an end."""


class Wakers(list[Callable[[], object]]):
    """Calls that are made once each, by whoever comes first to wake."""

    __slots__ = ()

    def wake(self, because_of: object) -> None:
        """Make every call that is here, and log those that fail."""
        for _ in range(len(self)):  # not those who come back at once to sleep again
            try:
                waker = self.pop(0)
            except IndexError:
                return
            try:
                waker()
            except Exception:
                import logging

                logging.getLogger("dala").exception("a callback of %r failed", because_of)

    def sleep(self, ready: Callable[[], bool], limit_s: float) -> bool:
        """Returns whether one is ready, or was woken, before the time is over."""
        asleep = threading.Lock()
        asleep.acquire()
        waker = asleep.release
        self.append(waker)
        try:
            # Perhaps it happened before the waker was in the list.
            return ready() or asleep.acquire(timeout=limit_s) or ready()
        finally:
            self.forget(waker)

    async def awaken(self, ready: Callable[[], bool]) -> None:
        """Return when one is ready, or was woken; the loop goes on meanwhile."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        waker = partial(_wake_loop, loop, future)
        self.append(waker)
        try:
            if not ready():
                await future
        finally:
            self.forget(waker)

    def forget(self, waker: Callable[[], object]) -> None:
        """Not make this call after all."""
        with suppress(ValueError):
            self.remove(waker)


def checked_timeout(timeout_s: float | None) -> float:
    """Returns the seconds to wait, as locks take them."""
    if timeout_s is None:
        return FOR_EVER_S
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not timeout_s >= 0:
        raise ArgumentError(f"timeout_s is {timeout_s!r}: give seconds, 0 or more, or None.")
    return min(float(timeout_s), threading.TIMEOUT_MAX)


def _wake_loop(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
        loop.call_soon_threadsafe(_settle, future)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
