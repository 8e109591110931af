"""The pictures that filters are measured on, in each format and size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

Size = tuple[int, int]
"""Height and width."""
FULL: Size = (1080, 1920)
THUMBNAIL: Size = (128, 128)
LARGE: Size = (2160, 3840)
TOPS = {"u8": 255, "u16": 65535, "f32": 1}
"""What white is."""
TOLERANCES = {"u8": 1.0, "u16": 2 / 257, "f32": 0.01}
"""How far apart results may be by default, in levels of 255: one level, two of 65,535, rounding."""


@dataclass(frozen=True)
class Sizes:
    """How large pictures are: most of them, small ones and large ones."""

    full: Size = FULL
    thumbnail: Size = THUMBNAIL
    large: Size = LARGE


USUAL = Sizes()
TINY = Sizes((60, 90), (60, 90), (60, 90))
"""For tests, which compare and do not measure."""


@dataclass(frozen=True)
class Format:
    """How the pixels of an image are stored."""

    name: str
    channels: int
    dtype: str

    @property
    def top(self) -> int:
        return TOPS[self.dtype]

    @property
    def has_alpha(self) -> bool:
        return self.channels == 4

    @property
    def colors(self) -> int:
        return min(self.channels, 3)

    def shape(self, size: Size) -> tuple[int, ...]:
        return size if self.channels == 1 else (*size, self.channels)


RGBA = Format("rgba", 4, "u8")
RGB = Format("rgb", 3, "u8")
GRAY = Format("gray", 1, "u8")
F32 = Format("f32", 3, "f32")
U16 = Format("u16", 3, "u16")
FORMATS = (RGBA, RGB, GRAY, F32, U16)
COLORED = (RGBA, RGB, F32, U16)
BY_NAME = {format.name: format for format in FORMATS}


@lru_cache(maxsize=12)
def picture(format: Format, size: Size = FULL, seed: int = 1) -> np.ndarray:
    """A picture with edges, slopes, some noise, and an alpha that varies; not to be written to."""
    made = stored(_levels(size, seed)[..., : format.channels], format.dtype, seed)
    return made[..., 0].copy() if format.channels == 1 else np.ascontiguousarray(made)


@lru_cache(maxsize=4)
def _levels(size: Size, seed: int) -> np.ndarray:
    height, width = size
    y, x = np.mgrid[:height, :width]
    y, x = (y + 17 * (seed - 1)) % height, (x + 31 * (seed - 1)) % width
    planes = [x * 255 // width, y * 255 // height, (x ^ y) & 255, 64 + (x + y) % 192]
    noise = np.random.default_rng(seed).integers(-8, 9, (*size, 4))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def stored(levels: np.ndarray, dtype: str, seed: int = 1) -> np.ndarray:
    """Levels of u8 in another dtype, with what lies between them filled at random."""
    if dtype == "u8":
        return levels
    random = np.random.default_rng(seed + 100)
    if dtype == "u16":
        low = random.integers(0, 257, levels.shape, np.uint16)
        return np.minimum(levels.astype(np.uint32) * 257 + low, 65535).astype(np.uint16)
    low = random.random(levels.shape, np.float32) - np.float32(0.5)
    return ((levels + low) / 255).clip(0, 1).astype(np.float32)


def levels_of(image: np.ndarray, dtype: str) -> np.ndarray:
    """The image in levels of 255, whatever it is stored in."""
    return image.astype(np.float32) * np.float32(255 / TOPS[dtype])
