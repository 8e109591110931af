"""A canvas that formulas paint on: distances to shapes become coverage, without jagged edges."""

from __future__ import annotations

import numpy as np

from dala.kernels.image.paint import color_of

Field = np.ndarray
"""A number for each pixel."""


class Canvas:
    """A picture in the making; `u` and `v` are each pixel's place in points of the drawing."""

    def __init__(self, u: Field, v: Field, pixels: np.ndarray, pixels_per_point: float) -> None:
        self.u, self.v = u, v
        self._pixels = pixels
        self._pixels_per_point = pixels_per_point

    @staticmethod
    def blank(height: int, width: int, points_high: int, points_wide: int) -> Canvas:
        """A black canvas of that size, in whose middle the whole drawing has room."""
        scale = min(height / points_high, width / points_wide)
        y, x = np.mgrid[0:height, 0:width] + 0.5
        u = (x - width / 2) / scale + points_wide / 2
        v = (y - height / 2) / scale + points_high / 2
        return Canvas(u, v, np.zeros((height, width, 3)), scale)

    def part(self, left: float, top: float, right: float, bottom: float) -> Canvas:
        """The part of this canvas between these points: painting is quick where it is small."""
        margin = 1 / self._pixels_per_point
        rows = slice(*np.searchsorted(self.v[:, 0], (top - margin, bottom + margin)))
        columns = slice(*np.searchsorted(self.u[0], (left - margin, right + margin)))
        at = (rows, columns)
        return Canvas(self.u[at], self.v[at], self._pixels[at], self._pixels_per_point)

    def dot(self, tint: str, u: float, v: float, radius: float, strength: float = 1.0) -> None:
        """Paint a small disc with a soft outline."""
        part = self.part(u - radius - 2, v - radius - 2, u + radius + 2, v + radius + 2)
        part.paint(tint, strength * part.cover(disc(part.u, part.v, u, v, radius), soft=0.6))

    def cover(self, distance: Field, soft: float = 0.0) -> Field:
        """How much of each pixel lies inside (distance < 0); `soft` points are blended besides."""
        reach = 1 / self._pixels_per_point + soft
        return np.clip(0.5 - distance / reach, 0.0, 1.0)

    def fill(self, colours: np.ndarray) -> None:
        self._pixels[...] = colours

    def paint(self, colours: str | np.ndarray, coverage: Field) -> None:
        """Lay a colour, or one for each pixel, over what is there."""
        over = colour(colours) if isinstance(colours, str) else colours
        self._pixels += (over - self._pixels) * coverage[..., None]

    def grain(self, points: float, seed: int) -> Field:
        """Smooth random values in 0..1 whose bumps are that many points wide, at any size."""
        lattice = np.random.default_rng(seed).random((64, 64))
        x, y = self.u / points, self.v / points
        left, top = np.floor(x).astype(int), np.floor(y).astype(int)
        s, t = x - left, y - top
        s, t = s * s * (3 - 2 * s), t * t * (3 - 2 * t)
        near = [lattice[(top + j) % 64, (left + i) % 64] for j in (0, 1) for i in (0, 1)]
        upper = near[0] + (near[1] - near[0]) * s
        lower = near[2] + (near[3] - near[2]) * s
        return np.asarray(upper + (lower - upper) * t)

    def levels(self, noise: float, seed: int) -> np.ndarray:
        """The picture as opaque RGBA of u8, with noise of that many levels."""
        grain = np.random.default_rng(seed).normal(0.0, noise, self._pixels.shape)
        colours = np.clip(np.rint(self._pixels * 255 + grain), 0, 255).astype(np.uint8)
        opaque = np.full((*colours.shape[:2], 1), 255, np.uint8)
        return np.concatenate([colours, opaque], axis=2)


def colour(text: str) -> np.ndarray:
    """The three numbers in 0..1 of a colour such as "#ffd400"."""
    return np.array(color_of("paint", "colour", text))


def disc(u: Field, v: Field, cu: float, cv: float, radius: float) -> Field:
    """The distance from a disc's outline, negative inside."""
    return np.asarray(np.hypot(u - cu, v - cv) - radius)


def oval(u: Field, v: Field, cu: float, cv: float, wide: float, high: float) -> Field:
    """Nearly the distance from the outline of an ellipse with these half axes."""
    r = np.hypot((u - cu) / wide, (v - cv) / high)
    slope = np.hypot((u - cu) / wide**2, (v - cv) / high**2)
    return np.asarray(r * (r - 1) / np.maximum(slope, 1e-9))


def rectangle(
    u: Field, v: Field, left: float, top: float, right: float, bottom: float, corner: float
) -> Field:
    """The distance from the outline of a rectangle with round corners."""
    x = np.abs(u - (left + right) / 2) - (right - left) / 2 + corner
    y = np.abs(v - (top + bottom) / 2) - (bottom - top) / 2 + corner
    outside = np.hypot(np.maximum(x, 0), np.maximum(y, 0))
    return np.asarray(outside + np.minimum(np.maximum(x, y), 0) - corner)
