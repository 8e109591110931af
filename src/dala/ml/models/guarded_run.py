"""Runs of ONNX Runtime that Ctrl-C ends, and the time that loops inside of a model may take.

While it computes, no line of Python is executed on its thread, so a signal would wait until it is
done. It looks between its nodes whether it is to stop: whoever started it waits beside it and says.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from dala.errors import KernelTimeoutError

LOOPS_LIMIT_S = 600.0
"""How long a run of a model with loops inside of it may take."""
BRIEF_S = 0.02
"""Who waits no longer than this need not be able to end it."""
MOST_KNOWN = 256


class GuardedRuns:
    """The runs of one session; those of shapes that were brief before are not waited for."""

    def __init__(self, model: str, has_loops: bool, new_options: Callable[[], Any]) -> None:
        self._model = model
        self._has_loops = has_loops
        self._new_options = new_options
        self._brief: dict[Hashable, None] = {}

    def run(self, compute: Callable[[Any], object], shapes: Hashable) -> None:
        """Calls `compute` with options of a run, which it is to be stopped by."""
        on_main = threading.current_thread() is threading.main_thread()
        if not self._has_loops and (shapes in self._brief or not on_main):
            compute(None)
            return
        start = time.perf_counter()
        self._wait_for(compute)
        if time.perf_counter() - start < BRIEF_S and len(self._brief) < MOST_KNOWN:
            self._brief[shapes] = None

    def _wait_for(self, compute: Callable[[Any], object]) -> None:
        options = self._new_options()
        raised: list[Exception] = []

        def work() -> None:
            try:
                compute(options)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=work, name=f"dala-{self._model}", daemon=True)
        thread.start()
        try:
            thread.join(LOOPS_LIMIT_S if self._has_loops else None)
        except BaseException:
            _stop(thread, options)
            raise
        if thread.is_alive():
            _stop(thread, options)
            raise KernelTimeoutError(
                f"{self._model}: the loops inside of it took more than {LOOPS_LIMIT_S:g} s, and "
                f"were stopped: give it inputs that end them earlier, or a model without."
            )
        if raised:
            raise raised[0]


def _stop(thread: threading.Thread, options: Any) -> None:
    """Has ONNX Runtime stop at its next node, and waits: it writes into the caller's memory."""
    options.terminate = True
    thread.join()
