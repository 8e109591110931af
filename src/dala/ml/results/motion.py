"""Where a box will be in the next frame: a Kalman filter of constant velocity."""

from __future__ import annotations

import numpy as np

Box = tuple[float, float, float, float]

POSITION_NOISE, VELOCITY_NOISE = 1 / 20, 1 / 160
"""How far a box may be off, and how much it may speed up in a frame, in parts of its height."""
_STEP = np.eye(8) + np.eye(8, k=4)
_SEEN = np.eye(4, 8)


class Motion:
    """A box that moves: center x, center y, width over height, height, and how these change."""

    def __init__(self, box: Box) -> None:
        self._mean = np.concatenate([_measured(box), np.zeros(4)])
        height = self._mean[3]
        self._spread = np.diag(np.square(_deviations(height, 2, 10, 1e-2, 1e-5)))

    @property
    def box(self) -> np.ndarray:
        """Where it is thought to be: x0, y0, x1, y1."""
        x, y, ratio, height = self._mean[:4]
        across, down = ratio * height / 2, height / 2
        return np.array([x - across, y - down, x + across, y + down])

    def hold_height(self) -> None:
        """Stop growing or shrinking: of what is not seen nobody knows whether it goes on."""
        self._mean[7] = 0

    def advance(self) -> None:
        """Go on to the next frame."""
        noise = np.diag(np.square(_deviations(self._mean[3], 1, 1, 1e-2, 1e-5)))
        self._mean = _STEP @ self._mean
        self._spread = _STEP @ self._spread @ _STEP.T + noise

    def correct(self, box: Box) -> None:
        """Take into account where it was seen."""
        height = self._mean[3]
        error = [POSITION_NOISE * height, POSITION_NOISE * height, 1e-1, POSITION_NOISE * height]
        seen_spread = _SEEN @ self._spread @ _SEEN.T + np.diag(np.square(error))
        gain = np.linalg.solve(seen_spread, _SEEN @ self._spread).T
        self._mean = self._mean + gain @ (_measured(box) - _SEEN @ self._mean)
        self._spread = self._spread - gain @ seen_spread @ gain.T


def _measured(box: Box) -> np.ndarray:
    x0, y0, x1, y1 = box
    height = max(y1 - y0, 1e-6)
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / height, height])


def _deviations(
    height: float, place: float, speed: float, ratio: float, ratio_speed: float
) -> np.ndarray:
    at, by = place * POSITION_NOISE * height, speed * VELOCITY_NOISE * height
    return np.array([at, at, ratio, at, by, by, ratio_speed, by])
