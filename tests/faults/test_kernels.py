"""Faults 9 to 17: kernels that are wrong, and kernels that do what no kernel should."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute

REFUSED = {
    "try": "def k(x):\n    try:\n        return x\n    except ValueError:\n        return 0.0",
    "lambda": "def k(x):\n    return (lambda y: y)(x)",
    "recursion": "def k(x):\n    return k(x)",
    "call": "def k(x):\n    return print(x)",
    "text": "def k(x):\n    return 'x'",
    "comprehension": "def k(x):\n    return [y for y in x]",
    "with": "def k(x):\n    with x:\n        return x",
    "import": "def k(x):\n    import math\n    return x",
    "nested def": "def k(x):\n    def f(y):\n        return y\n    return f(x)",
    "slice": "def k(x):\n    return x[1:2]",
    "global": "def k(x):\n    global y\n    return x",
    "unknown name": "def k(x):\n    return expp(x)",
    "no return": "def k(x):\n    y = x",
}


@pytest.mark.parametrize("what", REFUSED)
def test_09_what_is_not_in_the_language_is_refused_with_a_caret(what):
    with pytest.raises(errors.KernelSyntaxError) as caught:
        compute.Kernel.register("refused", REFUSED[what])
    text = str(caught.value)
    assert "<kernel refused>" in text
    assert "^" in text
    assert "line " in text
    assert "refused" not in compute.Kernel.list()


def test_09_no_device_is_needed_to_find_a_mistake():
    program = (
        "import sys\nfrom dala import errors\nfrom dala.gpu import compute\n"
        "try:\n    compute.Kernel.register('k', 'def k(x): return [x]')\n"
        "except errors.KernelError:\n    print('llvmlite' in sys.modules)\n"
    )
    done = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert done.strip() == "False"


def test_10_no_source_to_be_had_is_said_with_advice():
    names: dict = {}
    exec("def made(x):\n    return x", names)
    with pytest.raises(errors.KernelSourceError, match=r"Kernel\.register"):
        dala.kernel(names["made"])


@dala.kernel
def write_far(x, where: dala.s64, out: dala.Out):
    (i,) = dala.position(1)
    out[i] = x
    out[where + i] = 99.0


@pytest.mark.parametrize("where", [5, -1, -(2**31), 2**31, 2**31 - 1, -(2**63), 2**62])
def test_11_a_write_outside_is_skipped_and_its_neighbors_are_intact(device, where):
    guard = np.full(15, 7.0, np.float32)
    out = compute.from_dlpack(guard[5:10])
    x = compute.buffer([1.0], (1,), "f32")
    compute.run_kernel(write_far, [x], out, {"where": where})
    assert guard[:5].tolist() == [7.0] * 5
    assert guard[10:].tolist() == [7.0] * 5
    assert compute.read_list(out) == [1.0, 0.0, 0.0, 0.0, 0.0]


BORDERS = {
    "clamp": lambda i, n: min(max(i, 0), n - 1),
    "wrap": lambda i, n: i % n,
    "reflect": lambda i, n: min(i % (2 * n), 2 * n - 1 - i % (2 * n)),
    "mirror": lambda i, n: min(i % (2 * n - 2), 2 * n - 2 - i % (2 * n - 2)) if n > 1 else 0,
    "zero": lambda i, n: i if 0 <= i < n else None,
}


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_12_a_read_outside_follows_the_border_rule(device, border, count):
    source = "def far(x, by: s64):\n    (i,) = position(1)\n    return x[i + by]"
    kernel = compute.Kernel.register("far", source, border=border, replace=True)
    values = np.arange(1.0, count + 1, dtype=np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((3,), "f32")
    for by in (0, -1, count, count + 1, -7, 2**31, -(2**31), 2**40 + 3):
        compute.run_kernel(kernel, [x], out, {"by": by})
        places = [BORDERS[border](i + by, count) for i in range(3)]
        assert compute.read_list(out) == [0.0 if p is None else values[p] for p in places], by
    compute.Kernel.unregister("far")


@pytest.mark.parametrize("dtype", ["s32", "s64", "u32", "u8"])
def test_13_division_by_zero_overflow_and_wide_shifts_are_defined(device, dtype):
    limits = np.iinfo(compute.buffer_zeros((1,), dtype)._exported.dtype)
    a = np.array([7, limits.min, limits.min, limits.max, 1, 5], limits.dtype)
    b = np.array([0, -1 if limits.min else 0, 0, 2, limits.bits, limits.bits + 1], limits.dtype)
    x, y = compute.from_numpy(a), compute.from_numpy(b)
    found = {}
    for name, text in {"div": "x // y", "mod": "x % y", "shl": "x << y", "shr": "x >> y"}.items():
        kernel = compute.Kernel.register(
            "defined", f"def k(x, y):\n    return {text}", replace=True
        )
        out = compute.buffer_zeros((6,), dtype)
        compute.run_kernel(kernel, [x, y], out)
        found[name] = compute.read_list(out)
    compute.Kernel.unregister("defined")
    assert found["div"][0] == found["mod"][0] == found["div"][2] == found["mod"][2] == 0
    if limits.min:
        assert found["div"][1] == limits.min
        assert found["mod"][1] == 0
    assert found["div"][3] == limits.max // 2
    assert (found["shl"][4], found["shl"][5]) == (1, 10)
    assert (found["shr"][4], found["shr"][5]) == (1, 2)


def test_14_nan_infinity_and_overflow_convert_as_defined(device):
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.5, 3.5, -2.5, 255.5], np.float32)
    x = compute.from_numpy(values)
    for dtype in ("s32", "u32", "s64", "u8"):
        out = compute.buffer_zeros(values.shape, dtype)
        compute.run_kernel(CAST, [x], out)
        low, high = (np.iinfo(np.asarray(out).dtype).min, np.iinfo(np.asarray(out).dtype).max)
        negative = -2 if low else 0
        last = min(high, 256)
        assert compute.read_list(out) == [0, high, low, high, low, 2, 4, negative, last]


@dala.kernel
def CAST(x):
    return x


@pytest.mark.parametrize(
    "name", ["main", "array", "é", "out", "fast", "entry", "i32", "dala_strip"]
)
def test_15_hostile_names_work(device, name):
    source = f'def {name}({name}_, in0, array, {name}2: f32):\n    """*/ %x = "{{\\\\n"""\n'
    source += f"    main = {name}_ + array\n    return main * {name}2 + in0\n"
    kernel = compute.Kernel.register(f"hostile {name} */ \n %", source)
    x = compute.buffer([1.0, 2.0], (2,), "f32")
    out = compute.buffer_zeros((2,), "f32")
    compute.run_kernel(kernel, [x, x, x], out, {f"{name}2": 10.0})
    assert compute.read_list(out) == [21.0, 42.0]
    compute.Kernel.unregister(f"hostile {name} */ \n %")


@pytest.mark.parametrize("condition", ["x == x", "True", "x * 0.0 < 1.0"])
def test_17_an_endless_loop_times_out_and_leaves_the_output(device, condition):
    source = f"def endless(x):\n    while {condition}:\n        x = x + 1.0\n    return x"
    kernel = compute.Kernel.register("endless", source, replace=True)
    x, out = compute.buffer([1.0], (1,), "f32"), compute.buffer([5.0], (1,), "f32")
    with pytest.raises(errors.KernelTimeoutError, match="endless"):
        compute.run_kernel(kernel, [x], out)
    assert compute.read_list(out) == [5.0]
    compute.run_kernel("elementwise_add", [x, x], out)
    assert compute.read_list(out) == [2.0]
    compute.Kernel.unregister("endless")
