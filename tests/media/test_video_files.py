"""Video files read: what is known of them, their frames in order, and from any time on."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from media.clips import HEIGHT, WIDTH, picture, write_clip

from dala import errors, media


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", 25, sound=True)


def test_a_video_tells_what_it_is(clip):
    with media.open(clip) as video:
        info = video.info
        assert info.size == (WIDTH, HEIGHT)
        assert info.rate == Fraction(10)
        assert info.duration_s == pytest.approx(2.5)
        assert info.frame_count == 25
        assert (info.pixel_format, info.bits, info.codec) == ("yuv420p", 8, "h264")
        assert [item.kind for item in info.streams] == ["video", "audio"]
        assert repr(video) == "<VideoFile clip.mp4 64 × 48 2.50 s>"


def test_frames_come_in_order_with_their_times_and_pixels(clip):
    with media.open(clip) as video:
        for _ in range(2):  # each iteration begins anew
            frames = list(video)
            assert [frame.index for frame in frames] == list(range(25))
            assert [frame.time_s for frame in frames] == pytest.approx([i / 10 for i in range(25)])
            for number in (0, 13, 24):
                got = frames[number].image()
                assert got.shape == (HEIGHT, WIDTH, 3)
                assert np.abs(got.astype(int) - picture(number)).mean() < 6


@pytest.mark.parametrize("time_s", [0, 0.05, 0.7, 1.234, 2.4])
def test_a_search_begins_with_the_first_frame_at_that_time_or_after(clip, time_s):
    with media.open(clip) as video:
        video.seek(time_s)
        first = next(iter(video))
        assert first.time_s == pytest.approx(np.ceil(round(time_s * 10, 6)) / 10)
        everything = next(iter(video))
        assert everything.time_s == 0


def test_deep_colors_are_u16(tmp_path):
    path = write_clip(tmp_path / "deep.mkv", 2, codec="ffv1", pixels="yuv420p10le", options={})
    with media.open(path) as video:
        assert video.info.bits == 10
        image = next(iter(video)).image()
    assert image.dtype == np.uint16
    assert len(np.unique(image)) > 256


def test_a_closed_video_and_wrong_times_are_refused(clip):
    video = media.open(clip)
    for wrong in (-1, float("nan"), "1"):
        with pytest.raises(errors.ArgumentError, match="seconds from 0 on"):
            video.seek(wrong)
    video.close()
    video.close()
    with pytest.raises(errors.ClosedError, match="open it again"):
        next(iter(video))
