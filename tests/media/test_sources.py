"""What frames come from: videos, GIFs, pictures, folders and pipes, told apart by their bytes."""

from __future__ import annotations

import io
import os
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from media import clips
from PIL import Image

from dala import errors, media
from dala.media.video.reading.source_opening import open_source
from dala.media.video.reading.uncompressed_source import checked_rate
from dala.media.video.reading.video_file import VideoFile


def all_of(path, **options):
    with open_source(path, **options) as source:
        return source.info, list(source)


def moving(count: int = 4, alpha: bool = True) -> list[np.ndarray]:
    """A square that moves over nothing, of few colors, so that a palette keeps all."""
    frames = []
    for number in range(count):
        image = np.zeros((24, 32, 4), np.uint8)
        image[4:12, 4 + 5 * number : 12 + 5 * number] = (255, 40, 0, 255)
        image[16:20] = (0, 90, 200, 255)
        frames.append(image if alpha else np.ascontiguousarray(image[..., :3]))
    return frames


def save_animated(path, frames, **options):
    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=[50, 100, 200, 70], **options)
    return path


def pipe(monkeypatch, data: bytes, *, terminal: bool = False) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: terminal)
    monkeypatch.setattr(sys, "stdin", stdin)


# -- files ---------------------------------------------------------------------------------------


def test_a_video_is_opened_whatever_its_suffix(tmp_path):
    path = clips.write_clip(tmp_path / "clip.mp4", 3).rename(tmp_path / "clip.png")
    with open_source(path) as source:
        assert isinstance(source, VideoFile)
        assert len(list(source)) == 3


PICTURES = [
    (suffix, pixel_format)
    for suffix in (".png", ".jpg", ".webp", ".tiff", ".bmp", ".avif", ".heic")
    for pixel_format in ("gray", "rgb24", "rgba")
    if pixel_format != "rgba" or suffix not in (".jpg", ".bmp")  # which have no transparency
]


@pytest.mark.parametrize(("suffix", "pixel_format"), PICTURES)
def test_a_picture_is_a_video_of_one_frame(tmp_path, suffix, pixel_format):
    image = {"gray": moving()[1][..., 0], "rgb24": moving(alpha=False)[1], "rgba": moving()[1]}
    path = tmp_path / f"still{suffix}"
    media.save(image[pixel_format], path)
    info, frames = all_of(path)
    assert (info.size, info.frame_count, info.rate) == ((32, 24), 1, 30)
    assert info.duration_s == pytest.approx(1 / 30)
    assert len(frames) == 1
    assert (frames[0].index, frames[0].time_s, frames[0].decoded.pts) == (0, 0.0, 0)
    wide = media.load(path, mode="rgba" if pixel_format == "rgba" else "rgb")
    np.testing.assert_array_equal(frames[0].image(), wide)


@pytest.mark.parametrize("disposal", [0, 1, 2])
@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.webp"])
def test_animated_pictures_keep_times_and_transparency(tmp_path, name, disposal):
    how = {"lossless": True, "exact": True} if name == "a.webp" else {"disposal": disposal}
    path = save_animated(tmp_path / name, moving(), **how)
    info, frames = all_of(path)
    assert info.size == (32, 24)
    assert [frame.time_s for frame in frames] == pytest.approx([0, 0.05, 0.15, 0.35])
    assert [frame.index for frame in frames] == [0, 1, 2, 3]
    with Image.open(path) as reference:
        for number, frame in enumerate(frames):
            assert float(frame.decoded.pts * frame.decoded.time_base) == pytest.approx(frame.time_s)
            reference.seek(number)
            want, got = np.array(reference.convert("RGBA")), frame.image()
            np.testing.assert_array_equal(got[..., 3], want[..., 3])
            np.testing.assert_array_equal(got[want[..., 3] > 0], want[want[..., 3] > 0])


def test_an_animated_webp_is_read_twice_and_sought(tmp_path):
    path = save_animated(tmp_path / "a.webp", moving(alpha=False), lossless=True)
    with open_source(path) as source:
        assert source.info.frame_count == 4
        assert source.info.rate == Fraction(4000, 420)
        for _ in range(2):
            for frame, want in zip(source, moving(alpha=False), strict=True):
                np.testing.assert_array_equal(frame.image()[..., :3], want)
        source.seek(0.1)
        assert [(frame.index, frame.time_s) for frame in source] == [(0, 0.15), (1, 0.35)]


def test_every_frame_of_an_animated_avif_is_read(tmp_path):
    levels = (20, 90, 160, 230)
    images = [np.full((24, 32, 3), level, np.uint8) for level in levels]
    path = save_animated(tmp_path / "a.avif", images, quality=100)
    with open_source(path) as source:
        assert (source.info.size, source.info.frame_count) == ((32, 24), 4)
        found = [(frame.time_s, frame.image().mean()) for frame in source]
    assert [time_s for time_s, _ in found] == pytest.approx([0, 0.05, 0.15, 0.35])
    assert [level for _, level in found] == pytest.approx(levels, abs=2)


def test_an_animated_webp_that_is_cut_is_refused(tmp_path):
    path = save_animated(tmp_path / "a.webp", moving(), lossless=True)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(errors.MediaError, match=r"a\.webp"):
        all_of(path)


@pytest.mark.parametrize("time_s", [0.0, 0.4, 2.1, 2.95])
def test_a_file_without_an_index_begins_where_it_is_told_to(tmp_path, time_s):
    path = clips.write_clip(tmp_path / "clip.ts", 30, options={"crf": "10", "g": "8"})
    with open_source(path) as source:
        whole = [frame.time_s for frame in source]
        assert whole == pytest.approx([number / 10 for number in range(30)])
        source.seek(time_s)
        assert [frame.time_s for frame in source] == [t for t in whole if t >= time_s - 1e-9]


# -- folders -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "frames"
    path.mkdir()
    for number in (1, 2, 10, 11):
        media.save(np.full((6, 8, 3), number, np.uint8), path / f"f{number}.png")
    return path


def first_levels(frames) -> list[int]:
    return [int(frame.image()[0, 0, 0]) for frame in frames]


def test_a_folder_is_read_in_the_order_of_its_numbers(folder):
    (folder / "notes.txt").write_text("not a frame")
    (folder / ".f0.png").write_bytes(b"hidden")
    info, frames = all_of(folder, rate=4)
    assert first_levels(frames) == [1, 2, 10, 11]
    assert [frame.time_s for frame in frames] == [0, 0.25, 0.5, 0.75]
    assert (info.rate, info.frame_count, info.duration_s, info.size) == (4, 4, 1.0, (8, 6))
    assert info.pixel_format == frames[0].decoded.format.name == "rgb24"


def test_a_pattern_names_some_files_of_a_folder(folder):
    media.save(np.zeros((6, 8, 3), np.uint8), folder / "g3.png")
    assert first_levels(all_of(folder / "f%02d.png")[1]) == [1, 2, 10, 11]
    with pytest.raises(errors.FileError, match=r"named as .*h%d\.png says"):
        open_source(folder / "h%d.png")
    with pytest.raises(errors.FileError, match="named as"):
        open_source(folder / "no" / "h%d.png")


@pytest.mark.parametrize(("time_s", "left"), [(0, 4), (0.25, 3), (0.26, 2), (0.75, 1), (9, 0)])
def test_a_folder_begins_where_it_is_told_to(folder, time_s, left):
    with open_source(folder, rate=4) as source:
        source.seek(time_s)
        frames = list(source)
        assert len(frames) == left
        assert [frame.index for frame in frames] == list(range(left))
        assert all(frame.time_s >= time_s for frame in frames)
        assert len(list(source)) == 4, "a seek is for one iteration"


def test_a_frame_of_another_size_is_named(folder):
    media.save(np.zeros((6, 9, 3), np.uint8), folder / "f10.png")
    with pytest.raises(errors.MediaError, match=r"f10\.png is 9 × 6, but f1\.png is 8 × 6"):
        all_of(folder)


def test_frames_of_a_folder_have_the_channels_of_the_first(folder):
    media.save(np.full((6, 8), 9, np.uint8), folder / "f2.png")
    opaque = np.full((6, 8, 4), 255, np.uint8)
    media.save(opaque, folder / "f10.png")
    _, frames = all_of(folder)
    assert {frame.image().shape for frame in frames} == {(6, 8, 3)}
    assert first_levels(frames) == [1, 9, 255, 11]
    media.save(opaque, folder / "f0.png")
    _, frames = all_of(folder)
    assert {frame.image().shape for frame in frames} == {(6, 8, 4)}
    assert {int(frame.image()[..., 3].min()) for frame in frames} == {255}


def test_transparency_after_an_opaque_first_frame_is_refused(folder):
    media.save(np.full((6, 8, 4), 9, np.uint8), folder / "f10.png")
    with pytest.raises(errors.MediaError, match=r"f10\.png has transparency"):
        all_of(folder)


def test_a_damaged_frame_is_named(folder):
    (folder / "f10.png").write_bytes((folder / "f10.png").read_bytes()[:-5])
    with pytest.raises(errors.MediaError, match=r"f10\.png"):
        all_of(folder)


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(errors.FileError, match="no picture in it"):
        open_source(tmp_path)


# -- raw frames ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pixel_format", "shape"), [("rgba", (6, 8, 4)), ("rgb", (6, 8, 3)), ("gray", (6, 8))]
)
def test_raw_frames_are_told_apart_by_size_and_format(monkeypatch, pixel_format, shape):
    data = np.random.default_rng(3).integers(0, 256, (3, *shape), dtype=np.uint8)
    pipe(monkeypatch, data.tobytes())
    info, frames = all_of("-", size=(8, 6), pixel_format=pixel_format, rate=Fraction(25))
    assert (info.size, info.rate, info.frame_count, info.duration_s) == ((8, 6), 25, None, None)
    assert [frame.time_s for frame in frames] == pytest.approx([0, 0.04, 0.08])
    for frame, want in zip(frames, data, strict=True):
        wide = want if want.ndim == 3 else np.repeat(want[..., None], 3, -1)
        np.testing.assert_array_equal(frame.image(), wide)


def test_raw_yuv_stays_as_it_is(monkeypatch):
    data = np.random.default_rng(3).integers(16, 236, (2, 9, 8), dtype=np.uint8)
    pipe(monkeypatch, data.tobytes())
    _, frames = all_of("-", size=(8, 6), pixel_format="yuv420p")
    for frame, want in zip(frames, data, strict=True):
        np.testing.assert_array_equal(frame.decoded.to_ndarray(), want)


def test_raw_frames_come_in_pieces_as_pipes_give_them(monkeypatch):
    reader, writer = os.pipe()
    os.write(writer, bytes(100))
    with os.fdopen(reader, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        source = open_source("-", size=(10, 10), pixel_format="gray")
        frames = iter(source)
        assert next(frames).image().shape == (10, 10, 3)
        os.write(writer, bytes(60))
        os.write(writer, bytes(40))
        assert next(frames).index == 1
        os.close(writer)
        assert next(frames, None) is None


def test_raw_frames_are_put_together_from_short_reads(monkeypatch):
    class Slow(io.BytesIO):
        def readinto(self, room):
            return super().readinto(room[:7])

    data = bytes(range(96))
    stdin = SimpleNamespace(buffer=Slow(data), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    _, frames = all_of("-", size=(8, 6), pixel_format="gray")
    assert b"".join(frame.image()[..., 0].tobytes() for frame in frames) == data


def test_a_partial_raw_frame_says_how_much_is_missing(monkeypatch):
    pipe(monkeypatch, bytes(8 * 6 * 4 + 100))
    with pytest.raises(errors.MediaError, match="within frame 1: 92 bytes of its 192 are missing"):
        all_of("-", size=(8, 6))


def test_no_raw_bytes_are_no_frames(monkeypatch):
    pipe(monkeypatch, b"")
    assert all_of("-", size=(8, 6))[1] == []


def test_raw_frames_can_be_passed_over(monkeypatch):
    pipe(monkeypatch, bytes(range(6)))
    with open_source("-", size=(1, 1), pixel_format="gray", rate=2) as source:
        source.seek(2)
        assert first_levels(source) == [4, 5]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "give size"),
        ({"size": (8,)}, r"not \(8,\)"),
        ({"size": "50%"}, "a text such as '1280x720', not '50%'"),
        ({"size": (0, 8)}, r"not \(0, 8\)"),
        ({"size": (8, 6.0)}, "an integer, not 6.0"),
        ({"size": (8, 6), "pixel_format": "rbg"}, "rgba, rgb, gray, yuv420p"),
        ({"size": (7, 6), "pixel_format": "yuv420p"}, "even numbers"),
        ({"size": (8, 6), "rate": 0}, "not 0"),
    ],
)
def test_raw_frames_that_cannot_be_told_apart_are_refused(monkeypatch, options, text):
    pipe(monkeypatch, b"")
    with pytest.raises(errors.ArgumentError, match=text):
        open_source("-", **options)


def test_a_raw_frame_that_is_too_large_is_refused(monkeypatch):
    pipe(monkeypatch, b"")
    with pytest.raises(errors.LimitError, match="60,000 × 60,000"):
        open_source("-", size=(60000, 60000))


def test_a_terminal_gives_no_raw_frames(monkeypatch):
    pipe(monkeypatch, b"", terminal=True)
    with pytest.raises(errors.ArgumentError, match="terminal"):
        open_source("-", size=(8, 6))


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["http://host/clip.mp4", "https:x", "concat:a.mp4|b.mp4", "pipe:0", "file:/etc/passwd",
             "rtsp://camera", "data:video/mp4;base64,AAAA", "lavfi:testsrc"],
)  # fmt: skip
def test_addresses_are_refused(name):
    with pytest.raises(errors.ArgumentError, match="is an address"):
        open_source(name)


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clips.write_clip(tmp_path / "a.mp4", 2).rename(tmp_path / "at:ten.mp4")
    assert len(all_of(tmp_path / "at:ten.mp4")[1]) == 2
    assert len(all_of("./at:ten.mp4")[1]) == 2
    with pytest.raises(errors.ArgumentError, match=r"give \./at:ten\.mp4"):
        open_source("at:ten.mp4")


@pytest.mark.parametrize("name", ["", None, 3])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(errors.ArgumentError, match="named by"):
        open_source(name)


def test_a_missing_file_and_one_that_is_no_file_are_refused(tmp_path):
    with pytest.raises(errors.FileError, match=r"no\.mp4 is not there"):
        open_source(tmp_path / "no.mp4")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.FileError, match="give -"):
        open_source(tmp_path / "pipe")


def test_options_that_a_file_does_not_have_are_refused(tmp_path):
    path = clips.write_clip(tmp_path / "clip.mp4", 2)
    with pytest.raises(errors.ArgumentError, match="standard input"):
        open_source(path, size=(8, 6))
    with pytest.raises(errors.ArgumentError, match="times of its own"):
        open_source(path, rate=30)


def test_a_closed_source_is_not_read(folder):
    source = open_source(folder)
    source.close()
    source.close()
    with pytest.raises(errors.ClosedError):
        next(iter(source))


@pytest.mark.parametrize(
    ("given", "want"),
    [(29.97, Fraction(30000, 1001)), (23.976, Fraction(24000, 1001)), (12.5, Fraction(25, 2)),
     (30.0, Fraction(30)), (Fraction(24, 7), Fraction(24, 7)), (0.1, Fraction(1, 10))],
)  # fmt: skip
def test_rates_are_those_that_are_meant(given, want):
    assert checked_rate(given) == want


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1001, "30", True])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(errors.ArgumentError, match="rate is frames in a second"):
        checked_rate(rate)
