"""Cameras, with a file in place of one: the newest frame wins."""

from __future__ import annotations

import builtins
import sys
import threading

import numpy as np
import pytest
from media import clips

from dala import errors
from dala.media.camera import camera
from dala.media.video.writing.video_writer import writer

cv2 = pytest.importorskip("cv2")

WAIT_S = 10.0
"""Longer than anything takes here, so that a mistake ends."""


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return clips.write_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", 12)


class Capture:
    """Stands in for OpenCV's: gives a frame whenever the test says so, and then ends or fails."""

    def __init__(self) -> None:
        self.turns = threading.Semaphore(1)  # the first frame is read while it is opened
        self.count = 0
        self.last = 1 << 30
        self.error: Exception | None = None
        self.asked: dict[int, float] = {}
        self.released = threading.Event()

    def read(self):
        assert self.turns.acquire(timeout=WAIT_S)
        if self.error is not None:
            raise self.error
        if self.count >= self.last:
            return False, None
        self.count += 1
        return True, np.full((6, 8, 3), self.count, np.uint8)

    def get(self, property):
        return 0.0

    def set(self, property, value):
        self.asked[property] = value

    def isOpened(self):
        return True

    def release(self):
        self.released.set()

    def unplug(self):
        self.last = 0
        self.turns.release(10)


@pytest.fixture
def capture(monkeypatch):
    made = Capture()
    monkeypatch.setattr(cv2, "VideoCapture", lambda device: made)
    yield made
    made.unplug()


def give(capture: Capture, live, frames: int) -> None:
    """Let the camera give frames, and wait until it has."""
    wanted = live._count + frames
    capture.turns.release(frames)
    with live._changed:
        assert live._changed.wait_for(lambda: live._count >= wanted, WAIT_S)


def test_a_file_stands_in_for_a_camera(clip):
    with camera(clip, rate=500) as live:
        assert (live.info.size, live.info.rate) == ((clips.WIDTH, clips.HEIGHT), 500)
        frames = list(live)
        assert live.ended
    assert frames[-1].index == 11, "the last frame is not lost"
    assert len(frames) + live.dropped == 12
    indices = [frame.index for frame in frames]
    assert indices == sorted(set(indices))
    for frame in frames:
        apart = np.abs(frame.image().astype(int) - clips.picture(frame.index))
        assert apart.mean() < 8


def test_a_file_is_shown_at_its_rate(clip):
    with camera(clip, rate=100) as live:
        times = [frame.time_s for frame in live]
    assert times[0] == 0.0
    assert times == sorted(times)
    assert times[-1] >= 0.11


def test_the_newest_frame_wins(capture):
    with camera() as live:
        assert live.read(WAIT_S).index == 0
        give(capture, live, 3)
        frame = live.read(WAIT_S)
        assert (frame.index, int(frame.image()[0, 0, 0]), live.dropped) == (3, 4, 2)
        assert live.read(0) is None
        assert not live.ended
        give(capture, live, 1)
        assert live.read(WAIT_S).index == 4
        assert live.dropped == 2
        capture.unplug()
    assert capture.released.is_set()


def test_a_read_waits_for_the_next_frame(capture):
    with camera() as live:
        live.read(WAIT_S)
        threading.Timer(0.05, capture.turns.release).start()
        assert live.read(WAIT_S).index == 1
        capture.unplug()


def test_iteration_ends_when_the_camera_is_unplugged(capture):
    capture.last = 2
    with camera() as live:
        frames = []
        for frame in live:
            frames.append(frame.index)
            capture.turns.release()
        assert frames == [0, 1]
        assert live.ended
        assert live.read(WAIT_S) is None


def test_the_last_frame_can_be_read_after_the_camera_is_gone(capture):
    capture.last = 1
    with camera() as live:
        capture.turns.release()
        assert capture.released.wait(WAIT_S)
        live._thread.join(WAIT_S)
        assert not live.ended
        assert live.read(WAIT_S).index == 0
        assert live.ended


def test_an_error_of_the_camera_is_raised_where_it_is_read(capture):
    with camera() as live:
        live.read(WAIT_S)
        capture.error = RuntimeError("cable on fire")
        capture.turns.release()
        with pytest.raises(errors.MediaError, match="camera 0 cannot be read: cable on fire"):
            live.read(WAIT_S)


def test_closing_ends_a_wait_and_a_second_time_does_nothing(capture):
    live = camera()
    live.read(WAIT_S)
    threading.Timer(0.05, lambda: (capture.unplug(), live.close())).start()
    assert list(live) == []
    live.close()
    assert live.ended
    with pytest.raises(errors.ClosedError, match=r"media\.camera"):
        live.read()


def test_frames_can_be_written(capture, tmp_path):
    capture.last = 3
    with camera() as live, writer(tmp_path / "a.mkv", codec="ffv1") as out:
        for frame in live:
            out.write(frame, frame.index / 30)
            capture.turns.release()
    levels = [int(image[0, 0, 0]) for image in clips.images(tmp_path / "a.mkv")]
    assert levels == pytest.approx([1, 2, 3], abs=1)


def test_a_camera_that_is_not_there_says_what_to_do(capfd):
    with pytest.raises(errors.DeviceError, match=r"camera 77 cannot be opened.*another number"):
        camera(77)
    assert capfd.readouterr().err == ""


def test_a_camera_without_a_picture_says_so(capture):
    capture.last = 0
    with pytest.raises(errors.DeviceError, match="gives no picture"):
        camera()
    assert capture.released.is_set()


def test_wishes_are_passed_on(capture):
    with camera(2, size=(1280, 720), rate=24) as live:
        assert live.info.size == (8, 6), "what it gives, not what it was asked for"
        capture.unplug()
    assert capture.asked[cv2.CAP_PROP_FRAME_WIDTH] == 1280
    assert capture.asked[cv2.CAP_PROP_FRAME_HEIGHT] == 720
    assert capture.asked[cv2.CAP_PROP_FPS] == 24


def test_without_opencv_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name == "cv2":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "cv2")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(errors.MediaError, match=r"dala-gpu\[camera\]"):
        camera(0)


@pytest.mark.parametrize(
    ("device", "options", "text"),
    [
        (-1, {}, "from 0 on"),
        (True, {}, "a number"),
        ("", {}, "a number"),
        (1.5, {}, "a number"),
        (0, {"size": (0, 5)}, "size is"),
        (0, {"rate": 0}, "rate is"),
    ],
)
def test_what_is_no_camera_is_refused(device, options, text):
    with pytest.raises(errors.ArgumentError, match=text):
        camera(device, **options)


def test_a_missing_file_in_place_of_a_camera_is_refused(tmp_path):
    with pytest.raises(errors.FileError, match="is not there"):
        camera(tmp_path / "video9")


def test_a_playlist_is_not_followed(tmp_path):
    (tmp_path / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nhttp://localhost:9/a.ts\n")
    with pytest.raises(errors.MediaError, match="playlist"):
        camera(tmp_path / "list.m3u8")


def test_a_camera_begins_now(capture):
    with camera() as live:
        live.seek(0)
        with pytest.raises(errors.ArgumentError, match=r"begins now, not at 2\.5 s"):
            live.seek(2.5)
        capture.unplug()


def test_a_wrong_timeout_is_refused(clip):
    with camera(clip) as live, pytest.raises(errors.ArgumentError, match="timeout_s"):
        live.read(-1)
