"""Work of libraries on the host that threads share: NumPy computes without holding the GIL."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context

from dala.devices.cpu.threads import thread_count

PARTS_PER_THREAD = 4
"""More parts than threads, so that a thread that is held up does not hold up the rest."""


def share(work: Callable[[slice], None], count: int, least: int = 1) -> None:
    """Runs the work on all parts of a count of things, each of at least so many of them."""
    threads = thread_count()
    size = max(least, -(-count // (PARTS_PER_THREAD * threads)))
    parts = [slice(first, min(first + size, count)) for first in range(0, count, size)]
    if threads == 1 or len(parts) == 1:
        for part in parts:
            work(part)
        return
    from concurrent.futures import ThreadPoolExecutor  # it cannot be imported at exit

    with ThreadPoolExecutor(min(threads, len(parts))) as pool:
        contexts = [copy_context() for _ in parts]  # NumPy's settings for errors are in it
        for done in [
            pool.submit(context.run, work, part)
            for context, part in zip(contexts, parts, strict=True)
        ]:
            done.result()
