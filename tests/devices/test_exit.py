"""The end of a process while a thread that nobody waits for compiles kernels.

DALA_EXITS=1000 ./test tests/devices/test_exit.py tries it a thousand times on each device.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

EXITS = int(os.environ.get("DALA_EXITS", "6"))

COMPILING = """
import sys, threading, time
from dala.gpu import compute

x, out = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
inside = threading.Event()

def compile_for_ever():
    for number in range(1 << 30):
        lines = "".join(f"    y = dala.exp(y * {number}.0) + {i}.5\\n" for i in range(60))
        text = f"def k(x):\\n    y = x\\n{lines}    return y"
        kernel = compute.Kernel.register(f"k{number}", text)
        inside.set()
        compute.run_kernel(kernel, [x], out)

threading.Thread(target=compile_for_ever, daemon=True).start()
inside.wait()
time.sleep(float(sys.argv[1]))
sys.exit(7)
"""

INSIDE = """
import os, sys, threading, time
from dala.devices.cpu.exit_gate import GATE

inside = threading.Event()

def be_inside():
    with GATE:
        inside.set()
        time.sleep(float(sys.argv[1]))
        os.write(1, b"left")

threading.Thread(target=be_inside, daemon=True).start()
inside.wait()
sys.exit(7)
"""


def ended(program: str, seconds: float, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, str(seconds)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
def test_a_process_ends_as_it_was_told_while_a_thread_compiles(device):
    seed = 4
    print(f"{seed=}")
    draw = random.Random(seed)
    for _ in range(EXITS):
        done = ended(COMPILING, draw.random() * 0.4, DALA_DEVICE=device, DALA_CACHE_DIR="off")
        assert (done.returncode, done.stderr) == (7, "")


def test_a_process_waits_for_who_is_inside_of_the_gate():
    done = ended(INSIDE, 0.3)
    assert (done.returncode, done.stdout, done.stderr) == (7, "left", "")


@pytest.mark.slow
def test_a_process_does_not_wait_for_ever():
    done = ended(INSIDE, 3600)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


@pytest.mark.slow
def test_what_runs_at_the_very_end_compiles_and_other_threads_are_told_that_they_cannot():
    program = """
import atexit
def late():
    from dala import errors
    from dala.gpu import compute
    x = compute.buffer([1.0, 2.0], (2,), "f32")
    compute.run_kernel("relu", [x], x)
    print(compute.read_list(x))
    command = compute.submit(kernel="exp", inputs=[x], output=x)
    try:
        compute.wait(command, timeout=20)
    except errors.DeviceError as error:
        print(error)
atexit.register(late)
import dala.devices
"""
    done = ended(program, 0, DALA_DEVICE="cpu", DALA_CACHE_DIR="off")
    assert done.returncode == 0
    assert done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert first == "[1.0, 2.0]"
    assert rest == ["kernels are not compiled any more: the process is about to end."]
