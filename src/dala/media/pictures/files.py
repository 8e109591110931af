"""Loads pictures from files, and saves them atomically."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any, Literal

import numpy as np

from dala.base.atomic_file import write_atomically
from dala.base.binary_file import read_at_most
from dala.base.file_path import checked_path
from dala.base.record import record
from dala.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    LimitError,
    LossWarning,
    MediaError,
    ShapeError,
    argument,
)
from dala.images.frames import converted, frame_of, levels_of, with_channels
from dala.images.text_rendering import require_pillow
from dala.ir.types import IMAGES, U8, DtypeLike, Scalar, dtype_of
from dala.media.pictures import containers
from dala.media.pictures.codec import SAVE, Decoded, decode, encode, text_of
from dala.media.pictures.footprint import array_of, within_memory
from dala.media.pictures.formats import DEEP, FORMATS, PICTURES, listed
from dala.media.pictures.metadata import Metadata, checked_metadata, cut_bits, read_metadata

Mode = Literal["auto", "gray", "rgb", "rgba"]
Source = str | os.PathLike[str] | bytes | bytearray | memoryview

LARGEST_PIXELS = 1 << 28
"""The default of `largest_pixels`: how many pixels a loaded picture may have."""

_MODES = {"gray": "L", "rgb": "RGB", "rgba": "RGBA"}
# No format that is read takes more for a pixel, and metadata has room besides.
_BYTES_PER_PIXEL, _SPARE_BYTES = 8, 1 << 26


def load(
    source: Source,
    *,
    mode: Mode = "auto",
    dtype: DtypeLike | None = None,
    largest_pixels: int | None = None,
    with_metadata: bool = False,
) -> Any:
    """Returns the picture in a file as a new array in sRGB: u16 if the file has 16 bits, else u8.

    `source` is a path, or the bytes of a file: PNG, JPEG, WebP, TIFF, BMP, GIF, AVIF (Pillow 11.3
    or newer) or HEIC (`pip install "dala-gpu[heic]"`). The array is (height, width) for a gray
    picture, (height, width, 3) for a colored one and (height, width, 4) for one with transparency;
    `mode` asks for "gray" (luma), "rgb" or "rgba" instead. `dtype` asks for "u8", "u16" (both
    rounded to nearest), "f32" or "f16" (0..1). Everything else is converted:

    - The EXIF orientation is applied. Of several pages or frames, the first is loaded.
    - Colors with an embedded ICC profile are converted to sRGB. Profiles that are broken, or that
      move no color by more than 1 of 255, are ignored. A PNG's gAMA chunk is applied if there is
      neither a profile nor an sRGB chunk; its cHRM chunk is not.
    - 16 bits of PNG and TIFF are u16, unless they are CMYK or their profile is made of tables,
      which are applied to 8 bits only. The 10 and 12 bits of AVIF and HEIC become 8.
    - Palettes and 1 bit become gray or RGB, gray with transparency RGBA, CMYK and YCbCr RGB.

    With `with_metadata=True`, returns the array and its `Metadata`: EXIF, XMP and texts, which
    `save` writes. Losing bits per channel that were not given up by `dtype="u8"`, or frames after
    the first, is a LossWarning.

    Raises LimitError, judging by the header, for more than `largest_pixels` pixels (2²⁸ by
    default), and if decoding takes more than 2 GiB of memory, unless `largest_pixels` is raised.
    Raises MediaError if the file is truncated, has too little data for its claimed size, or cannot
    be decoded. Only PNG has checksums: flipped bits in other formats can go unnoticed.
    """
    if mode != "auto" and mode not in _MODES:
        raise ArgumentError(f"load: mode {mode!r} is not known: give auto, {', '.join(_MODES)}.")
    if largest_pixels is not None and (
        isinstance(largest_pixels, bool) or not isinstance(largest_pixels, int)
    ):
        raise ArgumentError(
            f"load: {argument('largest_pixels')} is an integer, not {largest_pixels!r}."
        )
    wanted = None if dtype is None else _image_dtype(dtype)
    picture = read_picture(source, mode, largest_pixels, wanted)
    if picture.lost:
        warn_of_loss(picture.name, picture.lost)
    return (picture.pixels, picture.metadata()) if with_metadata else picture.pixels


@record
class Picture:
    """A loaded picture: its name for errors, its pixels, and what its file says about them."""

    name: str
    pixels: np.ndarray
    decoded: Decoded
    profile: str | None
    lost: list[str]
    """What was lost of the file's pixels."""

    def metadata(self) -> Metadata:
        """Returns what the file holds besides pixels."""
        found = self.decoded
        return read_metadata(found.opened, found.format, found.bits, self.profile)


def _image_dtype(dtype: DtypeLike) -> Scalar:
    scalar = dtype_of(dtype)
    if scalar not in IMAGES:
        names = ", ".join(map(str, IMAGES))
        raise DtypeError(f"load: dtype {scalar} is not one that an image has: give one of {names}.")
    return scalar


def read_picture(
    source: Source,
    mode: Mode = "auto",
    largest_pixels: int | None = None,
    dtype: Scalar | None = None,
) -> Picture:
    """Returns a picture with everything known about it, without issuing warnings."""
    if largest_pixels is None:
        largest_pixels = LARGEST_PIXELS
    name, data = _read(source, _BYTES_PER_PIXEL * max(largest_pixels, 0) + _SPARE_BYTES)
    require_pillow("load")
    with within_memory(name):
        decoded = decode(name, data, largest_pixels)
        try:
            pixels, profile = _in_srgb(decoded, mode)
        except (ValueError, OSError) as error:
            raise MediaError(f"{name} cannot be converted to sRGB: {text_of(error)}.") from error
        lost = decoded.lost
        if decoded.is_deep and pixels.dtype == np.uint8:
            lost = [f"{cut_bits(decoded.bits)} by its color profile, {profile}", *lost]
        if dtype == U8:
            lost = [item for item in lost if not item.startswith(cut_bits(decoded.bits))]
        if dtype is not None:
            pixels = converted(pixels, dtype)
    return Picture(name, pixels, decoded, profile, lost)


def _in_srgb(decoded: Decoded, mode: Mode) -> tuple[np.ndarray, str | None]:
    """Returns the pixels as u8 or u16, and the name of the color profile that was applied."""
    from dala.media.pictures.color_profiles import as_deep_srgb, as_srgb

    if decoded.is_deep:
        pixels, profile = as_deep_srgb(decoded.image, decoded.opened.info)
        return (pixels if mode == "auto" else with_channels(pixels, mode)), profile
    image, profile = as_srgb(decoded.image)
    if mode != "auto" and image.mode != _MODES[mode]:
        image = image.convert(_MODES[mode])
    return array_of(image), profile


def warn_of_loss(name: str, lost: list[str]) -> None:
    """Issues a LossWarning that points at the caller of the function that calls this one."""
    warnings.warn(LossWarning(f"{name}: {'; '.join(lost)}.", lost), stacklevel=3)


def save(
    image: Any,
    path: str | os.PathLike[str],
    *,
    quality: int | None = None,
    metadata: Metadata | None = None,
) -> None:
    """Writes a picture to a file, in the format of its suffix.

    `image` is an array, a Buffer or a Pillow image: gray, RGB or RGBA in sRGB, u8, u16, or f32 or
    f16 (0..1: clamped and rounded to 8 bits, NaN is 0). u16 is written with 16 bits as .png, .tif
    and .tiff, and rounded to 8 in other formats, with a LossWarning. .png, .tif, .tiff, .bmp and
    .webp are lossless, though a gray WebP is loaded as RGB; .jpg, .jpeg, .avif and .heic (see
    `load`) are written with quality 90. A `quality` of 1 to 100 is for those, and for WebP, which
    is then lossy too. JPEG and BMP have no transparency: they accept RGBA only if it is opaque.

    `metadata` is what `load` returned; its orientation, size and color space are updated. What the
    format cannot hold is left out with a LossWarning, and so is a color profile, which no longer
    applies.

    The file is written atomically: if that fails, it keeps its previous content.
    """
    target = checked_path("a picture file", path)
    format = FORMATS.get(target.suffix.lower())
    if format is None:
        raise ArgumentError(
            f"{SAVE}{target} ends in {target.suffix or 'no suffix'!r}, which stands for no format: "
            f"give one of {', '.join(FORMATS)}."
        )
    require_pillow("save")
    given = checked_metadata(metadata)
    values = np.asarray(frame_of("save", image).pixels)
    if not values.size:
        raise ShapeError(f"{SAVE}an image of shape {values.shape} has no pixels to write.")
    pixels = np.ascontiguousarray(written_levels(values, format))
    data, unkept = encode(pixels, format, target, quality, given)
    lost = [f"{item} is not kept" for item in unkept]
    if pixels.itemsize < values.itemsize and values.dtype == np.uint16:
        lost.insert(0, cut_bits(16))
    if lost:
        warn_of_loss(str(target), lost)
    write_atomically(target, data)


def _read(source: Any, largest_bytes: int) -> tuple[str, bytes]:
    """Returns the source's name for errors and its bytes; raises MediaError for other formats."""
    if isinstance(source, bytes | bytearray | memoryview):
        name, stream = "the picture given as bytes", io.BytesIO(source)
        return name, _read_stream(name, stream, largest_bytes, memoryview(source).nbytes)
    path = checked_path("a picture file", source)
    try:
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            return str(path), _read_stream(str(path), file, largest_bytes, size_bytes)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read_stream(name: str, stream: Any, largest_bytes: int, size_bytes: int) -> bytes:
    head: bytes = stream.read(containers.HEAD_BYTES)
    if not head:
        raise MediaError(f"{name} is empty: there is no picture in it.")
    if containers.format_of(head) is None:
        raise MediaError(
            f"{name} is none of the pictures that are read, {listed(PICTURES.values())}: "
            f"{containers.describe(head)}. Convert it to one of them."
        )
    data = head + read_at_most(name, stream, largest_bytes, size_bytes)
    if len(data) > largest_bytes:
        raise LimitError(
            f"{name} has more than {largest_bytes:,} bytes, which is the most that is read: give a "
            f"larger {argument('largest_pixels')}, or a smaller file."
        )
    return data


def written_levels(pixels: np.ndarray, format: str) -> np.ndarray:
    """Returns the pixels as they are written: u16 if they are and the format has 16 bits, or u8."""
    deep = pixels.dtype == np.uint16 and format in DEEP
    return pixels if deep else levels_of(pixels)
