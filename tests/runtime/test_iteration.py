"""Pipelines that are run many times on the device: `repeat`, `until` and buffers that swap."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import ArgumentError, ShapeError
from dala.gpu import compute
from dala.runtime.pipelines import iteration


@dala.kernel(border="wrap")
def life(cells):
    i, j = dala.position(2)
    around = sum(cells[i + di, j + dj] for di in range(-1, 2) for dj in range(-1, 2))
    alive = cells[i, j] == 1
    return 1 if around == 3 or (alive and around == 4) else 0


@dala.kernel
def spread(x):
    """One more element than the step before is above 0."""
    (i,) = dala.position(1)
    return max(x[i - 1], x[i])


def grown(cells):
    around = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
    return ((around == 3) | ((cells == 1) & (around == 4))).astype(cells.dtype)


def board():
    return np.random.default_rng(5).integers(0, 2, (37, 41)).astype(np.int32)


@pytest.mark.parametrize("count", [0, 1, 2, 7, iteration.STEPS_PER_BATCH + 3])
def test_the_first_of_two_buffers_has_the_last_step(count, device):
    cells = board()
    a, b = compute.from_numpy(cells), compute.buffer_zeros(cells.shape, "s32")
    steps = compute.pipeline().add(kernel=life, inputs=[a], output=b).swap(a, b)
    compute.repeat(steps, count)
    for _ in range(count):
        cells = grown(cells)
    np.testing.assert_array_equal(compute.read(a), cells)


def test_a_pipeline_of_several_stages_goes_on_where_it_ended(device):
    cells = board()
    a, b = compute.from_numpy(cells), compute.buffer_zeros(cells.shape, "s32")
    between = compute.scratch(cells.shape, "s32")
    steps = compute.pipeline().add(kernel=life, inputs=[a], output=between)
    steps.add(kernel=life, inputs=[between], output=b).swap(a, b)
    compute.repeat(steps, 3)
    compute.repeat(steps, 2)
    for _ in range(10):
        cells = grown(cells)
    np.testing.assert_array_equal(compute.read(a), cells)


@pytest.mark.parametrize("parts", [(10,), (5, 5), (3, 4, 2, 1), (1,) * 10])
def test_steps_that_read_both_buffers_go_on_where_they_ended(parts, device):
    now, before = compute.buffer([1], (1,), "s32"), compute.buffer([0], (1,), "s32")
    kernel = compute.Kernel.register(
        "fibonacci", "def fibonacci(now, before): return now + before", replace=True
    )
    steps = compute.pipeline().add(kernel=kernel, inputs=[now, before], output=before)
    steps.swap(now, before)
    for count in parts:
        compute.repeat(steps, count)
    assert compute.read_list(now) + compute.read_list(before) == [89, 55]


def test_a_pipeline_without_swaps_is_run_so_often(device):
    x = compute.buffer([1.0], (1,), "f32")
    twice = compute.pipeline().add(kernel="scale", inputs=[x], output=x, params={"factor": 2.0})
    compute.repeat(twice, 10)
    assert compute.read_list(x) == [1024.0]


def filling(length):
    a = compute.buffer([1.0] + [0.0] * (length - 1), (length,), "f32")
    b, flag = compute.buffer_zeros((length,), "f32"), compute.buffer_zeros((1,), "s32")
    steps = compute.pipeline().add(kernel=spread, inputs=[a], output=b)
    kernel = compute.Kernel.register(
        "full", "def full(x):\n return 1 if x[len(x) - 1] > 0 else 0", replace=True
    )
    return steps.add(kernel=kernel, inputs=[b], output=flag).swap(a, b), flag, a


@pytest.mark.parametrize(("every", "ran"), [(1, 49), (16, 64), (100, 100)])
def test_a_flag_ends_the_steps_when_it_is_next_looked_at(every, ran, device):
    steps, flag, a = filling(50)
    assert compute.until(steps, flag, every=every) == compute.Iterations(ran, done=True)
    assert compute.read(a).min() == 1.0


def test_a_limit_ends_the_steps_though_the_flag_is_not_set(device):
    steps, flag, a = filling(50)
    assert compute.until(steps, flag, limit=20) == compute.Iterations(20, done=False)
    assert compute.read(a).sum() == 21.0


def test_many_steps_are_one_submission(webgpu, monkeypatch):
    cells = board()
    a, b = compute.from_numpy(cells), compute.buffer_zeros(cells.shape, "s32")
    steps = compute.pipeline().add(kernel=life, inputs=[a], output=b).swap(a, b)
    compute.repeat(steps, 4)
    submitted = []
    device = a.memory.device
    plain = device.submit
    monkeypatch.setattr(device, "submit", lambda given: (submitted.append(1), plain(given)))
    compute.repeat(steps, 40)
    assert len(submitted) == 1


def test_swaps_are_kept_in_documents(device, tmp_path):
    cells = board()
    a, b = compute.from_numpy(cells), compute.buffer_zeros(cells.shape, "s32")
    steps = compute.pipeline().add(kernel=life, inputs=[a], output=b).swap(a, b)
    steps.save(tmp_path / "life.json", {"a": a, "b": b}, {"life": life})
    again = compute.load_pipeline(tmp_path / "life.json", {"a": a, "b": b}, {"life": life})
    compute.repeat(again, 3)
    np.testing.assert_array_equal(compute.read(a), grown(grown(grown(cells))))


def test_what_cannot_be_swapped_is_refused():
    x, y, z = (compute.buffer_zeros((4,), "f32") for _ in range(3))
    steps = compute.pipeline().add(kernel=spread, inputs=[x], output=y)
    with pytest.raises(ArgumentError, match="no stage uses"):
        steps.swap(x, z)
    with pytest.raises(ShapeError, match="shapes differ"):
        steps.swap(x, compute.buffer_zeros((5,), "f32"))
    with pytest.raises(ArgumentError, match="one partner"):
        steps.swap(x, x)
    with pytest.raises(ArgumentError, match="swapped already"):
        steps.swap(x, y).swap(y, x)


@pytest.mark.parametrize("count", [-1, 2.0, True, "3"])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(ArgumentError, match="an integer from 0 on"):
        compute.repeat(compute.pipeline(), count)


def test_a_flag_that_nobody_sets_is_refused():
    steps, flag, a = filling(5)
    with pytest.raises(ArgumentError, match="no stage writes"):
        compute.until(steps, compute.buffer_zeros((1,), "s32"))
    with pytest.raises(ArgumentError, match="one element"):
        compute.until(steps, a)
    with pytest.raises(ArgumentError, match="every is an integer from 1 on"):
        compute.until(steps, flag, every=0)
