"""`dala process` and `dala run`: pictures and videos through filters."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import dala
from dala import media
from dala.cli import progress
from dala.gpu import compute
from dala.media import gpu
from dala.media.video.transcode import Progress

KERNEL = '''
import dala

@dala.kernel
def glow(image: dala.Image, strength: dala.f32 = 0.5):
    """Brighter where it is bright"""
    return image.pixel + strength * image.pixel * image.pixel
'''


def test_a_picture_goes_through_its_filters_in_order(told, picture, folder):
    code, out, err = told(
        "process", "photo.png", "out.png", "-f", "blur:radius=2", "-f", "rotate:degrees=30"
    )
    assert (code, out) == (0, "")
    assert err.startswith("out.png: 40 × 30, ")
    wanted = gpu.filter_chain(picture, [("blur", {"radius": 2}), ("rotate", {"degrees": 30.0})])
    assert np.array_equal(media.load(folder / "out.png"), wanted)


@pytest.mark.parametrize(
    ("typed", "spread"), [("blur:20", (20, 10.0)), ("blur:sigma=4", (12, 4.0))]
)
def test_a_blur_is_as_wide_as_it_is_asked_to_be(told, picture, folder, typed, spread):
    name, _, given = typed.partition(":")
    assert told("process", "photo.png", "out.png", "-f", typed)[0] == 0
    wanted = gpu.blur(picture, *spread)
    assert np.array_equal(media.load(folder / "out.png"), wanted)
    key, _, value = given.rpartition("=")
    document = f"[[filters]]\nname = '{name}'\n{key or 'radius'} = {value}\n"
    (folder / "p.toml").write_text(document, encoding="utf-8")
    assert told("run", "p.toml", "photo.png", "again.png")[0] == 0
    assert np.array_equal(media.load(folder / "again.png"), wanted)


@pytest.mark.parametrize("suffix", [".bmp", ".gif", ".avif", ".heic", ".heif"])
def test_pictures_of_other_formats_are_read(told, folder, suffix):
    level = np.full((30, 40, 3), (200, 100, 50), np.uint8)
    if suffix == ".gif":
        Image.fromarray(level).save("in.gif")
    else:
        media.save(level, f"in{suffix}")
    assert told("process", f"in{suffix}", "out.png", "-f", "invert", "-q") == (0, "", "")
    assert np.abs(media.load("out.png").astype(int) - (255 - level.astype(int))).max() <= 3


@pytest.mark.parametrize("suffix", [".bmp", ".gif", ".avif", ".heic"])
def test_pictures_of_other_formats_are_written(told, picture, suffix):
    assert told("process", "photo.png", f"out{suffix}", "-f", "invert", "-q") == (0, "", "")
    got = media.load(f"out{suffix}")
    assert got.shape[:2] == (30, 40)
    if suffix == ".bmp":
        np.testing.assert_array_equal(got, 255 - picture)


def test_a_part_of_a_gif_is_that_of_a_video(told, folder):
    frames = [Image.fromarray(np.full((8, 8), level, np.uint8)) for level in (10, 90, 200)]
    frames[0].save("in.gif", save_all=True, append_images=frames[1:], duration=100)
    part = ("--start", "0.1", "--end", "0.2")
    assert told("process", "in.gif", "out.png", *part, "-q") == (0, "", "")
    assert (media.load("out.png", mode="gray") == 90).all()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "it seems to be SVG or HTML"),
        (b"%PDF-1.7", "it seems to be PDF"),
        (b"8BPS", "it seems to be Photoshop"),
    ],
)
def test_what_is_neither_a_picture_nor_a_video_is_said_to_be_so(refused, folder, head, said):
    (folder / "in.xyz").write_bytes(head + bytes(400))
    for target in ("out.png", "out.mp4"):
        found = refused("process", "in.xyz", target, code=1)
        assert "is none of the videos that are read, and of the pictures only PNG, JPEG" in found
        assert f"{said}. Convert it first." in found


def test_quiet_prints_nothing(told, picture):
    assert told("process", "photo.png", "out.png", "-f", "invert", "-q") == (0, "", "")


def test_json_tells_what_was_made(answer, picture):
    found = answer("process", "photo.png", "out.png", "-f", "invert", "--size", "20x10")
    assert found["ok"] is True
    assert (found["width"], found["height"], found["frames"]) == (20, 10, 1)
    assert found["device"] == compute.device_info()["id"]
    assert set(found["stages_s"]) == {"read", "filter", "write"}


def test_the_device_that_is_asked_for_computes(answer, picture, webgpu):
    assert answer("process", "photo.png", "a.png", "--device", "cpu")["device"] == "cpu"
    assert answer("process", "photo.png", "b.png", "--device", "webgpu")["device"] == "webgpu"


def test_a_kernel_of_a_file_is_a_filter(told, picture, folder):
    (folder / "mine.py").write_text(KERNEL, encoding="utf-8")
    command = ["process", "photo.png", "out.png", "-k", "mine.py", "-f", "glow:strength=0.25"]
    assert told(*command)[0] == 0
    x = picture / 255
    wanted = np.rint(np.clip(x + 0.25 * x * x, 0, 1) * 255)
    assert np.abs(media.load(folder / "out.png") - wanted).max() <= 1
    assert "glow(strength=0.5)" in told("filters", "-k", "mine.py")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_like_this", "mine.py, line 1: ModuleNotFoundError"),
        ("x = 1\ndef (", "mine.py, line 2: SyntaxError"),
        ("raise SystemExit(3)", "mine.py, line 1: SystemExit: 3"),
    ],
)
def test_a_file_of_kernels_that_fails_names_its_line(refused, picture, folder, text, said):
    (folder / "mine.py").write_text(text, encoding="utf-8")
    assert said in refused("process", "photo.png", "out.png", "-k", "mine.py", code=1)


def test_a_kernel_may_not_hide_a_filter(refused, picture, folder):
    text = KERNEL.replace("glow", "blur")
    (folder / "mine.py").write_text(text, encoding="utf-8")
    said = refused("process", "photo.png", "out.png", "-k", "mine.py")
    assert "a kernel named 'blur' is there already" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["photo.png", "out.png", "-f", "blurr"], "Did you mean 'blur'?"),
        (["photo.png", "out.png", "-f", "blur:radius=-1"], "blur: radius is 0 to"),
        (["photo.png", "out.xyz"], "'.xyz'"),
        (["photo.png", "out.png", "--start", "3"], "--start is for video"),
        (
            ["photo.png", "out.png", "--size", "big"],
            "--size: 'big' is not a size such as 1280x720, 64",
        ),
        (["clip.mp4", "out.mp4", "--size", "33x"], "would be 33 × 24, but its pixels"),
        (
            ["-", "out.mp4", "--raw-size", "50%"],
            "--raw-size: '50%' is not a size such as 1280x720.",
        ),
        (["clip.mp4", "out.mp4", "--start", "soon"], "--start: 'soon' is not a time such as"),
        (["clip.mp4", "out.mp4", "-f", "blur:radus=3"], "Did you mean 'radius'?"),
        (["clip.mp4", "out.mp4", "--codec", "h256"], "h264, hevc"),
        (["clip.mp4", "-", "--json"], "both go to standard output"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    refused, picture, clip, folder, arguments, said
):
    assert said in refused("process", *arguments)
    assert sorted(item.name for item in folder.iterdir()) == ["clip.mp4", "photo.png"]


def test_a_video_goes_through_its_filters(answer, clip, folder):
    found = answer("process", "clip.mp4", "out.mp4", "-f", "invert", "--preset", "ultrafast")
    assert (found["kind"], found["frames"], found["width"], found["height"]) == (
        "video",
        10,
        64,
        48,
    )
    import av

    with av.open(str(folder / "out.mp4")) as container:
        means = [frame.to_ndarray(format="rgb24").mean() for frame in container.decode(video=0)]
    assert means == pytest.approx([255 - 60 - 10 * number for number in range(10)], abs=3)


def test_part_of_a_video_in_another_size(answer, clip):
    command = ["process", "clip.mp4", "out.mp4", "--start", "0:00.2", "--end", "0.5"]
    found = answer(*command, "--size", "32x24")
    assert (found["frames"], found["width"], found["height"]) == (3, 32, 24)


SIZES = [
    ("20x20", (20, 20), (20, 20)),
    ("33x", (33, 25), None),
    ("x26", (35, 26), (34, 26)),
    ("50%", (20, 15), (32, 24)),
    ("fit:24x99", (24, 18), (24, 18)),
    ("fit:99x99", (99, 74), (98, 74)),
    ("fill:10x30", (10, 30), (10, 30)),
]
"""What is typed, and the sizes of a picture of 40 × 30 and of a video of 64 × 48 then."""


@pytest.mark.parametrize(("typed", "picture_size", "video_size"), SIZES)
def test_a_size_follows_from_that_of_the_file(
    answer, picture, clip, folder, typed, picture_size, video_size
):
    found = answer("process", "photo.png", "out.png", "--size", typed)
    assert (found["width"], found["height"]) == picture_size
    assert media.load(folder / "out.png").shape[1::-1] == picture_size
    (folder / "p.json").write_text(json.dumps([{"name": "resize", "size": typed}, "invert"]))
    found = answer("run", "p.json", "photo.png", "again.png")
    assert (found["width"], found["height"]) == picture_size
    (folder / "p.json").write_text('["invert"]')
    assert answer("run", "p.json", "photo.png", "again.png", "--size", typed, "-y")["ok"]
    if video_size is not None:
        found = answer("process", "clip.mp4", "out.mp4", "--end", "0.2", "--size", typed)
        assert (found["width"], found["height"]) == video_size


def test_progress_is_told_in_lines_where_there_is_no_terminal(told, clip, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    code, out, err = told("process", "clip.mp4", "out.mp4", "-f", "invert")
    lines = err.splitlines()
    assert (code, out, len(lines)) == (0, "", 11)
    assert lines[4].startswith("clip.mp4: 5 of 10 frames, ")
    assert " left (read 0." in lines[4]
    assert lines[-1].startswith("out.mp4: 10 frames of 64 × 48 in ")


def test_quiet_tells_no_progress(told, clip, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    assert told("process", "clip.mp4", "out.mp4", "-q") == (0, "", "")


def test_frames_of_an_earlier_run_do_not_count_as_speed():
    meter = progress.Meter()
    meter.started_s -= 2.0
    for frames in (301, 302, 303, 304):
        meter.count(Progress(frames, 404, 0.1, 0.2, 0.3))
    assert meter.frames_per_s == pytest.approx(2.0, rel=0.1)
    assert meter.left_s == pytest.approx(50.0, rel=0.1)
    assert meter.count_text() == "304 of 404 frames"
    assert meter.stages() == "read 0.1 s, filter 0.2 s, write 0.3 s"


@pytest.mark.parametrize(
    ("value", "said"), [(0.04, "0.0 s"), (12.3, "12 s"), (185, "3:05"), (3723, "1:02:03")]
)
def test_times_are_for_people(value, said):
    assert progress.seconds(value) == said


def test_progress_is_a_bar_on_a_terminal(told, clip, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, out, err = told("process", "clip.mp4", "out.mp4", "-f", "invert")
    assert (code, out) == (0, "")
    assert "━" in err
    assert "10 of 10 frames" in err
    assert "read 0." in err


def test_a_picture_takes_text_as_a_video_does(answer, picture, folder):
    answer("process", "photo.png", "out.png", "-f", "text:Hi,position=top-left,size=12")
    assert (media.load(folder / "out.png")[:, :, :3] != picture).any()


def test_raw_frames_are_read_and_written(folder, clip):
    dala = [sys.executable, "-m", "dala", "process"]
    raw = subprocess.run(
        [*dala, "clip.mp4", "-", "-f", "invert"], capture_output=True, check=False, cwd=folder
    )
    assert raw.returncode == 0, raw.stderr
    assert len(raw.stdout) == 10 * 64 * 48 * 4
    back = subprocess.run(
        [*dala, "-", "back.mp4", "--raw-size", "64x48", "--rate", "10", "--json"],
        input=raw.stdout,
        capture_output=True,
        check=False,
        cwd=folder,
    )
    assert json.loads(back.stdout)["frames"] == 10, back.stderr


# -- documents -------------------------------------------------------------------------------------

FILTERS = """
filters = [
  "grayscale",
  { name = "blur", params = { radius = 2, sigma = 1.0 } },
  { name = "resize", size = "20x10" },
  { name = "overlay", layer = "photo.png", x = 5 },
]
"""


def test_the_filters_of_a_file_are_run(told, picture, folder):
    (folder / "p.toml").write_text(FILTERS, encoding="utf-8")
    assert told("run", "p.toml", "photo.png", "out.png")[0] == 0
    chain = [
        "grayscale",
        ("blur", {"radius": 2, "sigma": 1.0}),
        ("resize", {"size": (20, 10)}),
        ("overlay", {"layer": picture, "x": 5}),
    ]
    assert np.array_equal(media.load(folder / "out.png"), gpu.filter_chain(picture, chain))


def test_the_filters_of_a_file_are_run_on_a_video(answer, clip, folder):
    (folder / "p.json").write_text('["grayscale", {"name": "blur", "radius": 1}]')
    assert answer("run", "p.json", "clip.mp4", "out.mp4")["frames"] == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("filters = 3", ": $.filters: a list is needed"),
        ("filters = [3]", ": $.filters[0]: a mapping is needed, not 3"),
        ("filters = ['blurr']", ": $.filters[0]: no filter is named 'blurr'. Did you mean"),
        ("[[filters]]\nname = 'blur'\nradus = 3", ": $.filters[0]: blur has no parameter 'radus'"),
        ("[[filter]]\nname = 'blur'", ": $.filter is not known"),
        ("filters = [", " is not TOML"),
    ],
)
def test_a_mistake_in_a_file_has_a_place(refused, picture, folder, text, said):
    (folder / "p.toml").write_text(text, encoding="utf-8")
    assert refused("run", "p.toml", "photo.png", "out.png").startswith(f"dala: p.toml{said}")


@dala.kernel
def halves(image: dala.Image):
    return image.pixel * 0.5, 1.0 - image.pixel


def test_a_stage_with_two_outputs_is_run_on_a_picture(told, refused, picture, folder):
    x, out, other = (compute.from_numpy(picture) for _ in range(3))
    unused = compute.scratch(picture.shape, "u8")
    pipeline = compute.pipeline().add(halves, [x], [unused, out])
    pipeline.save("two.json", {"photo": x, "result": out})
    assert told("run", "two.json", "photo.png", "out.png")[0] == 0
    assert np.array_equal(media.load(folder / "out.png")[..., :3], 255 - picture[..., :3])
    pipeline = compute.pipeline().add(halves, [x], [other, out])
    pipeline.save("three.json", {"photo": x, "result": out, "other": other})
    said = refused("run", "three.json", "photo.png", "both.png")
    assert "one that is read and one that is written, not 1 and 2" in said


def test_a_pipeline_of_buffers_is_run_on_a_picture_that_fits(told, refused, picture, folder):
    x = compute.from_numpy(picture)
    y, out = compute.buffer_zeros(picture.shape, "u8"), compute.buffer_zeros(picture.shape, "u8")
    pipeline = compute.pipeline()
    pipeline.add(kernel="invert", inputs=[x], output=y)
    pipeline.add(kernel="blur", inputs=[y], output=out, params={"radius": 1})
    pipeline.save("both.json", {"photo": x, "between": y, "result": out})
    said = refused("run", "both.json", "photo.png", "out.png")
    assert "one that is read and one that is written, not 1 and 2" in said

    pipeline = compute.pipeline()
    pipeline.add(kernel="invert", inputs=[x], output=out)
    pipeline.save("one.json", {"photo": x, "result": out})
    assert told("run", "one.json", "photo.png", "out.png")[0] == 0
    assert np.array_equal(media.load(folder / "out.png"), 255 - picture)
    media.save(picture[:20], folder / "small.png")
    assert "was made for pictures of 40 × 30" in refused("run", "one.json", "small.png", "b.png")
    assert "--quality" in refused("run", "one.json", "photo.png", "out.png", "--size", "8x8")
    assert json.loads((folder / "one.json").read_text())["version"] == 2
