"""The supported picture formats, their suffixes, and the libraries that read and write them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from dala.base.record import record
from dala.errors import MediaError


@record
class PictureFormat:
    """A picture format, as Pillow or one of its plugins knows it."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    opener: str
    """The class that opens such a file; unlike Image.open it does not check sizes."""
    is_written: bool = True
    is_lossy: bool = False
    """Whether it can be compressed with loss, at a given quality."""
    has_alpha: bool = True
    largest_extent: int | None = None
    holds_metadata: bool = True
    """Whether such a file can hold EXIF and XMP."""
    bits: int = 8
    """The most bits per channel that are written."""

    @property
    def label(self) -> str:
        """The format's name in messages."""
        return {"WEBP": "WebP", "HEIF": "HEIC"}.get(self.name, self.name)


PICTURES = {
    item.name: item
    for item in (
        PictureFormat("PNG", (".png",), "PIL.PngImagePlugin", "PngImageFile", bits=16),
        PictureFormat(
            "JPEG",
            (".jpg", ".jpeg"),
            "PIL.JpegImagePlugin",
            "JpegImageFile",
            is_lossy=True,
            has_alpha=False,
            largest_extent=65_535,
        ),
        PictureFormat(
            "WEBP",
            (".webp",),
            "PIL.WebPImagePlugin",
            "WebPImageFile",
            is_lossy=True,
            largest_extent=16_383,
        ),
        PictureFormat("TIFF", (".tif", ".tiff"), "PIL.TiffImagePlugin", "TiffImageFile", bits=16),
        PictureFormat(
            "BMP",
            (".bmp",),
            "PIL.BmpImagePlugin",
            "BmpImageFile",
            has_alpha=False,
            holds_metadata=False,
        ),
        PictureFormat(
            "AVIF",
            (".avif",),
            "PIL.AvifImagePlugin",
            "AvifImageFile",
            is_lossy=True,
            largest_extent=65_536,
        ),
        PictureFormat(
            "HEIF",
            (".heic", ".heif"),
            "pillow_heif",
            "HeifImageFile",
            is_lossy=True,
            largest_extent=16_384,
        ),
        PictureFormat("GIF", (".gif",), "PIL.GifImagePlugin", "GifImageFile", is_written=False),
    )
}
"""Formats by Pillow's names. GIFs are written as video, frame by frame."""

DEEP = tuple(item.name for item in PICTURES.values() if item.bits > 8)
"""The formats of 16 bits."""
FORMATS = {
    suffix: item.name for item in PICTURES.values() if item.is_written for suffix in item.suffixes
}
"""The format that is written for each suffix."""
READ_SUFFIXES = tuple(suffix for item in PICTURES.values() for suffix in item.suffixes)

_NEEDED = {
    "AVIF": "Pillow 11.3 or newer: pip install --upgrade pillow",
    "HEIF": 'the library pillow-heif: pip install "dala-gpu[heic]"',
}


def listed(formats: Iterable[PictureFormat]) -> str:
    """Returns the formats as a phrase: "PNG, JPEG and WebP"."""
    *labels, last = (item.label for item in formats)
    return f"{', '.join(labels)} and {last}"


def plugin(what: str, format: str) -> Any:
    """Returns the module for a format; raises MediaError if it is not installed."""
    try:
        module = import_module(PICTURES[format].module)
    except ImportError as error:
        raise _missing(what, format) from error
    if not getattr(module, "SUPPORTED", True):  # a Pillow that was built without the library
        raise _missing(what, format)
    return module


def opener(what: str, format: str) -> Any:
    """Returns the class that opens a file of the format."""
    return getattr(plugin(what, format), PICTURES[format].opener)


def _missing(what: str, format: str) -> MediaError:
    return MediaError(f"{what} is {PICTURES[format].label}, which needs {_NEEDED[format]}.")
