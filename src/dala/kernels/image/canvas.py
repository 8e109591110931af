"""What a filter that moves or resizes an image is given, checked: sizes, methods, pixels."""

from __future__ import annotations

from collections.abc import Sequence

from dala.errors import ArgumentError, ShapeError
from dala.kernels.builtin import Given
from dala.kernels.image.images import require_image
from dala.kernels.image.sizes import rows_and_columns
from dala.kernels.shapes import Shape
from dala.runtime.buffer import Buffer


def one_of(kernel: str, name: str, params: Given, known: Sequence[str]) -> str:
    """The parameter, which is one of the words that are known; an ArgumentError names them."""
    for word in known:
        if params[name] == word:
            return word
    raise ArgumentError(f"{kernel}: {name} {params[name]!r} is not known: give {', '.join(known)}.")


def sized(kernel: str, shape: Shape, params: Given) -> Shape:
    """The shape of an image in the size that is asked for, its own where none is."""
    require_axes(kernel, shape)
    wanted = rows_and_columns(kernel, params)
    return shape if wanted is None else (*wanted, *shape[2:])


def require_axes(kernel: str, shape: Shape) -> None:
    """A ShapeError unless an image can have the shape."""
    if len(shape) not in (2, 3):
        raise ShapeError(
            f"{kernel}: the image is {shape}, but images are (height, width), (height, width, 3) "
            f"or (height, width, 4)."
        )


def require_images(kernel: str, image: Buffer, output: Buffer) -> None:
    """A ShapeError unless both are images of the same channels, and the first has any pixels."""
    require_image(kernel, "the image", image)
    require_image(kernel, "the output", output)
    if image.shape[2:] != output.shape[2:]:
        raise ShapeError(
            f"{kernel}: the image is {image.shape}, but the output is {output.shape}: give one of "
            f"the same channels."
        )
    if 0 in image.shape and 0 not in output.shape:
        raise ShapeError(
            f"{kernel}: the image is {image.shape}: it has no pixels to make {output.shape} of."
        )
