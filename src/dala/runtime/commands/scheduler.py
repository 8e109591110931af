"""The threads that run commands: what is independent side by side, all else in order.

Callers only put a turn into a deque and a token into a queue, which are atomic. The books about who
waits for whom are kept by the threads that run the commands, and the lock around them is taken by
no other thread: a finaliser, a signal handler or an interrupted caller can neither find it taken
nor leave the books half-written.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from heapq import heapify, heappop, heappush
from queue import SimpleQueue

from dala.runtime.commands.hazards import FEWEST_KEPT, Hazards, Job, Turn

RUNNERS = 4
"""Commands that run at a time. One more thread keeps the books while all of these are busy."""

_here = threading.local()


class Scheduler:
    """Runs turns on a few threads, which are started when they are needed."""

    def __init__(self) -> None:
        self._news: deque[Turn] = deque()
        # The first thread is woken if it can be: it is still warm, and the others sleep on.
        self._first: SimpleQueue[bool] = SimpleQueue()
        self._others: SimpleQueue[bool] = SimpleQueue()
        self._first_runs = False
        self._books = threading.Lock()
        # Everything from here on belongs to whoever has the books.
        self._hazards = Hazards()
        self._ready: list[tuple[int, int, Turn]] = []
        self._withdrawn = 0  # of those that are ready
        self._admitted = 0
        self._running = 0
        self.threads: list[threading.Thread] = []

    def post(self, turn: Turn) -> None:
        """Bring a turn in; a second time, withdraw it."""
        self._news.append(turn)
        tokens = self._others if self._first_runs else self._first
        if not tokens.qsize():  # else somebody is on the way who will read this too
            tokens.put(True)

    def runs_here(self) -> bool:
        """Returns whether a command or a callback of this scheduler is calling."""
        return getattr(_here, "scheduler", None) is self

    def start(self) -> None:
        """Start one more thread."""
        # A daemon: the interpreter may exit while a command runs, and does not wait for it.
        first = not self.threads
        thread = threading.Thread(
            target=_serve, args=(self, first), name="dala-commands", daemon=True
        )
        self.threads.append(thread)
        try:
            thread.start()
        except BaseException:
            self.threads.remove(thread)
            raise

    def stop(self) -> None:
        """Let the threads end when they have nothing left to do."""
        self._first.put(False)
        for _ in range(RUNNERS):
            self._others.put(False)

    def serve(self, first: bool) -> None:
        """Run turns until told to stop."""
        tokens = self._first if first else self._others
        while tokens.get():
            found = self._next(first)
            while found is not None:
                turn, job = found
                job.execute()
                self._finish(turn, job.is_awaited())
                job.announce()
                del found, turn, job  # nobody else may have it any more, and the next may take long
                found = self._next(first, after_another=True)

    def _next(self, first: bool, *, after_another: bool = False) -> tuple[Turn, Job] | None:
        """Returns the most urgent turn that can run now, and what it is for."""
        with self._books:
            self._running -= after_another
            if first:
                self._first_runs = False
            self._read_news()
            while self._ready and self._running < RUNNERS:
                turn = heappop(self._ready)[2]
                if turn.over or turn.job is None:
                    self._withdrawn -= 1
                    continue
                self._running += 1
                if first:
                    self._first_runs = True
                self._call_for_help()
                return turn, turn.job
            return None

    def _call_for_help(self) -> None:
        """See to it that a thread is free, and have it look at what else can run."""
        if len(self.threads) <= self._running and len(self.threads) <= RUNNERS:
            with suppress(RuntimeError):  # the system gives no more threads: it goes on with these
                self.start()
        # News may have come for the first thread, which is about to run: nobody else knows of them.
        if self._news or (self._ready and self._running < RUNNERS):
            self._others.put(True)

    def _finish(self, turn: Turn, is_awaited: bool) -> None:
        with self._books:
            turn.job = None
            self._end(turn)
            if is_awaited and self._ready:
                self._others.put(True)  # who is told now may keep this thread for long

    # -- the books -------------------------------------------------------------------------------

    def _read_news(self) -> None:
        while self._news:
            turn = self._news.popleft()
            if turn.order:
                self._withdraw(turn)
            else:
                self._admit(turn)

    def _admit(self, turn: Turn) -> None:
        self._admitted += 1
        turn.order = self._admitted
        plan = turn.job.plan() if turn.job is not None else None
        if plan is None:
            turn.over = True
            return
        self._hazards.admit(turn, *plan)
        if not turn.waits:
            self._make_ready(turn)

    def _make_ready(self, turn: Turn) -> None:
        heappush(self._ready, (-turn.priority, turn.order, turn))

    def _end(self, turn: Turn) -> None:
        """The turn is over: those that waited for nothing else are ready."""
        ended = [turn]
        while ended:
            turn = ended.pop()
            turn.over = True
            for follower in turn.followers:
                follower.waits.discard(turn)
                if follower.waits:
                    continue
                if follower.job is None:
                    ended.append(follower)
                else:
                    self._make_ready(follower)
            turn.followers.clear()

    def _withdraw(self, turn: Turn) -> None:
        """Take a turn out that will not run: those after it wait for those before it."""
        if turn.over:
            return
        turn.job = None
        if not turn.waits:
            self._end(turn)
            self._withdrawn += 1
            if self._withdrawn > FEWEST_KEPT and 2 * self._withdrawn > len(self._ready):
                self._ready = [entry for entry in self._ready if not entry[2].over]
                heapify(self._ready)
                self._withdrawn = 0
            return
        for earlier in turn.waits:
            del earlier.followers[turn]
        for follower in turn.followers:
            follower.waits.discard(turn)
            follower.wait_for(turn.waits)
        turn.followers.clear()
        turn.over = True


def _serve(scheduler: Scheduler, first: bool) -> None:
    _here.scheduler = scheduler
    scheduler.serve(first)
