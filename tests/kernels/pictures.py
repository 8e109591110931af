"""Images to filter, and what a filter should make of them."""

from __future__ import annotations

import numpy as np

SHAPES = [(5, 7), (6, 9, 3), (33, 65, 4), (1, 1), (1, 1, 4), (1, 37, 3), (40, 1, 4)]
"""Gray, RGB and RGBA images of odd sizes, single pixels and lines."""
LUMA = np.array([0.299, 0.587, 0.114])


def picture(shape: tuple[int, ...], dtype: str, seed: int = 5) -> np.ndarray:
    """A random image in which black and white are frequent."""
    random = np.random.default_rng(seed)
    levels = random.integers(-30, 286, shape).clip(0, 255)
    if dtype == "u8":
        return levels.astype(np.uint8)
    return (levels / 255 + random.normal(0, 1e-3, shape)).clip(0, 1).astype(np.float32)


def in_units(image: np.ndarray) -> np.ndarray:
    """The image as exact numbers in 0..1."""
    return image.astype(np.float64) / (255 if image.dtype == np.uint8 else 1)


def check(got: np.ndarray, want: np.ndarray, *, tolerance: float = 1e-6) -> None:
    """Compare with exact numbers in 0..1; a u8 is exact, or next to it where that is a tie."""
    assert got.shape == want.shape
    if got.dtype == np.float32:
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=tolerance)
        return
    exact = want.clip(0, 1) * 255
    assert (np.abs(got - exact) <= 0.5 + 255 * tolerance).all()
