"""Decodes and encodes picture files with Pillow, under stricter checks than Pillow's own."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.base.record import record
from dala.errors import ArgumentError, LimitError, MediaError, argument, either
from dala.media.pictures import containers
from dala.media.pictures.completeness import missing_pixel_data
from dala.media.pictures.deep_pixels import deep_pixels
from dala.media.pictures.footprint import check_footprint
from dala.media.pictures.formats import DEEP, PICTURES, listed, opener, plugin
from dala.media.pictures.metadata import (
    Metadata,
    bits_of,
    cut_bits,
    exif_directories,
    lost_frames,
    save_options,
)
from dala.media.pictures.png_pixels import with_deep_pixels
from dala.media.pictures.tiff_tags import as_wide_bytes, with_deep_samples, with_exif_directories

_QUALITY = 90
"""The default quality of lossy formats."""
_settings = threading.Lock()
SAVE = either("save: ", "")
"""How errors begin: with the function's name in Python, with nothing on the command line."""


@record
class Decoded:
    """A decoded picture in upright orientation, its file's format, and what decoding lost."""

    image: Any
    """Pillow's image, or an array of u16 for 16 bits."""
    opened: Any
    """Pillow's image before it was turned upright, with the file's metadata."""
    format: str
    bits: int
    lost: list[str]

    @property
    def is_deep(self) -> bool:
        return isinstance(self.image, np.ndarray)


def decode(name: str, data: bytes, largest_pixels: int) -> Decoded:
    """Returns the decoded, upright picture; raises LimitError or MediaError."""
    from PIL import ImageOps

    format = containers.format_of(data[: containers.HEAD_BYTES])
    assert format is not None
    size = containers.webp_size(data) if format == "WEBP" else None
    if size is not None:  # opening it already allocates the whole canvas
        _check_size(name, size, largest_pixels)
        check_footprint(name, format, size, largest_pixels)
    try:
        with _strictly(size or (0, 0)):
            image = opener(name, format)(io.BytesIO(data))
    except (MediaError, MemoryError):
        raise
    except Exception as error:  # any error of the decoder is the file's fault
        found = containers.missing_from(format, data) or text_of(error)
        raise _broken(name, format, found) from error
    _check_size(name, image.size, largest_pixels)
    has_profile = "icc_profile" in image.info
    mode = "deep" if _may_be_deep(image, format, data) else image.mode
    check_footprint(name, format, image.size, largest_pixels, mode, profile=has_profile)
    missing = containers.missing_from(format, data) or missing_pixel_data(format, image, data)
    if missing is not None:
        raise _broken(name, format, missing)
    unturned: list[str] = []

    def loaded(image: Any) -> Any:
        with _strictly(image.size):
            image.load()
        try:
            return ImageOps.exif_transpose(image)
        except MemoryError:
            raise
        except Exception as error:  # damaged metadata says nothing about the pixels
            unturned[:] = [
                f"its orientation cannot be read, so it is as it is stored ({text_of(error)})"
            ]
            return image

    try:
        bits = bits_of(image, format, data)
        lost = lost_frames(image, format)
        deep = None
        if bits > 8:
            deep = deep_pixels(image, format, data, opener(name, format), loaded)
        upright = loaded(image) if deep is None else deep
    except MemoryError:
        raise
    except Exception as error:
        raise _broken(name, format, text_of(error)) from error
    if bits > 8 and deep is None:
        lost.insert(0, cut_bits(bits))
    return Decoded(upright, image, format, bits, lost + unturned)


def _may_be_deep(image: Any, format: str, data: bytes) -> bool:
    """Returns whether the picture is decoded twice: colors of 16 bits."""
    if format not in DEEP or image.mode.startswith("I;16"):
        return False
    try:
        return bits_of(image, format, data) > 8
    except Exception:  # the file is refused when it is decoded
        return False


def _check_size(name: str, size: tuple[int, int], largest_pixels: int) -> None:
    if size[0] * size[1] > largest_pixels:
        raise LimitError(
            f"{name} is {size[0]:,} × {size[1]:,}, which is {size[0] * size[1]:,} pixels, but at "
            f"most {largest_pixels:,} are loaded: if you trust the file, give a larger "
            f"{argument('largest_pixels')}."
        )


def _broken(name: str, format: str, problem: str) -> MediaError:
    return MediaError(
        f"{name} cannot be decoded as {format}: {problem}. Fetch or export the file again."
    )


@contextmanager
def _strictly(size: tuple[int, int]) -> Iterator[None]:
    """Makes Pillow refuse truncated files inside the block, and lifts its own limit on sizes."""
    from PIL import Image, ImageFile

    lenient, limit = ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
    if not lenient and (limit is None or size[0] * size[1] <= limit):
        yield  # the usual case does not touch global settings
        return
    with _settings:
        lenient, limit = ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
        ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = False, None
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = lenient, limit


def encode(
    pixels: np.ndarray,
    format: str,
    target: object,
    quality: int | None,
    metadata: Metadata | None = None,
) -> tuple[bytes, list[str]]:
    """Returns the encoded file, and the list of metadata that the format cannot hold.

    `pixels` are u8, or u16 for the formats of `DEEP`; `target` is the file's name in errors.
    """
    from PIL import Image

    _check_quality(format, target, quality)
    largest = PICTURES[format].largest_extent
    if largest is not None and max(pixels.shape[:2]) > largest:
        raise LimitError(
            f"{SAVE}{target}: the image is {pixels.shape[1]:,} × {pixels.shape[0]:,}, but {format} "
            f"holds at most {largest:,} each way: resize it, or save it as .png or .tiff."
        )
    if not PICTURES[format].has_alpha:
        pixels = _opaque(pixels, format, target)
    module = plugin(str(target), format)
    size = pixels.shape[1], pixels.shape[0]
    beside, lost = save_options(metadata, PICTURES[format], size)
    options = {**beside, **_compression(format, quality)}
    stream = io.BytesIO()
    try:
        image = Image.fromarray(_eight_bits(pixels, format))
        if format == "HEIF":
            module.from_pillow(image).save(stream, **options)
        else:
            image.save(stream, format, **options)
    except (OSError, ValueError) as error:
        raise MediaError(f"{SAVE}{target} cannot be encoded: {text_of(error)}.") from error
    data, parts = stream.getvalue(), exif_directories(metadata, size) if format == "TIFF" else {}
    if pixels.dtype == np.uint16:
        data = with_deep_samples(data) if format == "TIFF" else with_deep_pixels(data, pixels)
    return with_exif_directories(data, parts) if parts else data, lost


def _eight_bits(pixels: np.ndarray, format: str) -> np.ndarray:
    """Returns what Pillow writes for the pixels: of u16, a file that is changed afterwards."""
    if pixels.dtype == np.uint8:
        return pixels
    return as_wide_bytes(pixels) if format == "TIFF" else np.zeros(pixels.shape, np.uint8)


def _check_quality(format: str, target: object, quality: Any) -> None:
    if quality is None:
        return
    if not PICTURES[format].is_lossy:
        lossy = listed(item for item in PICTURES.values() if item.is_lossy)
        raise ArgumentError(
            f"{SAVE}{argument('quality')} is for {lossy}; {target} is {format}, which keeps every "
            f"value. Leave {argument('quality')} out."
        )
    if isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= 100:
        raise ArgumentError(
            f"{SAVE}{argument('quality')} is an integer from 1 to 100, not {quality!r}."
        )


def _compression(format: str, quality: int | None) -> dict[str, Any]:
    """Returns Pillow's options for compression."""
    if format == "TIFF":
        return {"compression": "tiff_adobe_deflate"}
    if format == "WEBP" and quality is None:
        return {"lossless": True, "exact": True}
    if not PICTURES[format].is_lossy:
        return {}
    used = _QUALITY if quality is None else quality
    # 4:4:4 at high quality: subsampled chroma shows at sharp edges.
    whole = used >= _QUALITY
    colors: dict[str, dict[str, Any]] = {
        "JPEG": {"subsampling": 0 if whole else 2},
        "AVIF": {"subsampling": "4:4:4" if whole else "4:2:0"},
        "HEIF": {"chroma": 444 if whole else 420},
    }
    return {"quality": used, **colors.get(format, {})}


def _opaque(pixels: np.ndarray, format: str, target: object) -> np.ndarray:
    """Returns the pixels without their alpha channel; raises ArgumentError unless it is opaque."""
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        return pixels
    clear = int((pixels[..., 3] != 255).sum())
    if clear:
        raise ArgumentError(
            f"{SAVE}{target}: {format} has no transparency, but {clear:,} pixels are not opaque: "
            f"save as .png or .webp"
            + either(
                ", put the image over a background (the filter overlay), or give image[..., :3].",
                ", or put the image over a background, with the filter overlay.",
            )
        )
    return np.ascontiguousarray(pixels[..., :3])


def text_of(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".").replace("\n", " ")
