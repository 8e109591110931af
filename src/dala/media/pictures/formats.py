"""The formats of pictures: what their files are called, and which library reads and writes them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from dala.base.record import record
from dala.errors import MediaError


@record
class PictureFormat:
    """A format of pictures, as Pillow or a plugin of it knows it."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    opener: str
    """The class that opens such a file; unlike Image.open it leaves the limit on sizes to us."""
    is_written: bool = True
    is_lossy: bool = False
    """Whether it can be written smaller than every value takes, by a quality."""
    has_alpha: bool = True
    largest_extent: int | None = None
    holds_metadata: bool = True
    """Whether there is a place for EXIF and XMP in such a file."""

    @property
    def label(self) -> str:
        """What people call it."""
        return {"WEBP": "WebP", "HEIF": "HEIC"}.get(self.name, self.name)


PICTURES = {
    item.name: item
    for item in (
        PictureFormat("PNG", (".png",), "PIL.PngImagePlugin", "PngImageFile"),
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
        PictureFormat("TIFF", (".tif", ".tiff"), "PIL.TiffImagePlugin", "TiffImageFile"),
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
"""By the names that Pillow has for them. GIFs are written as video is, frame by frame."""

FORMATS = {
    suffix: item.name for item in PICTURES.values() if item.is_written for suffix in item.suffixes
}
"""The format that each suffix of a picture stands for that is written."""
READ_SUFFIXES = tuple(suffix for item in PICTURES.values() for suffix in item.suffixes)

_NEEDED = {
    "AVIF": "Pillow 11.3 or newer: pip install --upgrade pillow",
    "HEIF": 'the library pillow-heif: pip install "dala-gpu[heic]"',
}


def listed(formats: Iterable[PictureFormat]) -> str:
    """The formats for people: PNG, JPEG and WebP."""
    *labels, last = (item.label for item in formats)
    return f"{', '.join(labels)} and {last}"


def plugin(what: str, format: str) -> Any:
    """The module that reads and writes a format; a MediaError says what to install for it."""
    try:
        module = import_module(PICTURES[format].module)
    except ImportError as error:
        raise _missing(what, format) from error
    if not getattr(module, "SUPPORTED", True):  # a Pillow that was built without the library
        raise _missing(what, format)
    return module


def opener(what: str, format: str) -> Any:
    """The class that opens a file of the format."""
    return getattr(plugin(what, format), PICTURES[format].opener)


def _missing(what: str, format: str) -> MediaError:
    return MediaError(f"{what} is {PICTURES[format].label}, which needs {_NEEDED[format]}.")
