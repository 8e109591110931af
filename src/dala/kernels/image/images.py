"""Images that a filter is given, their neighbourhoods and borders: checked, and seen as planes."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.ir.nodes import BORDERS, Border
from dala.kernels.base.builtin import Given
from dala.kernels.base.limits import LARGEST_RADIUS
from dala.kernels.base.shapes import require_alike, whole_number
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import function
from dala.runtime.kernels.specialization import image_channels


def radius_of(kernel: str, params: Given) -> int:
    """The parameter `radius`; an ArgumentError where it is none."""
    radius = whole_number(kernel, "radius", params["radius"])
    if 0 <= radius <= LARGEST_RADIUS:
        return radius
    raise ArgumentError(f"{kernel}: radius is 0 to {LARGEST_RADIUS}, not {radius}.")


def border_of(kernel: str, params: Given) -> Border:
    """The parameter `border`; an ArgumentError that names those there are."""
    for border in BORDERS:
        if params["border"] == border:
            return border
    raise ArgumentError(
        f"{kernel}: border {params['border']!r} is not known: give {', '.join(BORDERS)}."
    )


def require_image(kernel: str, what: str, image: Buffer) -> None:
    """A ShapeError unless the buffer can be an image."""
    if image_channels((image.scalar, image.shape)) is None:
        raise ShapeError(
            f"{kernel}: {what} is {image.dtype} {image.shape}, which is not an image: images are "
            f"(height, width), (height, width, 3) or (height, width, 4), of u8 or f32."
        )


def checked_border(kernel: str, image: Buffer, output: Buffer, params: Given) -> Border:
    """The border rule, for an image and an output of its shape."""
    require_image(kernel, "the image", image)
    require_image(kernel, "the output", output)
    require_alike(kernel, image, output)
    return border_of(kernel, params)


def flat(image: Buffer) -> Buffer:
    """The image as a gray one, with its channels side by side."""
    height, *rest = image.shape
    return reshaped(image, (height, math.prod(rest)))


@cache
def reader(is_gray: bool) -> Any:
    """What reads a pixel: the one channel of it, where the image is gray."""

    @function
    def pixel_at(image: Any, y: Any, x: Any) -> Any:
        if is_gray:
            return image[y, x].r
        return image[y, x]

    return pixel_at
