"""Frames through a context: planned once, in any kind, at once or in the background."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dala import errors
from dala.gpu import compute
from dala.media import gpu
from dala.runtime.pipelines import execution_plan as plan

H, W = 20, 31
FILTERS = [("blur", {"radius": 3, "sigma": 1.5}), ("brightness", {"value": 0.1})]


@pytest.fixture
def context(device):
    with gpu.start_pipeline(W, H) as context:
        yield context


def frame(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (H, W, 4), dtype=np.uint8)


def filtered(image: np.ndarray) -> np.ndarray:
    return gpu.brightness(gpu.blur(image, radius=3, sigma=1.5), 0.1)


def test_frames_are_filtered_and_given_back_as_they_came(context):
    image = frame()
    want = filtered(image)
    np.testing.assert_array_equal(gpu.process_frame(context, image, FILTERS), want)
    assert gpu.process_frame(context, image.tobytes(), FILTERS) == want.tobytes()
    buffer = gpu.process_frame(context, compute.from_numpy(image), FILTERS)
    np.testing.assert_array_equal(np.asarray(buffer), want)


def test_results_of_earlier_frames_stay_as_they_were(context):
    first = gpu.process_frame(context, frame(1), FILTERS)
    kept = first.copy()
    gpu.process_frame(context, frame(2), FILTERS)
    np.testing.assert_array_equal(first, kept)


def test_a_second_frame_plans_and_compiles_nothing(context, monkeypatch):
    gpu.process_frame(context, frame(1), FILTERS)
    monkeypatch.setattr(plan.ExecutionPlan, "__init__", _refuse)
    for value in (0.1, 0.3):
        filters = [FILTERS[0], ("brightness", {"value": value})]
        got = gpu.process_frame(context, frame(2), filters)
        want = gpu.process_frame(context, frame(2), filters)
        np.testing.assert_array_equal(got, want)


def _refuse(*_, **__):
    raise AssertionError("a chain that is known was planned anew")


def test_a_changed_parameter_is_used_and_a_left_out_one_is_its_default(context):
    image = frame()
    for params in ({"radius": 1, "sigma": 0.7}, {"radius": 1}, {"sigma": 2.0}, {}):
        got = gpu.process_frame(context, image, [("blur", params)])
        np.testing.assert_array_equal(got, gpu.blur(image, **params))


def test_memory_does_not_grow_with_frames(context):
    for _ in range(3):
        gpu.process_frame(context, frame(), FILTERS)
    before = compute.memory().live_blocks
    for _ in range(20):
        gpu.process_frame(context, frame(), FILTERS)
    assert compute.memory().live_blocks == before


def test_a_result_goes_into_an_array_that_is_given(context):
    out = np.zeros((H, W, 4), np.uint8)
    assert gpu.process_frame(context, frame(), FILTERS, out=out) is out
    np.testing.assert_array_equal(out, filtered(frame()))


def test_frames_in_the_background_are_waited_for_and_awaited(context):
    images = [frame(seed) for seed in range(6)]
    commands = [gpu.process_frame_async(context, image, FILTERS) for image in images]
    for image, command in zip(images, commands, strict=True):
        np.testing.assert_array_equal(command.wait(), filtered(image))
        assert compute.poll(command) == command.status == "completed"

    async def awaited() -> list[np.ndarray]:
        return [await gpu.process_frame_async(context, image, FILTERS) for image in images]

    for image, got in zip(images, asyncio.run(awaited()), strict=True):
        np.testing.assert_array_equal(got, filtered(image))


def test_a_frame_in_the_background_is_the_one_that_was_given(context):
    image = frame()
    want = filtered(image)
    command = gpu.process_frame_async(context, image, FILTERS)
    image[:] = 0
    np.testing.assert_array_equal(command.wait(), want)


def test_a_frame_in_the_background_waits_for_what_writes_its_buffer(context):
    image = compute.buffer_zeros((H, W, 4), "u8")
    writes = compute.run_kernel_async("fill", [], image, {"value": 9})
    got = gpu.process_frame_async(context, image, ["invert"]).wait()
    compute.wait(writes)
    assert (np.asarray(got)[..., :3] == 246).all()


def test_what_fails_in_the_background_says_why_when_waited_for(context):
    command = gpu.process_frame_async(context, frame(), [("blur", {"radius": -1})])
    with pytest.raises(errors.ArgumentError, match="radius is 0 to"):
        command.wait()
    with pytest.raises(errors.UnknownKernelError):
        gpu.process_frame_async(context, frame(), ["no_such_filter"])
    np.testing.assert_array_equal(gpu.process_frame(context, frame(), FILTERS), filtered(frame()))


def test_threads_can_share_a_context(context):
    images = [frame(seed) for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda image: gpu.process_frame(context, image, FILTERS), images))
    for image, result in zip(images, got, strict=True):
        np.testing.assert_array_equal(result, filtered(image))


def test_frames_of_another_size_and_stopped_contexts_are_refused(device):
    context = gpu.start_pipeline(W, H)
    with pytest.raises(errors.ShapeError, match=f"{W} × {H - 1}, but the pipeline was started for"):
        gpu.process_frame(context, frame()[:-1], FILTERS)
    with pytest.raises(errors.ShapeError, match="bytes are no image"):
        gpu.process_frame(context, b"12", FILTERS)
    gpu.stop_pipeline(context)
    gpu.stop_pipeline(context)
    assert "stopped" in repr(context)
    with pytest.raises(errors.FreedError, match="start another"):
        gpu.process_frame(context, frame(), FILTERS)
    with pytest.raises(errors.ShapeError, match="height is an integer"):
        gpu.start_pipeline(3, 0)
    with pytest.raises(errors.ArgumentError, match="what start_pipeline"):
        gpu.process_frame(None, frame(), FILTERS)
