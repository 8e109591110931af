"""What picture files hold, and what it becomes: orientations, modes, depths, colors."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from media.picture_files import (
    as_stored,
    encoded,
    noise,
    png_chunk,
    profile,
    smooth,
    swapped_profile,
    tag_places,
)
from PIL import Image, PngImagePlugin

from dala import errors, media


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF", "AVIF"])
def test_exif_orientation_is_honored(format, orientation):
    upright = np.kron(np.array([[250, 10, 10], [10, 10, 120]], np.uint8), np.ones((16, 16), "u1"))
    upright = np.repeat(upright[..., None], 3, -1)
    stored = as_stored(upright, orientation)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(np.ascontiguousarray(stored))
    options = {"lossless": True} if format == "WEBP" else {}
    got = media.load(encoded(image, format, exif=exif, **options))
    assert got.shape == upright.shape
    assert np.abs(got.astype(int) - upright).max() <= 12


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_is_no_reason_to_refuse_a_picture():
    data = encoded(Image.fromarray(smooth()), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f")
    assert media.load(data).shape == (40, 56, 3)


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_an_orientation_that_cannot_be_read_is_told(format):
    data = encoded(Image.fromarray(smooth()), format, exif=b"Exif\0\0no header at all")
    with pytest.warns(errors.LossWarning, match="orientation cannot be read"):
        assert media.load(data).shape == (40, 56, 3)


MODES = {
    "1": (Image.fromarray(smooth()).convert("1"), "PNG", 2),
    "L": (Image.fromarray(smooth()).convert("L"), "PNG", 2),
    "LA": (Image.fromarray(noise((4, 5, 4))).convert("LA"), "PNG", 4),
    "P": (Image.fromarray(smooth()).quantize(16), "PNG", 3),
    "CMYK jpeg": (Image.fromarray(smooth()).convert("CMYK"), "JPEG", 3),
    "CMYK tiff": (Image.fromarray(smooth()).convert("CMYK"), "TIFF", 3),
}


@pytest.mark.parametrize("mode", MODES)
def test_other_modes_become_gray_rgb_or_rgba(mode):
    image, format, channels = MODES[mode]
    got = media.load(encoded(image, format))
    want = np.asarray(image.convert({2: "L", 3: "RGB", 4: "RGBA"}[channels]))
    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want).max() <= (12 if format == "JPEG" else 0)


def test_a_transparent_color_of_a_palette_gray_or_rgb_png_becomes_alpha():
    palette = Image.fromarray(np.array([[0, 1, 2]], np.uint8)).convert("P")
    palette.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    for transparency in (1, b"\xff\x00\xff"):
        got = media.load(encoded(palette, "PNG", transparency=transparency))
        assert got[0, :, 3].tolist() == [255, 0, 255]
        assert got[0, 2].tolist() == [0, 0, 255, 255]
    gray = Image.fromarray(np.array([[7, 8]], np.uint8))
    assert media.load(encoded(gray, "PNG", transparency=8))[0].tolist() == [
        [7, 7, 7, 255],
        [8, 8, 8, 0],
    ]
    rgb = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    got = media.load(encoded(rgb, "PNG", transparency=(4, 5, 6)))
    assert got[0, :, 3].tolist() == [255, 0]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_gray_of_16_bits_is_rounded_to_8_where_that_is_asked_for(format):
    values = np.array([[0, 128, 129, 385, 386, 65535, 65534, 32768]], np.uint16)
    got = media.load(encoded(Image.fromarray(values), format), dtype="u8")
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, np.rint(values / 257))


def test_a_value_of_a_16_bit_png_that_is_transparent_becomes_alpha():
    raw = zlib.compress(b"\0" + struct.pack(">3H", 0, 1000, 65535))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 3, 1, 16, 0, 0, 0, 0)),
        (b"tRNS", struct.pack(">H", 1000)),
        (b"IDAT", raw),
        (b"IEND", b""),
    ]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)
    assert media.load(data)[0].tolist() == [
        [0, 0, 0, 65535],
        [1000, 1000, 1000, 0],
        [65535] * 4,
    ]
    assert media.load(data, dtype="u8")[0, :, 3].tolist() == [255, 0, 255]


def test_float_pixels_have_no_known_range_and_are_refused():
    data = encoded(Image.fromarray(np.ones((3, 4), np.float32)), "TIFF")
    with pytest.raises(errors.MediaError, match="mode F"):
        media.load(data)


@pytest.mark.filterwarnings("ignore:.*only the first of its:dala.errors.LossWarning")
def test_the_first_of_several_frames_is_loaded():
    frames = [Image.fromarray(np.full((8, 9, 3), level, np.uint8)) for level in (200, 50, 90)]
    for format, options in (
        ("WEBP", {"lossless": True}),
        ("TIFF", {}),
        ("PNG", {}),
        ("GIF", {}),
    ):
        data = encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)
        got = media.load(data, mode="rgb")
        np.testing.assert_array_equal(got, np.asarray(frames[0]), format)


def test_mode_gives_gray_rgb_or_rgba_of_any_picture():
    image = noise((5, 6, 4))
    data = encoded(Image.fromarray(image), "PNG")
    np.testing.assert_array_equal(media.load(data, mode="rgb"), image[..., :3])
    np.testing.assert_array_equal(media.load(data, mode="rgba"), image)
    luma = image[..., :3] @ np.array([0.299, 0.587, 0.114])
    assert np.abs(media.load(data, mode="gray") - luma).max() <= 0.51
    gray = encoded(Image.fromarray(image[..., 0]), "PNG")
    assert media.load(gray, mode="rgba")[..., 3].min() == 255
    with pytest.raises(errors.ArgumentError, match="gray, rgb, rgba"):
        media.load(data, mode="bgr")


# ---- colors


@pytest.mark.parametrize("format", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_an_icc_profile_is_converted_to_srgb(format):
    image = np.zeros((16, 16, 3), np.uint8)
    image[..., 0] = 255
    options = {"lossless": True} if format == "WEBP" else {}
    data = encoded(Image.fromarray(image), format, icc_profile=swapped_profile(), **options)
    assert np.abs(media.load(data)[4, 4].astype(int) - [0, 255, 0]).max() <= 3


def test_an_icc_profile_leaves_alpha_as_it_was():
    image = noise((5, 7, 4))
    got = media.load(encoded(Image.fromarray(image), "PNG", icc_profile=swapped_profile()))
    np.testing.assert_array_equal(got[..., 3], image[..., 3])
    assert np.abs(got[..., :3].astype(int) - image[..., [1, 0, 2]]).max() <= 2


def test_a_profile_that_is_nearly_srgb_leaves_the_pixels_exact():
    icc = bytearray(profile("sRGB"))
    at = tag_places(icc)[b"rXYZ"]
    place = struct.unpack(">I", icc[at : at + 4])[0] + 8
    red = struct.unpack(">i", icc[place : place + 4])[0]
    image = noise((64, 64, 3))
    for more, exact in ((24, True), (6000, False)):
        icc[place : place + 4] = struct.pack(">i", red + more)
        got = media.load(encoded(Image.fromarray(image), "PNG", icc_profile=bytes(icc)))
        assert (got == image).all() == exact


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_an_srgb_profile_and_a_broken_one_leave_the_pixels_exact(shape):
    image = noise(shape)
    for icc in (profile("sRGB"), b"not a profile", profile("sRGB")[:200], profile("LAB")):
        got = media.load(encoded(Image.fromarray(image), "PNG", icc_profile=icc))
        np.testing.assert_array_equal(got, image)


def test_gamma_of_a_png_is_honored_unless_it_says_srgb():
    image = np.arange(256, dtype=np.uint8)[None]

    def load(*chunks: tuple[bytes, bytes]) -> np.ndarray:
        info = PngImagePlugin.PngInfo()
        for chunk in chunks:
            info.add(*chunk)
        return media.load(encoded(Image.fromarray(image), "PNG", pnginfo=info))

    linear, usual = struct.pack(">I", 100000), struct.pack(">I", 45455)
    x = image / 255
    want = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055) * 255
    assert np.abs(load((b"gAMA", linear)) - want).max() <= 0.51
    np.testing.assert_array_equal(load((b"gAMA", usual)), image)
    np.testing.assert_array_equal(load((b"gAMA", linear), (b"sRGB", b"\0")), image)
    np.testing.assert_array_equal(load((b"gAMA", struct.pack(">I", 0))), image)
