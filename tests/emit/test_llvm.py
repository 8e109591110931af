"""The emitted code: that it is made of vectors where it should be, and equal however it is cut."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dala
from dala.devices import CPU
from dala.gpu import compute
from dala.plan.chunks import Chunks, cut


@dala.kernel
def curve(x):
    (i,) = dala.position(1)
    total = dala.exp(x) + 0.25 * i
    for d in range(-3, 4):
        total += x[i + d] * dala.f32(d)
    return total if total > 0.0 else -total / 3.0


@dala.kernel
def double(x):
    return x * 2.0


@dala.kernel
def polynomial(x, degree: dala.const = 4):
    total = 1.0
    for k in range(degree):
        total = total * x + (0.5 + k)
    return total


@dala.kernel
def escape(x):
    turns = 0
    y = x * x
    while y < 100.0:
        y = y * 1.5 + 0.5
        turns += 1
    return y + turns


@dala.kernel
def window(x):
    i, j = dala.position(2)
    return sum(x[i + a, j + b] for a in range(5) for b in range(5)) / 25.0


@dala.kernel
def centred(x):
    i, _ = dala.position(2)
    n = x.shape[1]
    return x - sum(x[i, k] for k in range(n)) / n


def vector_body(kernel, *buffers) -> str:
    explained = kernel.explain(list(buffers[:-1]), buffers[-1])
    return re.search(r"define internal i32 @fast.*?\n}", explained, re.S).group()


def test_maths_stays_in_vectors(capsys):
    x = compute.buffer_zeros((100,), "f32")
    body = vector_body(curve, x, compute.buffer_zeros((100,), "f32"))
    lanes = CPU.compiler.vector_bits // 32
    assert f"fmul <{lanes} x float>" in body
    assert "gather" not in body
    assert not re.search(r"call float @(exp|llvm\.exp)", body)
    assert "LLVM IR" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kernel", "degree", "vectors"), [(double, 0, 1), (polynomial, 4, 2), (polynomial, 16, 8)]
)
def test_long_chains_of_operations_take_more_vectors_at_a_time(kernel, degree, vectors, capsys):
    wide = compute.buffer_zeros((1000,), "f32")
    explained = kernel.explain([wide], wide, {"degree": degree} if degree else {})
    lanes = vectors * CPU.compiler.vector_bits // 32
    assert (
        f"fmul <{lanes} x float>"
        in re.search(r"define internal i32 @fast.*?\n}", explained, re.S).group()
    )


def test_several_registers_are_stored_upwards(capsys):
    wide = compute.buffer_zeros((1000,), "f32")
    body = vector_body(polynomial, wide, wide)
    assert body.count("store volatile") == 2
    (second,) = re.findall(r"getelementptr float, ptr %\w+, i64 (\d+)\n", body)
    assert int(second) == CPU.compiler.vector_bits // 32


def test_what_is_the_same_along_a_row_is_computed_once_for_it(capsys):
    x = compute.buffer_zeros((10, 100), "f32")
    body = vector_body(centred, x, compute.buffer_zeros((10, 100), "f32"))
    assert body.count("phi") == 1
    assert body.count("load") == 1


@dala.kernel
def pairs(x):
    i, j = dala.position(2)
    return max(x[i + 1, 2 * j], x[i + 1, 2 * j + 1])


def test_elements_of_one_step_are_taken_from_the_same_vectors(capsys):
    x = compute.buffer_zeros((10, 200), "f32")
    body = vector_body(pairs, x, compute.buffer_zeros((10, 100), "f32"))
    assert len(set(re.findall(r"= sub nsw i64 %\w+, ([01])\n", body))) == 2
    assert "gather" not in body


def test_inner_rows_are_read_without_looking_for_borders(capsys):
    x = compute.buffer_zeros((10, 100), "f32")
    body = vector_body(pairs, x, compute.buffer_zeros((10, 50), "f32"))
    assert "smin" not in body
    assert "@edge" in pairs.explain([x], compute.buffer_zeros((10, 50), "f32"))


def test_the_assembly_can_be_seen(capsys):
    curve.explain(assembly=True)
    assert "dala_strip:" in capsys.readouterr().out


@pytest.mark.parametrize("kernel", [curve, escape])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 63, 1000])
def test_a_value_does_not_depend_on_where_a_chunk_begins(kernel, count):
    values = np.linspace(-2.0, 2.0, count, dtype=np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((count,), "f32")
    compute.run_kernel(kernel, [x], out)
    want = compute.read(out)
    (launch,) = [item for item in kernel._launches.values() if item.task.domain == (count,)]
    kept = launch.chunks
    for size in (1, 7, 16, 100):
        launch.chunks = Chunks(1, count, -(-count // size), size, by_rows=False)
        compute.write(out, np.zeros(count, np.float32))
        compute.run_kernel(kernel, [x], out)
        assert (compute.read(out).view(np.uint32) == want.view(np.uint32)).all()
    launch.chunks = kept


def test_float_sums_are_the_same_bits_in_every_part_of_a_row():
    values = np.random.default_rng(0).random((40, 83)).astype(np.float32)
    wide = np.tile(values, (1, 3))
    x, out = compute.from_numpy(wide), compute.buffer_zeros(wide.shape, "f32")
    compute.run_kernel(window, [x], out)
    left, middle, _ = np.split(compute.read(out), 3, axis=1)
    assert (left[:, 4:-4].view(np.uint32) == middle[:, 4:-4].view(np.uint32)).all()


def test_long_sums_stay_accurate():
    @dala.kernel
    def total(x):
        return sum(x[k] for k in range(len(x)))

    values = np.random.default_rng(0).random(1 << 20).astype(np.float32)
    out = compute.buffer_zeros((1,), "f32")
    compute.run_kernel(total, [compute.from_numpy(values)], out)
    exact = values.sum(dtype=np.float64)
    assert abs(compute.read(out)[0] - exact) <= 1e-6 * exact


@pytest.mark.parametrize(
    ("rows", "width"),
    [(1, 1), (1, 10_000_000), (3, 5_000_000), (2, 100), (100_000, 100), (7, 100_000)],
)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_chunks_cover_the_domain_once(rows, width, threads):
    chunks = cut(rows, width, effort=25, threads=threads)
    length = rows if chunks.by_rows else width
    assert (chunks.count - 1) * chunks.size < length <= chunks.count * chunks.size
    assert chunks.count == 1 or rows * width > 10_000
    kept = cut(rows, width, effort=25, threads=threads, whole_rows=True)
    assert kept.by_rows
    assert (kept.count - 1) * kept.size < rows <= kept.count * kept.size


def test_rows_of_every_rank_are_reached():
    @dala.kernel
    def number(x):
        a, b, c, d = dala.position(4)
        return ((a * 100 + b) * 100 + c) * 100 + d + x

    shape = (2, 3, 5, 33)
    x, out = compute.buffer_zeros(shape, "s32"), compute.buffer_zeros(shape, "s32")
    compute.run_kernel(number, [x], out)
    a, b, c, d = np.indices(shape)
    assert (compute.read(out) == ((a * 100 + b) * 100 + c) * 100 + d).all()


def test_only_work_worth_waking_a_thread_for_is_shared():
    shared = {}
    for count in (1000, 100_000, 4_000_000):
        x = compute.buffer_zeros((count,), "f32")
        compute.run_kernel(double, [x], x)
        (launch,) = [item for item in double._launches.values() if item.task.domain == (count,)]
        shared[count] = launch.chunks.count > 1
    assert shared == {1000: False, 100_000: False, 4_000_000: CPU.threads > 1}


def test_loops_that_stay_loops_carry_each_value_on():
    @dala.kernel
    def fibonacci(x):
        a, b, steps = 0.0, 1.0, 0
        for _ in range(dala.s32(x)):
            a, b, steps = b, a + b, steps + 1
        return a * 100.0 + steps

    values = np.arange(20, dtype=np.float32)
    x, out = compute.from_numpy(values), compute.buffer_zeros((20,), "f32")
    compute.run_kernel(fibonacci, [x], out)
    known = [0, 1]
    while len(known) < 20:
        known.append(known[-1] + known[-2])
    assert compute.read_list(out) == [100.0 * f + n for n, f in enumerate(known)]
