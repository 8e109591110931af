"""Loops that would take minutes: Ctrl-C ends them, and all positions together have a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from dala.devices import CPU
from dala.devices.webgpu import runner as webgpu_runner
from dala.emit.wgsl import shader as wgsl
from dala.errors import KernelTimeoutError
from dala.gpu import compute
from dala.plan import watchdog

LOOPS = {
    "for": "def k(x, n: s32):\n for q in range(n):\n  x = x * 1.0001\n return x",
    "for with functions": """def k(x, n: s32):
 for q in range(n):
  x = dala.exp(dala.sin(x)) + dala.log(dala.abs(x) + dala.cos(x))
 return x""",
    "sum": "def k(x, n: s32):\n return x + sum(x * dala.f32(q) for q in range(n))",
    "max": "def k(x, n: s32):\n return max(x * dala.f32(q) for q in range(n))",
    "while": "def k(x, n: s32):\n while x == x and n > 0:\n  x = x + 0.0\n return x",
    "for in for": """def k(x, n: s32):
 for i in range(n):
  for j in range(7):
   x = x * 1.0001 + dala.f32(j)
 return x""",
}

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
from dala.gpu import compute
text, shape, n = sys.argv[1], tuple(map(int, sys.argv[2].split(","))), int(sys.argv[3])
kernel = compute.Kernel.register("k", text)
x = compute.from_numpy(np.ones(shape, np.float32))
out = compute.buffer_zeros(shape, "f32")
little = compute.buffer_zeros([min(size, 300) for size in shape], "f32")
compute.run_kernel(kernel, [little], little, {"n": 0})  # compiled by now
compute.run_kernel("fill", [], out, {"value": 5.0})
compute.synchronize()

def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    compute.run_kernel(kernel, [x], out, {"n": n})
    print("ended")
except KeyboardInterrupt:
    print("interrupted")
    sys.stdout.flush()
if os.environ["DALA_DEVICE"] == "cpu":
    print((compute.read(out) == 5.0).all())
    compute.run_kernel("fill", [], out, {"value": 3.0})
    print((compute.read(out) == 3.0).all())
"""

WAITS_S = 25
"""Much less than what any of them would take."""


def ran(text: str, shape: str, n: int, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, text, shape, str(n)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAITS_S,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends_a_loop_on_the_cpu_and_leaves_the_output(loop, threads):
    environment = {"DALA_DEVICE": "cpu", "DALA_THREADS": threads}
    said = ran(LOOPS[loop], "300,400", 2**31 - 1, **environment)
    assert said == ["interrupted", "True", "True"]


@pytest.mark.slow
def test_an_interrupt_ends_a_loop_at_one_position():
    said = ran(LOOPS["for"], "1", 2**31 - 1, DALA_DEVICE="cpu")
    assert said == ["interrupted", "True", "True"]


@pytest.mark.slow
def test_an_interrupt_is_heard_between_chunks_of_what_has_an_end():
    text = """def k(x, n: s32):
 i, j = dala.position(2)
 return sum(x[i, q] * x[q, j] + x[j, q] * x[q, i] for q in range(x.shape[1])) * dala.f32(n)"""
    said = ran(text, "4000,4000", 2, DALA_DEVICE="cpu")
    assert said[0] == "interrupted"
    assert said[2] == "True"


@pytest.mark.slow
def test_an_interrupt_is_heard_while_a_gpu_computes(webgpu):
    text = LOOPS["for with functions"]
    assert ran(text, "2000,2000", 60_000, DALA_DEVICE="webgpu") == ["interrupted"]


# -- signals with handlers of their own ----------------------------------------------------------

ALARM = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms here")


def run_with_alarm(handler, n: int) -> tuple[np.ndarray, BaseException | None]:
    """What a kernel leaves, and raises, where an alarm goes off while it runs."""
    kernel = compute.Kernel.register("alarmed", LOOPS["for"], replace=True)
    x, out = compute.from_numpy(np.ones(64, np.float32)), compute.buffer_zeros((64,), "f32")
    compute.run_kernel(kernel, [x], out, {"n": 1})
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    raised = None
    try:
        compute.run_kernel(kernel, [x], out, {"n": n})
    except OSError as error:
        raised = error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return compute.read(out), raised


@ALARM
def test_what_a_handler_raises_is_raised():
    def handler(*_):
        raise TimeoutError("it takes too long")

    with compute.device("cpu"):
        out, raised = run_with_alarm(handler, 2**31 - 1)
    assert isinstance(raised, TimeoutError)
    assert str(raised) == "it takes too long"
    assert raised.__traceback__ is not None
    assert (out == np.float32(1.0) * np.float32(1.0001)).all()


@ALARM
def test_a_handler_that_raises_nothing_ends_nothing():
    heard = []

    def handler(*_):
        heard.append(threading.current_thread())
        compute.run_kernel("relu", [small], small)  # a handler may compute, too

    with compute.device("cpu"):
        small = compute.from_numpy(np.ones(3, np.float32))
        out, raised = run_with_alarm(handler, 150_000_000)
    assert raised is None
    assert heard == [threading.main_thread()]
    assert np.isinf(out).all()


def test_another_thread_computes_what_it_is_asked():
    done = []

    def work():
        with compute.device("cpu"):
            x, out = compute.from_numpy(np.ones(8, np.float32)), compute.buffer_zeros((8,), "f32")
            kernel = compute.Kernel.register("aside", LOOPS["for"], replace=True)
            compute.run_kernel(kernel, [x], out, {"n": 1_000_000})
            done.append(compute.read(out)[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [np.inf]


# -- watchdog --------------------------------------------------------------------------------------


def count_up(iterations: int, shape: tuple[int, ...], name: str = "counting") -> np.ndarray:
    text = "def k(x, n: s32):\n for q in range(n):\n  x = x + 1\n return x"
    kernel = compute.Kernel.register(name, text, replace=True)
    x, out = compute.from_numpy(np.ones(shape, np.int32)), compute.buffer_zeros(shape, "s32")
    compute.run_kernel("fill", [], out, {"value": 7})
    try:
        compute.run_kernel(kernel, [x], out, {"n": iterations})
    except KernelTimeoutError:
        assert (compute.read(out) == 7).all()
        raise
    return compute.read(out)


@pytest.mark.parametrize("shape", [(1,), (100_000,), (700, 300), (3, 5, 40_000)])
def test_all_positions_together_have_a_limit(monkeypatch, shape):
    monkeypatch.setattr(watchdog, "TOTAL_LIMIT", 1 << 21)
    with compute.device("cpu"):
        assert (count_up(100, (4,)) == 101).all()
        with pytest.raises(KernelTimeoutError, match="all positions together took more"):
            count_up(1 << 22, shape)


def test_what_one_strip_leaves_of_its_turns_others_may_take(monkeypatch):
    iterations, rows, width = 10, 4000, 64
    monkeypatch.setattr(watchdog, "TOTAL_LIMIT", 1 << 25)
    text = """def k(x, n: s32):
 i, j = dala.position(2)
 s = x[i, 0]
 for q in range(n):
  s = s + x[(i + q) % 50, j]
 return s"""
    kernel = compute.Kernel.register("rows", text, replace=True)
    with compute.device("cpu"):
        x = compute.from_numpy(np.ones((rows, width), np.int32))
        out = compute.buffer_zeros((rows, width), "s32")
        for _ in range(3):  # each run has all of it
            compute.run_kernel(kernel, [x], out, {"n": iterations})
        assert (compute.read(out) == iterations + 1).all()


def test_a_dearer_turn_leaves_fewer_of_them():
    cheap, dear = (
        compute.Kernel.register("priced", LOOPS[name], replace=True)
        for name in ("for", "for with functions")
    )
    key = (("f32", (8,)), ("f32", (8,)))
    iterations = [
        kernel.prepared(CPU, key, {"n": 1})[0].total_iterations for kernel in (cheap, dear)
    ]
    assert iterations[0] > 10 * iterations[1] > 0


@pytest.mark.parametrize("iterations", [watchdog.SLICE - 1, watchdog.SLICE, 3 * watchdog.SLICE + 5])
@pytest.mark.parametrize("shape", [(1,), (37,), (5, 300)])
def test_a_loop_longer_than_a_slice_takes_every_turn(iterations, shape):
    with compute.device("cpu"):
        assert (count_up(iterations, shape) == iterations + 1).all()


REDUCTIONS = {
    "sum": ("sum(dala.f64(q) for q in range(n))", lambda n: n * (n - 1) / 2),
    "max": ("max(dala.f64(q % 1000003) for q in range(n))", lambda n: min(n - 1, 1000002)),
    "min": ("min(dala.f64(-q) for q in range(n))", lambda n: 1 - n),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("n", [0, 1, watchdog.SLICE + 1, 1_500_000])
def test_a_long_reduction_takes_every_term(name, n):
    text, want = REDUCTIONS[name]
    kernel = compute.Kernel.register("reducing", f"def k(x, n: s32):\n return {text}", replace=True)
    with compute.device("cpu"):
        x, out = compute.from_numpy(np.ones(5)), compute.buffer_zeros((5,), "f64")
        compute.run_kernel(kernel, [x], out, {"n": n})
        if n:
            assert (compute.read(out) == want(n)).all()


def test_a_while_longer_than_a_slice_takes_every_turn():
    text = "def k(x, n: s32):\n i = 0\n while i < n + x:\n  i += 1\n return i"
    kernel = compute.Kernel.register("while", text, replace=True)
    with compute.device("cpu"):
        x, out = (
            compute.from_numpy(np.arange(100, dtype=np.int32)),
            compute.buffer_zeros((100,), "s32"),
        )
        compute.run_kernel(kernel, [x], out, {"n": 100_000})
        assert compute.read(out).tolist() == list(range(100_000, 100_100))


@pytest.mark.parametrize(
    ("text", "shape", "watched"),
    [
        ("def k(x):\n return sum(x[i] for i in range(len(x)))", (1000,), False),
        ("def k(x):\n return sum(x[i] for i in range(len(x)))", (300_000,), True),
        ("def k(x):\n for i in range(100):\n  x = x + 1.0\n return x", (10,), False),
        ("def k(x):\n while x < 3.0:\n  x = x + 1.0\n return x", (10,), True),
        ("def k(x):\n return x + 1.0", (10,), False),
    ],
)
def test_only_loops_that_may_be_long_have_code_to_be_watched(text, shape, watched):
    kernel = compute.Kernel.register("watched", text, replace=True)
    key = (("f32", shape), ("f32", shape))
    runner, _ = kernel.prepared(CPU, key, {})
    assert runner.task.watched is watched
    assert ("refuel" in runner.explain()) is watched
    assert ("refuel" in kernel.explain()) is ("while" in text)


def test_a_gpu_stops_all_positions_when_together_they_took_too_much(webgpu, monkeypatch):
    """As devices do that do not break off loops by themselves, with a limit that is soon met."""
    monkeypatch.setattr(webgpu_runner, "loop_limit", lambda device: None)
    small = wgsl._WATCHDOG.replace(f">= {watchdog.MOST_SLICES}u", ">= 8u")
    assert small != wgsl._WATCHDOG
    text = "def k(x, n: s32):\n i = 0\n while i < n:\n  i += 1\n  x = x + 1\n return x"
    kernel = compute.Kernel.register("many", text, replace=True)
    x = compute.from_numpy(np.ones(500, np.int32))
    out = compute.buffer_zeros((500,), "s32")
    compute.run_kernel(kernel, [x], out, {"n": 2000})
    assert (compute.read(out) == 2001).all()
    monkeypatch.setattr(wgsl, "_WATCHDOG", small)
    kernel = compute.Kernel.register("few", text, replace=True)
    with pytest.raises(KernelTimeoutError, match="all positions together took more"):
        compute.run_kernel(kernel, [x], out, {"n": 2000})
    assert (compute.read(out) == 2001).all()
    compute.run_kernel(kernel, [x], out, {"n": 100})  # too short to be counted
    assert (compute.read(out) == 101).all()
