"""Functions of the language on every device: hyperbolic ones, roots, remainders, and bits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dala
from dala.devices.cpu.device import CPU
from dala.errors import KernelTypeError
from dala.gpu import compute
from dala.ir.types import DTYPES
from dala.runtime.kernels.kernel import from_source

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, at the edges

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.499999, 1.0000001, 2.0, 3.7]
ONE = {
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
}
BITS = {
    "popcount": lambda word, width: word.bit_count(),
    "clz": lambda word, width: width - word.bit_length(),
    "reverse_bits": lambda word, width: int(f"{word:0{width}b}"[::-1], 2),
}
INTEGERS = ["s32", "s64", "u32", "u8"]


def run(text, *arrays, dtype=None, params=None):
    out = compute.buffer_zeros(arrays[0].shape, dtype or arrays[0].dtype)
    compute.run_kernel(from_source("k", text), [*map(compute.from_numpy, arrays)], out, params)
    return compute.read(out)


def numbers(dtype):
    """Normal numbers of all sizes and both signs: a device may take others for 0."""
    kind = DTYPES[dtype].numpy
    info, rng = np.finfo(kind), np.random.default_rng(3)
    wide = np.exp2(rng.uniform(info.minexp / 3 + 1, info.maxexp - 1, 500)) * rng.choice([-1, 1])
    return np.concatenate([SPECIAL, wide, rng.normal(0, 3, 2000)]).astype(kind)


def assert_near(got, true, ulps):
    """Compares with values computed in a wider type."""
    expected = true.astype(got.dtype)
    near = ulps * np.finfo(got.dtype).eps
    assert np.allclose(got, expected, rtol=near, atol=np.finfo(got.dtype).tiny, equal_nan=True)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ONE)
def test_a_function_gives_on_every_device_what_numpy_gives(device, name, dtype):
    x = numbers(dtype)
    got = run(f"def k(x):\n    return dala.{name}(x)", x)
    assert_near(got, ONE[name](x.astype(np.longdouble)), ulps=8)


def test_fma_rounds_once_where_the_processor_can_and_stays_close_elsewhere(device):
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=999).astype(np.float32) for _ in range(2))
    c = -(a * b)  # all that is left is what the product lost
    got = run("def k(a, b, c):\n    return dala.fma(a, b, c)", a, b, c)
    exact = (a.astype(float) * b + c).astype(np.float32)
    assert np.count_nonzero(exact) > 900
    assert np.abs(got).max() <= np.abs(exact).max()
    if device == "cpu" and CPU.compiler.features.get("fma"):
        assert np.array_equal(got, exact)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_hypot_and_fmod_give_on_every_device_what_numpy_gives(device, dtype):
    x = numbers(dtype)
    y = np.random.default_rng(4).permutation(x)
    assert_near(run("def k(x, y):\n    return hypot(x, y)", x, y), np.hypot(x, y), ulps=4)
    assert_near(run("def k(x, y):\n    return fmod(x, y)", x, y), np.fmod(x, y), ulps=0)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_ldexp_rounds_once_wherever_the_result_lies(dtype):
    kind = DTYPES[dtype].numpy
    info, rng = np.finfo(kind), np.random.default_rng(5)
    x = np.concatenate([SPECIAL, info.max * rng.uniform(-1, 1, 500), rng.normal(0, 1, 3000)])
    x = np.concatenate([x, rng.integers(1, 1 << 20, 500) * info.smallest_subnormal]).astype(kind)
    n = rng.integers(2 * info.minexp - 60, 2 * info.maxexp + 60, x.shape).astype(np.int32)
    got, expected = run("def k(x, n):\n    return ldexp(x, n)", x, n), np.ldexp(x, n)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("power", INTEGERS)
def test_ldexp_takes_every_integer_type_and_any_size_of_it(device, power):
    kind = DTYPES[power]
    n = np.array([0, 1, 5, 100, kind.highest, kind.lowest], kind.numpy)
    x = np.full(n.shape, -1.5, np.float32)
    got = run("def k(x, n):\n    return dala.ldexp(x, n)", x, n)
    assert got.tolist() == [
        *(-1.5 * 2.0 ** int(item) if abs(int(item)) < 128 else -INF for item in n[:5]),
        -0.0 if kind.lowest else -1.5,
    ]


def test_ldexp_of_a_power_that_is_no_integer_names_both():
    with pytest.raises(KernelTypeError, match=r"a f32 value and the number 0\.5") as raised:
        run("def k(x):\n    return ldexp(x, 0.5)", np.ones(2, np.float32))
    assert "^" in str(raised.value)
    assert "x * dala.exp2(y)" in str(raised.value)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", BITS)
def test_bits_are_counted_and_reversed_in_the_width_of_their_type(device, name, dtype):
    kind = DTYPES[dtype]
    rng = np.random.default_rng(6)
    ends = [0, 1, 2, 3, kind.highest, kind.highest - 1, kind.lowest]
    x = np.array([*ends, *(1 << k for k in range(kind.bits - 1))], kind.numpy)
    x = np.concatenate([x, rng.integers(kind.lowest, kind.highest, 300, kind.numpy)])
    words = [int(item) & ((1 << kind.bits) - 1) for item in x]
    expected = np.array([BITS[name](word, kind.bits) for word in words], f"u{kind.numpy.itemsize}")
    got = run(f"def k(x):\n    return dala.{name}(x)", x)
    assert np.array_equal(got, expected.view(kind.numpy))


@pytest.mark.parametrize("name", BITS)
def test_bits_of_a_float_are_refused_at_their_line(name):
    with pytest.raises(KernelTypeError, match=rf"`{name}` does not take a f32 value") as raised:
        run(f"def k(x):\n    return {name}(x)", np.ones(2, np.float32))
    assert "^" in str(raised.value)


def test_pythons_own_functions_of_math_mean_the_same(device):
    @dala.kernel
    def python(x):
        return math.hypot(math.sinh(x), math.cbrt(x)) + math.fmod(x, 0.3) + math.ldexp(x, 3)

    @dala.kernel
    def language(x):
        return dala.hypot(dala.sinh(x), dala.cbrt(x)) + dala.fmod(x, 0.3) + dala.ldexp(x, 3)

    x = np.linspace(-3, 3, 50, dtype=np.float32)
    results = []
    for kernel in (python, language):
        out = compute.buffer_zeros(x.shape, "f32")
        compute.run_kernel(kernel, [compute.from_numpy(x)], out)
        results.append(compute.read(out))
    expected = np.hypot(np.sinh(x), np.cbrt(x)) + np.fmod(x, np.float32(0.3)) + 8 * x
    assert np.array_equal(*results)
    assert np.allclose(results[0], expected, rtol=1e-5, atol=1e-6)
