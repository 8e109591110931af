"""Faults 1 to 8: what buffers refuse, and what they survive."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dala
from dala import errors
from dala.gpu import compute


@pytest.fixture(autouse=True)
def nothing_is_lost():
    """Live memory is back where it was, and the next good call works."""
    gc.collect()
    before = compute.memory().live_bytes
    yield
    x = compute.buffer([1.0, 2.0], (2,), "f32")
    out = compute.buffer_zeros((2,), "f32")
    compute.run_kernel("elementwise_add", [x, x], out)
    assert compute.read_list(out) == [2.0, 4.0]
    del x, out
    gc.collect()
    assert compute.memory().live_bytes == before


def test_01_a_data_length_that_differs_from_the_shape_is_refused_before_allocation(device):
    before = compute.memory().live_blocks
    with pytest.raises(errors.ShapeError, match=r"3.*4|4.*3"):
        compute.buffer([1.0, 2.0, 3.0], (2, 2), "f32")
    assert compute.memory().live_blocks == before


@pytest.mark.parametrize("extent", [-1, 2.0, float("nan"), True, "3", None])
def test_02_a_dimension_that_is_no_count_is_refused(device, extent):
    with pytest.raises(errors.ShapeError):
        compute.buffer_zeros((2, extent), "f32")


@pytest.mark.parametrize("shape", [(2**31 - 1,) * 3, (2**62, 4), (2**70,)])
def test_03_a_byte_count_past_64_bits_is_refused(device, shape):
    with pytest.raises(errors.LimitError):
        compute.buffer_zeros(shape, "f64")


def test_04_more_than_the_device_holds_is_refused_with_both_numbers(device):
    with pytest.raises(errors.LimitError, match=r"[\d,]{10,}.*[\d,]{10,}"):
        compute.buffer_zeros((1 << 20, 1 << 20), "f64")


def test_05_a_buffer_of_no_elements_is_valid_and_empty(device):
    x = compute.buffer([], (0, 3), "f32")
    out = compute.buffer_zeros((0, 3), "f32")
    compute.run_kernel("elementwise_add", [x, x], out)
    assert compute.read(out).shape == (0, 3)
    assert compute.read_list(out) == []


def test_06_use_after_free_is_refused_and_a_second_free_is_harmless(device):
    x = compute.buffer([1.0], (1,), "f32")
    out = compute.buffer_zeros((1,), "f32")
    compute.free(x)
    compute.free(x)
    for use in (
        lambda: compute.read(x),
        lambda: compute.run_kernel("elementwise_add", [x, x], out),
        lambda: compute.run_kernel("elementwise_add", [out, out], x),
        lambda: compute.write(x, [2.0]),
        lambda: memoryview(x),
        lambda: np.asarray(x),
    ):
        with pytest.raises(errors.FreedError, match="freed"):
            use()


@pytest.mark.parametrize("count", [3, 1 << 20])
def test_07_a_recycled_buffer_reads_zeros(device, count):
    for _ in range(3):
        x = compute.buffer_zeros((count,), "f32")
        assert not compute.read(x).any()
        compute.write(x, np.ones(count, np.float32))
        compute.free(x)


@dala.kernel
def shift(x):
    (i,) = dala.position(1)
    return x[i - 1] + x[i + 1]


@pytest.mark.parametrize("count", [5, 1_000_003])
def test_08_one_buffer_as_stencil_input_and_output_gives_the_right_result(device, count):
    values = np.arange(count, dtype=np.float32)
    x = compute.from_numpy(values)
    compute.run_kernel(shift, [x], x)
    padded = np.pad(values, 1, mode="edge")
    assert (compute.read(x) == padded[:-2] + padded[2:]).all()


def test_08_memory_that_overlaps_in_part_gives_the_right_result():
    # Only memory of the host can be shared in part.
    values = np.arange(1001, dtype=np.float32)
    memory = values.copy()
    source, target = compute.from_dlpack(memory[:1000]), compute.from_dlpack(memory[1:])
    compute.run_kernel("elementwise_add", [source, source], target)
    assert (memory[1:] == 2 * values[:1000]).all()
