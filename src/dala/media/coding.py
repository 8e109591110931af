"""Pictures in memory turned into the bytes of a file and back, by Pillow, but more strictly."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dala.errors import ArgumentError, LimitError, MediaError
from dala.media import containers
from dala.media.coverage import uncovered
from dala.media.footprint import check_footprint

_LARGEST_EXTENTS = {"JPEG": 65_535, "WEBP": 16_383}
_JPEG_QUALITY = 90
_EXIF_PART, _EXIF_COLOR_SPACE, _EXIF_SRGB = 0x8769, 0xA001, 1
_settings = threading.Lock()


def decode(name: str, data: bytes, largest_pixels: int) -> Any:
    """Pillow's image, decoded and upright; a LimitError or MediaError before, or instead."""
    from PIL import ImageOps

    format = containers.format_of(data[: containers.HEAD_BYTES])
    assert format is not None
    size = containers.webp_size(data) if format == "WEBP" else None
    if size is not None:  # what opens it takes memory for all of it
        _check_size(name, size, largest_pixels)
        check_footprint(name, format, size, largest_pixels)
    try:
        with _strictly(size or (0, 0)):
            image = _opener(format)(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:  # whatever a decoder trips over, the file is the cause
        found = containers.missing_from(format, data) or text_of(error)
        raise _broken(name, format, found) from error
    _check_size(name, image.size, largest_pixels)
    has_profile = "icc_profile" in image.info
    check_footprint(name, format, image.size, largest_pixels, image.mode, profile=has_profile)
    missing = containers.missing_from(format, data) or uncovered(format, image, data)
    if missing is not None:
        raise _broken(name, format, missing)
    try:
        with _strictly(image.size):
            image.load()
    except MemoryError:
        raise
    except Exception as error:
        raise _broken(name, format, text_of(error)) from error
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    except Exception:  # damaged metadata says nothing about the pixels
        pass
    return image


def _opener(format: str) -> Any:
    """Pillow's class for a format; unlike Image.open it leaves the limit on sizes to us."""
    from PIL import JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin

    return {
        "PNG": PngImagePlugin.PngImageFile,
        "JPEG": JpegImagePlugin.JpegImageFile,
        "WEBP": WebPImagePlugin.WebPImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
    }[format]


def _check_size(name: str, size: tuple[int, int], largest_pixels: int) -> None:
    if size[0] * size[1] > largest_pixels:
        raise LimitError(
            f"{name} is {size[0]:,} × {size[1]:,}, which is {size[0] * size[1]:,} pixels, but at "
            f"most {largest_pixels:,} are loaded: if you trust the file, give a larger "
            f"largest_pixels."
        )


def _broken(name: str, format: str, problem: str) -> MediaError:
    return MediaError(
        f"{name} cannot be decoded as {format}: {problem}. Fetch or export the file again."
    )


@contextmanager
def _strictly(size: tuple[int, int]) -> Iterator[None]:
    """Pillow without its leave to guess missing pixels, and with our limit in place of its own."""
    from PIL import Image, ImageFile

    lenient, limit = ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
    if not lenient and (limit is None or size[0] * size[1] <= limit):
        yield  # the usual case touches nothing that other threads see
        return
    with _settings:
        lenient, limit = ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
        ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = False, None
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = lenient, limit


def encode(pixels: np.ndarray, format: str, target: object, quality: int | None) -> bytes:
    """The bytes of a file of that format; `target` is what errors call it."""
    from PIL import Image

    _check_quality(format, target, quality)
    largest = _LARGEST_EXTENTS.get(format)
    if largest is not None and max(pixels.shape[:2]) > largest:
        raise LimitError(
            f"save: {target}: the image is {pixels.shape[1]:,} × {pixels.shape[0]:,}, but {format} "
            f"holds at most {largest:,} each way: resize it, or save it as .png or .tiff."
        )
    if format == "JPEG":
        pixels = _opaque(pixels, target)
    stream = io.BytesIO()
    try:
        Image.fromarray(pixels).save(stream, format, **_options(format, quality))
    except (OSError, ValueError) as error:
        raise MediaError(f"save: {target} cannot be encoded: {text_of(error)}.") from error
    return stream.getvalue()


def _check_quality(format: str, target: object, quality: Any) -> None:
    if quality is None:
        return
    if format not in ("JPEG", "WEBP"):
        raise ArgumentError(
            f"save: quality is for JPEG and WebP; {target} is {format}, which keeps every value. "
            f"Leave quality out."
        )
    if isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= 100:
        raise ArgumentError(f"save: quality is a whole number of 1 to 100, not {quality!r}.")


def _options(format: str, quality: int | None) -> dict[str, Any]:
    """What Pillow is told: how to compress, and that the colours are sRGB."""
    from PIL import Image, PngImagePlugin

    if format == "TIFF":
        return {"compression": "tiff_adobe_deflate"}
    if format == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add(b"sRGB", b"\x00")
        return {"pnginfo": info}
    exif = Image.Exif()
    exif.get_ifd(_EXIF_PART)[_EXIF_COLOR_SPACE] = _EXIF_SRGB
    if format == "WEBP":
        how = {"lossless": True, "exact": True} if quality is None else {"quality": quality}
        return {"exif": exif, **how}
    used = _JPEG_QUALITY if quality is None else quality
    # 4:4:4 where the caller wants quality: halved colour shows at sharp edges.
    return {"exif": exif, "quality": used, "subsampling": 0 if used >= _JPEG_QUALITY else 2}


def _opaque(pixels: np.ndarray, target: object) -> np.ndarray:
    """The pixels without their alpha, which has to be opaque."""
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        return pixels
    clear = int((pixels[..., 3] != 255).sum())
    if clear:
        raise ArgumentError(
            f"save: {target}: JPEG has no transparency, but {clear:,} pixels are not opaque: save "
            f"as .png or .webp, put the image over a background (the filter overlay), or give "
            f"image[..., :3]."
        )
    return np.ascontiguousarray(pixels[..., :3])


def text_of(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".").replace("\n", " ")
