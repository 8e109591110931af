"""Videos made into others: what is filtered, what survives, what a killed run goes on from."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import av
import numpy as np
import pytest
from media import clips

from dala import errors, media
from dala.media import gpu
from dala.media.video import transcode
from dala.media.video.writing import segments


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return clips.write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", 12, sound=True)


CHAIN = [("blur", {"radius": 2}), ("saturation", {"value": 0.3})]


def test_every_frame_is_filtered(device, clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mkv", CHAIN, codec="ffv1")
    assert done.frames == 12
    assert done.size == (clips.WIDTH, clips.HEIGHT)
    into, back = ({"from": a, "to": b} for a, b in (("yuv420p", "rgb"), ("rgb", "yuv420p")))
    chain = [("convert", into), *CHAIN, ("convert", back)]
    for before, after in zip(clips.planes(clip), clips.planes(done.path), strict=True):
        np.testing.assert_array_equal(gpu.filter_chain(before, chain), after)


def test_filters_that_add_transparency_are_filtered_too(clip, tmp_path):
    key = [("chroma_key", {"color": "#00ff00"}), "invert"]
    assert media.transcode(clip, tmp_path / "out.mp4", key).frames == 12


def test_without_filters_frames_stay_as_they_were(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mkv", codec="ffv1")
    assert clips.frame_hashes(done.path) == clips.frame_hashes(clip)


def test_sound_is_copied_and_not_coded_anew(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mp4", ["invert"])
    assert clips.stream_bytes(done.path, "audio") == clips.stream_bytes(clip, "audio")


def test_ffprobe_finds_nothing_wrong_with_what_is_written(short_segments, clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mp4", CHAIN)
    video, audio = clips.probed(done.path)
    assert (video["codec_name"], video["nb_frames"], video["avg_frame_rate"]) == (
        "h264", "12", "10/1",
    )  # fmt: skip
    assert (audio["codec_name"], audio["sample_rate"]) == ("aac", "48000")


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_uneven_times_turns_tags_and_chapters_survive(tmp_path, suffix):
    times = [0, 1, 4, 5, 9, 15, 16]
    tags = {"color_primaries": 1, "color_trc": 1, "colorspace": 1, "color_range": 1}
    chapters = [
        {"id": 1, "start": 0, "end": 5, "time_base": Fraction(1, 10), "metadata": {"title": "one"}},
        {
            "id": 2,
            "start": 5,
            "end": 16,
            "time_base": Fraction(1, 10),
            "metadata": {"title": "two"},
        },
    ]
    source = clips.write_clip(
        tmp_path / f"clip{suffix}", times=times, rotation=90, tags=tags, chapters=chapters
    )
    done = media.transcode(source, tmp_path / f"out{suffix}", ["invert"])
    with media.open(source) as before, media.open(done.path) as after:
        assert [frame.time_s for frame in after] == pytest.approx([item / 10 for item in times])
        assert after.info.rotation == before.info.rotation == 90
        assert after.info.colors == before.info.colors
        titles = [chapter["metadata"]["title"] for chapter in after.chapters]
        assert titles == ["one", "two"]


def test_a_part_begins_and_ends_where_it_should(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mp4", start=0.3, end=0.8)
    with media.open(done.path) as video:
        assert [frame.time_s for frame in video] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    with av.open(str(done.path)) as container:
        assert container.duration / 1e6 == pytest.approx(0.5, abs=0.06)


def test_a_part_of_a_source_that_begins_late_keeps_its_sound(tmp_path):
    source = clips.write_clip(tmp_path / "clip.ts", 20, sound=True)
    done = media.transcode(source, tmp_path / "out.mkv", start=0.5, end=1.5)
    with av.open(str(done.path)) as container:
        packets = [item for item in container.demux(audio=0) if item.dts is not None]
    seconds = sum(item.duration * item.time_base for item in packets)
    assert float(seconds) == pytest.approx(1.0, abs=0.1)


def test_another_size_is_scaled(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mp4", size=(32, 24))
    assert done.size == (32, 24)
    with media.open(done.path) as video:
        assert video.info.size == (32, 24)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((32, 24), (32, 24)),
        ("32x24", (32, 24)),
        ("32x", (32, 24)),
        ((None, 26), (34, 26)),
        ("50%", (32, 24)),
        ("fit:31x99", (30, 24)),
        ("fit:128x128", (128, 96)),
        ("fill:20x40", (20, 40)),
        ("64x48", (64, 48)),
    ],
)
def test_sizes_that_follow_are_even_where_pixels_come_in_pairs(clip, tmp_path, given, made):
    done = media.transcode(clip, tmp_path / "out.mp4", size=given, end=0.2)
    with media.open(done.path) as video:
        assert done.size == video.info.size == made


def test_sizes_that_follow_need_not_be_even_in_pictures(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "frames", size="fit:31x99", end=0.2)
    assert done.size == (31, 23)
    assert media.load(tmp_path / "frames" / "000000.png").shape == (23, 31, 3)


def test_a_box_is_filled_with_the_middle_of_the_frames(clip, tmp_path):
    done = media.transcode(clip, tmp_path / "out.mkv", size="fill:20x40", codec="ffv1")
    part = ("crop", {"x": 20, "y": 0, "width": 24, "height": 48})
    resized = ("resize", {"size": (20, 40)})
    into, back = ({"from": a, "to": b} for a, b in (("yuv420p", "rgb"), ("rgb", "yuv420p")))
    chain = [("convert", into), part, resized, ("convert", back)]
    for before, after in zip(clips.planes(clip), clips.planes(done.path), strict=True):
        np.testing.assert_array_equal(gpu.filter_chain(before, chain), after)


def test_a_size_is_that_after_the_filters(clip, tmp_path):
    half = [("crop", {"width": 32}), "invert"]
    assert media.transcode(clip, tmp_path / "out.mp4", half, size="50%", end=0.2).size == (16, 24)


# -- what a player turns ---------------------------------------------------------------------------


@pytest.fixture(params=[90, 180, 270])
def turned(request, tmp_path):
    """A clip that players turn, and the number of quarter turns, counter-clockwise."""
    degrees = request.param
    path = tmp_path / "phone.mp4"
    clips.write_clip(path, 4, rotation=degrees if degrees < 180 else degrees - 360, sound=True)
    return path, degrees // 90


def shown(path):
    """The frames as a player shows them."""
    with media.open(path) as video:
        quarters = video.info.rotation % 360 // 90
        return [np.rot90(frame.image(), quarters) for frame in video]


def test_filters_see_frames_upright_and_players_go_on_turning_them(device, turned, tmp_path):
    path, quarters = turned
    part = ("crop", {"y": 4, "width": 20, "height": 24})
    done = media.transcode(path, tmp_path / "out.mkv", [part, "grayscale"], codec="ffv1")
    assert done.size == (20, 24)
    with media.open(path) as before, media.open(done.path) as after:
        assert after.info.rotation == before.info.rotation
        assert after.info.size == ((24, 20) if quarters % 2 else (20, 24))
    for before, after in zip(shown(path), shown(done.path), strict=True):
        want = gpu.filter_chain(np.ascontiguousarray(before), [part, "grayscale"])
        assert np.abs(want.astype(int) - after).mean() < 3


def test_a_size_is_that_which_a_player_shows(turned, tmp_path):
    path, quarters = turned
    width, height = (48, 64) if quarters % 2 else (64, 48)
    for given, made in (
        ((30, 20), (30, 20)),
        ("50%", (width // 2, height // 2)),
        (f"fit:{width // 2}x400", (width // 2, height // 2)),
    ):
        done = media.transcode(path, tmp_path / "out.mp4", size=given, end=0.2)
        assert done.size == made
        assert shown(done.path)[0].shape[:2] == made[::-1]
    whole = media.transcode(path, tmp_path / "out.mp4", end=0.2)
    assert whole.size == (width, height)


def test_pictures_of_a_video_that_is_turned_are_upright(turned, tmp_path):
    path, _ = turned
    done = media.transcode(path, tmp_path / "frames")
    pictures = [media.load(item) for item in sorted((tmp_path / "frames").iterdir())]
    assert done.size == pictures[0].shape[1::-1]
    for before, after in zip(shown(path), pictures, strict=True):
        np.testing.assert_array_equal(before, after)
    gif = media.transcode(path, tmp_path / "out.gif", size="50%")
    assert shown(gif.path)[0].shape[:2] == tuple(n // 2 for n in pictures[0].shape[:2])


def test_ten_bits_stay_ten(tmp_path):
    source = clips.write_clip(
        tmp_path / "deep.mkv", 3, codec="ffv1", pixels="yuv420p10le", options={}
    )
    done = media.transcode(source, tmp_path / "out.mkv", [("gamma", {"value": 1.4})], codec="ffv1")
    with media.open(source) as before, media.open(done.path) as after:
        assert after.info.bits == 10
        for old, new in zip(before, after, strict=True):
            want = gpu.gamma(old.image(), 1.4).astype(int)
            assert np.abs(want - new.image())[4:-4, 4:-4].mean() < 0.004 * 65535
            assert len(np.unique(new.image())) > 256


def test_pictures_become_video_and_video_becomes_pictures(clip, tmp_path):
    media.transcode(clip, tmp_path / "frames", ["invert"], end=0.3)
    assert len(list((tmp_path / "frames").iterdir())) == 3
    assert media.transcode(tmp_path / "frames", tmp_path / "back.mp4", rate=10).frames == 3
    media.transcode(clip, tmp_path / "first.png", end=0.1)
    assert media.transcode(tmp_path / "first.png", tmp_path / "one.mp4").frames == 1


def test_ten_bits_are_not_cut_by_a_codec_of_eight(tmp_path):
    source = clips.write_clip(
        tmp_path / "deep.mkv", 2, codec="ffv1", pixels="yuv420p10le", size=(96, 64), options={}
    )
    with pytest.raises(errors.ArgumentError, match="would cut the 10 bits"):
        media.transcode(source, tmp_path / "out.webm", codec="vp9")
    done = media.transcode(source, tmp_path / "out.webm", preset="ultrafast")
    with media.open(done.path) as video:
        assert video.info.bits == 10


def test_a_file_that_ends_too_soon_is_refused(tmp_path):
    whole = clips.write_clip(tmp_path / "whole.mp4", 60)
    fast, options = tmp_path / "fast.mp4", {"movflags": "faststart"}
    with av.open(str(whole)) as source, av.open(str(fast), "w", options=options) as out:
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                out.mux(packet)
    data = fast.read_bytes()
    fast.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(errors.MediaError, match="of 60 frames: it is cut off"):
        media.transcode(fast, tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()


@pytest.mark.parametrize("codec", ["h264", "hevc", "vp9", "av1"])
def test_each_codec_gives_a_file_that_plays(clip, tmp_path, codec):
    target = tmp_path / ("out.webm" if codec == "vp9" else "out.mkv")
    silent = clips.write_clip(tmp_path / "silent.mp4", 6, size=(96, 64))
    done = media.transcode(silent, target, codec=codec, quality=60, preset="ultrafast")
    assert len(clips.images(done.path)) == 6


# -- killed runs -----------------------------------------------------------------------------------


@pytest.fixture
def short_segments(monkeypatch):
    monkeypatch.setattr(transcode, "FRAMES_IN_SEGMENT", 4)


class Killed(Exception):
    pass


def _kill_after(count):
    def progress(now):
        if now.frames == count:
            raise Killed

    return progress


def test_a_killed_run_goes_on_to_the_same_frames(short_segments, clip, tmp_path):
    whole = media.transcode(clip, tmp_path / "whole.mp4", CHAIN)
    target = tmp_path / "out.mp4"
    with pytest.raises(Killed):
        media.transcode(clip, target, CHAIN, progress=_kill_after(10))
    assert not target.exists()
    done = media.transcode(clip, target, CHAIN, resume=True)
    assert (done.frames, done.resumed_frames) == (12, 8)
    assert clips.frame_hashes(target) == clips.frame_hashes(whole.path)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out.mp4", "whole.mp4"]


def test_a_run_without_resume_begins_anew(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    with pytest.raises(Killed):
        media.transcode(clip, target, CHAIN, progress=_kill_after(10))
    assert media.transcode(clip, target, CHAIN).resumed_frames == 0


def test_a_run_of_other_settings_is_not_resumed(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    with pytest.raises(Killed):
        media.transcode(clip, target, CHAIN, progress=_kill_after(10))
    with pytest.raises(errors.ArgumentError, match="cannot be resumed"):
        media.transcode(clip, target, ["invert"], resume=True)
    assert media.transcode(clip, target, CHAIN, resume=True).resumed_frames == 8


_RUN = """
import os, sys
from dala import media
from dala.media.video import transcode
transcode.FRAMES_IN_SEGMENT = 4
def progress(now):
    if now.frames == 10:
        os.kill(os.getpid(), 9)
media.transcode(sys.argv[1], sys.argv[2], ["invert"], progress=progress)
"""


def test_a_process_that_is_killed_leaves_nothing_under_the_name(short_segments, clip, tmp_path):
    target = tmp_path / "out.mp4"
    done = subprocess.run([sys.executable, "-c", _RUN, clip, target], check=False)
    assert done.returncode == -9
    assert not target.exists()
    whole = media.transcode(clip, tmp_path / "whole.mp4", ["invert"])
    resumed = media.transcode(clip, target, ["invert"], resume=True)
    assert resumed.resumed_frames in (4, 8)
    assert clips.frame_hashes(target) == clips.frame_hashes(whole.path)


def test_segments_are_counted_by_frames():
    assert segments.FRAMES_IN_SEGMENT >= 100


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"filters": ["blurr"]}, "Did you mean 'blur'"),
        ({"filters": [("blur", {"radius": -1})]}, "radius is 0 to"),
        ({"filters": [("blur", {"radios": 1})]}, "Did you mean 'radius'"),
        ({"codec": "h246"}, "Did you mean 'h264'"),
        ({"preset": "fats"}, "Did you mean 'fast'"),
        ({"quality": 101}, "from 0 to 100"),
        ({"size": (33, 20)}, "come in pairs"),
        ({"start": -1}, "seconds"),
        ({"start": 2, "end": 1}, "before it begins"),
        ({"start": 60}, "no frame in the part"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_left(clip, tmp_path, given, said):
    seen = []
    with pytest.raises(errors.DalaError, match=said):
        media.transcode(clip, tmp_path / "out.mp4", **given, progress=seen.append)
    assert not seen
    assert not list(tmp_path.iterdir())


def test_targets_that_cannot_be_are_refused(clip, tmp_path):
    with pytest.raises(errors.ArgumentError, match="is no video: codec and preset"):
        media.transcode(clip, tmp_path / "frames", codec="h264")
    with pytest.raises(errors.ArgumentError, match="an AVI keeps no times"):
        media.transcode(clip, tmp_path / "out.avi")
    with pytest.raises(errors.ArgumentError, match="at least 64 pixels"):
        media.transcode(clip, tmp_path / "out.mkv", codec="av1")
    assert not (tmp_path / "out.mkv").exists()
    with pytest.raises(errors.ArgumentError, match=r"no video is written as '\.xyz'"):
        media.transcode(clip, tmp_path / "out.xyz")
    with pytest.raises(errors.FileError, match="no folder"):
        media.transcode(clip, tmp_path / "nowhere" / "out.mp4")
    with pytest.raises(errors.ArgumentError, match="the source itself"):
        media.transcode(clip, clip)
