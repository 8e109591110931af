"""What a filter that moves or resizes an image is given, checked: sizes, methods, pixels."""

from __future__ import annotations

from typing import Any

from dala.errors import ArgumentError, ShapeError
from dala.kernels.base.builtin import Given
from dala.kernels.base.shapes import Shape, integer_of
from dala.kernels.image.images import require_image
from dala.kernels.image.sizes import exact_size, is_relative, wanted_size
from dala.runtime.buffers.buffer import Buffer


def sized(kernel: str, shape: Shape, params: Given, *, relative: bool = False) -> Shape:
    """The shape of an image in the size that is asked for, its own where none is.

    A relative size may be one that follows from the image's own.
    """
    require_axes(kernel, shape)
    wanted = rows_and_columns(kernel, params, image=shape if relative else None)
    return shape if wanted is None else (*wanted, *shape[2:])


def rows_and_columns(
    kernel: str, params: Given, least: int = 0, image: Shape | None = None
) -> tuple[int, int] | None:
    """Height and width of the output, of `size` or of `shape`; None where neither is given.

    Where there is an image, its own height and width may be what a size follows from.
    """
    size, shape = params["size"], params["shape"]
    if size is not None and shape is not None:
        raise ArgumentError(
            f"{kernel}: size {size!r} is (width, height), shape {shape!r} is (height, width): give "
            f"one of them."
        )
    if shape is not None:
        return _pair(kernel, "shape", "(height, width)", shape, least)
    if size is None:
        return None
    if image is not None and is_relative(size):
        if 0 in image:
            raise ShapeError(f"{kernel}: the image is {image}: no size follows from it.")
        width, height = wanted_size(kernel, size).of(image[1], image[0])
    elif is_relative(size):
        width, height = exact_size(kernel, size)
    else:
        width, height = _pair(kernel, "size", "(width, height)", size, least)
    return height, width


def require_room(
    kernel: str, params: Given, output: Shape, found: Shape, image: Shape | None = None
) -> None:
    """A ShapeError unless an output whose height and width these are has the size, if one is given.

    `output` is its whole shape.
    """
    wanted = rows_and_columns(kernel, params, image=image)
    if wanted is None or wanted == found:
        return
    name = "size" if params["size"] is not None else "shape"
    order = {"size": "(width, height)", "shape": "(height, width)"}[name]
    meant = f": {name} is {order}" if wanted == found[::-1] else ""
    raise ShapeError(
        f"{kernel}: {name} is {params[name]!r}, which makes {wanted[1]} × {wanted[0]}, but the "
        f"output {output} has room for {found[1]} × {found[0]}{meant}."
    )


def _pair(kernel: str, name: str, order: str, given: Any, least: int) -> tuple[int, int]:
    both = given if isinstance(given, tuple | list) else (given, given)
    if len(both) != 2:
        raise ArgumentError(f"{kernel}: {name} is one number or two, {order}, not {given!r}.")
    first, second = (integer_of(kernel, name, item) for item in both)
    if min(first, second) < least:
        raise ArgumentError(f"{kernel}: {name} = {given!r}, but it is at least {least}.")
    return first, second


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
