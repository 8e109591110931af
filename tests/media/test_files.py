"""Pictures loaded from files and saved to them."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from media.picture_files import encoded, noise, smooth
from PIL import Image, ImageFile

from dala import errors, media
from dala.gpu import compute
from dala.media.pictures import formats

SHAPES = [(5, 7), (6, 9, 3), (33, 65, 4), (1, 1), (1, 1, 4), (1, 37, 3)]
LOSSLESS = [".png", ".tif", ".tiff", ".webp", ".bmp"]
LOSSY = [".jpg", ".jpeg", ".JPG", ".avif", ".heic", ".heif"]


# ---- round trips


@pytest.mark.parametrize("suffix", LOSSLESS)
@pytest.mark.parametrize("shape", SHAPES)
def test_lossless_formats_keep_every_value(tmp_path, suffix, shape):
    image = noise(shape)
    if suffix == ".bmp" and shape[2:] == (4,):
        image = image[..., :3]  # BMP has no transparency
    media.save(image, tmp_path / f"a{suffix}")
    got = media.load(tmp_path / f"a{suffix}")
    if suffix == ".webp" and len(shape) == 2:
        image = np.repeat(image[..., None], 3, -1)  # WebP has no gray
    assert got.dtype == np.uint8
    assert got.flags.c_contiguous
    assert got.flags.writeable
    np.testing.assert_array_equal(got, image)


@pytest.mark.parametrize("suffix", LOSSY)
def test_lossy_formats_are_near(tmp_path, suffix):
    image = smooth()
    media.save(image, tmp_path / f"a{suffix}")
    got = media.load(tmp_path / f"a{suffix}")
    assert got.shape == image.shape
    assert np.abs(got.astype(int) - image).max() <= 8
    media.save(image[..., 0], tmp_path / f"gray{suffix}")
    gray = media.load(tmp_path / f"gray{suffix}", mode="gray")
    assert np.abs(gray.astype(int) - image[..., 0]).max() <= 8


@pytest.mark.parametrize("suffix", [".avif", ".heic", ".webp"])
def test_lossy_formats_with_transparency_keep_it(tmp_path, suffix):
    image = np.dstack([smooth(), np.repeat(np.arange(56, dtype=np.uint8)[None] * 4, 40, 0)])
    media.save(image, tmp_path / f"a{suffix}", quality=90)
    got = media.load(tmp_path / f"a{suffix}")
    assert got.shape == image.shape
    assert np.abs(got[..., 3].astype(int) - image[..., 3]).max() <= 4


@pytest.mark.parametrize("suffix", [".jpg", ".bmp"])
def test_formats_without_transparency_take_rgba_that_is_opaque(tmp_path, suffix):
    opaque = np.dstack([smooth(), np.full((40, 56), 255, np.uint8)])
    media.save(opaque, tmp_path / f"a{suffix}")
    assert media.load(tmp_path / f"a{suffix}").shape == (40, 56, 3)
    opaque[0, 0, 3] = 254
    with pytest.raises(errors.ArgumentError, match="has no transparency, but 1 pixels are not"):
        media.save(opaque, tmp_path / f"b{suffix}")


def test_a_gif_is_loaded_with_its_colors_and_its_transparency():
    image = np.zeros((6, 8, 4), np.uint8)
    image[:, :4] = 250, 10, 10, 255
    data = encoded(Image.fromarray(image), "GIF")
    got = media.load(data)
    assert got.shape == (6, 8, 4)
    np.testing.assert_array_equal(got[..., 3], image[..., 3])
    np.testing.assert_array_equal(got[:, :4], image[:, :4])


def test_a_format_that_is_not_installed_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "a.heic"
    media.save(smooth(), path)
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    wanted = r'a.heic is HEIC, which needs the library pillow-heif: pip install "dala-gpu\[heic\]"'
    with pytest.raises(errors.MediaError, match=wanted):
        media.load(path)
    before = path.read_bytes()
    with pytest.raises(errors.MediaError, match=wanted):
        media.save(smooth(), path)
    assert path.read_bytes() == before
    monkeypatch.setattr("PIL.AvifImagePlugin.SUPPORTED", False)
    with pytest.raises(errors.MediaError, match=r"b.avif is AVIF, which needs Pillow 11.3 or new"):
        media.save(smooth(), tmp_path / "b.avif")


def test_quality_makes_lossy_formats_smaller(tmp_path):
    image = noise((64, 64, 3))
    for suffix in (".jpg", ".webp", ".avif", ".heic"):
        media.save(image, tmp_path / f"best{suffix}")
        media.save(image, tmp_path / f"low{suffix}", quality=20)
        sizes = [(tmp_path / f"{name}{suffix}").stat().st_size for name in ("best", "low")]
        assert sizes[1] < sizes[0] / 2


def test_f32_is_clamped_and_rounded_to_nearest(tmp_path):
    values = [[-1.0, 0.0, 0.4 / 255, 0.6 / 255], [100.4 / 255, 1.0, 2.0, np.nan]]
    values += [[np.inf, -np.inf, 254.4 / 255, 254.6 / 255]]
    media.save(np.array(values, np.float32), tmp_path / "a.png")
    want = [[0, 0, 0, 1], [100, 255, 255, 0], [255, 0, 254, 255]]
    assert media.load(tmp_path / "a.png").tolist() == want


def test_buffers_of_each_device_and_pillow_images_are_saved(tmp_path, device):
    image = noise((6, 9, 4))
    media.save(compute.from_numpy(image), tmp_path / "a.png")
    media.save(Image.fromarray(image), tmp_path / "b.png")
    np.testing.assert_array_equal(media.load(tmp_path / "a.png"), image)
    np.testing.assert_array_equal(media.load(tmp_path / "b.png"), image)


def test_views_that_are_not_contiguous_are_saved(tmp_path):
    image = noise((8, 10, 4))
    media.save(image[::-2, ::3], tmp_path / "a.png")
    np.testing.assert_array_equal(media.load(tmp_path / "a.png"), image[::-2, ::3])


def test_what_is_saved_says_that_it_is_srgb_and_is_the_same_each_time(tmp_path):
    for suffix in formats.FORMATS:
        written = []
        for name in ("a", "b"):
            media.save(smooth(), tmp_path / f"{name}{suffix}")
            written.append((tmp_path / f"{name}{suffix}").read_bytes())
        assert written[0] == written[1]
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["srgb"] == 0
    for name in ("a.jpg", "a.webp", "a.avif"):
        with Image.open(tmp_path / name) as image:
            assert image.getexif().get_ifd(0x8769)[0xA001] == 1


def test_bytes_of_a_file_are_loaded_like_the_file(tmp_path):
    media.save(noise((6, 9, 3)), tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    want = media.load(str(tmp_path / "a.png"))
    for given in (data, bytearray(data), memoryview(data)):
        np.testing.assert_array_equal(media.load(given), want)


# ---- what is refused


def test_what_cannot_be_opened_is_a_file_error(tmp_path):
    with pytest.raises(errors.FileError, match=r"none\.png cannot be read: No such file"):
        media.load(tmp_path / "none.png")
    with pytest.raises(errors.FileError, match="directory"):
        media.load(tmp_path)
    for name in ("", "a\0b.png", 3, None):
        with pytest.raises(errors.ArgumentError):
            media.load(name)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"hello, this is no picture", "text, and begins with 'hello, this is n'"),
        (b"8BPS\0\1" + bytes(50), "seems to be Photoshop"),
        (b"%PDF-1.7", "seems to be PDF"),
        (b"\0\0\0\x20ftypisom" + bytes(50), "seems to be video"),
        (b"\0\0\0\x20ftypavif" + bytes(50), "cannot be decoded as AVIF"),
        (b"\0\0\0\x20ftypheic" + bytes(50), "cannot be decoded as HEIF"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "seems to be SVG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "PostScript"),
        (b"\x80\x04\x95\0\0", "80 04 95 00 00"),
    ],
)
def test_what_is_no_picture_is_refused_by_its_content(tmp_path, content, said):
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(errors.MediaError, match=said) as caught:
        media.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "format", ["PNG", "WEBP", "TIFF", "lossy WEBP", "LZW TIFF", "BMP", "GIF", "AVIF", "HEIF"]
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_file_cut_anywhere_gives_no_pixels(format, lenient, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    options = {
        "WEBP": {"lossless": True},
        "lossy WEBP": {"quality": 50},
        "LZW TIFF": {"compression": "tiff_lzw"},
    }.get(format, {})
    data = encoded(Image.fromarray(noise((24, 30, 3))), format.split()[-1], **options)
    media.load(data)
    whole = len(data)
    for end in [*range(1, whole, 41), *range(whole - 14, whole)]:
        with pytest.raises(errors.MediaError) as caught:
            media.load(data[:end])
        if end > 64 and format.endswith(("PNG", "WEBP", "BMP", "GIF")):
            assert f"ends after {end:,} bytes" in str(caught.value)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is lenient


def test_a_flipped_bit_in_a_png_never_gives_other_pixels():
    image = noise((24, 30, 3))
    data = bytearray(encoded(Image.fromarray(image), "PNG"))
    refused = 0
    for at in range(33, len(data) - 12, 3):
        data[at] ^= 16
        try:
            np.testing.assert_array_equal(media.load(bytes(data)), image)
        except errors.MediaError:
            refused += 1
        data[at] ^= 16
    assert refused > 700


def test_what_follows_a_picture_is_ignored():
    for format in ("PNG", "JPEG", "WEBP"):
        data = encoded(Image.fromarray(smooth()), format)
        np.testing.assert_array_equal(media.load(data + b"more\xff\xd8"), media.load(data))


@pytest.mark.parametrize(
    "format", ["PNG", "JPEG", "WEBP", "lossy WEBP", "TIFF", "BMP", "GIF", "AVIF", "HEIF"]
)
def test_too_many_pixels_are_refused_with_both_numbers(format):
    options = {"WEBP": {"lossless": True}}.get(format, {})
    data = encoded(Image.fromarray(smooth(40, 56)), format.split()[-1], **options)
    assert media.load(data, largest_pixels=2240).shape == (40, 56, 3)
    with pytest.raises(errors.LimitError, match=r"56 × 40.*2,240 pixels.*2,239"):
        media.load(data, largest_pixels=2239)
    for wrong in (True, 1.5, "9"):
        with pytest.raises(errors.ArgumentError, match="largest_pixels"):
            media.load(data, largest_pixels=wrong)


def test_pillows_own_limit_does_not_get_in_the_way(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for format in ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "HEIF"):
        assert media.load(encoded(Image.fromarray(smooth()), format)).shape == (40, 56, 3)
    assert Image.MAX_IMAGE_PIXELS == 100


def test_an_extended_webp_header_is_measured_before_it_is_decoded():
    body = bytes(4) + (16383).to_bytes(3, "little") * 2
    data = b"WEBPVP8X" + struct.pack("<I", 10) + body
    data = b"RIFF" + struct.pack("<I", len(data)) + data
    with pytest.raises(errors.LimitError, match="16,384 × 16,384"):
        media.load(data, largest_pixels=1 << 20)


@pytest.mark.parametrize(
    ("image", "error", "said"),
    [
        (np.zeros((2, 2, 2), np.uint8), errors.ShapeError, "height, width"),
        (np.zeros((0, 4), np.uint8), errors.ShapeError, "no pixels"),
        (np.zeros((2, 2), np.float64), errors.DtypeError, "float64"),
        ("picture", errors.ArgumentError, "str"),
    ],
)
def test_what_is_no_image_is_not_saved(tmp_path, image, error, said):
    with pytest.raises(error, match=said):
        media.save(image, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_options_that_make_no_sense_are_refused(tmp_path):
    image = smooth()
    for name in ("a", "a.gif", "a.", ".png"):
        with pytest.raises(errors.ArgumentError, match=r"\.png, \.jpg, \.jpeg, \.webp, \.tif"):
            media.save(image, tmp_path / name)
    for name, quality in (
        ("a.png", 90),
        ("a.tiff", 90),
        ("a.bmp", 90),
        ("a.jpg", 0),
        ("a.webp", 101),
    ):
        with pytest.raises(errors.ArgumentError, match="quality"):
            media.save(image, tmp_path / name, quality=quality)
    with pytest.raises(errors.ArgumentError, match=r"12 pixels are not opaque.*\.png"):
        media.save(np.full((3, 4, 4), 254, np.uint8), tmp_path / "a.jpg")
    with pytest.raises(errors.LimitError, match=r"16,384.*16,383"):
        media.save(np.zeros((1, 16384), np.uint8), tmp_path / "a.webp")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    media.save(smooth(), path)
    before = path.read_bytes()

    def full(*_: object, **folders: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(errors.FileError, match=r"a\.png cannot be written: No space left"):
            media.save(noise((9, 9)), path)
    assert [item.name for item in tmp_path.iterdir()] == ["a.png"]
    assert path.read_bytes() == before
    with pytest.raises(errors.FileError, match="No such file"):
        media.save(smooth(), tmp_path / "none" / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(errors.FileError, match="directory"):
        media.save(smooth(), tmp_path / "folder.png")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.png", "folder.png"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_into_not_replaced(tmp_path):
    pipe = tmp_path / "a.png"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    media.save(smooth(), pipe)
    reader.join()
    assert pipe.is_fifo()
    np.testing.assert_array_equal(media.load(got[0]), smooth())


def test_without_pillow_the_error_says_what_to_install(tmp_path):
    media.save(smooth(), tmp_path / "a.png")
    program = f"""
import sys
sys.modules["PIL"] = None
import numpy as np
from dala import errors, media
for call in (lambda: media.load({str(tmp_path / "a.png")!r}),
             lambda: media.save(np.zeros((2, 2), np.uint8), {str(tmp_path / "b.png")!r})):
    try:
        call()
    except errors.MediaError as error:
        print(error)
"""
    fresh = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lines = fresh.stdout.splitlines()
    assert len(lines) == 2
    assert all('pip install "dala-gpu[media]"' in line for line in lines)
