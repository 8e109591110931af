"""Random numbers of kernels: the published ones of Philox, on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, KernelTypeError
from dala.gpu import compute
from dala.runtime.kernels.kernel import from_source

# Of Random123's kat_vectors: four words of counter, two of key, four of result.
KNOWN = [
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter, key):
    """The words as Salmon et al. define them, in Python's own integers."""
    c, k, word = [int(item) for item in counter], list(key), (1 << 32) - 1
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & word, (a >> 32) ^ c[3] ^ k[1], a & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c


def run(text, count, dtype="f32", params=None):
    x, out = compute.buffer_zeros((count,), "u32"), compute.buffer_zeros((count,), dtype)
    text = f"def k(x, {', '.join(f'{name}: dala.u32' for name in params or {})}):\n" + text
    compute.run_kernel(from_source("k", text), [x], out, params)
    return compute.read(out)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_the_words_are_the_published_ones(device, counter, key, words):
    counters = ", ".join(f"dala.u32({item})" for item in counter)
    seed = key[1] << 32 | key[0]
    text = f"    (i,) = dala.position(1)\n    return dala.random_bits({seed}, {counters})[i]"
    assert run(text, 4, "u32").tolist() == list(words)
    assert tuple(philox(counter, key)) == words


def test_words_of_run_time_seeds_and_counters_are_those_of_the_definition(device):
    text = (
        "    (i,) = dala.position(1)\n"
        "    a, b, c, d = dala.random_bits(seed, i, i * 7, j, i ^ 5)\n"
        "    return a ^ (b >> 1) ^ (c << 1) ^ dala.reverse_bits(d)"
    )
    got = run(text, 200, "u32", {"seed": 0xDEADBEEF, "j": 0xFFFFFFFE})
    for i, found in enumerate(got.tolist()):
        a, b, c, d = philox((i, i * 7, 0xFFFFFFFE, i ^ 5), (0xDEADBEEF, 0))
        assert found == a ^ (b >> 1) ^ (c << 1 & 0xFFFFFFFF) ^ int(f"{d:032b}"[::-1], 2)


def test_numbers_are_the_same_for_every_size_and_order(device):
    text = "    (i,) = dala.position(1)\n    return dala.random(seed, i)"
    long, short = run(text, 10_000, params={"seed": 3}), run(text, 100, params={"seed": 3})
    assert np.array_equal(long[:100], short)
    backwards = run(text.replace(", i)", ", 9999 - i)"), 10_000, params={"seed": 3})
    assert np.array_equal(backwards[::-1], long)
    expected = [(philox((i, 0, 0, 0), (3, 0))[0] >> 8) / (1 << 24) for i in range(100)]
    assert short.tolist() == expected
    assert not np.array_equal(long, run(text, 10_000, params={"seed": 4}))


def test_a_seed_counts_as_an_integer_of_64_bits_whatever_its_type():
    body = "    (i,) = dala.position(1)\n    return dala.random_bits({}, i)[0]"
    for value, seeds in {
        5: ["5", "dala.u8(5)", "dala.s32(5)", "dala.s64(5)"],
        -2: ["-2", "dala.s32(-2)", "dala.s64(-2)"],
        1 << 40: [str(1 << 40), f"dala.s64({1 << 40})"],
    }.items():
        key = (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
        expected = [philox((i, 0, 0, 0), key)[0] for i in range(5)]
        for seed in seeds:
            assert run(body.format(seed), 5, "u32").tolist() == expected, seed


def test_numbers_are_as_likely_and_as_unrelated_as_they_should_be(device):
    count = 200_000
    uniform = run("    (i,) = dala.position(1)\n    return dala.random(1, i)", count)
    normal = run("    (i,) = dala.position(1)\n    return dala.random_normal(1, i)", count)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    near = 5 / math.sqrt(count)  # five standard errors, about
    assert abs(uniform.mean() - 0.5) < near * 0.29
    assert abs(uniform.var() - 1 / 12) < near * 0.08
    assert np.histogram(uniform, 100)[0].std() < 5 * math.sqrt(count / 100)
    assert abs(normal.mean()) < near
    assert abs(normal.var() - 1) < near * 1.5
    assert abs((normal**3).mean()) < near * 4
    assert abs((normal**4).mean() - 3) < near * 10
    for values in (uniform, normal):
        for lag in (1, 2, 3, 64):
            assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < near
    text = "    (i,) = dala.position(1)\n    return dala.random({})"
    for other in ("2, i", "1, i, 1", "1, 0, i"):
        assert abs(np.corrcoef(uniform, run(text.format(other), count))[0, 1]) < near


def test_devices_agree_in_the_bits_of_floats_and_integers(webgpu):
    for body in ("random(seed, i, 7)", "random_int(-1000, 2000000000, seed, i)"):
        text = f"    (i,) = dala.position(1)\n    return dala.{body}"
        dtype = "s32" if "int" in body else "f32"
        found = []
        for name in ("cpu", webgpu):
            with compute.device(name):
                found.append(run(text, 5000, dtype, {"seed": 12345}))
        assert np.array_equal(*found)


@pytest.mark.parametrize(("low", "high"), [(0, 6), (-3, 4), (-(1 << 31), (1 << 31) - 1), (7, 8)])
def test_integers_lie_between_their_ends_and_reach_them(device, low, high):
    body = f"dala.random_int({low}, {high}, 5, i)"
    got = run(f"    (i,) = dala.position(1)\n    return {body}", 20_000, "s32").astype(np.int64)
    assert got.min() >= low
    assert got.max() < high
    if high - low < 10:
        counts = np.bincount(got - low, minlength=high - low)
        assert counts.min() > 0.9 * 20_000 / (high - low)
    else:
        assert abs(got.mean()) < (high - low) * 0.01


def test_integers_between_ends_that_leave_nothing_are_the_first():
    text = "    (i,) = dala.position(1)\n    return dala.random_int(a, b, 1, i)"
    assert run(text, 5, "u32", {"a": 9, "b": 4}).tolist() == [9] * 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("random(0.5, i)", ["a seed is an integer, not the number 0.5", "dala.u32"]),
        ("random(1, 0.5)", ["a counter is an integer of at most 32 bits, not the number 0.5"]),
        ("random(1, dala.s64(i))", ["not a s64 value", "dala.u32(n >> 32)"]),
        ("random(1)", ["dala.random takes 2 to 5 arguments, not 1"]),
        ("random_int(5, 3, 1, i)", ["the number 5 and the number 3 leave nothing", "second"]),
        ("random_int(0, 0.5, 1, i)", ["the number 0 and the number 0.5", "dala.s32(…)"]),
        ("random_int(0, 1 << 40, 1, i)", ["the number 1099511627776", "at most 32 bits"]),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_at_its_line(call, words):
    with pytest.raises(KernelTypeError) as raised:
        run(f"    (i,) = dala.position(1)\n    return dala.{call}", 4)
    for word in (*words, "^"):
        assert word in str(raised.value)


def test_random_numbers_in_a_function_of_ones_own(device):
    @dala.function
    def jitter(seed, i):
        return dala.random(seed, i) - 0.5

    @dala.kernel
    def shaken(x, seed: dala.u32):
        (i,) = dala.position(1)
        return x + jitter(seed, i) * 0.1

    out = compute.buffer_zeros((50,), "f32")
    compute.run_kernel(shaken, [compute.buffer_zeros((50,), "f32")], out, {"seed": 9})
    got = compute.read(out)
    assert np.abs(got).max() <= 0.05
    assert len(set(got.tolist())) == 50


def test_calling_one_outside_of_a_kernel_says_what_to_do():
    with pytest.raises(ArgumentError, match="inside a kernel"):
        dala.random(1, 2)
