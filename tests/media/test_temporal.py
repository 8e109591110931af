"""Filters that keep something of the frames before."""

from __future__ import annotations

import io

import numpy as np
import pytest

from dala import errors
from dala.devices import CPU
from dala.gpu import compute
from dala.images.frames import Frame
from dala.media.video.filtering.temporal_filters import FrameMix, MotionBlur, TemporalDenoise
from dala.media.video.filtering.video_filters import TEMPORAL

MADE = [
    (TemporalDenoise, {"strength": 0.8}),
    (MotionBlur, {"frames": 3}),
    (MotionBlur, {"frames": 9}),
    (FrameMix, {"amount": 0.4}),
]


def clip(count=8, shape=(12, 17, 4), dtype="u8", seed=1):
    """Frames of a noisy picture."""
    random = np.random.default_rng(seed)
    still = random.integers(0, 256, shape)
    frames = [(still + random.normal(0, 6, shape)).clip(0, 255) for _ in range(count)]
    if dtype == "u8":
        return [np.rint(frame).astype(np.uint8) for frame in frames]
    return [(frame / 255).astype(np.float32) for frame in frames]


def apply(made, frames):
    return [np.array(made.apply(compute.from_numpy(frame))) for frame in frames]


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(("kind", "params"), MADE)
def test_a_run_that_goes_on_elsewhere_makes_the_same_frames(device, kind, params, dtype):
    frames = clip(dtype=dtype)
    want = apply(kind(**params), frames)
    for stop in (0, 1, 5):
        before = kind(**params)
        apply(before, frames[:stop])
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **before.state())
        file.seek(0)
        after = kind(**params)
        with np.load(file, allow_pickle=False) as state:
            after.restore({name: state[name] for name in state.files})
        assert after.state().keys() == before.state().keys()
        got = apply(after, frames[stop:])
        np.testing.assert_array_equal(got, want[stop:])


@pytest.mark.parametrize(("kind", "params"), MADE)
def test_a_restored_filter_forgets_what_it_had_seen(device, kind, params):
    frames = clip()
    want = apply(kind(**params), frames)
    other = kind(**params)
    apply(other, clip(seed=2))
    other.restore({})
    np.testing.assert_array_equal(apply(other, frames), want)


@pytest.mark.parametrize(("kind", "params"), MADE)
def test_what_happens_to_a_frame_afterwards_does_not_matter(kind, params):
    frames = clip()
    want = apply(kind(**params), frames)
    other, got = kind(**params), []
    for frame in frames:
        borrowed = frame.copy()
        made = other.apply(Frame(borrowed, lambda buffer: buffer).buffer())
        got.append(np.array(made))
        borrowed[:] = 0
        np.asarray(made)[:] = 0
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("kind", "params"), MADE)
def test_results_stay_on_the_device_and_the_image_as_it_was(webgpu, kind, params):
    made = kind(**params)
    frames = [compute.from_numpy(frame) for frame in clip(3)]
    with compute.device(CPU.id):
        assert all(made.apply(frame).device.startswith("webgpu") for frame in frames)
    np.testing.assert_array_equal([np.array(frame) for frame in frames], clip(3))


@pytest.mark.parametrize(("kind", "params"), MADE)
def test_a_filter_can_go_on_on_another_device(webgpu, kind, params):
    frames, made = clip(), kind(**params)
    want = apply(kind(**params), frames)
    with compute.device("cpu"):
        got = apply(made, frames[:3])
    got += apply(made, frames[3:])
    np.testing.assert_allclose(np.array(got, int), np.array(want, int), atol=1)


@pytest.mark.parametrize("kind", [TemporalDenoise, MotionBlur, FrameMix])
def test_the_first_frame_is_left_alone(device, kind):
    for shape in [(5, 7), (6, 9, 3), (1, 1, 4), (0, 3, 4)]:
        (frame,) = clip(1, shape)
        np.testing.assert_array_equal(apply(kind(), [frame]), [frame])


@pytest.mark.parametrize("dtype", ["u8", "f32"])
@pytest.mark.parametrize(
    "made", [TemporalDenoise(strength=0), MotionBlur(frames=1), FrameMix(amount=0)]
)
def test_nothing_asked_for_changes_nothing(made, dtype):
    frames = clip(4, dtype=dtype)
    made.restore({})
    np.testing.assert_array_equal(apply(made, frames), frames)


# -- temporal_denoise ------------------------------------------------------------------------------


def test_denoise_follows_its_formula_from_frame_to_frame(device):
    frames = clip(6, dtype="f32")
    got = apply(TemporalDenoise(strength=0.7, threshold=0.12), frames)
    y = frames[0].astype(np.float64)
    for x, made in zip(frames[1:], got[1:], strict=True):
        d = np.abs(x - y).max(-1, keepdims=True)
        y = x + np.where(d < 0.12, 0.9 * 0.7 * (1 - (d / 0.12) ** 2) ** 2, 0) * (y - x)
        np.testing.assert_allclose(made, y, atol=3e-6)


def test_denoise_takes_away_most_of_the_noise(device):
    random = np.random.default_rng(4)
    frames = [(128 + random.normal(0, 4, (40, 40))).round().astype(np.uint8) for _ in range(30)]
    last = apply(TemporalDenoise(strength=1.0), frames)[-1]
    assert last.std() < 0.5 * frames[-1].std()


def test_denoise_leaves_no_trace_of_what_moves(device):
    frames = []
    for at in range(8):
        frame = np.full((10, 40, 3), 30, np.uint8)
        frame[2:8, 4 * at : 4 * at + 6] = (200, 120, 60)
        frames.append(frame)
    np.testing.assert_array_equal(apply(TemporalDenoise(strength=1.0), frames), frames)


def test_denoise_is_not_frozen_by_rounding(device):
    frames = [np.full((2, 2), level, np.uint8) for level in [100] + [101] * 40]
    levels = [int(made[0, 0]) for made in apply(TemporalDenoise(strength=1.0), frames)]
    assert levels[:3] == [100, 100, 100]
    assert levels[-1] == 101
    assert levels == sorted(levels)


# -- motion_blur and frame_mix ---------------------------------------------------------------------


def test_motion_blur_is_the_mean_of_the_last_frames_there_are(device):
    frames = clip(6, dtype="f32")
    got = apply(MotionBlur(frames=4), frames)
    for number, made in enumerate(got):
        last = np.array(frames[max(0, number - 3) : number + 1], np.float64)
        np.testing.assert_allclose(made, last.mean(0), atol=1e-6)


def test_frame_mix_takes_the_frame_before_as_it_came(device):
    frames = clip(4)
    got = apply(FrameMix(amount=1), frames)
    np.testing.assert_array_equal(got, [frames[0], *frames[:-1]])
    half = apply(FrameMix(), frames)
    exact = (frames[2].astype(float) + frames[1]) / 2
    np.testing.assert_array_equal(half[2], np.rint(exact))


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params", "told"),
    [
        ("temporal_denoise", {"strength": 1.5}, "strength is a finite number from 0 to 1, not 1.5"),
        ("temporal_denoise", {"threshold": 0}, "threshold is a finite number above 0, not 0"),
        ("motion_blur", {"frames": 0}, "frames is 1 to 32, not 0"),
        ("motion_blur", {"frames": 33}, "frames is 1 to 32, not 33"),
        ("motion_blur", {"frames": 2.5}, "frames is an integer, not 2.5"),
        ("frame_mix", {"amount": "much"}, "amount is a finite number from 0 to 1, not 'much'"),
    ],
)
def test_wrong_parameters_are_refused_before_any_frame(name, params, told):
    with pytest.raises(errors.ArgumentError, match=told) as caught:
        TEMPORAL[name](**params)
    assert str(caught.value).startswith(f"{name}: ")


@pytest.mark.parametrize("kind", [TemporalDenoise, MotionBlur, FrameMix])
def test_a_frame_of_another_size_is_refused(device, kind):
    made = kind()
    apply(made, clip(2))
    before = made.state()
    with pytest.raises(errors.ShapeError, match=r"is \(3, 4\), but those before were \(12, 17, 4"):
        apply(made, clip(1, (3, 4)))
    for name, kept in made.state().items():
        np.testing.assert_array_equal(kept, before[name])


@pytest.mark.parametrize("kind", [MotionBlur, FrameMix])
def test_a_frame_of_another_dtype_is_refused(kind):
    made = kind()
    apply(made, clip(2))
    with pytest.raises(errors.DtypeError, match="the frame is f32, but those before were u8"):
        apply(made, clip(1, dtype="f32"))


def test_what_is_no_image_is_refused():
    with pytest.raises(errors.ShapeError, match="frame_mix: the frame is s32"):
        FrameMix().apply(compute.buffer_zeros((3, 4), "s32"))


@pytest.mark.parametrize("state", [{"x": 1}, {"1": 1}, {"0": 1, "1": 1}])
def test_a_state_of_something_else_is_refused(state):
    with pytest.raises(
        errors.ArgumentError, match="is no state that it gave: of frames it keeps 1"
    ):
        FrameMix().restore({name: np.zeros((2, 2), np.uint8) for name in state})
