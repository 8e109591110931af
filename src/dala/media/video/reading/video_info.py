"""Descriptions of videos: streams, color tags, rotation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from dala.base.deprecation import renamed_attribute
from dala.base.record import value

Matrix = Literal["bt601", "bt709", "bt2020"]
Range = Literal["limited", "full"]

_UNSPECIFIED = 2
_MATRICES: dict[int, Matrix] = {1: "bt709", 5: "bt601", 6: "bt601", 9: "bt2020"}
_FULL = 2
_SRGB_PRIMARIES, _SRGB_TRANSFER, _BT709, _BT601, _LIMITED = 1, 13, 1, 6, 1
LEAST_HD_HEIGHT = 720
"""The least height at which unspecified colors are BT.709."""


@value
class StreamInfo:
    """One stream of a file."""

    index: int
    kind: str
    codec: str
    language: str | None


@value
class ColorTags:
    """Primaries, transfer function, matrix and range, as ITU-T H.273 codes."""

    primaries: int
    transfer: int
    matrix: int
    range: int

    @staticmethod
    def of(tagged: Any) -> ColorTags:
        """Returns the tags of a frame or codec."""
        return ColorTags(
            int(tagged.color_primaries),
            int(tagged.color_trc),
            int(tagged.colorspace),
            int(tagged.color_range),
        )

    def put_on(self, tagged: Any) -> None:
        """Sets the tags of a frame or codec."""
        tagged.color_primaries = self.primaries
        tagged.color_trc = self.transfer
        tagged.colorspace = self.matrix
        tagged.color_range = self.range

    def matrix_for(self, height: int) -> Matrix:
        """Returns the matrix between RGB and YCbCr; unspecified ones follow from the height."""
        return _MATRICES.get(self.matrix, "bt709" if height >= LEAST_HD_HEIGHT else "bt601")

    def range_for(self, pixel_format: str) -> Range:
        """Returns whether black is 0 (full) or 16 (limited); yuvj formats are full."""
        return "full" if self.range == _FULL or pixel_format.startswith("yuvj") else "limited"


def standard_colors(height: int) -> ColorTags:
    """Returns the tags for sRGB pixels as YCbCr, with the usual matrix for the height."""
    matrix = _BT709 if height >= LEAST_HD_HEIGHT else _BT601
    return ColorTags(_SRGB_PRIMARIES, _SRGB_TRANSFER, matrix, _LIMITED)


@value
class VideoInfo:
    """What is known about a video before its frames are read."""

    width: int
    height: int
    rate: Fraction
    """The average frame rate."""
    duration_s: float | None
    frame_count: int | None
    pixel_format: str
    bits: int
    codec: str
    rotation: int
    """The counter-clockwise rotation in degrees that a player applies."""
    colors: ColorTags
    streams: tuple[StreamInfo, ...]
    colours = renamed_attribute("VideoInfo", "colours", "colors")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height
