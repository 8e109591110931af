"""Commands: what it costs to have work done in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable

from benchmarks.harness import Comparison, Duration, Row, repeats_for, seconds_per_call
from dala.gpu import compute

MANY = 10_000
FEW = 500


def submit_and_wait() -> Duration:
    x, out = compute.buffer([1.0, 2.0, 3.0], (3,), "f32"), compute.buffer_zeros((3,), "f32")

    def call() -> None:
        compute.submit(kernel="relu", inputs=[x], output=out).wait()

    call()
    repeats = repeats_for(call)
    return Duration("submit + wait, 3 elements", 60e-6, lambda: seconds_per_call(call, repeats))


def submit_beside_ping_pong() -> Comparison:
    """The least that it takes to have another thread do something, and to hear of it."""
    x, out = compute.buffer([1.0, 2.0, 3.0], (3,), "f32"), compute.buffer_zeros((3,), "f32")
    go, done = threading.Lock(), threading.Lock()
    go.acquire()
    done.acquire()

    def answer() -> None:
        while True:
            go.acquire()
            done.release()

    threading.Thread(target=answer, daemon=True).start()

    def peer() -> None:
        go.release()
        done.acquire()

    def ours() -> None:
        compute.submit(kernel="relu", inputs=[x], output=out).wait()

    return Comparison(
        "submit + wait : ping-pong between two threads",
        1.5,
        ours,
        peer,
        check=lambda: None,
        sample_s=0.02,
    )


def many_in_flight() -> Comparison:
    """As many commands each, so the ratio is that of the time per command."""
    x, out = compute.buffer([1.0, 2.0, 3.0], (3,), "f32"), compute.buffer_zeros((3,), "f32")

    def run(count: int) -> None:
        compute.wait_all(
            [compute.submit(kernel="relu", inputs=[x], output=out) for _ in range(count)]
        )

    def ours() -> None:
        run(MANY)

    def peer() -> None:
        for _ in range(MANY // FEW):
            run(FEW)

    return Comparison(
        f"submit, {MANY:,} in flight : {FEW} in flight",
        1.1,
        ours=ours,
        peer=peer,
        check=lambda: None,
    )


def streamed() -> Duration:
    x, out = compute.buffer([1.0, 2.0, 3.0], (3,), "f32"), compute.buffer_zeros((3,), "f32")
    stream = compute.stream(max_in_flight=4)

    def call() -> None:
        stream.submit(kernel="relu", inputs=[x], output=out)

    call()
    repeats = repeats_for(call)
    return Duration("stream.submit, 4 in flight", 100e-6, lambda: seconds_per_call(call, repeats))


ROWS: dict[str, Callable[[], Row]] = {
    "submit": submit_and_wait,
    "submit-ping-pong": submit_beside_ping_pong,
    "in-flight": many_in_flight,
    "stream": streamed,
}
