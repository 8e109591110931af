"""Video of 10, 12 and 16 bits: planes as images of u16 and back, exact to a level."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from fractions import Fraction

import av
import numpy as np
import pytest
from media import clips

from dala import errors, media
from dala.images.frames import Frame
from dala.media import gpu
from dala.media.video.reading.deep_formats import deep_format
from dala.media.video.reading.deep_frames import converts, deep_frame, deep_image
from dala.media.video.reading.frame_conversion import frame_from_image, image_from_frame
from dala.media.video.reading.video_info import ColorTags

YUV = [
    "yuv420p10le",
    "yuv422p10le",
    "yuv444p10le",
    "yuv420p12le",
    "yuv422p12le",
    "yuv444p12le",
    "yuv444p16le",
    "p010le",
    "p210le",
    "p016le",
]
RGB = ["gbrp10le", "gbrp12le", "gbrp16le"]
MATRICES = {"709": 1, "170m": 6, "2020_ncl": 9}
RANGES = {"limited": 1, "full": 2}


def tags(matrix: str = "709", range_: str = "limited") -> ColorTags:
    return ColorTags(2, 2, MATRICES[matrix], RANGES[range_])


def levels(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(9).integers(0, 65536, shape, dtype=np.uint16)


def planes(frame: av.VideoFrame) -> list[np.ndarray]:
    """The levels of each plane, without what pads its rows."""
    wide = [2 if frame.format.name.startswith("p") and i else 1 for i in range(len(frame.planes))]
    return [
        np.frombuffer(plane, "<u2").reshape(-1, plane.line_size // 2)[
            : plane.height, : plane.width * factor
        ]
        for plane, factor in zip(frame.planes, wide, strict=True)
    ]


def chroma_of(format: str) -> tuple[int, int]:
    found = deep_format(format)
    assert found is not None
    return found.down, found.across


def weights(matrix: str) -> tuple[float, float, float]:
    red, blue = {"709": (0.2126, 0.0722), "170m": (0.299, 0.114), "2020_ncl": (0.2627, 0.0593)}[
        matrix
    ]
    return red, 1 - red - blue, blue


def colors_by_hand(y: np.ndarray, u: np.ndarray, v: np.ndarray, bits: int, matrix: str, full: bool):
    """ITU-T H.273, equations 26 to 44, in f64."""
    top = (1 << bits) - 1
    scale = 1 << (bits - 8)
    black, span, chroma = (0, top, top) if full else (16 * scale, 219 * scale, 224 * scale)
    light = (y.astype(float) - black) / span
    pb, pr = ((plane.astype(float) - (1 << (bits - 1))) / chroma for plane in (u, v))
    kr, kg, kb = weights(matrix)
    red, blue = light + 2 * (1 - kr) * pr, light + 2 * (1 - kb) * pb
    green = (light - kr * red - kb * blue) / kg
    return np.stack([red, green, blue], -1).clip(0, 1) * 65535


@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("format", YUV)
@pytest.mark.parametrize("size", [(9, 7), (32, 18)])
def test_planes_become_the_colors_of_the_standard(device, format, matrix, range_, size):
    width, height = size
    found = deep_format(format)
    frame = av.VideoFrame(width, height, format)
    rng = np.random.default_rng(4)
    for plane in planes(frame):
        plane[:] = rng.integers(0, 1 << found.bits, plane.shape) * found.unit
    y, *rest = (plane // found.unit for plane in planes(frame))
    u, v = (rest[0][:, ::2], rest[0][:, 1::2]) if len(rest) == 1 else rest
    u, v = (
        np.repeat(np.repeat(plane, found.down, 0), found.across, 1)[:height, :width]
        for plane in (u, v)
    )
    want = colors_by_hand(y, u, v, found.bits, matrix, range_ == "full")
    got = np.array(deep_image(frame, tags(matrix, range_)))
    assert got.dtype == np.uint16
    assert np.abs(got - want).max() <= 0.75


@pytest.mark.parametrize("format", YUV + RGB)
@pytest.mark.parametrize("size", [(9, 7), (32, 18), (1, 1)])
@pytest.mark.parametrize("dtype", ["u16", "f32"])
def test_planes_of_colors_come_back_as_they_were(device, format, size, dtype):
    width, height = size
    down, across = chroma_of(format)
    blocks = levels((-(-height // down), -(-width // across), 3))
    image = np.kron(blocks, np.ones((down, across, 1), np.uint16))[:height, :width]
    given = image if dtype == "u16" else (image / np.float32(65535)).astype(np.float32)
    frame = deep_frame(given, format, tags())
    again = deep_frame(deep_image(frame, tags()), format, tags())
    # Chroma of 16 bits is finer than what the colors between, rounded themselves, tell apart.
    most = 1 if deep_format(format).bits == 16 else 0
    for before, after in zip(planes(frame), planes(again), strict=True):
        assert np.abs(before.astype(int) - after).max() <= most


@pytest.mark.parametrize("format", RGB)
def test_colors_in_planes_are_exact(device, format):
    bits = deep_format(format).bits
    top = (1 << bits) - 1
    frame = av.VideoFrame(13, 5, format)
    rng = np.random.default_rng(4)
    for plane in planes(frame):
        plane[:] = rng.integers(0, top + 1, plane.shape)
    green, blue, red = planes(frame)
    want = np.rint(np.stack([red, green, blue], -1) * (65535 / top))
    image = deep_image(frame, tags())
    np.testing.assert_array_equal(np.array(image), want)
    for before, after in zip(planes(frame), planes(deep_frame(image, format, tags())), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("format", "channels"), [("yuva444p12le", 4), ("yuva420p10le", 4), ("gbrap12le", 4)]
)
def test_alpha_is_kept(device, format, channels):
    frame = av.VideoFrame(8, 6, format)
    top = (1 << deep_format(format).bits) - 1
    for number, plane in enumerate(planes(frame)):
        plane[:] = np.arange(plane.size).reshape(plane.shape) * 7 if number == 3 else top // 2
    got = np.array(deep_image(frame, tags()))
    assert got.shape == (6, 8, channels)
    np.testing.assert_array_equal(got[..., 3], np.rint(planes(frame)[3] * (65535 / top)))


def test_gray_is_of_full_range_and_packed_colors_are_as_they_are(device):
    gray = levels((5, 7))
    frame = av.VideoFrame(7, 5, "gray16le")
    planes(frame)[0][:] = gray
    np.testing.assert_array_equal(image_from_frame(frame), np.repeat(gray[..., None], 3, -1))
    for channels, format in ((3, "rgb48le"), (4, "rgba64le")):
        image = levels((5, 7, channels))
        packed = av.VideoFrame.from_ndarray(image, format=format)
        np.testing.assert_array_equal(image_from_frame(packed), image)


def test_other_formats_are_left_to_ffmpeg():
    assert not converts("yuv420p")
    assert not converts("yuv420p10be")
    image = levels((4, 6, 3))
    swapped = av.VideoFrame.from_ndarray(image, format="rgb48le").reformat(format="rgb48be")
    np.testing.assert_array_equal(image_from_frame(swapped), image)


# -- FFmpeg ----------------------------------------------------------------------------------------


def zscale(data: bytes, size: tuple[int, int], given: str, wanted: str, how: str) -> np.ndarray:
    program = shutil.which("ffmpeg")
    if program is None:
        pytest.skip("there is no ffmpeg")
    command = [program, "-v", "error", "-f", "rawvideo", "-s", f"{size[0]}x{size[1]}"]
    command += ["-pix_fmt", given, "-i", "-", "-vf", f"zscale={how}:dither=none,format={wanted}"]
    done = subprocess.run(
        [*command, "-f", "rawvideo", "-"], input=data, capture_output=True, check=False
    )
    if b"No such filter" in done.stderr:
        pytest.skip("this ffmpeg has no zscale")
    assert not done.returncode, done.stderr
    return np.frombuffer(done.stdout, "<u2")


@pytest.mark.parametrize("range_", RANGES)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("format", ["yuv444p10le", "yuv444p12le"])
def test_zscale_gives_the_same_to_a_level(device, format, matrix, range_):
    image, colors = levels((64, 96, 3)), tags(matrix, range_)
    frame = deep_frame(image, format, colors)
    data = b"".join(plane.tobytes() for plane in planes(frame))
    how = f"matrixin={matrix}:rangein={range_}:matrix=gbr:range=full"
    found = zscale(data, (96, 64), format, "gbrp16le", how)
    want = found.reshape(3, 64, 96)[[2, 0, 1]].transpose(1, 2, 0)
    got = np.array(deep_image(frame, colors))
    assert np.abs(got.astype(int) - want).max() <= 1, "of 65,535"
    data = b"".join(image[..., i].tobytes() for i in (1, 2, 0))
    how = f"matrixin=gbr:rangein=full:matrix={matrix}:range={range_}"
    found = zscale(data, (96, 64), "gbrp16le", format, how)
    mine = np.concatenate([plane.ravel() for plane in planes(frame)])
    assert np.abs(mine.astype(int) - found).max() <= 1
    assert (mine != found).mean() < 0.001


# -- files -----------------------------------------------------------------------------------------


def write_frames(path, format: str, frames: list[av.VideoFrame], codec: str = "ffv1") -> None:
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, format
        for number, frame in enumerate(frames):
            frame.pts, frame.time_base = number, Fraction(1, 10)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def planes_of_file(path) -> list[list[np.ndarray]]:
    with av.open(str(path)) as found:
        return [[plane.copy() for plane in planes(frame)] for frame in found.decode(video=0)]


@pytest.mark.parametrize("format", ["yuv420p10le", "yuv420p12le"])
def test_a_filter_that_changes_nothing_keeps_every_level(device, tmp_path, format):
    soft = 20000 + levels((32, 48, 3)) // 4
    soft = np.kron(soft[:16, :24], np.ones((2, 2, 1), np.uint16))
    frames = [deep_frame(np.roll(soft, n, 0), format, tags()) for n in (0, 2)]
    write_frames(tmp_path / "a.mkv", format, frames)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.LossWarning)
        media.transcode(
            tmp_path / "a.mkv", tmp_path / "b.mkv", [("brightness", {"value": 0.0})], codec="ffv1"
        )
    with media.open(tmp_path / "b.mkv") as made:
        assert made.info.pixel_format == format
    before, after = planes_of_file(tmp_path / "a.mkv"), planes_of_file(tmp_path / "b.mkv")
    assert len(before) == len(after) == 2
    for old, new in zip(before, after, strict=True):
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("format", ["yuv422p10le", "yuv444p12le", "gbrp10le", "gbrp12le"])
def test_sources_of_every_layout_are_filtered_in_16_bits(device, tmp_path, format):
    frames = [deep_frame(levels((16, 24, 3)), format, tags())]
    write_frames(tmp_path / "a.mkv", format, frames)
    with media.open(tmp_path / "a.mkv") as video:
        (frame,) = video
        want = gpu.invert(frame.image())
    media.transcode(tmp_path / "a.mkv", tmp_path / "frames", ["invert"])
    got = media.load(tmp_path / "frames" / "000000.png")
    assert (got.dtype, want.dtype) == (np.uint16, np.uint16)
    np.testing.assert_array_equal(got, want)


def test_twelve_bits_stay_twelve_where_the_codec_has_them(tmp_path):
    source = clips.write_clip(tmp_path / "a.mkv", 2, codec="ffv1", pixels="yuv420p12le", options={})
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.LossWarning)
        media.transcode(source, tmp_path / "b.mp4", ["invert"], codec="hevc", preset="ultrafast")
    with media.open(tmp_path / "b.mp4") as made:
        assert (made.info.bits, made.info.codec) == (12, "hevc")
    with pytest.warns(
        errors.LossWarning, match=r"its 12 bits for each value are cut to 10\."
    ) as said:
        media.transcode(source, tmp_path / "c.mp4", ["invert"], preset="ultrafast")
    assert (len(said), said[0].filename) == (1, __file__)
    with media.open(tmp_path / "c.mp4") as made:
        assert made.info.bits == 10


def test_pictures_of_16_bits_become_video_of_16_or_of_10(tmp_path):
    for number in range(2):
        media.save(levels((18, 32, 3)) // 2 + 9000, tmp_path / f"{number}.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.LossWarning)
        media.transcode(tmp_path, tmp_path / "a.mkv", codec="ffv1")
    with media.open(tmp_path / "a.mkv") as made:
        assert (made.info.bits, made.info.frame_count or 2) == (16, 2)
    with pytest.warns(errors.LossWarning, match="its 16 bits for each value are cut to 10"):
        media.transcode(tmp_path, tmp_path / "b.mp4")


@pytest.mark.parametrize(("target", "bits"), [("a.gif", 8), ("%03d.jpg", 8)])
def test_targets_of_8_bits_say_so_once(tmp_path, target, bits):
    source = clips.write_clip(tmp_path / "a.mkv", 3, codec="ffv1", pixels="yuv420p10le", options={})
    with pytest.warns(errors.LossWarning, match=f"its 10 bits .* cut to {bits}") as said:
        media.transcode(source, tmp_path / target)
    assert len(said) == 1


def test_a_folder_of_mixed_depths_takes_that_of_its_first_picture(tmp_path):
    image = levels((6, 8, 3))
    media.save(image, tmp_path / "0.png")
    media.save(np.rint(image / 257).astype(np.uint8), tmp_path / "1.png")
    with media.open(tmp_path) as frames:
        first, second = (frame.image() for frame in frames)
    np.testing.assert_array_equal(first, image)
    np.testing.assert_array_equal(second, np.rint(image / 257) * 257)
    (tmp_path / "0.png").rename(tmp_path / "2.png")
    with (
        media.open(tmp_path) as frames,
        pytest.warns(
            errors.LossWarning, match=r"2\.png: its 16 bits .* cut to 8, as those of 1\.png"
        ),
    ):
        assert [frame.image().dtype for frame in frames] == [np.uint8, np.uint8]


def test_deep_frames_are_composed_in_16_bits(device, tmp_path):
    clips.write_clip(tmp_path / "a.mkv", 2, codec="ffv1", pixels="yuv420p10le", options={})
    still = levels((48, 64, 3))
    with media.compose([tmp_path / "a.mkv", still], "side_by_side") as both:
        frame = next(iter(both))
        image = frame.image()
    assert image.dtype == np.uint16
    np.testing.assert_array_equal(image[:, 64:], still)
    with media.open(tmp_path / "a.mkv") as video:
        np.testing.assert_array_equal(image[:, :64], next(iter(video)).image())


def test_bt2020_colors_go_there_and_back_by_their_own_matrix(tmp_path):
    source = clips.write_clip(
        tmp_path / "a.mkv",
        1,
        codec="ffv1",
        pixels="yuv420p10le",
        options={},
        tags={"colorspace": 9, "color_primaries": 9, "color_trc": 16, "color_range": 1},
    )
    media.transcode(source, tmp_path / "b.mkv", [("brightness", {"value": 0.0})], codec="ffv1")
    with media.open(tmp_path / "b.mkv") as made:
        assert vars(made.info.colors) == vars(ColorTags(9, 16, 9, 1))
    for old, new in zip(
        planes_of_file(source)[0], planes_of_file(tmp_path / "b.mkv")[0], strict=True
    ):
        assert np.abs(old.astype(int) - new).mean() < 1


def test_f32_and_u8_are_made_into_planes_as_u16_is(device):
    image = levels((12, 16, 3)) // 257
    wide = deep_frame((image * 257).astype(np.uint16), "yuv420p10le", tags())
    for given in (
        image.astype(np.uint8),
        (image / np.float32(255)).astype(np.float32),
        Frame(image.astype(np.uint8), lambda buffer: buffer).buffer(),
    ):
        made = deep_frame(given, "yuv420p10le", tags())
        for a, b in zip(planes(wide), planes(made), strict=True):
            assert np.abs(a.astype(int) - b).max() <= 1
    gray = frame_from_image(image[..., 0].astype(np.uint8), "yuv420p10le", tags())
    assert set(np.unique(planes(gray)[1])) == {512}
