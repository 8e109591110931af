"""Picture files of 16 bits: what goes in comes out, and other programs read and write the same."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import av
import cv2
import numpy as np
import pytest
import tifffile
from media.picture_files import (
    as_stored,
    encoded,
    png_chunk,
    profile,
    swapped_profile,
    tag_places,
    tiff,
)
from PIL import Image, PngImagePlugin

from dala import errors, media
from dala.media.pictures import matrix_profiles, png_pixels

SHAPES = [(5, 7), (5, 7, 3), (5, 7, 4), (1, 1), (1, 1, 3), (33, 1, 4), (1, 64, 3), (40, 61, 3)]
SUFFIXES = [".png", ".tif"]
KEPT = pytest.mark.filterwarnings("error::dala.errors.LossWarning")


def levels(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 65536, shape, dtype=np.uint16)


def in_bgr(image: np.ndarray) -> np.ndarray:
    return image if image.ndim == 2 else image[..., [2, 1, 0, 3][: image.shape[2]]]


def png(kind: int, image: np.ndarray, *beside: tuple[bytes, bytes]) -> bytes:
    """A PNG of that color type, 16 bits and no filters."""
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in image)
    head = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 16, kind, 0, 0, 0)
    parts = [(b"IHDR", head), *beside, (b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


# -- there and back --------------------------------------------------------------------------------


@KEPT
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", SHAPES)
def test_u16_comes_back_as_it_was_saved(tmp_path, shape, suffix):
    image = levels(shape)
    media.save(image, tmp_path / f"a{suffix}")
    got, metadata = media.load(tmp_path / f"a{suffix}", with_metadata=True)
    assert (got.dtype, metadata.bits) == (np.uint16, 16)
    np.testing.assert_array_equal(got, image)


@KEPT
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", SHAPES)
def test_opencv_reads_what_is_saved_and_writes_what_is_loaded(tmp_path, shape, suffix):
    image, path = levels(shape), tmp_path / f"a{suffix}"
    media.save(image, path)
    np.testing.assert_array_equal(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), in_bgr(image))
    cv2.imwrite(str(path), in_bgr(image))
    np.testing.assert_array_equal(media.load(path), image)


@pytest.mark.parametrize("shape", [(60, 80, 3), (61, 33)])
def test_a_smooth_picture_takes_less_room_than_its_values(tmp_path, shape):
    ramp = np.linspace(0, 60000, shape[1]).astype(np.uint16)
    ramp = ramp if len(shape) == 2 else ramp[:, None]
    media.save(np.broadcast_to(ramp, shape).copy(), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size < np.prod(shape) / 4


@KEPT
@pytest.mark.parametrize("shape", [(23, 17), (23, 17, 4)])
def test_a_picture_that_is_written_in_pieces_is_the_same(tmp_path, monkeypatch, shape):
    image = np.zeros(shape, np.uint16)
    image[:, ::2] = 100  # each row is that above, and no column that to the left
    monkeypatch.setattr(png_pixels, "_BAND_BYTES", 300)
    monkeypatch.setattr(png_pixels, "_CHUNK_BYTES", 1)
    media.save(image, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().count(b"IDAT") > 1
    np.testing.assert_array_equal(media.load(tmp_path / "a.png"), image)


@KEPT
@pytest.mark.parametrize("format", ["gray16be", "ya16be", "rgb48be", "rgba64be"])
@pytest.mark.parametrize("options", [{}, {"flags": "+ildct"}])
@pytest.mark.parametrize("filter", ["none", "sub", "up", "avg", "paeth", "mixed"])
def test_pngs_of_every_filter_and_interlaced_ones_are_read(format, options, filter):
    channels = {"gray16be": (), "ya16be": (2,), "rgb48be": (3,), "rgba64be": (4,)}[format]
    image = levels((19, 13, *channels))
    image[5:] //= 4096  # what differs little, for filters to work on
    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = 13, 19, format, 1
    codec.options = {"pred": filter, **options}
    codec.open()
    frame = av.VideoFrame(13, 19, format)
    stored = image.astype(">u2").view(np.uint8).reshape(19, -1)
    width = frame.planes[0].line_size
    rows = np.zeros((19, width), np.uint8)
    rows[:, : stored.shape[1]] = stored
    frame.planes[0].update(rows.tobytes())
    frame.pts = 0
    data = b"".join(bytes(packet) for packet in [*codec.encode(frame), *codec.encode(None)])
    assert data[28] == bool(options)  # interlaced
    want = image if channels != (2,) else image[..., [0, 0, 0, 1]]
    np.testing.assert_array_equal(media.load(data), want)


TIFFS = {
    "strips": {"rowsperstrip": 4},
    "deflate": {"compression": "zlib"},
    "predictor": {"compression": "zlib", "predictor": 2},
    "tiles": {"tile": (16, 16), "compression": "zlib"},
    "big end first": {"byteorder": ">"},
    "big end first, compressed": {"byteorder": ">", "compression": "zlib", "predictor": 2},
    "large offsets": {"bigtiff": True},
}


@KEPT
@pytest.mark.parametrize("how", TIFFS)
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_tiffs_of_every_layout_are_read(tmp_path, how, planar, channels):
    given = dict(TIFFS[how])
    image = levels((37, 29, channels) if channels > 1 else (37, 29))
    stored = image
    if channels > 1:
        given["photometric"] = "rgb"
        given["planarconfig"] = "separate" if planar else "contig"
        stored = np.moveaxis(image, -1, 0) if planar else image
        given |= {"extrasamples": ["unassalpha"]} if channels == 4 else {}
    tifffile.imwrite(tmp_path / "a.tif", stored, **given)
    np.testing.assert_array_equal(media.load(tmp_path / "a.tif"), image)


@KEPT
@pytest.mark.parametrize("compression", [1, 5, 8, 32773])
@pytest.mark.parametrize("predictor", [1, 2])
def test_tiffs_of_every_compression_are_read(tmp_path, compression, predictor):
    image = levels((37, 29, 3))
    how = [cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_PREDICTOR, predictor]
    cv2.imwrite(str(tmp_path / "a.tif"), in_bgr(image), how)
    np.testing.assert_array_equal(media.load(tmp_path / "a.tif"), image)


@KEPT
def test_a_tiff_whose_white_is_zero_is_inverted(tmp_path):
    image = levels((6, 5))
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="miniswhite")
    np.testing.assert_array_equal(media.load(tmp_path / "a.tif"), 65535 - image)


@KEPT
def test_gray_of_12_bits_is_stretched_to_16():
    data = tiff(4, 1, 1, [(0, 6)], bytes([0x00, 0x00, 0x01, 0x80, 0x0F, 0xFF]))
    bits = struct.pack("<HHIH", 258, 3, 1, 8)
    data = data.replace(bits, bits[:-2] + b"\x0c\0")
    assert media.load(data).tolist() == [[0, 16, 32776, 65535]]


@KEPT
@pytest.mark.parametrize("planar", [False, True])
def test_colors_multiplied_by_alpha_are_divided_again(tmp_path, planar):
    image = levels((6, 5, 4))
    image[..., 3] |= 0x4000
    image[0, 0, 3] = 0
    stored = image.copy()
    share = image[..., 3:] / 65535
    stored[..., :3] = np.rint(image[..., :3] * share)
    tifffile.imwrite(
        tmp_path / "a.tif",
        np.ascontiguousarray(np.moveaxis(stored, -1, 0)) if planar else stored,
        photometric="rgb",
        planarconfig="separate" if planar else "contig",
        extrasamples=["assocalpha"],
    )
    got = media.load(tmp_path / "a.tif")
    np.testing.assert_array_equal(got[..., 3], image[..., 3])
    near = np.abs(got.astype(int) - image)[share[..., 0] > 0]
    assert near.max() <= 2
    assert not got[0, 0, :3].any()


# -- what is given and asked for -------------------------------------------------------------------


@KEPT
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dtype_asks_for_another_depth(tmp_path, suffix):
    image = levels((9, 8, 3))
    media.save(image, tmp_path / f"a{suffix}")
    load = {name: media.load(tmp_path / f"a{suffix}", dtype=name) for name in ("u8", "f32", "f16")}
    np.testing.assert_array_equal(load["u8"], np.rint(image / 257))
    np.testing.assert_array_equal(load["f32"], (image / np.float32(65535)).astype(np.float32))
    assert load["f16"].dtype == np.float16
    media.save(load["u8"], tmp_path / f"b{suffix}")
    assert media.load(tmp_path / f"b{suffix}").dtype == np.uint8
    wide = media.load(tmp_path / f"b{suffix}", dtype=np.uint16)
    np.testing.assert_array_equal(wide, load["u8"].astype(np.uint16) * 257)


@pytest.mark.parametrize("dtype", ["s16", "f64", "bool"])
def test_a_dtype_that_no_image_has_is_refused(dtype):
    with pytest.raises(errors.DtypeError, match="give one of u8, u16, f32, f16"):
        media.load(png(0, levels((2, 2))), dtype=dtype)


@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 3), (5, 6, 4)])
def test_mode_gives_gray_rgb_or_rgba_of_16_bits(tmp_path, shape):
    image = levels(shape)
    media.save(image, tmp_path / "a.png")
    colors = np.repeat(image[..., None], 3, -1) if len(shape) == 2 else image[..., :3]
    alpha = image[..., 3] if shape[2:] == (4,) else np.full(shape[:2], 65535)
    np.testing.assert_array_equal(media.load(tmp_path / "a.png", mode="rgb"), colors)
    rgba = media.load(tmp_path / "a.png", mode="rgba")
    np.testing.assert_array_equal(rgba, np.concatenate([colors, alpha[..., None]], -1))
    luma = colors @ np.array([0.299, 0.587, 0.114])
    assert np.abs(media.load(tmp_path / "a.png", mode="gray") - luma).max() <= 0.51


@pytest.mark.parametrize("suffix", [".jpg", ".webp", ".bmp", ".avif"])
def test_formats_of_8_bits_round_and_say_so(tmp_path, suffix):
    image = levels((8, 8, 3)) // 2 + 1000
    with pytest.warns(
        errors.LossWarning, match=r"its 16 bits for each value are cut to 8\."
    ) as said:
        media.save(image, tmp_path / f"a{suffix}")
    assert (len(said), said[0].filename) == (1, __file__)
    if suffix in (".webp", ".bmp"):
        np.testing.assert_array_equal(media.load(tmp_path / f"a{suffix}"), np.rint(image / 257))


@KEPT
def test_f16_is_written_as_f32_is(tmp_path):
    image = np.random.default_rng(3).random((7, 9, 3)).astype(np.float16)
    media.save(image, tmp_path / "a.png")
    media.save(image.astype(np.float32), tmp_path / "b.png")
    got = media.load(tmp_path / "a.png")
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, media.load(tmp_path / "b.png"))


@KEPT
def test_a_color_that_is_transparent_becomes_alpha():
    image = levels((4, 4, 3))
    clear = image[1, 2]
    got = media.load(png(2, image, (b"tRNS", struct.pack(">3H", *clear))))
    np.testing.assert_array_equal(got[..., :3], image)
    want = np.full((4, 4), 65535)
    want[1, 2] = 0
    np.testing.assert_array_equal(got[..., 3], want)


# -- metadata and colors ---------------------------------------------------------------------------


@KEPT
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3), (4, 6, 4)])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_metadata_is_kept_beside_16_bits(tmp_path, suffix, shape):
    exif = Image.Exif()
    exif[0x010F] = "Acme"
    exif.get_ifd(0x8769)[0x9003] = "2024:05:06 07:08:09"
    exif.get_ifd(0x8825)[1] = "N"
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta/>")
    first = encoded(Image.new("RGB", (9, 9)), "PNG", exif=exif, pnginfo=info, dpi=(300, 300))
    metadata = media.load(first, with_metadata=True)[1]
    image = levels(shape)
    media.save(image, tmp_path / f"a{suffix}", metadata=metadata)
    got, found = media.load(tmp_path / f"a{suffix}", with_metadata=True)
    np.testing.assert_array_equal(got, image)
    tags = found.tags()
    assert (tags["Make"], tags["DateTimeOriginal"]) == ("Acme", "2024:05:06 07:08:09")
    assert tags["GPSInfo"]["GPSLatitudeRef"] == "N"
    assert found.xmp == b"<x:xmpmeta/>"
    assert found.dpi == pytest.approx((300, 300), abs=0.1)


@KEPT
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [*SUFFIXES, "planar.tif"])
def test_orientation_is_applied_to_16_bits(tmp_path, suffix, orientation):
    upright = levels((4, 7, 3))
    stored = as_stored(upright, orientation)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "a.tif"
    if suffix == ".png":
        path = tmp_path / "a.png"
        path.write_bytes(png(2, stored, (b"eXIf", exif.tobytes())))
    else:
        is_planar = suffix != ".tif"
        planes = np.ascontiguousarray(np.moveaxis(stored, -1, 0) if is_planar else stored)
        tifffile.imwrite(
            path,
            planes,
            photometric="rgb",
            planarconfig="separate" if is_planar else "contig",
            extratags=[(274, 3, 1, orientation, True)],
        )
    np.testing.assert_array_equal(media.load(path), upright)


def changed_curves(icc: bytes, curve: bytes, *names: bytes) -> bytes:
    """The profile with another tone curve at its end."""
    made = bytearray(icc)
    made += bytes(-len(made) % 4)
    places = tag_places(made)
    for name in names:
        made[places[name] : places[name] + 8] = struct.pack(">II", len(made), len(curve))
    made += curve
    made[:4] = struct.pack(">I", len(made))
    return bytes(made)


CURVES = (b"rTRC", b"gTRC", b"bTRC")
GAMMA_2 = b"curv" + bytes(4) + struct.pack(">IH", 1, 2 * 256) + bytes(2)


def srgb_of(light: np.ndarray) -> np.ndarray:
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


@KEPT
def test_a_profile_of_curves_is_applied_to_16_bits(monkeypatch):
    monkeypatch.setattr(matrix_profiles, "_BAND_PIXELS", 15)  # rows at a time, twice and a rest
    image = levels((6, 7, 3))
    icc = changed_curves(profile("sRGB"), GAMMA_2, *CURVES)
    data = png(2, image, (b"iCCP", b"x\0\0" + zlib.compress(icc)))
    got = media.load(data)
    assert got.dtype == np.uint16
    want = srgb_of((image / 65535) ** 2) * 65535
    assert np.abs(got - want).max() <= 1


@KEPT
def test_a_profile_of_another_gamut_is_applied_as_little_cms_does():
    image = levels((32, 32, 4))
    icc = changed_curves(swapped_profile(), GAMMA_2, *CURVES)
    got, metadata = media.load(
        png(6, image, (b"iCCP", b"x\0\0" + zlib.compress(icc))), with_metadata=True
    )
    assert metadata.profile == "sRGB built-in"
    np.testing.assert_array_equal(got[..., 3], image[..., 3])
    eight = Image.fromarray(np.rint(image[..., :3] / 257).astype(np.uint8))
    want = media.load(encoded(eight, "PNG", icc_profile=icc))
    assert np.abs(got[..., :3] / 257 - want)[image[..., :3].min(-1) > 20000].max() <= 1.5


CURVE_KINDS = {
    "a line": b"curv" + bytes(8),
    "a table": b"curv" + bytes(4) + struct.pack(">I5H", 5, 0, 3000, 20000, 43000, 65535) + bytes(2),
    **{
        f"formula {kind}": b"para"
        + bytes(4)
        + struct.pack(f">HH{len(numbers)}i", kind, 0, *(round(x * 65536) for x in numbers))
        for kind, numbers in enumerate(
            [
                (1.8,),
                (2.4, 1.1, -0.1),
                (2.4, 1.09162, -0.1, 0.02),
                (2.2, 0.95, 0.05, 0.08, 0.04),
                (2.2, 0.95, 0.05, 0.08, 0.04, 0.01, 0.005),
            ]
        )
    },
}


@KEPT
@pytest.mark.parametrize("kind", CURVE_KINDS)
def test_every_kind_of_curve_is_that_of_little_cms(kind):
    ramp = np.repeat(np.arange(40, 256, dtype=np.uint16)[None, :, None], 3, -1)
    icc = changed_curves(profile("sRGB"), CURVE_KINDS[kind], *CURVES)
    got = media.load(png(2, ramp * 257, (b"iCCP", b"x\0\0" + zlib.compress(icc))))
    want = media.load(encoded(Image.fromarray(ramp.astype(np.uint8)), "PNG", icc_profile=icc))
    assert np.abs(got / 257 - want).max() <= 1.01
    assert np.abs(got - ramp * 257.0).max() > 1000


@KEPT
@pytest.mark.parametrize("with_alpha", [False, True])
def test_a_profile_of_gray_is_applied_to_16_bits(with_alpha):
    icc = bytearray(profile("sRGB"))
    icc[16:20] = b"GRAY"
    place = tag_places(icc)[b"rTRC"] - 4
    icc[place : place + 4] = b"kTRC"
    icc = changed_curves(bytes(icc), GAMMA_2, b"kTRC")
    image = levels((6, 7, 2) if with_alpha else (6, 7))
    kind = 4 if with_alpha else 0
    got = media.load(png(kind, image, (b"iCCP", b"x\0\0" + zlib.compress(icc))))
    gray = image[..., 0] if with_alpha else image
    want = srgb_of((gray / 65535) ** 2) * 65535
    assert np.abs((got[..., 0] if with_alpha else got) - want).max() <= 1
    if with_alpha:
        np.testing.assert_array_equal(got[..., 3], image[..., 1])


def profile_of_tables() -> bytes:
    """A profile whose colors are those of a table, of which light gray is all there is."""
    corners = [0xFF00 * (i > 0) for i in range(8) for _ in range(1)]
    table = b"".join(struct.pack(">3H", level, 0x8000, 0x8000) for level in corners)
    body = b"mft2" + bytes(4) + bytes([3, 3, 2, 0])
    body += struct.pack(">9i", *(65536 * (i % 4 == 0) for i in range(9)))
    ends = struct.pack(">2H", 0, 65535) * 3
    body += struct.pack(">HH", 2, 2) + ends + table + ends
    icc = bytearray(profile("sRGB"))
    icc[20:24] = b"Lab "
    place = tag_places(icc)[b"rTRC"] - 4
    icc[place : place + 4] = b"A2B0"
    icc += bytes(-len(icc) % 4)
    icc[place + 4 : place + 12] = struct.pack(">II", len(icc), len(body))
    icc += body
    icc[:4] = struct.pack(">I", len(icc))
    return bytes(icc)


def test_a_profile_of_tables_is_applied_to_8_bits_and_that_is_said():
    icc = profile_of_tables()
    image = levels((16, 16, 3))
    with pytest.warns(errors.LossWarning, match="are cut to 8 by its color profile, sRGB built-in"):
        got = media.load(png(2, image, (b"iCCP", b"x\0\0" + zlib.compress(icc))))
    assert got.dtype == np.uint8
    eight = Image.fromarray(np.rint(image / 257).astype(np.uint8))
    want = media.load(encoded(eight, "PNG", icc_profile=icc))
    assert want.std() > 1
    np.testing.assert_array_equal(got, want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        media.load(png(2, image, (b"iCCP", b"x\0\0" + zlib.compress(icc))), dtype="u8")


@KEPT
def test_gamma_of_a_png_is_applied_to_16_bits():
    image = np.arange(0, 65536, 7, dtype=np.uint16)[None]
    got = media.load(png(0, image, (b"gAMA", struct.pack(">I", 100000))))
    assert np.abs(got - srgb_of(image / 65535) * 65535).max() <= 0.51


@KEPT
def test_an_srgb_profile_and_a_broken_one_leave_16_bits_exact():
    image = levels((5, 7, 3))
    for icc in (profile("sRGB"), b"not a profile", profile("sRGB")[:200]):
        data = png(2, image, (b"iCCP", b"x\0\0" + zlib.compress(icc)))
        np.testing.assert_array_equal(media.load(data), image)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(40, 30), (40, 30, 3), (40, 30, 4)])
def test_a_file_that_is_cut_off_is_refused(tmp_path, suffix, shape):
    media.save(levels(shape), tmp_path / f"a{suffix}")
    data = (tmp_path / f"a{suffix}").read_bytes()
    for size in (len(data) // 3, len(data) // 2, len(data) - 20):
        with pytest.raises(errors.MediaError):
            media.load(data[:size])
    np.testing.assert_array_equal(media.load(data), levels(shape))


def test_damaged_values_of_a_png_are_refused():
    data = bytearray(png(2, levels((20, 20, 3))))
    data[data.index(b"IDAT") + 300] ^= 0x10
    with pytest.raises(errors.MediaError):
        media.load(bytes(data))


def test_limits_hold_for_16_bits():
    data = png(2, levels((20, 20, 3)))
    with pytest.raises(errors.LimitError, match="400 pixels"):
        media.load(data, largest_pixels=399)
    head = data[: data.index(b"IDAT") - 4]
    claimed = struct.pack(">II", 16000, 16000) + head[24:29]
    large = head[:8] + png_chunk(b"IHDR", claimed) + data[len(head) :]
    with pytest.raises(errors.LimitError, match="bytes of memory"):
        media.load(large)


def test_a_failed_save_leaves_the_file_as_it_was(tmp_path):
    media.save(levels((3, 3, 4)), tmp_path / "a.png")
    before = (tmp_path / "a.png").read_bytes()
    with pytest.raises(errors.ShapeError):
        media.save(np.zeros((0, 3), np.uint16), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == before
    with pytest.raises(errors.ArgumentError, match="has no transparency"):
        media.save(levels((3, 3, 4)), tmp_path / "a.jpg")
    assert [item.name for item in tmp_path.iterdir()] == ["a.png"]


def test_cmyk_of_16_bits_is_cut_and_said(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", levels((6, 6, 4)), photometric="separated")
    with pytest.warns(errors.LossWarning, match="its 16 bits for each value are cut to 8"):
        assert media.load(tmp_path / "a.tif").dtype == np.uint8


def test_bytes_are_loaded_as_files_are(tmp_path):
    image, stream = levels((4, 5, 3)), io.BytesIO()
    media.save(image, tmp_path / "a.tif")
    stream.write((tmp_path / "a.tif").read_bytes())
    np.testing.assert_array_equal(media.load(stream.getvalue()), image)
