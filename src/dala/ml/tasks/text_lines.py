"""Lines of text: cut out of an image, upright, and read from what a recognizer gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

HEIGHT, LEAST_WIDTH, STEP, MOST_WIDTH = 48, 320, 64, 4096
"""The height of the lines that are read; widths are a few, so that shapes come again."""
TALL = 1.5
"""Lines that are so many times as high as wide are read from top to bottom."""


def cut_line(image: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """The line within corners (4, 2), 48 high, with its own proportions: u8 (48, width, 3)."""
    corners = _from_upper_left(np.asarray(corners, np.float64))
    width, height = (float(np.linalg.norm(corners[end] - corners[0])) for end in (1, 3))
    if height >= TALL * width:
        corners = np.roll(corners, -1, 0)
        width, height = height, width
    wide = int(np.clip(round(HEIGHT * width / max(height, 1e-6)), 1, MOST_WIDTH))
    across = (np.arange(wide) + 0.5) / wide
    down = (np.arange(HEIGHT) + 0.5) / HEIGHT
    right, below = corners[1] - corners[0], corners[3] - corners[0]
    places = corners[0] + across[None, :, None] * right + down[:, None, None] * below
    return _sampled(image, places)


def line_tensor(line: np.ndarray) -> np.ndarray:
    """A line as a recognizer takes it: blue first, −1 to 1, with nothing to the right of it."""
    width = line.shape[1]
    room = max(LEAST_WIDTH, -(-width // STEP) * STEP)
    tensor = np.zeros((1, 3, HEIGHT, room), np.float32)
    tensor[0, :, :, :width] = line[..., ::-1].transpose(2, 0, 1) / np.float32(127.5) - 1
    return tensor


def read_line(shares: np.ndarray, characters: Sequence[str]) -> tuple[str, float]:
    """The text of a row of probabilities (steps, 1 + characters), and how sure it is.

    At each step the likeliest character counts, unless it is the first, which stands for none, or
    the one of the step before.
    """
    best = shares.argmax(1)
    is_new = np.concatenate([[True], best[1:] != best[:-1]]) & (best > 0)
    if not is_new.any():
        return "", 0.0
    text = "".join(characters[index - 1] for index in best[is_new].tolist())
    return text, float(shares[is_new, best[is_new]].mean())


def _from_upper_left(corners: np.ndarray) -> np.ndarray:
    """The corners clockwise, beginning with the one that is the farthest up and left."""
    center = corners.mean(0)
    around = np.argsort(np.arctan2(*(corners - center).T[::-1]))
    turned = corners[around]
    return np.roll(turned, -int(turned.sum(1).argmin()), 0)


def _sampled(image: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Pixels at places x and y, interpolated; outside as at the edge."""
    height, width = image.shape[:2]
    x = np.clip(places[..., 0] - 0.5, 0, width - 1)
    y = np.clip(places[..., 1] - 0.5, 0, height - 1)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, below = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    u, v = (x - left)[..., None], (y - top)[..., None]
    upper = image[top, left] * (1 - u) + image[top, right] * u
    lower = image[below, left] * (1 - u) + image[below, right] * u
    return np.asarray(np.rint(upper * (1 - v) + lower * v).astype(np.uint8))
