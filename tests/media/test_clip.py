"""The clip that the project makes itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from media import clips

from dala import errors
from dala.media.showcase.clip import SAMPLES_PER_S, tune, write_clip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    return write_clip(folder / "clip.mp4", seconds=1, size=(160, 96), rate=12)


def test_the_clip_is_h264_with_sound_of_the_same_length(made):
    with av.open(str(made)) as file:
        video, audio = file.streams.video[0], file.streams.audio[0]
        assert video.codec_context.name == "h264"
        assert (video.width, video.height, video.average_rate) == (160, 96, Fraction(12))
        assert video.pix_fmt == "yuv420p"
        assert audio.codec_context.name == "aac"
        frames = sum(1 for _ in file.decode(video))
        file.seek(0)
        samples = np.concatenate([chunk.to_ndarray() for chunk in file.decode(audio)], axis=1)
    assert frames == 12
    assert samples.shape[1] == pytest.approx(SAMPLES_PER_S, abs=2048)
    assert 0.02 < np.sqrt((samples**2).mean()) < 0.5
    assert [item.name for item in made.parent.iterdir()] == ["clip.mp4"]


def test_everything_in_it_moves_a_little(made):
    images = [image.astype(int) for image in clips.images(made)]
    steps = [np.abs(b - a).mean() for a, b in pairwise(images)]
    assert min(steps) > 0.3
    assert max(steps) < 20
    assert np.std(images[0]) > 40, "it is a picture, with colors"


def test_the_clip_is_the_same_at_every_call(made, tmp_path):
    again = write_clip(tmp_path / "again.mp4", seconds=1, size=(160, 96), rate=12)
    assert clips.frame_hashes(again) == clips.frame_hashes(made)


def test_the_tune_has_the_notes_and_never_clips():
    sound = tune(3.0)
    assert sound.dtype == np.float32
    assert sound.size == 3 * SAMPLES_PER_S
    assert np.abs(sound).max() < 1
    assert np.abs(sound[-10:]).max() < 0.01, "it fades out"
    first = sound[: int(0.3 * SAMPLES_PER_S)]
    spectrum = np.abs(np.fft.rfft(first * np.hanning(first.size)))
    strongest_hz = spectrum.argmax() * SAMPLES_PER_S / first.size
    assert strongest_hz == pytest.approx(523.25, abs=5)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("clip.webm", {}, r"\.mp4, \.mov or \.mkv"),
        ("clip.mp4", {"seconds": 0}, "seconds long"),
        ("clip.mp4", {"size": (63, 48)}, "even numbers"),
        ("clip.mp4", {"size": "63x48"}, "even numbers"),
        ("clip.mp4", {"size": 64}, r"size is \(width, height\), or a text such as '1280x720'"),
        ("clip.mp4", {"rate": 0}, "rate"),
    ],
)
def test_what_cannot_be_made_is_refused(tmp_path, name, options, text):
    with pytest.raises(errors.ArgumentError, match=text):
        write_clip(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(errors.FileError, match="there is no folder"):
        write_clip(tmp_path / "no" / "clip.mp4")
