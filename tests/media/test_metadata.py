"""What files hold beside pixels: kept where it can be, and said where it cannot."""

from __future__ import annotations

import io
import struct
import warnings

import numpy as np
import pytest
from media.picture_files import encoded, profile, smooth, swapped_profile
from PIL import Image, PngImagePlugin, TiffImagePlugin

from dala import errors, media
from dala.media.pictures.metadata import Metadata, bits_of

HOLDING = [".jpg", ".png", ".webp", ".tif", ".avif", ".heic"]
SOURCES = ["JPEG", "PNG", "WEBP", "TIFF", "AVIF", "HEIF"]
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description tiff:Orientation="{}" '
    'dc:title="a title"/></rdf:RDF></x:xmpmeta>'
)
TAKEN = "2024:05:06 07:08:09"


def exif(orientation: int = 1) -> Image.Exif:
    made = Image.Exif()
    made[0x010F], made[0x0110], made[0x0112] = "Acme", "Camera 1", orientation
    made.get_ifd(0x8769).update(
        {
            0x9003: TAKEN,
            0x829A: TiffImagePlugin.IFDRational(1, 125),
            0xA001: 65535,
            0xA002: 56,
            0xA003: 40,
        }
    )
    made.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 30.0), 3: "E", 4: (11.0, 34.0, 0.0)})
    again = Image.Exif()  # as it is read: Pillow's writers look for parts that were read
    again.load(made.tobytes())
    return again


def photo(format: str, orientation: int = 1) -> bytes:
    """A picture of 56 × 40 with EXIF, a place, XMP and a resolution."""
    image, tags = Image.fromarray(smooth()), exif(orientation)
    xmp = XMP.format(orientation)
    options: dict[str, object] = {"exif": tags.tobytes(), "xmp": xmp.encode(), "dpi": (300, 300)}
    if format == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_itxt("XML:com.adobe.xmp", xmp)
        options = {"exif": tags, "pnginfo": info, "dpi": (300, 300)}
    elif format == "TIFF":
        tags[700] = xmp.encode()
        options = {"exif": tags, "dpi": (300, 300)}
    elif format in ("WEBP", "AVIF", "HEIF"):
        del options["dpi"]
    return encoded(image, format, **options)


def said(metadata: Metadata) -> dict[str, object]:
    tags = metadata.tags()
    place = tags.get("GPSInfo", {})
    return {
        "make": tags.get("Make"),
        "taken": tags.get("DateTimeOriginal"),
        "exposure": tags.get("ExposureTime"),
        "north": tuple(float(part) for part in place.get("GPSLatitude", ())),
    }


FACTS = {"make": "Acme", "taken": TAKEN, "exposure": 1 / 125, "north": (48.0, 8.0, 30.0)}


# -- kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", HOLDING)
@pytest.mark.parametrize("format", SOURCES)
def test_exif_and_xmp_are_carried_from_format_to_format(tmp_path, format, suffix):
    image, metadata = media.load(photo(format), with_metadata=True)
    assert image.shape == (40, 56, 3)
    assert said(metadata) == FACTS
    assert b"a title" in metadata.xmp
    media.save(image[:30, :20], tmp_path / f"a{suffix}", metadata=metadata)
    again, kept = media.load(tmp_path / f"a{suffix}", with_metadata=True)
    assert again.shape == (30, 20, 3)
    assert said(kept) == FACTS
    assert b"a title" in kept.xmp
    tags = kept.tags()
    assert (tags["ColorSpace"], tags["ExifImageWidth"], tags["ExifImageHeight"]) == (1, 20, 30)


@pytest.mark.parametrize("suffix", HOLDING)
@pytest.mark.parametrize("format", SOURCES)
def test_a_picture_that_was_turned_is_not_turned_again(tmp_path, format, suffix):
    image, metadata = media.load(photo(format, orientation=6), with_metadata=True)
    assert image.shape == (56, 40, 3)
    assert "Orientation" not in metadata.tags()
    assert b"Orientation" not in metadata.xmp
    media.save(image, tmp_path / f"a{suffix}", metadata=metadata)
    again = media.load(tmp_path / f"a{suffix}")
    assert again.shape == (56, 40, 3)
    assert np.abs(again.astype(int) - image).max() <= 12


def test_what_is_written_is_read_by_others(tmp_path):
    image, metadata = media.load(photo("JPEG"), with_metadata=True)
    for suffix in HOLDING[:-1]:
        media.save(image, tmp_path / f"a{suffix}", metadata=metadata)
        with Image.open(tmp_path / f"a{suffix}") as opened:
            opened.load()
            found = opened.getexif()
            assert found[0x010F] == "Acme", suffix
            assert found.get_ifd(0x8769)[0x9003] == TAKEN, suffix
            assert found.get_ifd(0x8825)[1] == "N", suffix


def test_pixels_of_a_tiff_with_exif_are_the_same_and_compressed(tmp_path):
    _, metadata = media.load(photo("JPEG"), with_metadata=True)
    image = np.zeros((200, 300, 3), np.uint8)
    image[50:60] = 200
    media.save(image, tmp_path / "a.tif", metadata=metadata)
    np.testing.assert_array_equal(media.load(tmp_path / "a.tif"), image)
    assert (tmp_path / "a.tif").stat().st_size < image.nbytes / 20


def test_notes_and_resolution_are_kept_where_there_is_a_place_for_them(tmp_path):
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "somebody")
    info.add_itxt("Title", "Grüße")
    data = encoded(Image.fromarray(smooth()), "PNG", pnginfo=info, dpi=(300, 300))
    image, metadata = media.load(data, with_metadata=True)
    media.save(image, tmp_path / "a.png", metadata=metadata)
    kept = media.load(tmp_path / "a.png", with_metadata=True)[1]
    assert kept.texts == {"Author": "somebody", "Title": "Grüße"}
    assert kept.dpi == pytest.approx((300, 300), abs=0.01)
    data = encoded(Image.fromarray(smooth()), "JPEG", comment="a note", dpi=(96, 96))
    image, metadata = media.load(data, with_metadata=True)
    media.save(image, tmp_path / "a.jpg", metadata=metadata)
    kept = media.load(tmp_path / "a.jpg", with_metadata=True)[1]
    assert (kept.texts, kept.dpi) == ({"Comment": "a note"}, (96, 96))


def test_a_picture_without_any_has_none():
    _, metadata = media.load(encoded(Image.fromarray(smooth()), "PNG"), with_metadata=True)
    assert (metadata.exif, metadata.xmp, metadata.profile, metadata.tags()) == (
        None,
        None,
        None,
        {},
    )
    assert (metadata.format, metadata.bits) == ("PNG", 8)


@pytest.mark.parametrize("suffix", HOLDING)
def test_what_is_said_of_every_file_is_nothing_to_lose(tmp_path, suffix):
    media.save(smooth(), tmp_path / f"a{suffix}")
    image, metadata = media.load(tmp_path / f"a{suffix}", with_metadata=True)
    assert metadata.exif is None
    media.save(image, tmp_path / "b.bmp", metadata=metadata)


def test_a_transcoded_picture_keeps_what_it_says(tmp_path):
    (tmp_path / "in.jpg").write_bytes(photo("JPEG", orientation=6))
    media.transcode(tmp_path / "in.jpg", tmp_path / "out.jpg", [("text", {"text": "hi"})])
    image, metadata = media.load(tmp_path / "out.jpg", with_metadata=True)
    assert image.shape == (56, 40, 3)
    assert said(metadata) == FACTS


# -- lost, and said --------------------------------------------------------------------------------


def test_bits_that_are_cut_are_said():
    import pillow_heif

    stream = io.BytesIO()
    pillow_heif.from_bytes("RGB;16", (64, 64), bytes(64 * 64 * 6)).save(stream)
    with pytest.warns(errors.LossWarning, match=r"bits for each value are cut to 8\.$") as told:
        _, metadata = media.load(stream.getvalue(), with_metadata=True)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert metadata.bits == 10
    assert str(metadata.bits) in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.LossWarning)
        media.load(stream.getvalue(), dtype="u8")


def test_the_bits_of_an_avif_are_read_from_its_header():
    data = encoded(Image.fromarray(smooth()), "AVIF")
    at = data.index(b"pixi")
    assert data[at + 8 : at + 12] == b"\x03\x08\x08\x08"
    deeper = data[: at + 9] + b"\x0a\x0a\x0a" + data[at + 12 :]
    assert bits_of(None, "AVIF", data) == 8
    assert bits_of(None, "AVIF", deeper) == 10


@pytest.mark.parametrize(
    ("format", "what"),
    [
        ("WEBP", "frames"),
        ("GIF", "frames"),
        ("PNG", "frames"),
        ("AVIF", "frames"),
        ("TIFF", "pages"),
    ],
)
def test_pictures_after_the_first_are_said_to_be_lost(format, what):
    frames = [Image.fromarray(np.full((8, 9, 3), level, np.uint8)) for level in (200, 50)]
    data = encoded(frames[0], format, save_all=True, append_images=frames[1:])
    with pytest.warns(errors.LossWarning, match=f"only the first of its {what} is kept") as told:
        media.load(data)
    assert len(told) == 1


def test_a_format_that_holds_no_metadata_is_said_to_lose_it(tmp_path):
    image, metadata = media.load(photo("JPEG"), with_metadata=True)
    with pytest.warns(errors.LossWarning) as told:
        media.save(image, tmp_path / "a.bmp", metadata=metadata)
    (warning,) = told
    assert warning.message.lost == ("EXIF is not kept", "XMP is not kept")
    assert str(warning.message) == f"{tmp_path / 'a.bmp'}: EXIF is not kept; XMP is not kept."
    assert warning.filename == __file__
    assert media.load(tmp_path / "a.bmp").shape == (40, 56, 3)


def test_a_note_that_there_is_no_place_for_is_said_to_be_lost(tmp_path):
    data = encoded(Image.fromarray(smooth()), "JPEG", comment="a note")
    image, metadata = media.load(data, with_metadata=True)
    with pytest.warns(errors.LossWarning, match="its text Comment is not kept"):
        media.save(image, tmp_path / "a.webp", metadata=metadata)


def test_exif_that_is_too_long_for_a_jpeg_is_said_to_be_lost(tmp_path):
    tags = exif()
    tags[0x010E] = "x" * 70_000
    data = encoded(Image.fromarray(smooth()), "PNG", exif=tags)
    image, metadata = media.load(data, with_metadata=True)
    with pytest.warns(errors.LossWarning, match="EXIF of more than 65,533 bytes is not kept"):
        media.save(image, tmp_path / "a.jpg", metadata=metadata)
    media.save(image, tmp_path / "a.png", metadata=metadata)
    kept = media.load(tmp_path / "a.png", with_metadata=True)[1]
    assert len(kept.tags()["ImageDescription"]) == 70_000


def test_a_profile_is_not_kept_because_it_is_no_longer_true(tmp_path):
    for icc, name in ((profile("sRGB"), None), (swapped_profile(), "sRGB built-in")):
        data = encoded(Image.fromarray(smooth()), "PNG", icc_profile=icc)
        image, metadata = media.load(data, with_metadata=True)
        assert metadata.profile == name  # that of sRGB changes nothing
    with pytest.warns(errors.LossWarning, match=r"the color profile .* is not kept"):
        media.save(image, tmp_path / "a.png", metadata=metadata)
    with Image.open(tmp_path / "a.png") as opened:
        assert "icc_profile" not in opened.info
        assert opened.info["srgb"] == 0


def test_iptc_is_said_not_to_be_kept(tmp_path):
    block = b"8BIM\x04\x04\x00\x00" + struct.pack(">I", 4) + b"\x1c\x02\x05\x00"
    body = b"Photoshop 3.0\0" + block
    data = encoded(Image.fromarray(smooth()), "JPEG")
    data = data[:2] + b"\xff\xed" + struct.pack(">H", len(body) + 2) + body + data[2:]
    image, metadata = media.load(data, with_metadata=True)
    with pytest.warns(errors.LossWarning, match="IPTC is not kept"):
        media.save(image, tmp_path / "a.jpg", metadata=metadata)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_is_no_reason_to_refuse_a_picture(tmp_path):
    data = encoded(Image.fromarray(smooth()), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f")
    image, metadata = media.load(data, with_metadata=True)
    assert image.shape == (40, 56, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.LossWarning)
        media.save(image, tmp_path / "a.jpg", metadata=metadata)


def test_a_loss_is_an_error_where_a_filter_says_so(tmp_path):
    image, metadata = media.load(photo("JPEG"), with_metadata=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.LossWarning)
        with pytest.raises(errors.LossWarning, match="EXIF is not kept"):
            media.save(image, tmp_path / "a.bmp", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_nothing_is_said_where_nothing_is_lost(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for format in ("JPEG", "PNG", "WEBP", "TIFF"):
            image = media.load(photo(format))
            media.save(image, tmp_path / "a.jpg")


def test_what_is_no_metadata_is_refused(tmp_path):
    with pytest.raises(errors.ArgumentError, match=r"metadata is what load gives .* not dict"):
        media.save(smooth(), tmp_path / "a.png", metadata={"Make": "Acme"})
    assert not list(tmp_path.iterdir())
