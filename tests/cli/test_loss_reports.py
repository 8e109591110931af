"""What of a picture is not kept is said in one line, and refused with `--strict`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from media.picture_files import encoded, smooth, swapped_profile
from media.small_models import write_bright_class
from PIL import Image

from dala import compute, media

DEEP = "its 16 bits for each value are cut to 8"


@pytest.fixture
def deep(folder):
    """deep.png and deep.tif, gray, of 16 bits."""
    image = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000)
    for name in ("deep.png", "deep.tif"):
        image.save(folder / name)


@pytest.fixture
def animated(folder):
    """moving.webp, of three frames."""
    frames = [Image.fromarray(np.full((8, 9, 3), level, np.uint8)) for level in (200, 50, 90)]
    frames[0].save(folder / "moving.webp", save_all=True, append_images=frames[1:], duration=100)


@pytest.fixture
def photo(folder):
    """photo.jpg with EXIF, held sideways."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = "Acme", 6
    exif.get_ifd(0x8769)[0x9003] = "2024:05:06 07:08:09"
    exif.get_ifd(0x8825)[1] = "N"
    Image.fromarray(smooth()).save(folder / "photo.jpg", exif=exif)


@pytest.mark.parametrize("name", ["deep.png", "deep.tif"])
@pytest.mark.parametrize("filters", [[], ["-f", "blur:radius=1"], ["-f", "text:hi"]])
def test_bits_that_are_cut_are_said(told, deep, name, filters):
    code, out, err = told("process", name, "out.jpg", *filters)
    assert (code, out) == (0, "")
    assert err.splitlines()[-1:] == [f"dala: {name}: {DEEP}."]
    assert told("process", name, "out.jpg", *filters, "-y", "-q") == (0, "", "")


@pytest.mark.parametrize("name", ["deep.png", "deep.tif"])
@pytest.mark.parametrize("target", ["out.png", "out.tif", "out-%d.png"])
@pytest.mark.parametrize("filter", [None, "invert", "text:hi,opacity=0.01"])
def test_sixteen_bits_are_kept_by_every_filter(told, deep, name, target, filter):
    given = [] if filter is None else ["-f", filter]
    assert told("process", name, target, *given, "--strict", "-q") == (0, "", "")
    image = media.load(target.replace("%d", "0"), mode="gray")
    assert image.dtype == np.uint16
    if filter is None:
        np.testing.assert_array_equal(image, media.load("deep.png"))
    elif filter == "invert":
        np.testing.assert_array_equal(image, 65535 - media.load("deep.png"))


def test_a_batch_keeps_sixteen_bits(told, deep):
    code, _, err = told("batch", "deep.png", "deep.tif", "--out", "made", "-f", "invert")
    assert code == 0
    assert "cut" not in err
    for name in ("deep.png", "deep.tif"):
        np.testing.assert_array_equal(media.load(f"made/{name}"), 65535 - media.load(name))


def test_a_pipeline_of_eight_bits_says_what_it_cuts(told, folder, deep):
    given, made = (compute.buffer_zeros((8, 8), "u8") for _ in range(2))
    with compute.pipeline() as pipeline:
        pipeline.add("invert", [given], made)
        pipeline.save(folder / "eight.json", {"given": given, "made": made})
    code, _, err = told("run", "eight.json", "deep.png", "out.png")
    assert code == 0, err
    assert DEEP in err
    want = 255 - media.load("deep.png", dtype="u8")
    np.testing.assert_array_equal(media.load("out.png"), want)


def test_a_pipeline_of_sixteen_bits_takes_and_makes_them(told, folder, deep):
    given, made = (compute.buffer_zeros((8, 8), "u16") for _ in range(2))
    with compute.pipeline() as pipeline:
        pipeline.add("invert", [given], made)
        pipeline.save(folder / "deep.json", {"given": given, "made": made})
    assert told("run", "deep.json", "deep.png", "out.png", "--strict", "-q") == (0, "", "")
    np.testing.assert_array_equal(media.load("out.png"), 65535 - media.load("deep.png"))


def test_frames_that_are_lost_are_said(told, animated):
    code, _, err = told("process", "moving.webp", "out.png")
    assert code == 0
    assert "dala: moving.webp: only the first of its frames is kept (a GIF, a video or a " in err
    assert told("process", "moving.webp", "out.gif", "--strict", "-q") == (0, "", "")
    with media.open("out.gif") as video:
        assert len(list(video)) == 3


def test_all_that_is_lost_is_in_one_line(told, folder):
    exif = Image.Exif()
    exif[0x010F] = "Acme"
    data = encoded(Image.fromarray(smooth()), "JPEG", exif=exif, icc_profile=swapped_profile())
    (folder / "in.jpg").write_bytes(data)
    code, _, err = told("process", "in.jpg", "out.bmp")
    assert code == 0
    (line,) = err.splitlines()[1:]
    assert line.startswith("dala: in.jpg: EXIF is not kept; the color profile ")
    assert line.endswith("(its colors are sRGB now) is not kept.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["process", "deep.png", "out.bmp"],
        ["process", "deep.png", "out.bmp", "-f", "text:hi"],
        ["process", "moving.webp", "out.png"],
        ["process", "photo.jpg", "out.bmp"],
        ["run", "list.json", "deep.png", "out.bmp"],
        ["predict", "classes.onnx", "deep.png", "--like", "mobilenet_v2", "-o", "out.bmp"],
        ["process", "clear.png", "out.png", "-f", "overlay:layer=moving.webp"],
    ],
)
def test_strictness_refuses_before_anything_is_written(
    refused, folder, deep, animated, photo, arguments
):
    (folder / "list.json").write_text('["invert"]')
    write_bright_class(folder / "classes.onnx")
    media.save(smooth(), folder / "clear.png")
    said = refused(*arguments, "--strict", code=1)
    assert "kept" in said or DEEP in said
    assert "That is an error by --strict, and nothing was written." in said
    assert not (folder / "out.png").exists()
    assert not (folder / "out.bmp").exists()


def test_a_batch_says_it_for_each_file_and_goes_on(told, answer, deep, photo):
    code, _, err = told("batch", "deep.png", "photo.jpg", "--out", "made", "--to", "jpg", "-q")
    assert (code, err) == (0, "")
    code, _, err = told("batch", "deep.png", "photo.jpg", "--out", "more", "--to", "jpg")
    assert code == 0
    assert err.count("dala: ") == 1
    assert f"dala: deep.png: {DEEP}." in err
    given = ["--out", "strict", "--to", "jpg", "--strict"]
    said = answer("batch", "deep.png", "photo.jpg", *given, code=1)
    assert [item["source"] for item in said["made"]] == ["photo.jpg"]
    assert said["failed"] == [{"source": "deep.png", "error": f"strict/deep.jpg: {DEEP}."}]


def test_programs_are_told_what_was_lost(told, answer, deep, photo):
    assert answer("process", "deep.png", "a.png")["lost"] == []
    assert answer("process", "deep.png", "a.jpg")["lost"] == [DEEP]
    assert answer("process", "photo.jpg", "b.jpg")["lost"] == []
    _, out, err = told("process", "deep.png", "c.jpg", "--json")
    assert json.loads(out)["lost"] == [DEEP]
    assert err == ""


def test_losses_after_a_strict_run_are_said_again(told, refused, deep):
    refused("process", "deep.png", "out.jpg", "--strict", code=1)
    code, _, err = told("process", "deep.png", "out.jpg")
    assert code == 0
    assert DEEP in err


@pytest.mark.parametrize("filters", [[], ["-f", "grayscale"], ["-f", "text:hi"]])
@pytest.mark.parametrize("name", ["out.jpg", "out.png", "out.webp", "out.tif", "out.avif"])
def test_a_photograph_keeps_its_exif_and_stays_upright(told, photo, name, filters):
    assert told("process", "photo.jpg", name, *filters, "--strict", "-q") == (0, "", "")
    image, metadata = media.load(name, with_metadata=True)
    assert image.shape[:2] == (56, 40)
    tags = metadata.tags()
    assert (tags["Make"], tags["DateTimeOriginal"]) == ("Acme", "2024:05:06 07:08:09")
    assert tags["GPSInfo"]["GPSLatitudeRef"] == "N"


def test_pictures_of_a_folder_are_spoken_of_once(told, folder, deep):
    (folder / "frames").mkdir()
    for number in range(3):
        (folder / "frames" / f"{number}.png").write_bytes((folder / "deep.png").read_bytes())
    code, _, err = told("process", "frames", "out.gif")
    assert code == 0
    assert err.count(DEEP) == 1
