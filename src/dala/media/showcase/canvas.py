"""A canvas for painting with signed distance fields, antialiased."""

from __future__ import annotations

import numpy as np

from dala.kernels.image.paint import color_of

Field = np.ndarray
"""A number for each pixel."""


class Canvas:
    """A picture being painted; `u` and `v` are each pixel's coordinates in drawing points."""

    def __init__(self, u: Field, v: Field, pixels: np.ndarray, pixels_per_point: float) -> None:
        self.u, self.v = u, v
        self._pixels = pixels
        self._pixels_per_point = pixels_per_point

    @staticmethod
    def blank(height: int, width: int, points_high: int, points_wide: int) -> Canvas:
        """Returns a black canvas of that size, with the drawing fitted into its middle."""
        scale = min(height / points_high, width / points_wide)
        y, x = np.mgrid[0:height, 0:width] + 0.5
        u = (x - width / 2) / scale + points_wide / 2
        v = (y - height / 2) / scale + points_high / 2
        return Canvas(u, v, np.zeros((height, width, 3)), scale)

    def part(self, left: float, top: float, right: float, bottom: float) -> Canvas:
        """Returns a view of the canvas between these points: small parts are painted faster."""
        margin = 1 / self._pixels_per_point
        rows = slice(*np.searchsorted(self.v[:, 0], (top - margin, bottom + margin)))
        columns = slice(*np.searchsorted(self.u[0], (left - margin, right + margin)))
        at = (rows, columns)
        return Canvas(self.u[at], self.v[at], self._pixels[at], self._pixels_per_point)

    def dot(self, tint: str, u: float, v: float, radius: float, strength: float = 1.0) -> None:
        """Paints a small disc with a soft outline."""
        part = self.part(u - radius - 2, v - radius - 2, u + radius + 2, v + radius + 2)
        part.paint(tint, strength * part.cover(disc(part.u, part.v, u, v, radius), soft=0.6))

    def cover(self, distance: Field, soft: float = 0.0) -> Field:
        """Returns the coverage of each pixel (distance < 0), softened over `soft` points."""
        reach = 1 / self._pixels_per_point + soft
        return np.clip(0.5 - distance / reach, 0.0, 1.0)

    def fill(self, colors: np.ndarray) -> None:
        self._pixels[...] = colors

    def paint(self, colors: str | np.ndarray, coverage: Field) -> None:
        """Paints a color, or one per pixel, over the canvas."""
        over = color(colors) if isinstance(colors, str) else colors
        self._pixels += (over - self._pixels) * coverage[..., None]

    def grain(self, points: float, seed: int) -> Field:
        """Returns smooth noise in 0..1 with bumps that many points wide, at any size."""
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
        """Returns the picture as opaque u8 RGBA, with noise of that many levels."""
        grain = np.random.default_rng(seed).normal(0.0, noise, self._pixels.shape)
        colors = np.clip(np.rint(self._pixels * 255 + grain), 0, 255).astype(np.uint8)
        opaque = np.full((*colors.shape[:2], 1), 255, np.uint8)
        return np.concatenate([colors, opaque], axis=2)


def color(text: str) -> np.ndarray:
    """Returns a color such as "#ffd400" as three numbers in 0..1."""
    return np.array(color_of("paint", "color", text))


def disc(u: Field, v: Field, cu: float, cv: float, radius: float) -> Field:
    """Returns the signed distance to a disc, negative inside."""
    return np.asarray(np.hypot(u - cu, v - cv) - radius)


def oval(u: Field, v: Field, cu: float, cv: float, wide: float, high: float) -> Field:
    """Returns the approximate signed distance to an ellipse with these half axes."""
    r = np.hypot((u - cu) / wide, (v - cv) / high)
    slope = np.hypot((u - cu) / wide**2, (v - cv) / high**2)
    return np.asarray(r * (r - 1) / np.maximum(slope, 1e-9))


def rectangle(
    u: Field, v: Field, left: float, top: float, right: float, bottom: float, corner: float
) -> Field:
    """Returns the signed distance to a rectangle with rounded corners."""
    x = np.abs(u - (left + right) / 2) - (right - left) / 2 + corner
    y = np.abs(v - (top + bottom) / 2) - (bottom - top) / 2 + corner
    outside = np.hypot(np.maximum(x, 0), np.maximum(y, 0))
    return np.asarray(outside + np.minimum(np.maximum(x, y), 0) - corner)
