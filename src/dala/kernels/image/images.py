"""Images that a filter is given, their neighborhoods and borders: checked, and seen as planes."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from dala.errors import ShapeError
from dala.ir.nodes import Border
from dala.kernels.base.builtin import Given
from dala.kernels.base.shapes import require_alike
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import function
from dala.runtime.kernels.specialization import image_channels


def require_image(kernel: str, what: str, image: Buffer) -> None:
    """A ShapeError unless the buffer can be an image."""
    if image_channels((image.scalar, image.shape)) is None:
        raise ShapeError(
            f"{kernel}: {what} is {image.dtype} {image.shape}, which is not an image: images are "
            f"(height, width), (height, width, 3) or (height, width, 4), of u8, u16, f32 or "
            f"f16."
        )


def checked_border(kernel: str, image: Buffer, output: Buffer, params: Given) -> Border:
    """The border rule, for an image and an output of its shape."""
    require_image(kernel, "the image", image)
    require_image(kernel, "the output", output)
    require_alike(kernel, image, output)
    border: Border = params["border"]
    return border


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
