"""Faults 32 to 36: videos that are cut, change, point elsewhere, find no room, or are empty."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import wave
from contextlib import contextmanager
from fractions import Fraction

import av
import numpy as np
import pytest
from media import clips

from dala import errors, media
from dala.media.video.reading.source_opening import open_source
from dala.media.video.reading.video_file import VideoFile
from dala.media.video.transcode import transcode

BLUR = [("blur", {"radius": 1})]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return clips.write_clip(tmp_path_factory.mktemp("good") / "good.mp4", 4, sound=True)


@pytest.fixture(autouse=True)
def the_next_good_video_works(good, tmp_path_factory):
    """After a fault, a good video is read, filtered and written."""
    yield
    target = tmp_path_factory.mktemp("next") / "next.mp4"
    assert transcode(good, target, BLUR, preset="ultrafast").frames == 4


def refused(path, kind, text, tmp_path):
    """Every way in refuses the file, and nothing is left behind."""
    target = tmp_path / "out" / "out.mp4"
    target.parent.mkdir(exist_ok=True)
    for way in (VideoFile, open_source, lambda path: transcode(path, target)):
        with pytest.raises(kind, match=text):
            way(path)
    assert list(target.parent.iterdir()) == []


# -- 32 ------------------------------------------------------------------------------------------


def test_32_an_mp4_cut_before_its_index_is_refused(good, tmp_path):
    data = good.read_bytes()
    path = tmp_path / "cut.mp4"
    for end in (406, 1, 8, 40, len(data) // 2, data.index(b"moov") + 200):
        path.write_bytes(data[:end])
        refused(path, errors.MediaError, r"cut\.mp4", tmp_path)


def test_32_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "cut.mp4"
    path.write_bytes(b"")
    refused(path, errors.MediaError, "no bytes at all", tmp_path)


def test_32_noise_is_refused(tmp_path):
    path = tmp_path / "noise.mp4"
    path.write_bytes(np.random.default_rng(1).bytes(5000))
    refused(path, errors.MediaError, r"noise\.mp4", tmp_path)


# -- 33 ------------------------------------------------------------------------------------------


def joined(path, codec: str, ways: list[tuple[str, tuple[int, int]]]):
    """A file whose frames are coded one by one, a few of them in each of these ways."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=10)
        stream.pix_fmt, (stream.width, stream.height) = ways[0]
        for number in range(4 * len(ways)):
            pixels, size = ways[number // 4]
            encoder = av.CodecContext.create(codec, "w")
            encoder.pix_fmt, (encoder.width, encoder.height) = pixels, size
            encoder.time_base = Fraction(1, 10)
            frame = av.VideoFrame.from_ndarray(clips.picture(number, *size), format="rgb24")
            for packet in encoder.encode(frame.reformat(format=pixels)) + encoder.encode(None):
                packet.stream, packet.time_base = stream, Fraction(1, 10)
                packet.pts = packet.dts = number
                out.mux(packet)
    return path


@pytest.mark.parametrize("filters", [[], BLUR], ids=["none", "blur"])
def test_33_a_change_of_size_is_an_error_that_names_the_frame(tmp_path, filters):
    path = joined(tmp_path / "a.mkv", "mjpeg", [("yuvj420p", (64, 48)), ("yuvj420p", (96, 64))])
    with pytest.raises(errors.MediaError, match=r"frame 4 is 96 × 64, .* 64 × 48"):
        transcode(path, tmp_path / "out.mp4", filters)
    assert not (tmp_path / "out.mp4").exists()


@pytest.mark.parametrize("filters", [[], BLUR], ids=["none", "blur"])
@pytest.mark.parametrize(
    ("codec", "first", "second"),
    [("mjpeg", "yuvj420p", "yuvj444p"), ("mjpeg", "yuvj444p", "yuvj420p"),
     ("png", "rgb24", "rgb48be"), ("png", "rgb24", "rgba")],
)  # fmt: skip
def test_33_a_change_of_pixels_is_followed(tmp_path, filters, codec, first, second):
    size = (64, 48)
    path = joined(tmp_path / "a.mov", codec, [(first, size), (second, size)])
    with VideoFile(path) as video:
        assert [frame.decoded.format.name for frame in video] == [first] * 4 + [second] * 4
    done = transcode(path, tmp_path / "out.mkv", filters, codec="ffv1")
    for number, image in enumerate(clips.images(done.path)):
        apart = np.abs(image.astype(int) - clips.picture(number))[4:-4, 4:-4]
        assert apart.mean() < 9, number  # a blur of 1 moves little in pictures that smooth
    assert done.frames == 8


# -- 34 ------------------------------------------------------------------------------------------


@contextmanager
def listening():
    """A port of this machine, and whoever came to it."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    came.append(server.accept()[0].close())
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1], came
        finally:
            done.set()
            thread.join()


PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{url}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile '{url}'\n",
    "dash": '<?xml version="1.0"?>\n<MPD><Period><BaseURL>{url}</BaseURL></Period></MPD>\n',
    "pls": "[playlist]\nFile1={url}\n",
    "sdp": "v=0\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\na=rtpmap:96 H264/90000\n",
    "m3u": "{url}\n",
}


@pytest.mark.parametrize("suffix", [".mp4", ".m3u8", ".txt", ".sdp"])
@pytest.mark.parametrize("kind", PLAYLISTS)
def test_34_a_file_that_names_others_is_refused(good, tmp_path, kind, suffix):
    with listening() as (port, came):
        for url in (f"http://127.0.0.1:{port}/a.mp4", f"file:{good}", f"concat:{good}|{good}"):
            path = tmp_path / f"list{suffix}"
            path.write_text(PLAYLISTS[kind].format(url=url, port=port))
            refused(path, errors.MediaError, "list", tmp_path)
    assert came == []


def test_34_an_address_is_refused(tmp_path):
    with listening() as (port, came):
        url = f"http://127.0.0.1:{port}/a.mp4"
        with pytest.raises(errors.ArgumentError, match="only files of this machine"):
            open_source(url)
        for way in (VideoFile, lambda path: transcode(path, tmp_path / "out.mp4")):
            with pytest.raises((errors.FileError, errors.ArgumentError)):
                way(url)
    assert came == []


# -- 35 ------------------------------------------------------------------------------------------

WRITING = {
    "transcode": """
from dala.media.video.transcode import transcode
transcode({source!r}, {target!r})
""",
    "writer": """
from dala.media.video.writing.video_writer import writer
import numpy as np
with writer({target!r}, codec="ffv1" if {target!r}.endswith("mkv") else None) as out:
    for number in range(200):
        out.write(np.random.default_rng(number).integers(0, 255, (240, 320, 3), dtype=np.uint8))
""",
    "sink": """
from dala.media.video.writing.sink_opening import open_sink
import numpy as np
with open_sink({target!r}) as out:
    for number in range(200):
        noise = np.random.default_rng(number).integers(0, 255, (240, 320, 3), dtype=np.uint8)
        out.write(noise, number / 9)
""",
}
FULL = """
import resource
from dala.errors import DalaError
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    exec({program!r})
except (DalaError, OSError) as error:
    print(type(error).__name__, error)
else:
    raise SystemExit("it was written")
"""


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """A clip that takes more room than there is."""
    path = tmp_path_factory.mktemp("noisy") / "noisy.mkv"
    with media.writer(path, codec="ffv1") as out:
        for number in range(4):
            out.write(np.random.default_rng(number).integers(0, 255, (240, 320, 3), dtype=np.uint8))
    return path


@pytest.mark.parametrize(
    ("how", "name"),
    [("transcode", "out.mp4"), ("writer", "out.mp4"), ("writer", "out.mkv"), ("sink", "out.gif"),
     ("sink", "frames"), ("sink", "f%03d.png")],
)  # fmt: skip
def test_35_a_full_disk_leaves_nothing_under_the_name(noisy, tmp_path, how, name):
    target = str(tmp_path / name)
    program = WRITING[how].format(source=str(noisy), target=target)
    ran = subprocess.run(
        [sys.executable, "-c", FULL.format(program=program)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    kind, text = ran.stdout.split(" ", 1)
    assert kind in ("FileError", "MediaError")
    assert target in text or how == "sink"
    # What a resumed run goes on from is hidden, and is not of that name.
    left = [item.name for item in tmp_path.iterdir() if not item.name.startswith(".")]
    assert left == []
    if how != "transcode":
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("how", "name"), [("transcode", "out.mp4"), ("writer", "out.mkv")])
def test_35_a_killed_run_leaves_nothing_under_the_name(noisy, tmp_path, how, name):
    target = tmp_path / name
    program = WRITING[how].format(source=str(noisy), target=str(target))
    running = subprocess.Popen([sys.executable, "-c", program])
    try:
        end_s = time.monotonic() + 30
        while not list(tmp_path.iterdir()) and time.monotonic() < end_s:
            time.sleep(0.002)
        assert list(tmp_path.iterdir()), "it has begun"
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    if target.exists():  # it was done before it was killed: then it is whole
        assert len(clips.images(target)) in (4, 200)
    else:
        assert all(item.name.startswith(".") for item in tmp_path.iterdir())


# -- 36 ------------------------------------------------------------------------------------------


def test_36_a_file_with_sound_only_is_refused(tmp_path):
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(8000))
    refused(path, errors.MediaError, "no video in it, only audio", tmp_path)


def test_36_sound_with_a_picture_on_its_cover_is_refused(good, tmp_path):
    path = tmp_path / "song.m4a"
    with av.open(str(good)) as source, av.open(str(path), "w", format="mp4") as out:
        sound = out.add_stream_from_template(source.streams.audio[0])
        cover = out.add_stream("png")
        cover.width = cover.height = 8
        cover.pix_fmt = "rgb24"
        cover.disposition = av.stream.Disposition.attached_pic
        image = av.VideoFrame.from_ndarray(np.zeros((8, 8, 3), np.uint8), format="rgb24")
        out.mux(cover.encode(image))
        for packet in source.demux(source.streams.audio[0]):
            if packet.dts is not None:
                packet.stream = sound
                out.mux(packet)
    refused(path, errors.MediaError, "no video in it", tmp_path)


@pytest.mark.parametrize("suffix", [".y4m", ".gif"])
def test_36_a_file_without_a_frame_is_refused(tmp_path, suffix):
    path = tmp_path / f"none{suffix}"
    heads = {
        ".y4m": b"YUV4MPEG2 W64 H48 F25:1 Ip C420jpeg\n",
        ".gif": b"GIF89a" + bytes([64, 0, 48, 0, 0, 0, 0]) + b";",
    }
    path.write_bytes(heads[suffix])
    refused(path, errors.MediaError, r"none\.", tmp_path)
