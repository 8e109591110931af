"""Boxes that need not be upright: their corners, and which of those that overlap are kept."""

from __future__ import annotations

import numpy as np

EPSILON = 1e-7


def corners_of(box: np.ndarray, angle: float) -> np.ndarray:
    """The corners (4, 2) of a box (center x, center y, width, height) that is turned by an angle.

    The angle is in radians, clockwise as images show it, where y goes down.
    """
    x, y, width, height = box
    along = np.array([np.cos(angle), np.sin(angle)]) * width / 2
    across = np.array([-np.sin(angle), np.cos(angle)]) * height / 2
    center = np.array([x, y])
    return np.stack(
        [
            center + along + across,
            center + along - across,
            center - along - across,
            center - along + across,
        ]
    )


def suppress_turned(
    boxes: np.ndarray, angles: np.ndarray, classes: np.ndarray, iou: float
) -> np.ndarray:
    """The positions of the boxes, the best first, that are like no better one of their class.

    How alike two are is measured as YOLO does: as normal distributions, by Hellinger's distance.
    """
    likeness = alike(boxes, angles)
    taken: list[int] = []
    for place in range(len(boxes)):
        before = [other for other in taken if classes[other] == classes[place]]
        if np.isfinite(boxes[place]).all() and not (likeness[place, before] >= iou).any():
            taken.append(place)
    return np.array(taken, np.int64)


def alike(boxes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """How alike each two boxes are, 0 to 1: 1 less the distance of their distributions."""
    x, y, width, height = boxes.astype(np.float64).T
    cos, sin = np.cos(angles), np.sin(angles)
    long, short = width**2 / 12, height**2 / 12
    a = long * cos**2 + short * sin**2
    b = long * sin**2 + short * cos**2
    c = (long - short) * cos * sin
    total_a, total_b, total_c = (item[:, None] + item for item in (a, b, c))
    dx, dy = x[:, None] - x, y[:, None] - y
    area = total_a * total_b - total_c**2 + EPSILON
    far = (total_a * dy**2 + total_b * dx**2) / area / 4 - total_c * dx * dy / area / 2
    own = np.sqrt(np.clip(a * b - c**2, 0, None))
    shape = np.log((area - EPSILON) / (4 * own[:, None] * own + EPSILON) + EPSILON) / 2
    distance = np.clip(far + shape, EPSILON, 100)
    return np.asarray(1 - np.sqrt(1 - np.exp(-distance) + EPSILON))
