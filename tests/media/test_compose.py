"""Several videos and pictures as one: where each lies, and which frame of it is shown when."""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np
import pytest

from dala import errors, media
from dala.gpu import compute
from dala.media import gpu
from dala.media.video import transcode as transcoding
from dala.media.video.composing.compose import compose
from dala.media.video.reading.decoded_frame import VideoFrame
from dala.media.video.reading.video_file import VideoFile
from dala.media.video.reading.video_info import ColorTags, VideoInfo

RED, GREEN, BLUE = np.eye(3) * 255


def plain(color, width=40, height=30):
    image = np.empty((height, width, 3), np.uint8)
    image[:] = color
    return image


class Clip:
    """A source of gray frames, whose level is their number, at the times that were asked for."""

    def __init__(self, times_s, rate=10, size=(40, 30), *, base=0, rotation=0, deep=False):
        self.path = "clip"
        self.times_s, self.base, self.deep = times_s, base, deep
        self.closed = 0
        self.sought = []
        tags = ColorTags(2, 2, 2, 1)
        end_s = times_s[-1] + 1 / rate
        self.info = VideoInfo(
            *size,
            Fraction(rate),
            end_s,
            len(times_s),
            "rgb24",
            10 if deep else 8,
            "rawvideo",
            rotation,
            tags,
            (),
        )
        self._from_s = 0.0

    def seek(self, time_s):
        self.sought.append(time_s)
        self._from_s = time_s

    def __iter__(self):
        index, from_s, self._from_s = 0, self._from_s, 0.0
        for number, time_s in enumerate(self.times_s):
            if time_s + 1e-9 >= from_s:
                width, height = self.info.size
                level = self.base + number
                image = plain(level, width, height)
                if self.deep:
                    image = image.astype(np.uint16) * 201
                coded = av.VideoFrame.from_ndarray(
                    image, format="rgb48le" if self.deep else "rgb24"
                )
                yield VideoFrame(coded, index, time_s)
                index += 1

    def close(self):
        self.closed += 1


def every(period_s, count):
    return [number * period_s for number in range(count)]


def levels(composition):
    """For each frame, the level in the middle of its left half, and that of its right half."""
    shown = []
    for frame in composition:
        image = frame.image()
        middle, width = image.shape[0] // 2, image.shape[1]
        shown.append((int(image[middle, width // 4, 0]), int(image[middle, width * 3 // 4, 0])))
    return shown


def only(composition):
    (frame,) = composition
    return frame.image()


# -- where -----------------------------------------------------------------------------------------


def test_side_by_side_each_keeps_the_size_of_the_first(device):
    image = only(compose([plain(RED), plain(GREEN, 20, 15)], "side_by_side", gap=6, color="blue"))
    want = np.empty((30, 86, 3), np.uint8)
    want[:, :40], want[:, 40:46], want[:, 46:] = RED, BLUE, GREEN
    np.testing.assert_array_equal(image, want)


def test_stacked_they_lie_below_each_other(device):
    image = only(compose([plain(RED), plain(GREEN)], "stacked", gap=2))
    want = np.zeros((62, 40, 3), np.uint8)
    want[:30], want[32:] = RED, GREEN
    np.testing.assert_array_equal(image, want)


def test_a_grid_is_filled_row_by_row(device):
    shades = [plain(10 * number, 8, 6) for number in range(1, 6)]
    image = only(compose(shades, "grid", color=1.0))
    assert image.shape == (12, 24, 3)
    found = image[[3, 9]][:, [4, 12, 20], 0]
    np.testing.assert_array_equal(found, [[10, 20, 30], [40, 50, 255]])


def test_sixteen_pictures_are_put_together(device):
    shades = [plain(10 * number, 8, 6) for number in range(16)]
    image = only(compose(shades))
    np.testing.assert_array_equal(image[3::6, 4::8, 0].ravel(), 10 * np.arange(16))


def test_what_does_not_fit_its_cell_is_letterboxed_as_the_filter_does_it(device):
    random = np.random.default_rng(1)
    first, second = (random.integers(0, 256, (*s, 3), dtype=np.uint8) for s in [(30, 20), (50, 40)])
    image = only(compose([first, second], "side_by_side", size=(64, 32), color=0.5))
    for half, given, method in (
        (image[:, :32], first, "bilinear"),
        (image[:, 32:], second, "area"),
    ):
        want = gpu.letterbox(given, size=(32, 32), color=128 / 255, method=method)
        np.testing.assert_array_equal(half, want)


def test_cells_fill_a_frame_that_cannot_be_divided(device):
    image = only(compose([plain(RED, 9, 9)] * 3, "side_by_side", size=(31, 9), gap=2, color="blue"))
    assert ((image == RED).all(-1) | (image == BLUE).all(-1)).all()
    assert (image[4] == RED).all(-1).sum() == 27


def test_a_picture_in_a_picture_lies_in_its_corner(device):
    image = only(compose([plain(RED), plain(GREEN)], "picture_in_picture", scale=0.5, margin=2))
    want = plain(RED)
    want[13:28, 18:38] = GREEN
    np.testing.assert_array_equal(image, want)
    image = only(
        compose([plain(RED), plain(GREEN)], "picture-in-picture", scale=0.25, position=(3, 1))
    )
    want = plain(RED)
    want[1:9, 3:13] = GREEN
    np.testing.assert_array_equal(image, want)


def test_a_picture_as_large_as_the_frame_can_lie_beside_it(device):
    both = [plain(RED), plain(GREEN)]
    image = only(compose(both, "picture_in_picture", scale=1, position=(10, 0)))
    want = plain(RED)
    want[:, 10:] = GREEN
    np.testing.assert_array_equal(image, want)


@pytest.mark.parametrize(("position", "rows"), [("bottom-left", (20, 9)), ("top-left", (2, 13))])
def test_more_pictures_in_a_picture_go_on_from_the_corner(position, rows):
    inner = [plain(GREEN), plain(BLUE)]
    image = only(
        compose(
            [plain(RED), *inner],
            "picture_in_picture",
            scale=0.27,
            margin=2,
            gap=3,
            position=position,
        )
    )
    want = plain(RED)
    for row, color in zip(rows, (GREEN, BLUE), strict=True):
        want[row : row + 8, 2:13] = color
    np.testing.assert_array_equal(image, want)


def test_transparent_pictures_show_what_lies_below(device):
    badge = np.zeros((30, 40, 4), np.uint8)
    badge[..., 1], badge[:, :20, 3] = 255, 255
    image = only(compose([plain(RED), badge], "picture_in_picture", scale=1, position=(0, 0)))
    np.testing.assert_array_equal(image[:, :20], plain(GREEN, 20))
    np.testing.assert_array_equal(image[:, 20:], plain(RED, 20))


def test_gray_pictures_floats_and_buffers_are_pictures_too(device):
    gray = np.full((30, 40), 70, np.uint8)
    bright = np.full((30, 40, 3), 0.5, np.float32)
    image = only(compose([gray, bright, compute.from_numpy(gray)], "side_by_side"))
    np.testing.assert_array_equal(image[15, [20, 60, 100], 2], [70, 128, 70])


def test_a_turned_video_is_put_upright(device):
    class Marked(Clip):
        def __iter__(self):
            image = plain(0)
            image[:, :4] = 255
            yield VideoFrame(av.VideoFrame.from_ndarray(image, format="rgb24"), 0, 0.0)

    # Counter-clockwise by a quarter, what was at the left is below.
    with compose([Marked([0.0], rotation=90)]) as composition:
        assert composition.info.size == (30, 40)
        assert composition.info.rotation == 0
        image = only(composition)
    assert (image[-4:] == 255).all()
    assert not image[:-4].any()


def test_sizes_are_even_unless_they_are_given():
    assert compose([plain(RED, 7, 5)]).info.size == (8, 6)
    assert compose([plain(RED, 7, 5)], size=(7, 5)).info.size == (7, 5)
    assert compose([plain(RED, 7, 5)], size="7x5").info.size == (7, 5)


# -- when ------------------------------------------------------------------------------------------


def test_each_frame_shows_what_is_shown_at_its_time(device):
    slow, fast = Clip(every(0.2, 3), 5, base=100), Clip(every(0.1, 6), 10)
    with compose([slow, fast], "side_by_side") as composition:
        assert composition.info.rate == 10
        assert composition.info.frame_count == 6
        assert levels(composition) == [(100 + k // 2, k) for k in range(6)]


def test_frames_have_numbers_times_and_time_stamps():
    with compose([Clip(every(0.1, 4))], rate=Fraction(30000, 1001)) as composition:
        frames = list(composition)
        assert [frame.index for frame in frames] == list(range(len(frames)))
        assert [frame.decoded.pts for frame in frames] == list(range(len(frames)))
        assert frames[5].decoded.time_base == composition.time_base == Fraction(1001, 30000)
        assert frames[5].time_s == pytest.approx(5 * 1001 / 30000)
        assert frames[5].decoded.format.name == "rgb24"
        assert len(frames) == composition.info.frame_count == 12


def test_a_clip_that_is_over_keeps_its_last_frame_or_ends_everything():
    def pair():
        return [Clip(every(0.1, 2), base=100), Clip(every(0.1, 5))]

    want = [(100, 0), (101, 1), (101, 2), (101, 3), (101, 4)]
    assert levels(compose(pair(), "side_by_side")) == want
    with compose(pair(), "side_by_side", until="shortest") as composition:
        assert levels(composition) == want[:2]
        assert composition.info.frame_count == 2


def test_times_in_milliseconds_lose_no_frame():
    times_s = [round(number / 30, 3) for number in range(60)]
    with compose([Clip(times_s, 30)]) as composition:
        assert [first for first, _ in levels(composition)] == list(range(60))


def test_a_clip_that_begins_late_shows_its_first_frame_until_then():
    got = levels(compose([Clip([0.2, 0.3], base=7), Clip(every(0.1, 4))], "side_by_side"))
    assert got == [(7, 0), (7, 1), (7, 2), (8, 3)]


@pytest.mark.parametrize("until", ["longest", "shortest"])
def test_pictures_alone_are_one_frame_and_beside_a_video_as_many_as_it_has(until):
    assert len(list(compose([plain(RED)], until=until))) == 1
    composition = compose([plain(50), Clip(every(0.1, 3))], "side_by_side", until=until)
    assert levels(composition) == [(50, 0), (50, 1), (50, 2)]


@pytest.mark.parametrize("begin_s", [0.0, 0.25, 0.3, 0.7, 5.0, 1e30])
def test_seeking_gives_the_frames_that_were_to_come(begin_s):
    # The first has frames of uneven lengths: what is shown can have begun long ago.
    composition = compose([Clip([0.0, 0.1, 0.6], base=100), Clip(every(0.1, 9))], "side_by_side")
    whole = [(frame.decoded.pts, frame.image().tobytes()) for frame in composition]
    composition.seek(begin_s)
    rest = [(frame.decoded.pts, frame.image().tobytes()) for frame in composition]
    assert rest == whole[int(np.ceil(begin_s * 10)) :]
    assert [(frame.decoded.pts, frame.image().tobytes()) for frame in composition] == whole


def test_a_still_picture_is_not_scaled_again_for_each_frame(monkeypatch):
    from dala.media.video.composing import inputs

    made = []
    step = inputs.filter_step
    monkeypatch.setattr(
        inputs, "filter_step", lambda name, params: made.append(name) or step(name, params)
    )
    slow = Clip([0.0, 0.5], 10, size=(20, 10))
    assert len(list(compose([Clip(every(0.1, 8)), slow, plain(RED, 9, 9)]))) == 8
    assert made.count("resize") == 3


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With two clips and a picture: red for 6 frames at 10/s, gray for 4 at 5/s."""
    path = tmp_path_factory.mktemp("clips")
    for name, color, rate, count in [("red", (200, 20, 20), 10, 6), ("gray", (90, 90, 90), 5, 4)]:
        with av.open(str(path / f"{name}.mp4"), "w") as container:
            stream = container.add_stream("libx264", rate=rate, options={"crf": "1"})
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for _ in range(count):
                frame = av.VideoFrame.from_ndarray(plain(color, 64, 48), format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    media.save(plain(GREEN, 64, 48), path / "green.png")
    return path


def test_files_are_opened_by_their_paths_and_closed(device, folder):
    with compose(
        [folder / "red.mp4", str(folder / "gray.mp4"), folder / "green.png"]
    ) as composition:
        frames = list(composition)
        assert composition.info.size == (128, 96)
        assert len(frames) == composition.info.frame_count == 8
        assert composition.path == folder / "red.mp4"
    image = frames[-1].image().astype(int)
    found = image[[24, 24, 72], [32, 96, 32]]
    np.testing.assert_allclose(found, [(200, 20, 20), (90, 90, 90), (0, 255, 0)], atol=4)
    assert not image[60:, 70:].any()
    with pytest.raises(errors.ClosedError, match="the composition was closed"):
        next(iter(composition))


def test_a_file_can_be_sought_in(folder):
    with compose([folder / "red.mp4", folder / "gray.mp4"], "side_by_side") as composition:
        whole = [frame.image() for frame in composition]
        composition.seek(0.3)
        np.testing.assert_array_equal([frame.image() for frame in composition], whole[3:])
        composition.seek(1e30)
        assert not list(composition)


def test_a_composition_becomes_a_video_that_can_be_resumed(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(transcoding, "FRAMES_IN_SEGMENT", 3)
    filters = [("temporal_denoise", {"strength": 0.8}), ("text", {"text": "x", "start": 0.2})]

    def write(name, **given):
        with compose([folder / "red.mp4", folder / "gray.mp4"], "side_by_side") as composition:
            media.transcode(composition, tmp_path / name, filters, **given)
        with av.open(str(tmp_path / name)) as container:
            return [frame.to_ndarray().tobytes() for frame in container.decode(video=0)]

    def stop(progress):
        if progress.frames == 5:
            raise KeyboardInterrupt

    want = write("whole.mkv")
    assert len(want) == 8
    with pytest.raises(KeyboardInterrupt):
        write("stopped.mkv", progress=stop)
    assert write("stopped.mkv", resume=True) == want


def test_compositions_that_show_something_else_are_told_apart(folder):
    def made(*pictures, **params):
        return repr(compose([folder / "red.mp4", *pictures], **params))

    assert made(plain(RED)) == made(plain(RED))
    others = [
        made(plain(GREEN)),
        made(plain(RED), color=1),
        made(plain(RED), gap=2),
        made(plain(RED), rate=7),
        made(plain(RED), until="shortest"),
        made(folder / "green.png"),
        made(folder / "gray.mp4"),
    ]
    assert len({made(plain(RED)), *others}) == 8


def test_deeper_sources_make_deeper_frames(device):
    with compose(
        [Clip(every(0.1, 2), base=200, deep=True), plain(128)], "side_by_side"
    ) as composition:
        assert (composition.info.bits, composition.info.pixel_format) == (10, "rgb48le")
        first, second = composition
    assert second.decoded.format.name == "rgb48le"
    got = second.decoded.to_ndarray(format="rgb48le")
    assert abs(int(got[15, 10, 0]) - 201 * 201) <= 1
    assert abs(int(got[15, 60, 0]) - 128 * 257) <= 1
    assert first.decoded.to_ndarray(format="rgb48le")[15, 10, 0] < got[15, 10, 0]


def test_sources_are_closed_with_the_composition():
    clips = [Clip([0.0]), Clip([0.0])]
    with compose(clips):
        pass
    assert [clip.closed for clip in clips] == [1, 1]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (
            {"layout": "spiral"},
            "layout 'spiral' is not known: give side_by_side, stacked, grid, pic",
        ),
        ({"layout": 3}, "layout 3 is not known"),
        ({"until": "noon"}, "until is 'longest' or 'shortest', not 'noon'"),
        ({"gap": -1}, "gap is 0 to 16384 pixels, not -1"),
        ({"gap": 50, "size": (40, 40)}, "40 × 40 has no room for 2 × 1 pictures with gaps of 50"),
        ({"size": 40}, r"size is \(width, height\), or a text such as '1280x720', not 40"),
        (
            {"size": (0, 40)},
            r"size is \(width, height\), 1 to 16384 pixels each way, not \(0, 40\)",
        ),
        ({"rate": 0}, "rate is a finite number above 0, not 0"),
        ({"rate": 1e6}, "rate is at most 1000 frames/s"),
        ({"color": "nocolor"}, "color 'nocolor' is no color"),
        ({"position": "nowhere"}, "position 'nowhere' is not known"),
        ({"layout": "picture_in_picture", "scale": 2}, "scale is a finite number from 0.01 to 1"),
    ],
)
def test_wrong_arguments_are_refused(params, told):
    with pytest.raises(errors.ArgumentError, match=f"compose: {told}"):
        compose([plain(RED), plain(GREEN)], **params)


@pytest.mark.parametrize(
    ("error", "sources", "told"),
    [
        (errors.ArgumentError, [], "it takes 1 to 64 sources, not 0"),
        (errors.ArgumentError, "a.mp4", "sources are a list of videos, paths and pictures"),
        (errors.ArgumentError, [5], "compose: source 1: an image is an array"),
        (errors.ArgumentError, [plain(RED), plain(RED, 0)], "source 2 has no pixels"),
        (errors.FileError, ["missing.mp4"], "missing.mp4 is not there"),
        (errors.FileError, ["missing.png"], "missing.png"),
    ],
)
def test_wrong_sources_are_refused(error, sources, told):
    with pytest.raises(error, match=told):
        compose(sources)


def test_a_source_that_is_given_twice_is_refused():
    clip = Clip([0.0])
    with pytest.raises(errors.ArgumentError, match="is given twice, but reads one frame at a time"):
        compose([clip, clip])


def test_what_was_opened_is_closed_when_another_is_refused(folder, monkeypatch):
    closed = []
    close = VideoFile.close
    monkeypatch.setattr(VideoFile, "close", lambda self: closed.append(self.path) or close(self))
    with pytest.raises(errors.FileError):
        compose([folder / "red.mp4", folder / "missing.mp4"])
    with pytest.raises(errors.ArgumentError):
        compose([folder / "red.mp4"], size=(2, 2), gap=9, layout="picture_in_picture", scale=7)
    assert closed == [folder / "red.mp4"] * 2


def test_a_frame_of_another_size_is_refused():
    class Growing(Clip):
        def __iter__(self):
            for number, width in enumerate((40, 44)):
                image = plain(number, width)
                yield VideoFrame(
                    av.VideoFrame.from_ndarray(image, format="rgb24"), number, number / 10
                )

    with pytest.raises(errors.MediaError, match="frame 1 is 44 × 30, but the video began with 40"):
        list(compose([Growing(every(0.1, 2))]))


@pytest.mark.parametrize("time_s", [-1, float("nan"), "soon"])
def test_a_wrong_time_is_refused(time_s):
    with pytest.raises(errors.ArgumentError, match="the time is in seconds from 0 on"):
        compose([plain(RED)]).seek(time_s)
