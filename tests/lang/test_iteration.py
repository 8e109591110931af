"""Loops over tuples, returns inside loops, and reductions: each as Python itself computes it."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import KernelError, KernelTypeError
from dala.gpu import compute
from dala.runtime.kernels.kernel import from_source

TABLE = (0.5, -1.25, 3.0)
VALUES = [-7.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, 3.0, 8.0, 100.0]

SAME = {
    "a tuple of values": """
    for v in (x, x + 1.0, 3.0):
        total = total + v * v""",
    "a list, and a body that makes names": """
    for v in [1.0, 2.0]:
        square = v * v
        total = total + square""",
    "a constant from outside": """
    for v in TABLE:
        total = total * 2.0 + v""",
    "tuples of tuples": """
    for a, (b, c) in ((1.0, (x, 2.0)), (x, (3.0, x))):
        total = total + a * b - c""",
    "no items": """
    for v in ():
        total = total + v""",
    "enumerate": """
    for k, v in enumerate(TABLE):
        total = total + k * v * x""",
    "enumerate from a number": """
    for k, v in enumerate((x, 2.0), start=5):
        total = total + k * v""",
    "zip": """
    for a, b in zip(TABLE, (x, 1.0, x)):
        total = total + a * b""",
    "enumerate of zip, and a range beside a tuple": """
    for k, (a, b, n) in enumerate(zip(TABLE, (x, 1.0, x), range(4, 10, 2), strict=True), 1):
        total = total + k * a * b * n""",
    "break and continue": """
    for v in (1.0, 2.0, 4.0, 8.0):
        if v == 2.0:
            continue
        if total + v > x:
            break
        total = total + v""",
    "loops within loops": """
    for a in (1.0, 2.0):
        for k in range(3):
            for b in TABLE:
                if b * k > x:
                    break
                total = total + a * b + k""",
    "a while around a tuple": """
    n = 0
    while total < x:
        n = n + 1
        if n > 20:
            break
        for v in (0.5, 0.25):
            total = total + v""",
    "return in a for": """
    for k in range(10):
        total = total + 0.5
        if total > x:
            return total * 10.0""",
    "return in a while": """
    while total < 6.0:
        total = total + 1.5
        if total > x:
            return -total""",
    "return in a loop over a tuple": """
    for v in TABLE:
        if v > x:
            return v
        total = total + v""",
    "return in nested loops": """
    for a in range(4):
        for b in (0.25, 2.0):
            for c in range(3):
                if a * b + c > x:
                    return a * 100.0 + b * 10.0 + c
            total = total + b""",
    "returns in several loops, one after another": """
    for k in range(3):
        if k * 1.5 == x:
            return 5.0
    for k in range(5):
        if k * 0.5 == x:
            return 7.0 + k
        if k > 3:
            break
        total = total + k""",
    "return with a break beside it": """
    for k in range(9):
        if k == 5:
            break
        if k > x:
            return k * 2.0
        total = k * 1.0""",
    "any and all": """
    if any(x > v for v in TABLE):
        total = total + 1.0
    if all(x > k - 2 for k in range(4)):
        total = total + 2.0
    if any(k * 0.5 == x for k in range(12) if k != 2):
        total = total + 4.0
    if all(x > a + b for a in TABLE for b in range(2)):
        total = total + 8.0
    if any(x > 1.0 for k in range(0)) or not all(x > 1.0 for k in range(0)):
        total = total + 16.0
    if all(x > 1.0 for v in ()) and not any(x > 1.0 for v in ()):
        total = total + 32.0
    if any((x > 2.0, x < -2.0)) and not all((x > 0.0, x > 50.0)):
        total = total + 64.0""",
    "sums and extremes over tuples": """
    total = sum(v * x for v in TABLE) + sum((x, 2.0, 3)) + sum(v for v in (1, 2)) + total
    total = total + max(v - x for v in TABLE) + min(a * b for a, b in zip(TABLE, (x, 1.0, x)))
    total = total + sum(v for v in TABLE if v > x)""",
}


def computed(text, values, dtype, out):
    """What a kernel of this text makes of the values."""
    array = np.array(values, {"f32": np.float32, "f64": np.float64, "u32": np.uint32}[dtype])
    made = compute.buffer_zeros(array.shape, out)
    compute.run_kernel(from_source("k", text), [compute.from_numpy(array)], made)
    return compute.read(made).tolist()


@pytest.mark.parametrize("name", SAME)
def test_a_loop_gives_what_python_gives(device, name):
    body = SAME[name].replace("TABLE", repr(TABLE))
    text = f"def k(x):\n    total = x * 0.0{body}\n    return total\n"
    names = {}
    exec(text, names)
    expected = [names["k"](value) for value in VALUES]
    assert computed(text, VALUES, "f32", "f32") == pytest.approx(expected, rel=1e-6)


def test_the_constants_of_a_decorated_kernel_are_gone_through(device):
    @dala.kernel
    def polynomial(x):
        total = 0.0
        for k, factor in enumerate(TABLE):
            total += factor * x**2 * k
        return total

    out = compute.buffer_zeros((3,), "f32")
    compute.run_kernel(polynomial, [compute.from_numpy(np.ones(3, np.float32))], out)
    assert compute.read(out).tolist() == [-1.25 + 6.0] * 3


def test_what_a_loop_returns_keeps_its_type(device):
    text = (
        "def k(x):\n    for n in range(3):\n        if x > u32(n):\n            return {}\n"
        "    return {}"
    )
    # Literals take the type of what they meet, inside a loop as after it.
    assert computed(text.format("7", "x"), [0, 1], "u32", "u32") == [0, 7]
    assert computed(text.format("x + 4000000000", "0"), [0, 1], "u32", "u32") == [0, 4000000001]
    assert computed(text.format("n", "-1"), [0, 1], "u32", "s32") == [-1, 0]
    assert computed(text.format("0.1", "x"), [0.0, 1.0], "f64", "f64") == [0.0, 0.1]


def test_pairs_and_conditions_come_out_of_loops_of_functions(device):
    @dala.function
    def found(x):
        for k in range(5):
            if x < k:
                return k, x * 2.0
        return -1, 0.0

    @dala.function
    def holds(x):
        for limit in (2.0, 4.0):
            if x == limit:
                return True
        return x > 5.0

    @dala.kernel
    def k(x):
        where, twice = found(x)
        return where + twice if holds(x) else where * 100.0

    out = compute.buffer_zeros((4,), "f32")
    compute.run_kernel(k, [compute.from_numpy(np.array([1, 2, 3, 9], np.float32))], out)
    assert compute.read(out).tolist() == [200.0, 7.0, 400.0, -1.0]


def test_what_functions_return_inside_a_loop_is_not_what_the_loop_returns(device):
    @dala.function
    def near(x, place):
        for step in (0.25, 0.5):
            if abs(x - place) < step:
                return step
        return 1.0

    @dala.kernel
    def first(x):
        for k in range(4):
            if near(x, dala.f32(k)) < 0.5:
                return k
        return -1

    @dala.kernel
    def along(x):
        found = dala.vec2(0.0)
        for k in range(4):
            found += near(x, dala.f32(k))
            if found.x >= 1.5:
                return dala.dot(found, dala.vec2(1.0, 10.0))
        return 0.0

    x = np.array([2.1, 0.4, 0.2, 9.0], np.float32)
    numbers = first(x)
    assert numbers.dtype == np.int32
    assert numbers.tolist() == [2, -1, 0, -1]
    assert along(x).tolist() == [22.0, 16.5, 24.75, 22.0]


def test_a_pixel_is_returned_from_a_loop_and_gone_through(device):
    @dala.kernel
    def k(image: dala.Image):
        for limit in (0.25, 0.5):
            if max(image.pixel.r, image.pixel.g) < limit:
                return dala.rgba(limit, 0.0, 0.0)
        brightest = 0.0
        for channel in image.pixel:
            brightest = max(brightest, channel)
        return dala.rgba(brightest, brightest, brightest)

    pixels = np.array([[[0.1, 0.2, 0.3], [0.4, 0.3, 0.9], [0.9, 0.1, 0.5]]], np.float32)
    out = compute.buffer_zeros(pixels.shape, "f32")
    compute.run_kernel(k, [compute.from_numpy(pixels)], out)
    assert compute.read(out).tolist() == [[[0.25, 0, 0], [0.5, 0, 0], [1, 1, 1]]]


def test_too_many_iterations_over_tuples_are_refused_with_both_numbers():
    text = (
        "def k(x):\n    t = 0.0\n    for a in T:\n        for b in T:\n            t += a * b\n"
        "    return t + x"
    ).replace("T", repr(tuple(range(50))))
    with pytest.raises(KernelError, match=r"2500 iterations.*at most 1024") as raised:
        from_source("k", text)
    assert "index the tuple: t[k]" in str(raised.value)
    assert "^" in str(raised.value)


def test_a_mistake_in_an_unrolled_body_is_pointed_at():
    with pytest.raises(KernelTypeError, match="300 does not fit u8") as raised:
        from_source(
            "k", "def k(x):\n    for a in (1, 300):\n        x = dala.u8(x) * a\n    return x"
        )
    assert "x = dala.u8(x) * a" in str(raised.value)
