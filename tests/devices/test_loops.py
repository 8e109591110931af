"""Loops that a device would break off: what is computed is right, or there is an error.

Mesa's software GPU ends the loops of an invocation after 65,535 turns in all, without a word.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.devices import CPU
from dala.errors import KernelTimeoutError
from dala.gpu import compute


@pytest.fixture(params=["cpu", "webgpu", "webgpu:1"])
def each(request):
    """Every device that may be here, also the second way to one adapter."""
    if request.param not in [info["id"] for info in compute.devices()]:
        pytest.skip(f"there is no {request.param}")
    with compute.device(request.param):
        yield request.param


def right_or_refused(text, values, want, params=None):
    """Run a kernel; its output is as wanted, or it timed out and the output is as it was."""
    kernel = compute.Kernel.register("looping", text)
    compute.Kernel.unregister("looping")
    before = np.full(want.shape, 77, want.dtype)
    output = compute.from_numpy(before)
    try:
        compute.run_kernel(kernel, [compute.from_numpy(values)], output, params)
    except KernelTimeoutError:
        want = before
    assert np.array_equal(compute.read(output), want)


LOOPS = {
    "for": "def k(x, n: s32):\n for i in range(n):\n  x = x + 1.0\n return x",
    "while": "def k(x, n: s32):\n i = 0\n while i < n:\n  i = i + 1\n  x = x + 1.0\n return x",
    "sum": "def k(x, n: s32):\n return x + sum(x for i in range(n))",
    "for in while": """def k(x, n: s32):
 i = 0
 while i < n:
  i = i + 1000
  for j in range(1000):
   x = x + 1.0
 return x""",
    "while in for": """def k(x, n: s32):
 for i in range(n // 1000):
  j = 0
  while j < 1000:
   j = j + 1
   x = x + 1.0
 return x""",
}


@pytest.mark.parametrize("count", [1000, 60_000, 200_000])
@pytest.mark.parametrize("loop", LOOPS)
def test_17_a_long_loop_comes_to_its_end_or_is_an_error(each, loop, count):
    values = np.ones(5, np.float32)
    right_or_refused(LOOPS[loop], values, values + np.float32(count), {"n": count})


@pytest.mark.parametrize("turns", [10_000, 20_000])
def test_17_bytes_that_are_computed_together_come_to_their_end(each, turns):
    text = f"def k(x):\n s = 0\n for i in range({turns}):\n  s = s + s32(x)\n return s // {turns}"
    values = np.arange(1, 18, dtype=np.uint8)
    right_or_refused(text, values, values)


def test_17_positions_of_a_shared_row_come_to_their_end(each):
    text = """def k(x):
 least = min(x[i] for i in range(len(x)))
 s = 0.0
 for i in range(1000):
  s = s + x
 return s + least"""
    values = np.ones(32_768, np.float32)
    right_or_refused(text, values, np.full(values.shape, 1001, np.float32))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_17_additions_in_a_loop_are_all_made(each, dtype):
    if each == "webgpu:1" and dtype == "f8":
        pytest.skip("it may lack f64")
    text = "def k(x, out: Out):\n for i in range(20_000):\n  out.add(0, x)"
    values = np.ones(8, dtype)
    right_or_refused(text, values, np.full(1, 160_000 % 256 if dtype == "u1" else 160_000, dtype))


def test_17_a_step_is_taken_of_the_whole_of_a_wide_range(device):
    text = """def k(x, n: s64):
 s = x
 for i in range(s64(0), n, 1_073_741_824):
  s = s + 1
 return s"""
    values = np.zeros(3, np.int64)
    right_or_refused(text, values, values + 1024, {"n": 2**40})


LONG = {
    "beside one that never turns": """def k(x, nothing, n: s32):
 for i in range(nothing.shape[0]):
  for j in range(n):
   x = x + 1.0
 for i in range(n):
  for j in range(n):
   x = x + 1.0
 return x""",
    "downwards": """def k(x, nothing, n: s32):
 for i in range(131072, 0, -1):
  for j in range(131072):
   x = x + 1.0
 return x""",
}


@pytest.mark.parametrize("name", LONG)
def test_loops_that_may_take_too_long_are_known(name):
    text = LONG[name]
    kernel = compute.Kernel.register("looping", text)
    compute.Kernel.unregister("looping")
    key = (("f32", (2,)), ("f32", (0,)), ("f32", (2,)))
    runner, _ = kernel.prepared(CPU, key, {"n": 1})
    assert runner.task.may_not_terminate


def test_an_input_without_rows_reads_as_zeros_however_wide_it_is(device):
    @dala.kernel
    def totals(x, y):
        return x + sum(abs(y[k, k]) for k in range(y.shape[1])) + max(y[0, k] for k in range(9))

    x = np.arange(40, dtype=np.float32)
    for width in (9, 5000):
        assert np.array_equal(totals(x, np.zeros((0, width), np.float32)), x)
