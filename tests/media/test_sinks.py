"""What frames go to: pictures, folders, GIFs and pipes, whole or not there."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from media import clips
from media.picture_files import noise
from PIL import Image

from dala import errors, media
from dala.media.video.reading.source_opening import open_source
from dala.media.video.writing.sink_opening import open_sink

IMAGE = noise((6, 8, 3))


def names(folder) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def written(path, images, times=None, **options):
    with open_sink(path, **options) as sink:
        for number, image in enumerate(images):
            sink.write(image, times[number] if times else number / 10)
    return path


def taken_stdout(monkeypatch) -> io.BytesIO:
    """What standard output is from now on; a fixture would be undone before the test runs."""
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, isatty=lambda: False))
    return stream


# -- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".png", ".webp", ".tif"])
@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 3), (6, 8, 4)])
def test_a_picture_keeps_its_one_frame(tmp_path, suffix, shape):
    path = written(tmp_path / f"still{suffix}", [noise(shape)])
    mode = {2: "gray", 3: "rgb", 4: "rgba"}[shape[2] if len(shape) == 3 else 2]
    np.testing.assert_array_equal(media.load(path, mode=mode), noise(shape))
    assert names(tmp_path) == [path.name]


def test_frames_of_f32_are_rounded_and_clamped(tmp_path):
    image = np.array([[-1.0, 0.5, 2.0, np.nan]], np.float32)
    path = written(tmp_path / "still.png", [image])
    assert media.load(path).tolist() == [[0, 128, 255, 0]]


def test_a_picture_takes_a_copy_of_what_it_is_given(tmp_path):
    image = IMAGE.copy()
    with open_sink(tmp_path / "still.png") as sink:
        sink.write(image, 0.0)
        image[:] = 0
    np.testing.assert_array_equal(media.load(tmp_path / "still.png"), IMAGE)


def test_a_second_frame_of_a_picture_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(errors.ArgumentError, match=r"name a folder.*still/.*still-%05d\.png"):
        written(tmp_path / "still.png", [IMAGE, IMAGE])
    assert names(tmp_path) == []


def test_a_picture_takes_a_quality(tmp_path):
    small = written(tmp_path / "a.jpg", [clips.picture(1)], quality=10)
    large = written(tmp_path / "b.jpg", [clips.picture(1)], quality=95)
    assert small.stat().st_size < large.stat().st_size


# -- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frames", "frames.d/", "there"])
def test_a_folder_has_numbered_frames(tmp_path, name):
    (tmp_path / "there").mkdir()
    images = [noise((6, 8, 3)) // (number + 1) for number in range(3)]
    with open_sink(f"{tmp_path}/{name}") as sink:
        for number, image in enumerate(images):
            sink.write(image, number / 10)
        assert not (tmp_path / name).exists() or names(tmp_path / name) == []
    assert names(tmp_path / name) == ["000000.png", "000001.png", "000002.png"]
    with open_source(tmp_path / name) as source:
        for frame, want in zip(source, images, strict=True):
            np.testing.assert_array_equal(frame.image(), want)
    assert sorted({name.rstrip("/"), "there"}) == names(tmp_path)


def test_a_folder_with_files_in_it_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(errors.FileError, match="a folder with files in it"):
        open_sink(tmp_path)
    assert names(tmp_path) == ["mine.txt"]


def test_a_folder_that_was_filled_meanwhile_is_left_alone(tmp_path):
    sink = open_sink(tmp_path / "frames")
    sink.write(IMAGE, 0)
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "mine.txt").write_text("keep me")
    with pytest.raises(errors.FileError, match="frames cannot be written"):
        sink.close()
    assert names(tmp_path) == ["frames"]
    assert names(tmp_path / "frames") == ["mine.txt"]


def test_a_file_in_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "frames").write_text("a file")
    with pytest.raises(errors.FileError, match="is a file"):
        open_sink(tmp_path / "frames")


def test_a_pattern_numbers_pictures_of_any_format(tmp_path):
    written(tmp_path / "f-%03d.jpg", [IMAGE, IMAGE], quality=80)
    assert names(tmp_path) == ["f-000.jpg", "f-001.jpg"]
    with pytest.raises(errors.FileError, match=r"f-000\.jpg is there already"):
        open_sink(tmp_path / "f-%d.jpg")


@pytest.mark.parametrize("name", ["frames", "still.png", "f%d.png", "clip.gif", "clip.mp4"])
def test_an_error_leaves_nothing(tmp_path, name):
    sink = open_sink(tmp_path / name)
    with suppress(KeyError), sink:
        sink.write(clips.picture(0), 0.0)
        raise KeyError
    assert names(tmp_path) == []
    with pytest.raises(errors.ClosedError, match="no more frames"):
        sink.write(clips.picture(1), 0.1)
    sink.close()
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["frames", "still.png", "f%d.png", "clip.gif", "clip.mp4"])
def test_no_frames_are_an_error_that_leaves_nothing(tmp_path, name):
    with pytest.raises(errors.MediaError, match="not a single frame"):
        written(tmp_path / name, [])
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["still.png", "clip.gif"])
def test_what_was_there_is_replaced_only_by_what_is_whole(tmp_path, name):
    (tmp_path / name).write_bytes(b"before")
    sink = open_sink(tmp_path / name)
    sink.write(IMAGE, 0)
    assert (tmp_path / name).read_bytes() == b"before"
    sink.close()
    sink.close()
    assert (tmp_path / name).read_bytes() != b"before"
    assert names(tmp_path) == [name]


# -- GIFs ----------------------------------------------------------------------------------------


def few_colors(number: int, alpha: bool) -> np.ndarray:
    image = np.zeros((24, 32, 4), np.uint8)
    image[8:16, 2 + 4 * number : 12 + 4 * number] = (250, 40, 10, 255)
    image[18:22, :20] = (10, 60, 200, 255)
    return image if alpha else np.ascontiguousarray(image[..., :3])


@pytest.mark.parametrize("alpha", [False, True])
def test_a_gif_keeps_colors_times_and_transparency(tmp_path, alpha):
    images = [few_colors(number, alpha) for number in range(4)]
    times = [0.0, 0.05, 0.15, 0.35]
    path = written(tmp_path / "a.gif", images, times)
    with open_source(path) as source:
        frames = list(source)
    assert [frame.time_s for frame in frames] == pytest.approx(times)
    with Image.open(path) as reference:
        assert reference.info["loop"] == 0
        for number, want in enumerate(images):
            reference.seek(number)
            assert reference.info["duration"] == [50, 100, 200, 200][number]
            for got in (np.array(reference.convert("RGBA")), frames[number].image()):
                shown = want[..., 3] > 0 if alpha else np.ones((24, 32), bool)
                np.testing.assert_array_equal(got[..., 3] > 0, shown)
                np.testing.assert_array_equal(got[shown][:, :3], want[shown][:, :3])


def test_a_gif_has_colors_near_those_of_its_frames(tmp_path):
    path = written(tmp_path / "a.gif", [clips.picture(number) for number in range(3)])
    for number, got in enumerate(clips.images(path)):
        apart = np.abs(got.astype(int) - clips.picture(number))
        assert apart.mean() < 10


def test_a_gray_gif_keeps_every_level(tmp_path):
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    path = written(tmp_path / "a.gif", [image, image.T.astype(np.float32) / 255])
    for got, want in zip(clips.images(path), (image, image.T), strict=True):
        np.testing.assert_array_equal(got, np.repeat(want[..., None], 3, -1))


def test_frames_that_players_would_slow_down_are_left_out_of_a_gif(tmp_path):
    images = [few_colors(number % 4, False) for number in range(12)]
    path = written(tmp_path / "a.gif", images, [number / 60 for number in range(12)])
    with Image.open(path) as gif:
        lengths = []
        for number in range(gif.n_frames):
            gif.seek(number)
            lengths.append(gif.info["duration"])
    assert min(lengths) >= 20
    assert sum(lengths) == pytest.approx(200, abs=20)


# -- raw frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(6, 8), (6, 8, 3), (6, 8, 4)])
@pytest.mark.parametrize("pixel_format", ["gray", "rgb", "rgba"])
def test_raw_frames_are_of_one_format(monkeypatch, given, pixel_format):
    stdout = taken_stdout(monkeypatch)
    image = noise(given)
    with open_sink("-", pixel_format=pixel_format) as sink:
        sink.write(image, 0.0)
        sink.write(image.astype(np.float32) / 255, 0.1)
    mode = {"gray": "L", "rgb": "RGB", "rgba": "RGBA"}[pixel_format]
    want = np.array(Image.fromarray(image).convert(mode))
    got = np.frombuffer(stdout.getvalue(), np.uint8).reshape(2, *want.shape).astype(int)
    # Luma is the one value that is computed.
    apart = 2 if pixel_format == "gray" and len(given) == 3 else 0
    assert np.abs(got - want).max() <= apart


def test_raw_frames_come_back_as_they_went(monkeypatch):
    stdout = taken_stdout(monkeypatch)
    images = [clips.picture(number) for number in range(3)]
    written("-", images, pixel_format="yuv420p")
    assert len(stdout.getvalue()) == 3 * clips.WIDTH * clips.HEIGHT * 3 // 2
    stdin = SimpleNamespace(buffer=io.BytesIO(stdout.getvalue()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    size = (clips.WIDTH, clips.HEIGHT)
    with open_source("-", size=size, pixel_format="yuv420p") as source:
        for frame, want in zip(source, images, strict=True):
            assert np.abs(frame.image().astype(int) - want).mean() < 4


def test_a_reader_that_is_gone_is_a_broken_pipe(monkeypatch):
    def refuse(data):
        raise BrokenPipeError

    stream = SimpleNamespace(write=refuse, flush=lambda: None)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stream, isatty=lambda: False))
    with pytest.raises(BrokenPipeError):
        written("-", [IMAGE])


def test_raw_frames_are_not_for_terminals(monkeypatch):
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=None, isatty=lambda: True))
    with pytest.raises(errors.ArgumentError, match="terminal"):
        open_sink("-")


def test_raw_formats_that_are_unknown_or_do_not_fit_are_refused(monkeypatch):
    taken_stdout(monkeypatch)
    with pytest.raises(errors.ArgumentError, match="rgba, rgb, gray, yuv420p"):
        open_sink("-", pixel_format="bgr")
    with pytest.raises(errors.ArgumentError, match="even numbers"):
        written("-", [IMAGE[:5]], pixel_format="yuv420p")


# -- what is refused everywhere ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["frames", "clip.gif", "clip.mp4", "f%d.png"])
def test_frames_are_of_one_size_and_in_order(tmp_path, name):
    image = clips.picture(0)
    with pytest.raises(errors.ShapeError, match="frame 1 is 64 × 40, but the output is 64 × 48"):
        written(tmp_path / name, [image, image[:40]])
    with pytest.raises(errors.ShapeError, match="frame 0 is 64 × 48, but the output is 8 × 6"):
        written(tmp_path / name, [image], size=(8, 6))
    with pytest.raises(errors.ArgumentError, match="order of their times"):
        written(tmp_path / name, [image, image], [1.0, 1.0])
    with pytest.raises(errors.ArgumentError, match="seconds from 0 on"):
        written(tmp_path / name, [image], [-1.0])
    with pytest.raises(errors.DtypeError, match="frame 0: the image is float64"):
        written(tmp_path / name, [image / 255])
    assert names(tmp_path) == []


def test_a_time_that_is_nearly_zero_is_zero(tmp_path):
    written(tmp_path / "still.png", [IMAGE], [0.1 + 0.2 - 0.3 - 1e-9])
    assert names(tmp_path) == ["still.png"]


@pytest.mark.parametrize("name", ["still.png", "frames", "clip.gif", "clip.mp4", "f%d.png"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    with pytest.raises(errors.FileError, match="there is no folder"):
        open_sink(tmp_path / "no" / name)


@pytest.mark.parametrize(
    ("path", "options", "text"),
    [
        ("", {}, "named by"),
        ("clip.xyz", {}, r"\.xyz"),
        ("clip.mp4", {"pixel_format": "rgb"}, "standard output"),
        ("clip.mp4", {"rate": -1}, "rate is"),
        ("clip.mp4", {"codec": "h265x"}, "codec"),
        ("clip.gif", {"size": (1, 2, 3)}, r"size is \(width, height\)"),
    ],
)
def test_what_cannot_be_written_is_refused_at_once(tmp_path, monkeypatch, path, options, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.ArgumentError, match=text):
        open_sink(path, **options)
    assert names(tmp_path) == []
