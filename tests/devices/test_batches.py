"""A pipeline on a GPU: one submission, and arguments that do not get mixed up in it."""

from __future__ import annotations

import numpy as np
import pytest

from dala.devices import current_device
from dala.gpu import compute


@pytest.fixture
def submissions(webgpu, monkeypatch):
    """How many command buffers each submission had."""
    found = []
    device = current_device()
    submit = device.submit
    monkeypatch.setattr(device, "submit", lambda given: (found.append(len(given)), submit(given)))
    return found


def chain(length):
    x = compute.from_numpy(np.arange(100, dtype=np.float32).reshape(10, 10))
    pipeline, here = compute.pipeline(), x
    for _ in range(length):
        there = compute.buffer_zeros((10, 10), "f32")
        pipeline.add(kernel="scale", inputs=[here], output=there, params={"factor": 2.0})
        here = there
    return pipeline, x, here


def test_a_run_is_one_submission(submissions):
    pipeline, x, out = chain(5)
    for _ in range(2):
        submissions.clear()
        pipeline.run()
        assert submissions == [1]
    assert np.array_equal(compute.read(out), compute.read(x) * 32)


def test_a_parameter_that_changes_reaches_its_own_stage_only(submissions):
    pipeline, x, out = chain(4)
    pipeline.run()
    pipeline.set(2, factor=5.0).run()
    assert np.array_equal(compute.read(out), compute.read(x) * 40)
    pipeline.run(params={})
    assert np.array_equal(compute.read(out), compute.read(x) * 40)


def test_one_kernel_run_twice_in_a_batch_has_its_own_parameters_each_time(submissions):
    x = compute.buffer([1.0, 2.0], (2,), "f32")
    first, second = compute.buffer_zeros((2,), "f32"), compute.buffer_zeros((2,), "f32")
    with current_device().batch():
        compute.run_kernel("scale", [x], first, {"factor": 3.0})
        compute.run_kernel("scale", [x], second, {"factor": 7.0})
    assert compute.read_list(first) == [3.0, 6.0]
    assert compute.read_list(second) == [7.0, 14.0]


def test_what_is_read_inside_a_batch_is_computed_by_then(submissions):
    x, out = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")
    with current_device().batch():
        compute.run_kernel("elementwise_add", [x, x], out)
        assert compute.read_list(out) == [2.0, 4.0]
        compute.write(x, [5.0, 6.0])
        compute.run_kernel("elementwise_add", [x, out], out)
    assert compute.read_list(out) == [7.0, 10.0]


def test_a_batch_that_fails_leaves_the_device_usable(submissions):
    x, out = compute.buffer([1.0, 2.0], (2,), "f32"), compute.buffer_zeros((2,), "f32")

    def fail():
        with current_device().batch():
            compute.run_kernel("elementwise_add", [x, x], out)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    compute.run_kernel("elementwise_mul", [x, x], out)
    assert compute.read_list(out) == [1.0, 4.0]
