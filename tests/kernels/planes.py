"""Images as planes of luma and chroma, by the formulas of BT.601 and BT.709, in exact numbers."""

from __future__ import annotations

import numpy as np

WEIGHTS = {
    "bt601": (0.299, 0.587, 0.114),
    "bt709": (0.2126, 0.7152, 0.0722),
    "bt2020": (0.2627, 0.678, 0.0593),
}
RANGES = {"limited": (16, 219, 224), "full": (0, 255, 255)}


def expanded(
    y: np.ndarray, u: np.ndarray, v: np.ndarray, matrix: str = "bt601", span: str = "limited"
) -> np.ndarray:
    """RGB in 0..1 of planes; chroma is that of the nearest sample."""
    height, width = y.shape
    red, green, blue = WEIGHTS[matrix]
    black, luma, chroma = RANGES[span]
    light = (y.astype(float) - black).clip(0) / luma
    cb, cr = (
        (plane.astype(float).repeat(2, 0).repeat(2, 1)[:height, :width] - 128) / chroma
        for plane in (u, v)
    )
    r, b = light + 2 * (1 - red) * cr, light + 2 * (1 - blue) * cb
    # Written for Y' = red R + green G + blue B, which is solved for G.
    return np.stack([r, (light - red * r - blue * b) / green, b], -1).clip(0, 1)


def reduced(
    rgb: np.ndarray, matrix: str = "bt601", span: str = "limited"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels of Y, U and V, not rounded, of RGB in 0..1; chroma is that of the mean colour."""
    red, _, blue = weights = WEIGHTS[matrix]
    black, luma, chroma = RANGES[span]
    light = rgb @ np.array(weights)
    tall, wide = (size + size % 2 for size in light.shape)
    padded = np.pad(rgb, [(0, tall - rgb.shape[0]), (0, wide - rgb.shape[1]), (0, 0)], mode="edge")
    mean = padded.reshape(tall // 2, 2, wide // 2, 2, 3).mean((1, 3))
    dark = mean @ np.array(weights)
    u = 128 + chroma * (mean[..., 2] - dark) / (2 * (1 - blue))
    v = 128 + chroma * (mean[..., 0] - dark) / (2 * (1 - red))
    return black + luma * light, u.clip(0, 255), v.clip(0, 255)


def stored(y: np.ndarray, u: np.ndarray, v: np.ndarray, name: str) -> np.ndarray:
    """Planes one after another in one axis, as the format has them."""
    chroma = [u.ravel(), v.ravel()] if name == "yuv420p" else [np.stack([u, v], -1).ravel()]
    return np.concatenate([y.ravel(), *chroma])


def planes(height: int, width: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random levels of Y, U and V, with the extremes among them."""
    random = np.random.default_rng(seed)
    sizes = [(height, width)] + [((height + 1) // 2, (width + 1) // 2)] * 2
    y, u, v = (random.integers(-40, 296, size).clip(0, 255).astype(np.uint8) for size in sizes)
    return y, u, v
