"""From a model's tensor back to the image that was put into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dala.base.record import value
from dala.kernels.image.fitting import Fit, fitted

Shape = tuple[int, int]
Box = tuple[float, float, float, float]


@value
class Placement:
    """Where an image lies in a tensor: places of the tensor in the image's own pixels."""

    image: Shape
    """Height and width of the image."""
    tensor: Shape
    """Height and width of the tensor."""
    fit: Fit
    """The area of the tensor that the image covers."""

    def points(self, xy: Any) -> np.ndarray:
        """Points of the tensor, (…, 2) as x and y in its pixels, as points of the image."""
        start = np.array([self.fit.left, self.fit.top], np.float64)
        scale = np.array([self.image[1] / self.fit.width, self.image[0] / self.fit.height])
        placed: np.ndarray = (np.asarray(xy, np.float64) - start) * scale
        return placed

    def box(self, corners: Any) -> Box:
        """Returns the part of a box x0, y0, x1, y1 of the tensor that lies in the image."""
        (x0, y0), (x1, y1) = self.points(np.reshape(corners, (2, 2))).tolist()
        height, width = map(float, self.image)
        return (
            min(max(x0, 0.0), width),
            min(max(y0, 0.0), height),
            min(max(x1, 0.0), width),
            min(max(y1, 0.0), height),
        )

    def area(self, mask: Shape) -> tuple[float, float, float, float]:
        """The area (top, left, height, width) of a mask of the whole tensor that the image covers.

        The mask may be coarser or finer than the tensor.
        """
        down, across = mask[0] / self.tensor[0], mask[1] / self.tensor[1]
        fit = self.fit
        return fit.top * down, fit.left * across, fit.height * down, fit.width * across


def placed(image: Shape, tensor: Shape, fit: str, resize: int = 0) -> Placement:
    """Where an image of (height, width) lies in a tensor of that size, by the name of the fit.

    >>> placed((100, 200), (64, 64), "letterbox").box((0, 16, 32, 48))
    (0.0, 0.0, 100.0, 100.0)
    """
    return Placement(image, tensor, fitted(image, tensor, fit, resize))
