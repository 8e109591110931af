"""Reads ahead and writes behind in threads, so that decoding, filtering and encoding overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")
DEPTH = 4
"""The capacity of each queue."""
_LOOK_UP_S = 0.1


class Stopwatch:
    """Accumulates the time spent inside its `running` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


class _End:
    """Marks the end of a queue, with the error that caused it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextmanager
def read_ahead(items: Iterable[Item], watch: Stopwatch) -> Iterator[Iterator[Item]]:
    """Yields an iterator over the items, which are produced ahead in a thread."""
    queue: Queue[Item | _End] = Queue(DEPTH)
    stop = threading.Event()
    thread = threading.Thread(
        target=_fill, args=(items, queue, stop, watch), name="dala-read", daemon=True
    )
    thread.start()
    try:
        yield _taken(queue)
    finally:
        stop.set()
        thread.join()


def _fill(
    items: Iterable[Item], queue: Queue[Item | _End], stop: threading.Event, watch: Stopwatch
) -> None:
    end = _End(None)
    try:
        source = iter(items)
        while True:
            with watch.running():
                item = next(source, end)
            if item is end or not _put(queue, item, stop):
                break
    except BaseException as error:  # raised by the consumer of the queue
        end = _End(error)
    _put(queue, end, stop)


def _put(queue: Queue[Item | _End], item: Item | _End, stop: threading.Event) -> bool:
    """Returns whether the item was queued before the consumer stopped."""
    while not stop.is_set():
        try:
            queue.put(item, timeout=_LOOK_UP_S)
            return True
        except Full:
            continue
    return False


def _taken(queue: Queue[Item | _End]) -> Iterator[Item]:
    while True:
        item = queue.get()
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item


class WriteBehind(Generic[Item]):
    """Consumes items in a thread, in the order in which they were put.

    An error there is raised by the next `put`, or by `close`.
    """

    def __init__(self, consume: Callable[[Item], None], watch: Stopwatch) -> None:
        self._consume = consume
        self._watch = watch
        self._queue: Queue[Item | _End] = Queue(DEPTH)
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dala-write", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                item = self._queue.get(timeout=_LOOK_UP_S)
            except Empty:
                continue
            if isinstance(item, _End):
                return
            try:
                with self._watch.running():
                    self._consume(item)
            except BaseException as error:  # raised by the next put
                self._error = error
                self._stop.set()

    def put(self, item: Item) -> None:
        """Queues an item, waiting for room."""
        if not _put(self._queue, item, self._stop):
            self._raise()

    def close(self) -> None:
        """Waits until all items are consumed."""
        _put(self._queue, _End(None), self._stop)
        self._thread.join()
        self._raise()

    def abandon(self) -> None:
        """Drops the items that are still queued."""
        self._stop.set()
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
