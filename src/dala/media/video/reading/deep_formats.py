"""Pixel formats of more than 8 bits: how their planes lie, and how levels stand for colors."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from dala.base.record import record
from dala.kernels.image.video_levels import RANGES, WEIGHTS

_NAMES = (
    re.compile(r"(?P<kind>yuv)(?P<alpha>a?)4(?P<chroma>20|22|44|40)p(?P<bits>9|1[0246])le"),
    re.compile(r"(?P<kind>gb)r(?P<alpha>a?)p(?P<bits>9|1[0246])le"),
    re.compile(r"(?P<kind>gray)(?P<bits>9|1[0246])le"),
    re.compile(r"(?P<kind>p)(?P<chroma>[024])(?P<bits>1[026])le"),
)
_CHROMA = {"20": (2, 2), "22": (1, 2), "44": (1, 1), "40": (2, 1), "0": (2, 2), "2": (1, 2)}
PACKED = {"rgb48le": 3, "rgba64le": 4}
"""Formats that are images of u16 already, and their channels."""


@record
class DeepFormat:
    """A pixel format whose levels are u16 in planes."""

    kind: str
    """yuv, gb (green, blue, red), gray, or p (chroma in one plane, levels in the upper bits)."""
    bits: int
    down: int
    """How many rows share a level of chroma."""
    across: int
    has_alpha: bool

    @property
    def is_paired(self) -> bool:
        """Whether both levels of chroma lie side by side in one plane."""
        return self.kind == "p"

    @property
    def unit(self) -> int:
        """How many steps of u16 a level is."""
        return 1 << (16 - self.bits) if self.is_paired else 1

    @property
    def white(self) -> int:
        """The highest level."""
        return (1 << self.bits) - 1

    def planes_of_colors(self, matrix: str, range_: str) -> np.ndarray:
        """Returns (3, 4): each plane's level as a sum of red, green and blue in 0..1, and of 1."""
        if self.kind == "gb":
            return np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]) * float(self.white)
        red, blue = WEIGHTS[matrix]
        luma = np.array([red, 1 - red - blue, blue])
        to_blue = (np.array([0, 0, 1]) - luma) / (2 * (1 - blue))
        to_red = (np.array([1, 0, 0]) - luma) / (2 * (1 - red))
        black, luma_span, chroma_span = self._levels(range_)
        middle = 1 << (self.bits - 1)
        return np.array(
            [
                [*(luma * luma_span), black],
                [*(to_blue * chroma_span), middle],
                [*(to_red * chroma_span), middle],
            ]
        )

    def colors_of_planes(self, matrix: str, range_: str) -> np.ndarray:
        """Returns (3, 4): red, green and blue as sums of the planes' values, and of 1."""
        if self.kind == "gray":  # the one plane stands for all three
            return np.array([[1 / self.white, 0, 0, 0]] * 3)
        forward = self.planes_of_colors(matrix, range_)
        inverse = np.linalg.inv(forward[:, :3])
        return np.concatenate([inverse / self.unit, -inverse @ forward[:, 3:]], 1)

    def _levels(self, range_: str) -> tuple[int, int, int]:
        """Returns the level of black, and how many levels luma and chroma span.

        Gray is of full range whatever its tags say, as FFmpeg takes it.
        """
        if range_ == "full" or self.kind == "gray":
            return 0, self.white, self.white
        black, luma, chroma = (level << (self.bits - 8) for level in RANGES[range_])
        return black, luma, chroma


@cache
def deep_format(name: str) -> DeepFormat | None:
    """Returns the format of that name, or None if kernels do not convert it."""
    for pattern in _NAMES:
        if (found := pattern.fullmatch(name)) is not None:
            parts = found.groupdict()
            down, across = _CHROMA.get(parts.get("chroma", ""), (1, 1))
            bits, alpha = int(parts["bits"]), bool(parts.get("alpha"))
            return DeepFormat(parts["kind"], bits, down, across, alpha)
    return None
