"""Videos that are written frame by frame."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import av
import numpy as np
import pytest
from media import clips
from PIL import Image

from dala import errors
from dala.gpu import compute
from dala.media.video.reading.source_opening import open_source
from dala.media.video.writing.video_writer import writer


def times_of(path) -> list[float]:
    with open_source(path) as source:
        return [frame.time_s for frame in source]


def write_all(path, images, **options):
    with writer(path, **options) as out:
        for image in images:
            out.write(image)
    return path


PICTURES = [clips.picture(number) for number in range(10)]


@pytest.mark.parametrize(
    ("name", "codec", "want"),
    [
        ("a.mp4", None, "h264"),
        ("a.mkv", "hevc", "hevc"),
        ("a.webm", None, "vp9"),
        ("a.mov", None, "h264"),
        ("a.mkv", "ffv1", "ffv1"),
        ("a.mov", "prores", "prores"),
    ],
)
def test_a_video_has_the_frames_that_were_written(tmp_path, name, codec, want):
    path = write_all(tmp_path / name, PICTURES, rate=25, codec=codec, quality=90)
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        assert stream.codec_context.codec.canonical_name == want
        assert (stream.width, stream.height) == (clips.WIDTH, clips.HEIGHT)
    assert times_of(path) == pytest.approx([number / 25 for number in range(10)], abs=1e-3)
    for got, picture in zip(clips.images(path), PICTURES, strict=True):
        assert np.abs(got.astype(int) - picture).mean() < 6  # chroma is halved
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_an_avi_keeps_its_frames_in_order(tmp_path):
    path = write_all(tmp_path / "a.avi", PICTURES, rate=25)
    times = times_of(path)
    assert times == sorted(times)
    for got, picture in zip(clips.images(path), PICTURES, strict=True):
        assert np.abs(got.astype(int) - picture).mean() < 6


def test_ffprobe_finds_nothing_wrong_with_what_is_written(tmp_path):
    path = write_all(tmp_path / "a.mp4", PICTURES, rate=29.97)
    (stream,) = clips.probed(path)
    assert stream["avg_frame_rate"] == "30000/1001"
    assert stream["nb_frames"] == "10"
    assert stream["color_range"] == "tv"
    assert stream["color_primaries"] == "bt709"
    assert stream["color_space"] == "smpte170m"


@pytest.mark.parametrize("height", [48, 720])
def test_colors_are_those_that_the_tags_promise(tmp_path, height):
    flat = np.empty((height, 64, 3), np.uint8)
    flat[:] = (200, 30, 60)
    path = write_all(tmp_path / "a.mkv", [flat], codec="ffv1")
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        luma, blue, red = (float(np.frombuffer(plane, np.uint8)[0]) for plane in frame.planes)
        kr, kb = (0.2126, 0.0722) if height == 720 else (0.299, 0.114)
        assert frame.colorspace == (1 if height == 720 else 6)
    y = (kr * 200 + (1 - kr - kb) * 30 + kb * 60) / 255
    want = (
        16 + 219 * y,
        128 + 112 * (60 / 255 - y) / (1 - kb),
        128 + 112 * (200 / 255 - y) / (1 - kr),
    )
    assert (luma, blue, red) == pytest.approx(want, abs=1.5)


def test_whatever_holds_an_image_is_taken(device, tmp_path):
    gray = PICTURES[0][..., 0]
    held = [
        PICTURES[0],
        Image.fromarray(PICTURES[0]),
        compute.from_numpy(PICTURES[0]),
        np.dstack([PICTURES[0], np.full(gray.shape, 255, np.uint8)]),
    ]
    path = write_all(tmp_path / "a.mkv", held, codec="ffv1")
    first, *others = clips.images(path)
    for other in others:
        np.testing.assert_array_equal(other, first)
    path = write_all(tmp_path / "b.mkv", [gray], codec="ffv1")
    assert np.abs(clips.images(path)[0].astype(int) - gray[..., None]).max() <= 2


def test_frames_keep_the_times_that_are_given(tmp_path):
    times = [0.0, 0.04, 0.5, 0.51, 2.0]
    with writer(tmp_path / "a.mkv", rate=25) as out:
        for number, time_s in enumerate(times):
            out.write(PICTURES[number], time_s)
        out.write(PICTURES[9])
    assert times_of(tmp_path / "a.mkv") == pytest.approx([*times, 2.04], abs=1e-3)


def test_frames_of_a_video_keep_pixels_times_and_tags(tmp_path):
    tags = {"color_primaries": 9, "color_trc": 16, "colorspace": 9, "color_range": 1}
    times = [0, 1, 5, 6]
    clip = clips.write_clip(tmp_path / "clip.mp4", times=times, tags=tags)
    with open_source(clip) as source, writer(tmp_path / "a.mkv", codec="ffv1") as out:
        for frame in source:
            before = frame.decoded.pts
            out.write(frame)
            assert frame.decoded.pts == before
    assert clips.frame_hashes(tmp_path / "a.mkv") == clips.frame_hashes(clip)
    assert times_of(tmp_path / "a.mkv") == pytest.approx([time / 10 for time in times], abs=1e-3)
    with open_source(tmp_path / "a.mkv") as made:
        assert vars(made.info.colors) == {
            "primaries": 9,
            "transfer": 16,
            "matrix": 9,
            "range": 1,
        }


def test_video_frames_of_other_colors_are_converted(tmp_path):
    clip = clips.write_clip(tmp_path / "clip.mkv", 1, codec="ffv1", pixels="bgr0")
    with open_source(clip) as source, writer(tmp_path / "a.mkv", codec="ffv1") as out:
        for frame in source:
            out.write(PICTURES[0], 0.0)
            out.write(frame, 0.1)
    image, frame = clips.images(tmp_path / "a.mkv")
    np.testing.assert_array_equal(image, frame)


@pytest.mark.parametrize("codec", ["h264", "hevc", "av1", "ffv1"])
@pytest.mark.parametrize("dtype", ["f32", "u16", "f16"])
def test_deep_images_get_ten_bits_where_the_codec_has_them(tmp_path, codec, dtype):
    ramp = np.linspace(0.25, 0.3, 640, dtype=np.float32)
    image = np.repeat(np.repeat(ramp[None, :, None], 64, 0), 3, -1)
    if dtype == "u16":
        image = np.rint(image * 65535).astype(np.uint16)
    elif dtype == "f16":
        image = image.astype(np.float16)
    path = write_all(tmp_path / "a.mkv", [image], codec=codec, quality=100)
    with open_source(path) as made:
        assert (made.info.bits, made.info.pixel_format) == (10, "yuv420p10le")
        got = next(iter(made)).image()
    assert got.dtype == np.uint16
    want = image / 65535 if dtype == "u16" else image
    assert np.abs(got / 65535 - want).max() < 3 / 1023
    assert len(np.unique(got[0, :, 1])) > 30, "of 8 bits there would be 14 levels"
    assert times_of(path) == [0.0]


def test_u8_gets_eight_bits(tmp_path):
    with open_source(write_all(tmp_path / "a.mp4", PICTURES)) as made:
        assert made.info.bits == 8


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"before")
    out = writer(path)
    with suppress(KeyError), out:
        out.write(PICTURES[0])
        raise KeyError
    assert path.read_bytes() == b"before"
    assert [item.name for item in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("a", {}, "without a suffix"),
        ("a.xyz", {}, r"\.xyz"),
        ("a.mp4", {"codec": "h246"}, "did you mean.*h264|h264"),
        ("a.mp4", {"quality": 101}, "quality"),
        ("a.mp4", {"preset": "quick"}, "preset"),
        ("a.mp4", {"rate": 0}, "rate"),
        ("a.mp4", {"size": "fit:64x48"}, "size is .width, height., or a text such as '1280x720'"),
        ("a.mp4", {"size": 64}, "size is .width, height."),
        ("", {}, "named by"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_frame(
    tmp_path, monkeypatch, name, options, text
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ArgumentError, match=text):
        writer(name, **options)


@pytest.mark.parametrize(("size", "text"), [((63, 48), "64 × 48"), ((64, 47), "64 × 48")])
def test_odd_sizes_are_refused_with_the_next_even_one(tmp_path, size, text):
    with pytest.raises(errors.ArgumentError, match=text):
        write_all(tmp_path / "a.mp4", [clips.picture(0, *size)])
    assert list(tmp_path.iterdir()) == []


def test_av1_that_is_too_small_is_refused(tmp_path):
    with pytest.raises(errors.ArgumentError, match="from 64 × 64 on"):
        write_all(tmp_path / "a.mp4", [clips.picture(0)], codec="av1")


def test_times_that_fall_together_are_refused(tmp_path):
    out = writer(tmp_path / "a.avi", rate=10)
    out.write(PICTURES[0], 0.0)
    with pytest.raises(errors.ArgumentError, match=r"0\.1 s apart"):
        out.write(PICTURES[1], 0.01)
    out.abandon()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc fills memory")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_short_clips_of_x265_have_times_whatever_its_memory_holds(tmp_path, count):
    path = tmp_path / "a.mp4"
    program = f"""
import numpy as np
from dala import media
with media.writer({str(path)!r}, codec="hevc", rate=10) as out:
    for _ in range({count}):
        out.write(np.zeros((64, 64, 3), np.uint8))
"""
    environment = {**os.environ, "MALLOC_PERTURB_": "85"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    with av.open(str(path)) as made:
        packets = [packet for packet in made.demux(video=0) if packet.pts is not None]
        times = [float(packet.pts * packet.time_base) for packet in packets]
        late = [float((packet.pts - packet.dts) * packet.time_base) for packet in packets]
    assert sorted(times) == pytest.approx([min(times) + 0.1 * i for i in range(count)], abs=0.002)
    assert 0 <= min(times) < 1
    assert 0 <= min(late) <= max(late) < 1
