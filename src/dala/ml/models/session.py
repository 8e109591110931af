"""Requests from several threads, put together into batches within a bound of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import current_device, using
from dala.errors import ArgumentError, ClosedError, DalaError
from dala.kernels.base.shapes import integer_of, number_within
from dala.ml.models.model import Model, require_model
from dala.ml.models.prediction import given_tensors
from dala.runtime.buffers.buffer import Buffer, from_dlpack

MOST_BATCH = 4096
LONGEST_DELAY_MS = 60_000.0


def session(model: Model, max_batch: int = 8, max_delay_ms: float = 5.0) -> Session:
    """Returns a session: threads ask it, and it runs the model for several of them at once.

    A request waits no longer than `max_delay_ms` for others, until there are `max_batch` together.
    Only what has the same shapes but for the first axis goes together, and only where the model
    leaves that axis open in all of its inputs and outputs; else requests run one by one.
    """
    return Session(model, max_batch, max_delay_ms)


@record
class _Request:
    inputs: Sequence[np.ndarray]
    key: tuple[Any, ...]
    """What has to be equal of requests that go together."""
    rows: int
    since_s: float
    answer: Future[dict[str, np.ndarray]]


class Session:
    """A model that several threads share; made by `session`, ended by `close` or `with`."""

    def __init__(self, model: Model, max_batch: int, max_delay_ms: float) -> None:
        self.model = require_model("session", model)
        self.max_batch = integer_of("session", "max_batch", max_batch)
        if not 1 <= self.max_batch <= MOST_BATCH:
            raise ArgumentError(
                f"session: max_batch is an integer from 1 to {MOST_BATCH}, not {max_batch!r}."
            )
        delay_ms = number_within("session", "max_delay_ms", max_delay_ms, 0, LONGEST_DELAY_MS)
        self._delay_s = delay_ms / 1000
        self.runs = 0
        """How often the model ran."""
        self._batches = all(
            item.shape is not None and item.shape and not isinstance(item.shape[0], int)
            for item in (*model.takes, *model.gives)
        )
        self._device = current_device()
        self._waiting: list[_Request] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="dala-session", daemon=True)
        self._thread.start()

    def submit(self, tensors: Any) -> Future[Any]:
        """Returns a future of what `predict` gives: arrays, of one input or several."""
        request = self._asked(tensors)
        answer: Future[Any] = Future()

        def give(done: Future[dict[str, np.ndarray]]) -> None:
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
            else:
                made = done.result()
                answer.set_result(made if len(made) > 1 else next(iter(made.values())))

        request.answer.add_done_callback(give)
        return answer

    def predict(self, tensors: Any) -> Any:
        """Returns what `predict` does, once it has been computed with what others asked for."""
        return self.submit(tensors).result()

    def __call__(self, image: Any, /, **options: Any) -> Any:
        """What the model sees in an image, as `model(image)` gives it."""
        from dala.ml.models.recognition import recognize

        with using(self._device):
            return recognize(self.model, image, options, run=self._run_for_image)

    def close(self) -> None:
        """Answer what was asked so far, and end; what is asked later is refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run_for_image(self, model: Model, given: Sequence[Any]) -> dict[str, Buffer]:
        made = self._asked([np.asarray(item) for item in given]).answer.result()
        return {name: from_dlpack(array) for name, array in made.items()}

    def _asked(self, tensors: Any) -> _Request:
        """Puts a request in line; refuses at once what the model does not take."""
        given = given_tensors(self.model, tensors)
        if any(isinstance(item, Buffer) for item in given):
            raise ArgumentError(
                f"{self.model.name}: a session takes arrays, of which it makes batches, not "
                f"buffers: give them to predict()."
            )
        inputs = [np.array(item, order="C") for item in given]  # the caller may change theirs
        self.model.check([(item.shape, item.dtype) for item in inputs])
        counts = {item.shape[0] if item.ndim else 0 for item in inputs}
        rows = counts.pop() if len(counts) == 1 else 0
        key = tuple((item.shape[1:], item.dtype.str) for item in inputs)
        request = _Request(inputs, key, rows, time.monotonic(), Future())
        with self._changed:
            if self._closed:
                raise ClosedError(f"{self.model.name}: this session was closed.")
            self._waiting.append(request)
            self._changed.notify_all()
        return request

    # -- in its own thread -----------------------------------------------------------------------

    def _serve(self) -> None:
        with using(self._device):
            while True:
                together = self._next()
                if not together:
                    return
                self._answer(together)

    def _next(self) -> list[_Request]:
        """The requests that are computed together next; none when all is done."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return []
                self._changed.wait()
            end_s = self._waiting[0].since_s + self._delay_s
            while True:
                together = self._fitting()
                left_s = end_s - time.monotonic()
                is_full = sum(item.rows for item in together) >= self.max_batch
                if is_full or left_s <= 0 or self._closed or not self._batches:
                    break
                self._changed.wait(left_s)
            taken = set(map(id, together))
            self._waiting = [item for item in self._waiting if id(item) not in taken]
            return together

    def _fitting(self) -> list[_Request]:
        """The first in line, and those after it that go with it, as many as there is room for."""
        first, *others = self._waiting
        together, rows = [first], first.rows
        if not self._batches or not first.rows:
            return together
        for item in others:
            if item.key == first.key and item.rows and rows + item.rows <= self.max_batch:
                together.append(item)
                rows += item.rows
        return together

    def _answer(self, together: Sequence[_Request]) -> None:
        if len(together) > 1:
            parts = self._run_together(together)
            if parts is not None:
                for request, part in zip(together, parts, strict=True):
                    request.answer.set_result(part)
                return
        for request in together:
            try:
                made = self._run(request.inputs)
            except BaseException as error:  # whoever asked raises it
                request.answer.set_exception(error)
            else:
                request.answer.set_result(made)

    def _run_together(self, together: Sequence[_Request]) -> list[dict[str, np.ndarray]] | None:
        """The outputs of each request; None where they have to be computed one by one.

        What one of them makes go wrong is not the fault of the others.
        """
        joined = [
            np.concatenate(items) for items in zip(*(r.inputs for r in together), strict=True)
        ]
        try:
            made = self._run(joined)
        except DalaError:
            return None
        counts = [request.rows for request in together]
        if any(not item.ndim or item.shape[0] != sum(counts) for item in made.values()):
            self._batches = False  # its outputs do not go with its inputs
            return None
        ends = np.cumsum(counts).tolist()
        return [
            {name: array[end - count : end].copy() for name, array in made.items()}
            for end, count in zip(ends, counts, strict=True)
        ]

    def _run(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        self.runs += 1
        return self.model.outputs(inputs)
