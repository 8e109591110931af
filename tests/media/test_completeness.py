"""Files that claim more pixels than they have anything for, or than memory is taken for."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from media.picture_files import animated_webp, encoded, noise, resized_jpeg, smooth, tiff
from PIL import Image

from dala import errors, media
from dala.media.pictures import footprint

ROWS = 8_000_000
STRIP = zlib.compress(bytes(25 * 80_000), 9)

CLAIMS = {
    "a TIFF of one strip where many are needed": (
        tiff(25, ROWS, 10, [(0, 250)], bytes(250)),
        errors.MediaError,
        "it has 1 strips, but 25 × 8,000,000 takes 800,000",
    ),
    "a TIFF of one packed strip where many are needed": (
        tiff(25, ROWS, 80_000, [(0, len(STRIP))], STRIP),
        errors.MediaError,
        "it has 1 strips, but 25 × 8,000,000 takes 100",
    ),
    "a TIFF whose strips are all the same bytes": (
        tiff(25, ROWS, 80_000, [(0, len(STRIP))] * 100, STRIP),
        errors.MediaError,
        "its strips claim .* bytes, and the file has",
    ),
    "a WebP whose frame is small": (
        animated_webp((25, 2_000_000), (4, 4)),
        errors.MediaError,
        "its first frame is 4 × 4 of 25 × 2,000,000, which leaves 49,999,984 pixels",
    ),
    "a WebP of 8 million rows": (
        animated_webp((25, ROWS), (4, 4)),
        errors.LimitError,
        "25 × 8,000,000: to decode it takes about 3,200,000,000 bytes of memory",
    ),
    "a JPEG without data for its blocks": (
        resized_jpeg(encoded(Image.fromarray(noise((64, 64))), "JPEG"), 16_000, 16_000),
        errors.MediaError,
        "its 4,000,000 blocks take 1,000,000 bytes, and the file has",
    ),
    "a progressive JPEG without data for its blocks": (
        resized_jpeg(encoded(Image.fromarray(smooth()), "JPEG", progressive=True), 16_000, 16_000),
        errors.MediaError,
        "blocks take .* bytes, and the file has",
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_small_file_that_claims_many_pixels_is_refused_before_they_are_made(claim, monkeypatch):
    data, error, said = CLAIMS[claim]
    assert len(data) < 8000
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("they were made"))
    with pytest.raises(error, match=said):
        media.load(data)


@pytest.mark.parametrize("name", ["tile", "planes", "rows", "big", "pages", "one row"])
@pytest.mark.filterwarnings("ignore::dala.errors.LossWarning")
def test_every_way_to_lay_out_a_tiff_is_loaded(tmp_path, name):
    import tifffile

    values = noise((45, 67, 3))
    options = {
        "tile": {"tile": (16, 32), "photometric": "rgb"},
        "planes": {"planarconfig": "separate", "photometric": "rgb", "rowsperstrip": 7},
        "rows": {"rowsperstrip": 4, "photometric": "rgb"},
        "big": {"bigtiff": True, "photometric": "rgb"},
        "pages": {"photometric": "rgb"},
        "one row": {"rowsperstrip": 2**31 - 1, "photometric": "rgb"},
    }[name]
    stored = np.moveaxis(values, 2, 0) if name == "planes" else values
    with tifffile.TiffWriter(tmp_path / "a.tif", bigtiff=options.pop("bigtiff", False)) as file:
        for _ in range(2 if name == "pages" else 1):
            file.write(stored, contiguous=False, **options)
    np.testing.assert_array_equal(media.load(tmp_path / "a.tif"), values)


@pytest.mark.parametrize(
    "compression", ["raw", "tiff_lzw", "packbits", "tiff_adobe_deflate", "jpeg"]
)
def test_tiffs_of_every_compression_are_loaded(compression):
    given = {} if compression == "raw" else {"compression": compression}
    data = encoded(Image.fromarray(smooth()), "TIFF", **given)
    assert np.abs(media.load(data).astype(int) - smooth()).max() <= 25


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimize": True},
        {"progressive": True, "optimize": True},
        {"subsampling": 2},
        {"restart_marker_blocks": 1},
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (3, 9), (1024, 700)])
def test_a_jpeg_of_one_color_has_enough_for_its_blocks(mode, options, size):
    data = encoded(Image.new(mode, size), "JPEG", **options)
    assert media.load(data).shape[:2] == size[::-1]


@pytest.mark.filterwarnings("ignore::dala.errors.LossWarning")
def test_an_animated_webp_whose_first_frame_is_smaller_than_it_is_loaded():
    first, second = (np.zeros((100, 100, 4), np.uint8) for _ in range(2))
    first[40:60, 40:60] = 255, 0, 0, 255
    second[10:20, 10:20] = 0, 255, 0, 255
    given = {"save_all": True, "append_images": [Image.fromarray(second)], "lossless": True}
    got = media.load(encoded(Image.fromarray(first), "WEBP", **given))
    np.testing.assert_array_equal(got[..., :3], first[..., :3])


# -- the budget in bytes -------------------------------------------------------------------------

BYTES = [("L", 3), ("RGB", 8), ("RGBA", 8), ("I;16", 16), ("WEBP", 16)]


@pytest.mark.parametrize(("mode", "each"), BYTES)
@pytest.mark.filterwarnings("ignore::dala.errors.LossWarning")
def test_a_picture_that_takes_too_many_bytes_is_refused(monkeypatch, mode, each):
    image = Image.new("RGB" if mode == "WEBP" else mode, (100, 50))
    data = encoded(image, "WEBP" if mode == "WEBP" else "PNG")
    monkeypatch.setattr(footprint, "LARGEST_BYTES", 100 * 50 * each)
    assert media.load(data).shape[:2] == (50, 100)
    monkeypatch.setattr(footprint, "LARGEST_BYTES", 100 * 50 * each - 1)
    with pytest.raises(
        errors.LimitError, match=f"100 × 50: to decode it takes about {5000 * each:,}"
    ):
        media.load(data)


def test_whoever_allows_more_pixels_allows_their_bytes(monkeypatch):
    monkeypatch.setattr(footprint, "LARGEST_BYTES", 1000)
    data = encoded(Image.fromarray(smooth()), "WEBP", lossless=True)
    with pytest.raises(errors.LimitError, match="largest_pixels of more than 268,435,456"):
        media.load(data)
    assert media.load(data, largest_pixels=(1 << 28) + 1).shape == (40, 56, 3)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_pixels_are_copied_whole_whatever_their_rows(monkeypatch, mode):
    shape = (37, 11) if mode == "L" else (37, 11, len(mode))
    values = noise(shape)
    for band in (1, 100, 1 << 22):
        monkeypatch.setattr(footprint, "_BAND_BYTES", band)
        got = media.load(encoded(Image.fromarray(values), "PNG"))
        np.testing.assert_array_equal(got, values)
        got[...] = 0  # it is the caller's own
