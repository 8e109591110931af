"""Metadata of pictures: EXIF, XMP, texts and resolution, read from files and written to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dala.base.record import record
from dala.errors import ArgumentError, argument
from dala.media.pictures.formats import PictureFormat

_ORIENTATION, _EXIF, _GPS, _INTEROP = 0x0112, 0x8769, 0x8825, 0xA005
PARTS = (_EXIF, _GPS)
"""The tag directories inside EXIF."""
_COLOR_SPACE, _SRGB = 0xA001, 1
_WIDTH, _HEIGHT = 0xA002, 0xA003
# How a TIFF lays out its own pixels, and what is kept apart: not about the picture.
_OF_THE_FILE = frozenset((*range(254, 260), 262, 266, *range(273, 274), *range(277, 282), 284, 297,
    317, *range(320, 326), 330, *range(338, 348), *range(512, 522), *range(529, 533), 700, 33723,
    34377, 34675))  # fmt: skip
_TIFF_XMP = 700
# What is true of any file, as it is written: nothing that could be lost.
_TECHNICAL = frozenset(
    (0x011A, 0x011B, 0x0128, 0x9000, 0x9101, 0xA000, _COLOR_SPACE, _WIDTH, _HEIGHT)
)
_XMP = "XML:com.adobe.xmp"
_XMP_ORIENTATION = re.compile(
    rb'tiff:Orientation="[0-9]"|<tiff:Orientation>[0-9]</tiff:Orientation>'
)
_COMMENT = "Comment"
_JPEG_EXIF_BYTES, _JPEG_XMP_BYTES = 65_533, 65_504
"""The most that fits into the one JPEG segment that each has."""


@record
class Metadata:
    """What a file says about its picture: where, when and by what it was taken, and by whom.

    `media.load(…, with_metadata=True)` returns it, and `media.save(…, metadata=…)` writes it. It
    describes the loaded picture, which is upright and in sRGB.
    """

    format: str
    """The file's format, by Pillow's name."""
    bits: int
    """Bits per channel in the file."""
    profile: str | None = None
    """The color profile that the colors were converted from, if not sRGB."""
    exif: bytes | None = None
    xmp: bytes | None = None
    texts: Mapping[str, str] = {}
    """Text chunks of a PNG by keyword, and comments of other formats."""
    dpi: tuple[float, float] | None = None
    unread: tuple[str, ...] = ()
    """Metadata in the file that is not read."""

    def tags(self) -> dict[str, Any]:
        """Returns the EXIF by tag name; location tags are in `GPSInfo`.

        >>> from dala import media
        >>> image, metadata = media.load("photo.jpg", with_metadata=True)  # doctest: +SKIP
        >>> metadata.tags()["Model"]  # doctest: +SKIP
        'Pixel 9'
        """
        from PIL import ExifTags

        if self.exif is None:
            return {}
        exif = _parsed(self.exif)
        named = {ExifTags.TAGS.get(tag, tag): value for tag, value in exif.items()}
        named |= {ExifTags.TAGS.get(tag, tag): item for tag, item in exif.get_ifd(_EXIF).items()}
        places = {ExifTags.GPSTAGS.get(tag, tag): item for tag, item in exif.get_ifd(_GPS).items()}
        left_out = {ExifTags.TAGS[_EXIF], ExifTags.TAGS[_GPS]}
        found = {str(name): value for name, value in named.items() if name not in left_out}
        return found | ({"GPSInfo": places} if places else {})


def read_metadata(image: Any, format: str, bits: int, profile: str | None) -> Metadata:
    """Returns the metadata of Pillow's image, as it applies to the upright picture in sRGB."""
    exif, xmp, unread = None, None, []
    try:
        exif = _upright_exif(image)
    except Exception:  # the picture itself is intact
        unread.append("EXIF that is damaged")
    info = image.info
    found = info.get("xmp") or info.get(_XMP)
    if isinstance(found, str):
        found = found.encode("utf-8", "replace")
    if isinstance(found, bytes):
        xmp = _XMP_ORIENTATION.sub(b"", found)
    photoshop = info.get("photoshop")
    if isinstance(photoshop, dict) and 0x0404 in photoshop:
        unread.append("IPTC")
    return Metadata(
        format, bits, profile, exif, xmp, _texts(image), _resolution(info), tuple(unread)
    )


def _upright_exif(image: Any) -> bytes | None:
    """Returns the EXIF for the upright picture in sRGB, without orientation and thumbnails."""
    from PIL import Image

    found = image.getexif()
    made = Image.Exif()
    for tag, value in found.items():
        if tag not in _OF_THE_FILE and tag not in (_ORIENTATION, _EXIF, _GPS):
            made[tag] = value
    for part in PARTS:
        if within := found.get_ifd(part):
            made.get_ifd(part).update(within)
    told = {*made, *made.get_ifd(_EXIF)} - _TECHNICAL
    return bytes(made.tobytes()) if told or made.get_ifd(_GPS) else None


def _texts(image: Any) -> dict[str, str]:
    found = {
        key: str(value)
        for key, value in (getattr(image, "text", None) or {}).items()
        if key != _XMP and not key.startswith("Raw profile type")
    }
    comment = image.info.get("comment")
    if isinstance(comment, bytes):
        comment = comment.decode("utf-8", "replace")
    return {**({_COMMENT: comment} if isinstance(comment, str) and comment else {}), **found}


def _resolution(info: Mapping[str, Any]) -> tuple[float, float] | None:
    given = info.get("dpi")
    if not isinstance(given, tuple) or len(given) != 2:
        return None
    across, down = (float(item) for item in given)
    return (
        (across, down) if 1 < across < 1e6 and 1 < down < 1e6 else None
    )  # else the unit is not inches


def save_options(
    metadata: Metadata | None, format: PictureFormat, size: tuple[int, int]
) -> tuple[dict[str, Any], list[str]]:
    """Returns Pillow's options for saving the metadata, and what the format cannot hold.

    The options always mark the colors as sRGB.
    """
    from PIL import PngImagePlugin

    name, given = format.name, metadata or Metadata(format.name, 8)
    lost: list[str] = []
    options: dict[str, Any] = {}
    exif = _exif_for(given, size, name, lost)
    if name == "TIFF":
        options["exif"] = _tiff_tags(exif, given.xmp)
    elif format.holds_metadata:
        if exif is not None:
            options["exif"] = exif
        if name == "JPEG" and given.xmp is not None and len(given.xmp) > _JPEG_XMP_BYTES:
            lost.append(f"XMP of more than {_JPEG_XMP_BYTES:,} bytes")
        elif given.xmp is not None and name != "PNG":
            options["xmp"] = given.xmp
    else:
        lost += [kind for kind, found in (("EXIF", given.exif), ("XMP", given.xmp)) if found]
    if given.dpi is not None and name in ("PNG", "JPEG", "TIFF", "BMP"):
        options["dpi"] = given.dpi
    texts = dict(given.texts)
    if name == "PNG":
        options["pnginfo"] = _png_info(PngImagePlugin.PngInfo(), given.xmp, texts)
        texts = {}
    elif name == "JPEG" and 0 < len(texts.get(_COMMENT, "").encode()) <= _JPEG_EXIF_BYTES:
        options["comment"] = texts.pop(_COMMENT)
    lost += [f"its text {key}" for key in texts]
    lost += given.unread
    if given.profile is not None:
        lost.append(f"the color profile {given.profile} (its colors are sRGB now)")
    return options, lost


def _exif_for(
    metadata: Metadata, size: tuple[int, int], format: str, lost: list[str]
) -> bytes | None:
    """Returns the EXIF for a picture of that size in sRGB, or None if there is none to write."""
    if format in ("PNG", "TIFF") and metadata.exif is None:
        return None  # PNG has an sRGB chunk, and TIFF needs none
    exif = _parsed(metadata.exif)
    part = exif.get_ifd(_EXIF)
    part[_COLOR_SPACE] = _SRGB
    for tag, extent in zip((_WIDTH, _HEIGHT), size, strict=True):
        if tag in part:
            part[tag] = extent
    made = bytes(exif.tobytes())
    if format == "JPEG" and len(made) > _JPEG_EXIF_BYTES:
        lost.append(f"EXIF of more than {_JPEG_EXIF_BYTES:,} bytes")
        return None
    return made


def _tiff_tags(exif: bytes | None, xmp: bytes | None) -> Any:
    """Returns the tags of a TIFF's main directory; `tiff_tags` adds the EXIF directories."""
    tags = _parsed(exif)
    for part in PARTS:
        tags.pop(part, None)
    if xmp is not None:
        tags[_TIFF_XMP] = xmp
    return tags


def exif_directories(metadata: Metadata | None, size: tuple[int, int]) -> dict[int, dict[int, Any]]:
    """Returns the EXIF and GPS directories for a picture of that (width, height)."""
    if metadata is None or metadata.exif is None:
        return {}
    exif = _parsed(_exif_for(metadata, size, "TIFF", []))
    # Offsets into the old file are no longer valid.
    found = {part: {**exif.get_ifd(part)} for part in PARTS}
    found[_EXIF].pop(_INTEROP, None)
    return {part: tags for part, tags in found.items() if tags}


def _parsed(exif: bytes | None) -> Any:
    from PIL import Image

    made = Image.Exif()
    if exif is not None:
        made.load(exif)
    # Pillow reads directories lazily, from bytes that may be gone by then.
    for part in PARTS:
        made.get_ifd(part)
    return made


def _png_info(info: Any, xmp: bytes | None, texts: Mapping[str, str]) -> Any:
    info.add(b"sRGB", b"\x00")
    if xmp is not None:
        info.add_itxt(_XMP, xmp.decode("utf-8", "replace"))
    for key, value in texts.items():
        if value.isascii():
            info.add_text(key, value)
        else:
            info.add_itxt(key, value)
    return info


def checked_metadata(given: Any) -> Metadata | None:
    """Returns the metadata; raises ArgumentError if it is something else."""
    if given is None or isinstance(given, Metadata):
        return given
    raise ArgumentError(
        f"save: {argument('metadata')} is what load gives beside a picture, a Metadata, not "
        f"{type(given).__name__}."
    )


def cut_bits(bits: int, to: int = 8) -> str:
    """Returns how it is said that values are kept with fewer bits."""
    return f"its {bits} bits for each value are cut to {to}"


def lost_frames(image: Any, format: str) -> list[str]:
    """Returns what is lost of a file's frames after the first."""
    if not getattr(image, "is_animated", False):
        return []
    what = {"TIFF": "pages", "HEIF": "pictures"}.get(format, "frames")
    where = " (a GIF, a video or a folder holds them all)" if what == "frames" else ""
    return [f"only the first of its {what} is kept{where}"]


def bits_of(image: Any, format: str, data: bytes) -> int:
    """Returns the bits per channel in the file."""
    if format == "PNG":
        return data[24]
    if format == "TIFF":
        found = image.tag_v2.get(258, (8,))
        return int(max(found)) if isinstance(found, tuple) else int(found)
    if format == "HEIF":
        return int(image.info.get("bit_depth", 8))
    if format == "AVIF":
        at = data.find(b"pixi")  # the pixi box: version, number of channels, bits of each
        count = data[at + 8] if 0 <= at < len(data) - 12 else 0
        return max(data[at + 9 : at + 9 + count], default=8)
    return 8
