"""What a video is: its streams, its colors, how it is turned."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from dala.base.deprecation import renamed_attribute
from dala.base.record import value

Matrix = Literal["bt601", "bt709"]
Range = Literal["limited", "full"]

_UNSPECIFIED = 2
_MATRICES: dict[int, Matrix] = {1: "bt709", 5: "bt601", 6: "bt601"}
_FULL = 2
_SRGB_PRIMARIES, _SRGB_TRANSFER, _BT709, _BT601, _LIMITED = 1, 13, 1, 6, 1
LEAST_HD_HEIGHT = 720
"""The height from which on colors are BT.709, where a file does not say."""


@value
class StreamInfo:
    """One stream of a file."""

    index: int
    kind: str
    codec: str
    language: str | None


@value
class ColorTags:
    """How numbers stand for colors, in the codes of ITU-T H.273 that files carry."""

    primaries: int
    transfer: int
    matrix: int
    range: int

    @staticmethod
    def of(tagged: Any) -> ColorTags:
        """The tags of a frame or of a codec."""
        return ColorTags(
            int(tagged.color_primaries),
            int(tagged.color_trc),
            int(tagged.colorspace),
            int(tagged.color_range),
        )

    def put_on(self, tagged: Any) -> None:
        """Tag a codec or a frame with them."""
        tagged.color_primaries = self.primaries
        tagged.color_trc = self.transfer
        tagged.colorspace = self.matrix
        tagged.color_range = self.range

    def matrix_for(self, height: int) -> Matrix:
        """The matrix between RGB and YCbCr; by the height, where nothing known is said."""
        return _MATRICES.get(self.matrix, "bt709" if height >= LEAST_HD_HEIGHT else "bt601")

    def range_for(self, pixel_format: str) -> Range:
        """Whether black is 0 or 16; yuvj formats are what full ones once were called."""
        return "full" if self.range == _FULL or pixel_format.startswith("yuvj") else "limited"


def standard_colors(height: int) -> ColorTags:
    """How sRGB pixels are tagged once they are YCbCr: each height by its usual matrix."""
    matrix = _BT709 if height >= LEAST_HD_HEIGHT else _BT601
    return ColorTags(_SRGB_PRIMARIES, _SRGB_TRANSFER, matrix, _LIMITED)


@value
class VideoInfo:
    """What is known of a video before its frames are read."""

    width: int
    height: int
    rate: Fraction
    """Frames in a second, on average."""
    duration_s: float | None
    frame_count: int | None
    pixel_format: str
    bits: int
    codec: str
    rotation: int
    """By how many degrees, counter-clockwise, a player turns it."""
    colors: ColorTags
    streams: tuple[StreamInfo, ...]
    colours = renamed_attribute("VideoInfo", "colours", "colors")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height
