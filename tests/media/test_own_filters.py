"""Filters of users' own: kernels, and Python functions that are called with each frame."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from media import clips
from PIL import Image

import dala
from dala import errors, media
from dala.gpu import compute
from dala.media import gpu
from dala.media.filters import chain
from dala.media.video import transcode

H, W = 12, 17
HERE = Path(__file__).name


@dala.kernel
def tinted(image: dala.Image, amount: dala.f32 = 1.0):
    p = image.pixel
    return dala.rgba(p.r * amount, p.g, 1.0 - p.b, p.a)


@dala.kernel
def scaled(x, amount: dala.f32 = 0.5):
    return x * amount


@dala.kernel
def mean_with(image: dala.Image, layer: dala.Image):
    return (image.pixel + layer.pixel) * 0.5


@dala.kernel
def light(image: dala.Image):
    return dala.luma(image.pixel)


def halved(frame, t):
    return frame // 2


def brightened(frame, t, by=10):
    return np.minimum(frame.astype(int) + by, 255).astype(np.uint8)


def picture(channels: int = 3, dtype: type = np.uint8) -> np.ndarray:
    shape = (H, W) if channels == 1 else (H, W, channels)
    levels = np.random.default_rng(channels).integers(0, 256, shape, dtype=np.uint8)
    return levels if dtype is np.uint8 else (levels / 255).astype(dtype)


# -- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_kernel_is_a_filter_without_being_registered(device, dtype):
    image = picture(4, dtype)
    got = gpu.apply_filter(image, tinted, amount=0.5)
    want = image.astype(float)
    want[..., 0] *= 0.5
    want[..., 2] = (255 if dtype is np.uint8 else 1) - want[..., 2]
    assert np.abs(got - want).max() <= (0.5 if dtype is np.uint8 else 1e-6)
    np.testing.assert_array_equal(gpu.apply_filter(image, tinted, 0.5), got)
    np.testing.assert_array_equal(gpu.filter_chain(image, [(tinted, {"amount": 0.5})]), got)
    assert "tinted" not in compute.Kernel.list()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_kernel_of_plain_arrays_is_a_filter_of_all_channels(device, channels):
    image = picture(channels)
    got = gpu.apply_filter(image, scaled, amount=2)
    np.testing.assert_array_equal(got, np.minimum(image.astype(int) * 2, 255))


def test_a_kernel_takes_other_images_by_its_names(device):
    image, layer = picture(), np.zeros((H, W, 3), np.uint8)
    want = gpu.apply_filter(image, mean_with, layer)
    assert np.abs(want - image / 2).max() <= 0.5
    np.testing.assert_array_equal(gpu.filter_chain(image, [(mean_with, {"layer": layer})]), want)


def test_every_kind_of_image_comes_back_as_itself(device):
    image = picture()
    for filter in (tinted, halved):
        want = gpu.apply_filter(image, filter)
        assert gpu.apply_filter(image.tobytes(), filter, W, H) == want.tobytes()
        np.testing.assert_array_equal(gpu.apply_filter(Image.fromarray(image), filter), want)
        made = gpu.apply_filter(compute.from_numpy(image), filter)
        assert made.device.startswith(device)
        np.testing.assert_array_equal(compute.read(made), want)
        out = np.zeros_like(image)
        assert gpu.apply_filter(image, filter, out=out) is out
        np.testing.assert_array_equal(out, want)


def test_the_functions_of_the_module_are_filters_too(device):
    image = picture()
    got = gpu.filter_chain(image, [gpu.invert, (gpu.blur, {"radius": 2})])
    np.testing.assert_array_equal(got, gpu.filter_chain(image, ["invert", ("blur", {"radius": 2})]))


# -- functions -------------------------------------------------------------------------------------


def test_a_chain_mixes_names_kernels_and_functions(device):
    image = picture()
    filters = ["invert", halved, (tinted, {"amount": 0.5}), (brightened, {"by": 7}), "grayscale"]
    want = gpu.apply_filter(gpu.invert(image) // 2, tinted, amount=0.5)
    want = gpu.grayscale(brightened(want, 0.0, 7))
    np.testing.assert_array_equal(gpu.filter_chain(image, filters), want)
    with gpu.start_pipeline(W, H) as context:
        np.testing.assert_array_equal(gpu.process_frame(context, image, filters), want)
        command = gpu.process_frame_async(context, image, filters)
        np.testing.assert_array_equal(command.wait(), want)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_function_gets_the_frame_of_the_chain(device, channels, dtype):
    image, seen = picture(channels, dtype), []

    def look(frame, t):
        seen.append((type(frame), frame.dtype, frame.shape, t))
        frame[:] = 0  # it may write over what it gets
        return frame

    before = image.copy()
    assert not gpu.apply_filter(image, look).any()
    np.testing.assert_array_equal(image, before)
    assert seen == [(np.ndarray, np.dtype(dtype), image.shape, 0.0)]


def test_a_context_tells_functions_the_time_that_it_is_given(device):
    times = []

    def look(frame, t):
        times.append(t)
        return frame

    with gpu.start_pipeline(W, H) as context:
        gpu.process_frame(context, picture(), [look])
        gpu.process_frame(context, picture(), [look], time_s=1.5)
        gpu.process_frame_async(context, picture(), [look], time_s=2).wait()
        with pytest.raises(errors.ArgumentError, match="time_s is a finite number"):
            gpu.process_frame(context, picture(), [look], time_s="soon")
    assert times == [0.0, 1.5, 2.0]


def test_a_function_that_is_made_anew_for_each_frame_plans_nothing_anew(device, monkeypatch):
    want = gpu.invert(picture()) // 2
    with gpu.start_pipeline(W, H) as context:
        gpu.process_frame(context, picture(), ["invert", lambda frame, t: frame])
        monkeypatch.setattr(chain, "Chain", lambda *_: pytest.fail("it was planned anew"))
        for add in (1, 2):
            made = lambda frame, t, add=add: frame // 2 + add  # noqa: E731
            got = gpu.process_frame(context, picture(), ["invert", made])
            np.testing.assert_array_equal(got, want + add)


def test_what_a_function_keeps_of_its_results_is_its_own(device):
    kept = np.zeros((H, W, 3), np.uint8)

    def next_one(frame, t):
        kept[:] += 1
        return kept

    with gpu.start_pipeline(W, H) as context:
        first = gpu.process_frame(context, picture(), [next_one])
        second = gpu.process_frame(context, picture(), [next_one])
    assert (first == 1).all()
    assert (second == 2).all()


class Callable:
    def __call__(self, frame, t):
        raise KeyError


WRONG = [
    (
        lambda frame, t: frame[:3],
        errors.ShapeError,
        r"returned an array \(3, 17, 3\), but",
    ),
    (lambda frame, t: frame[..., 0], errors.ShapeError, r"returned an array \(12, 17\)"),
    (
        lambda frame, t: frame * 0.5,
        errors.DtypeError,
        "returned float64, but frames here are",
    ),
    (lambda frame, t: None, errors.ArgumentError, "returned nothing: return the frame"),
    (lambda frame, t: 3, errors.ArgumentError, "returned int, but it has to return an array"),
    (lambda frame, t: 1 / 0, errors.FunctionError, "raised ZeroDivisionError: division by zero"),
    (lambda frame, t: gpu.blur(frame, -1), errors.FunctionError, "raised ArgumentError: blur: rad"),
    (
        lambda frame: frame,
        errors.ArgumentError,
        "lambda .* is called with a frame, its",
    ),
    (functools.partial(brightened, to=2), errors.FunctionError, "brightened .* raised TypeError"),
    (Callable(), errors.FunctionError, "^Callable raised KeyError.$"),
]


@pytest.mark.parametrize(("function", "error", "said"), WRONG)
def test_a_function_that_is_wrong_is_named(device, function, error, said):
    with pytest.raises(error, match=said) as caught:
        gpu.filter_chain(picture(), [function])
    if "lambda" in said or error is not errors.ArgumentError:
        assert isinstance(function, Callable) or f"({HERE}, line" in str(caught.value)
    with pytest.raises(error, match=said):
        gpu.filter_chain(picture(), ["invert", function, "invert"])
    np.testing.assert_array_equal(gpu.filter_chain(picture(), [halved]), picture() // 2)


def test_the_error_of_a_function_is_the_cause(device):
    with pytest.raises(errors.FunctionError) as caught:
        gpu.apply_filter(picture(), lambda frame, t: gpu.blur(frame, -1))
    assert isinstance(caught.value.__cause__, errors.ArgumentError)


@dala.function
def inlined(x):
    return x


@pytest.mark.parametrize(
    ("filters", "error", "said"),
    [
        (tinted, errors.ArgumentError, "filters are a list such as"),
        (halved, errors.ArgumentError, "filters are a list such as"),
        ([3], errors.ArgumentError, "a filter is a name, a kernel or a function"),
        ([(tinted, 3)], errors.ArgumentError, "tinted: parameters are a mapping"),
        ([(halved, 3)], errors.ArgumentError, "halved .*: parameters are a mapping"),
        ([(tinted, {"amont": 3})], errors.ArgumentError, "Did you mean 'amount'"),
        ([(halved, {"by": 3})], errors.ArgumentError, r"Write it as def change\(frame, t, by\)"),
        ([mean_with], errors.ArgumentError, "mean_with takes 2 images .*: give layer=… too"),
        ([inlined], errors.ArgumentError, "inlined is a @dala.function, which kernels call"),
        ([light], errors.KernelTypeError, "returns one value for each pixel"),
    ],
)
def test_what_is_no_filter_is_refused_before_anything_runs(tmp_path, filters, error, said):
    with pytest.raises(error, match=said):
        gpu.filter_chain(picture(), filters)
    source = clips.write_clip(tmp_path / "clip.mp4", 2)
    with pytest.raises(error, match=said):
        media.transcode(source, tmp_path / "out.mp4", filters)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["clip.mp4"]


def test_a_function_takes_what_is_beside_the_frame_by_name():
    with pytest.raises(errors.ArgumentError, match="beside the frame and t by name"):
        gpu.apply_filter(picture(), brightened, 3)
    assert gpu.apply_filter(np.zeros((1, 1), np.uint8), brightened, by=3).tolist() == [[3]]


def test_a_function_is_no_stage_of_a_pipeline_and_so_in_no_document():
    x = compute.buffer_zeros((2,), "f32")
    with pytest.raises(errors.UnknownKernelError, match="is a Python function, not a kernel: dec"):
        compute.pipeline().add(kernel=lambda frame, t: frame, inputs=[x], output=x)
    with pytest.raises(errors.UnknownKernelError, match=r"decorate it with @dala.kernel"):
        compute.run_kernel(halved, [x], x)


# -- video -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return clips.write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", 12, sound=True)


def test_a_video_goes_through_kernels_and_functions_and_keeps_its_sound(device, clip, tmp_path):
    times = []

    def darken(frame, t, share=1.0):
        times.append(t)
        assert (frame.dtype, frame.shape) == (np.uint8, (clips.HEIGHT, clips.WIDTH, 3))
        return (frame * share).astype(np.uint8)

    filters = [(tinted, {"amount": 0.5}), (darken, {"share": 0.5}), "invert"]
    done = media.transcode(clip, tmp_path / "out.mkv", filters, codec="ffv1")
    assert times == pytest.approx([number / 10 for number in range(12)])
    assert clips.stream_bytes(done.path, "audio") == clips.stream_bytes(clip, "audio")
    into, back = ({"from": a, "to": b} for a, b in (("yuv420p", "rgb"), ("rgb", "yuv420p")))
    for before, after in zip(clips.planes(clip), clips.planes(done.path), strict=True):
        image = gpu.filter_chain(before, [("convert", into), (tinted, {"amount": 0.5})])
        image = gpu.invert((image * 0.5).astype(np.uint8))
        np.testing.assert_array_equal(gpu.convert(image, **back), after)


def test_frames_of_deep_video_are_u16(tmp_path):
    source = clips.write_clip(
        tmp_path / "deep.mkv", 2, codec="ffv1", pixels="yuv420p10le", options={}
    )
    kinds = []

    def look(frame, t):
        kinds.append(frame.dtype)
        return frame // 2

    media.transcode(source, tmp_path / "out.mkv", [look], codec="ffv1")
    assert kinds == [np.uint16] * 2


def test_a_function_after_one_that_changes_the_size_gets_that_size(clip, tmp_path):
    shapes = set()

    def look(frame, t):
        shapes.add(frame.shape)
        return frame

    half = ("resize", {"size": "50%"})
    done = media.transcode(clip, tmp_path / "out.mp4", [half, look], size=(20, 20), end=0.3)
    assert shapes == {(clips.HEIGHT // 2, clips.WIDTH // 2, 3)}
    assert done.size == (20, 20)


def test_a_function_gets_the_frames_of_turned_video_upright(tmp_path):
    source = clips.write_clip(tmp_path / "phone.mp4", 2, rotation=90)
    shapes = set()

    def look(frame, t):
        shapes.add(frame.shape)
        return frame

    media.transcode(source, tmp_path / "out.mp4", [look])
    assert shapes == {(clips.WIDTH, clips.HEIGHT, 3)}


def failing_from(number):
    calls = []

    def fail(frame, t):
        calls.append(t)
        if len(calls) > number:
            raise ValueError("that is enough")
        return frame

    return fail


@pytest.fixture
def short_segments(monkeypatch):
    monkeypatch.setattr(transcode, "FRAMES_IN_SEGMENT", 4)


@pytest.mark.parametrize("name", ["out.mp4", "out.gif", "frames"])
def test_the_error_of_a_function_names_the_frame_and_leaves_no_file(
    short_segments, clip, tmp_path, name
):
    said = rf"^frame 6, at 0\.600 s: fail \({HERE}, line \d+\) raised ValueError: that is enough\.$"
    with pytest.raises(errors.FunctionError, match=said) as caught:
        media.transcode(clip, tmp_path / name, [failing_from(6)])
    assert repr(caught.value.__cause__) == "ValueError('that is enough')"
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(errors.FunctionError, match=r"^frame 2, at 0\.500 s: "):
        media.transcode(clip, tmp_path / name, [failing_from(2)], start=0.3)
    said = r"^frame 0, at 0\.000 s: lambda .* returned float64"
    with pytest.raises(errors.DtypeError, match=said):
        media.transcode(clip, tmp_path / name, [lambda frame, t: frame * 0.5])
    assert list(tmp_path.iterdir()) == []
    assert media.transcode(clip, tmp_path / name, [halved]).frames == 12


_KILLED = """
import os, sys
from dala import media
from dala.media.video import transcode
transcode.FRAMES_IN_SEGMENT = 4
def progress(now):
    if now.frames == 10:
        os.kill(os.getpid(), 9)
media.transcode(sys.argv[1], sys.argv[2], [lambda frame, t: frame // 2], progress=progress)
"""


def test_a_run_with_a_function_is_never_resumed(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    done = subprocess.run([sys.executable, "-c", _KILLED, clip, target], check=False)
    assert done.returncode == -9
    (left,) = tmp_path.iterdir()
    assert len(list(left.glob("*.packets"))) >= 2
    for filters in ([halved], [lambda frame, t: frame // 2]):
        with pytest.raises(errors.ArgumentError, match="a Python function is among the filters"):
            media.transcode(clip, target, filters, resume=True)
    with pytest.raises(errors.ArgumentError, match="made from another source or with other sett"):
        media.transcode(clip, target, ["invert"], resume=True)
    assert left.exists()
    done = media.transcode(clip, target, [halved])
    assert (done.frames, done.resumed_frames) == (12, 0)
    whole = media.transcode(clip, tmp_path / "whole.mp4", [halved], resume=True)
    assert clips.frame_hashes(target) == clips.frame_hashes(whole.path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out.mp4", "whole.mp4"]


class Killed(Exception):
    pass


def kill_after_ten(now):
    if now.frames == 10:
        raise Killed


def kernel_times(factor):
    @dala.kernel(name="times")
    def times(image: dala.Image, amount: dala.f32 = 1.0):
        return image.pixel * (factor * amount)

    return times


def test_a_run_goes_on_with_the_same_kernel_and_with_no_other(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    with pytest.raises(Killed):
        media.transcode(clip, target, [kernel_times(0.5)], progress=kill_after_ten)
    for other in (kernel_times(0.25), (kernel_times(0.5), {"amount": 2.0}), scaled):
        with pytest.raises(errors.ArgumentError, match="cannot be resumed"):
            media.transcode(clip, target, [other], resume=True)
    done = media.transcode(clip, target, [kernel_times(0.5)], resume=True)
    assert (done.frames, done.resumed_frames) == (12, 8)


def test_a_run_does_not_go_on_with_another_kernel_of_the_same_name(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    compute.Kernel.register("times", kernel_times(0.5))
    with pytest.raises(Killed):
        media.transcode(clip, target, ["times"], progress=kill_after_ten)
    compute.Kernel.register("times", kernel_times(0.25), replace=True)
    with pytest.raises(errors.ArgumentError, match="cannot be resumed"):
        media.transcode(clip, target, ["times"], resume=True)
    compute.Kernel.register("times", kernel_times(0.5), replace=True)
    assert media.transcode(clip, target, ["times"], resume=True).resumed_frames == 8
