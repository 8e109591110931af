"""Images whose pixels move: cut out, turned over, rotated, warped.

Positions are those of pixel centers, which lie at integers: (0, 0) is the center of the first
pixel. What lies between centers is interpolated; what lies outside, the border rule answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dala.errors import ArgumentError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, dispatch, helper
from dala.kernels.base.parameters import choice, flag, integer, number, other
from dala.kernels.base.shapes import (
    Shape,
    require_alike,
    require_shape,
)
from dala.kernels.image.canvas import require_axes, require_images, sized
from dala.kernels.image.interpolation import METHODS, warp_kernel
from dala.kernels.image.parameters import PREMULTIPLY, border_param, shape_param, size_param
from dala.kernels.image.premultiplied import premultiplied
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage

METHOD = choice("how a pixel between others is found", *METHODS, default="bilinear")
DIRECTIONS = ("horizontal", "vertical", "both")
TURNS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Cosine and sine of whole quarter turns."""
FURTHEST = 1e30
"""Numbers of a matrix beyond this are taken for this: outside any image, but not beyond f32."""


@dispatch(
    "image",
    group="geometry",
    x=integer("the first column", 0, unit="pixels", usual=(0, 8192)),
    y=integer("the first row", 0, unit="pixels", usual=(0, 8192)),
    width=integer("how many columns; all that follow unless given", None, usual=(1, 8192)),
    height=integer("how many rows; all that follow unless given", None, usual=(1, 8192)),
)
def crop(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The rectangle of an image whose upper left pixel is (x, y)

    Width and height reach to the edge unless given. The rectangle lies inside the image.
    """
    (image,) = inputs
    require_images("crop", image, output)
    wanted = _crop_shape([image.shape], params)
    require_shape("crop", output, f"the rectangle of the image {image.shape}", wanted)
    yield Stage(_shift, inputs, output, {"left": params["x"], "top": params["y"]})


@crop.sized
def _crop_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    require_axes("crop", shapes[0])
    tall, wide, *channels = shapes[0]
    x, y = params["x"], params["y"]
    width = wide - x if params["width"] is None else params["width"]
    height = tall - y if params["height"] is None else params["height"]
    if min(x, y, width, height) < 0 or x + width > wide or y + height > tall:
        raise ShapeError(
            f"crop: {width} × {height} pixels at x = {x}, y = {y} are not all inside the image, "
            f"which is {wide} × {tall}: give a rectangle within it."
        )
    return height, width, *channels


@dispatch(
    "image",
    group="geometry",
    direction=choice(
        "horizontal swaps left and right, vertical top and bottom",
        *DIRECTIONS,
        default="horizontal",
    ),
)
def flip(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image turned over: left and right swapped, or top and bottom, or both

    `direction` is "horizontal", "vertical" or "both".
    """
    (image,) = inputs
    require_images("flip", image, output)
    require_alike("flip", image, output)
    direction = params["direction"]
    if direction == "vertical":
        yield Stage(_turn_over, inputs, output)
    else:
        yield Stage(_mirror if direction == "horizontal" else _turn_around, inputs, output)


@composite(
    "image",
    group="geometry",
    degrees=number("the angle, counter-clockwise", unit="degrees", usual=(-180, 180)),
    expand=flag("make the output as large as the whole rotated image needs"),
    method=METHOD,
    border=border_param("zero"),
    premultiply=PREMULTIPLY,
)
@premultiplied
def rotate(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image rotated about its center, counter-clockwise

    The output has the image's size, or with `expand` room for the whole of it:
    |w · cos| + |h · sin| pixels by |w · sin| + |h · cos|, rounded up. Quarter turns that fit into
    the output move pixels as they are; else `method` and `border` are those of `warp_affine`.
    """
    (image,) = inputs
    require_images("rotate", image, output)
    wanted = _rotate_shape([image.shape], params)
    require_shape("rotate", output, f"the image {image.shape}", wanted)
    cosine, sine = _direction(params["degrees"])
    (height, width), (tall, wide) = image.shape[:2], output.shape[:2]
    across, down = (cosine, -sine), (sine, cosine)
    if (cosine, sine) in TURNS and (tall, wide) == _turned(height, width, cosine, sine):
        yield Stage(QUARTERS[TURNS.index((cosine, sine))], inputs, output)
        return
    middles = {
        "middle_x": (width - 1) / 2,
        "middle_y": (height - 1) / 2,
        "about_x": (wide - 1) / 2,
        "about_y": (tall - 1) / 2,
    }
    given = {"xx": across[0], "xy": across[1], "yx": down[0], "yy": down[1], **middles}
    kernel = warp_kernel(params["method"], params["border"])
    yield Stage(kernel, inputs, output, given)


@rotate.sized
def _rotate_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    require_axes("rotate", shapes[0])
    height, width, *channels = shapes[0]
    cosine, sine = _direction(params["degrees"])
    if not params["expand"]:
        return shapes[0]
    return *_turned(height, width, cosine, sine), *channels


def _turned(height: int, width: int, cosine: float, sine: float) -> tuple[int, int]:
    """The height and width that hold a rotated image."""
    # Sums that are whole but for rounding stay so.
    tall = abs(width * sine) + abs(height * cosine)
    wide = abs(width * cosine) + abs(height * sine)
    return math.ceil(round(tall, 6)), math.ceil(round(wide, 6))


def _direction(degrees: float) -> tuple[float, float]:
    """Cosine and sine of an angle, exact for quarter turns."""
    angle = degrees % 360
    if angle % 90 == 0:
        return TURNS[int(angle // 90) % 4]
    return math.cos(math.radians(angle)), math.sin(math.radians(angle))


@composite(
    "image",
    group="geometry",
    matrix=other("matrix", "2 × 3 numbers that map (x, y, 1) of the image to (x, y) of the output"),
    inverse=flag("take the matrix as the map from the output to the image"),
    size=size_param("the output, the image's own unless given"),
    method=METHOD,
    border=border_param("zero"),
    premultiply=PREMULTIPLY,
    shape=shape_param("the output"),
)
@premultiplied
def warp_affine(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image moved by a 2 × 3 matrix, which maps (x, y, 1) of the image to (x, y) of the output

    With `inverse` it maps the output to the image. Centers of pixels are at integers. `size`
    of the output is (width, height), the image's own unless given; `shape` is the same as an array
    has it, (height, width), in its place. By method, a pixel is: "nearest", the one whose center is
    nearest; "bilinear", the mean of 4; "bicubic", of 16 by cubic convolution with a = -0.75. Those
    outside are what the border rule says.
    """
    (image,) = inputs
    require_images("warp_affine", image, output)
    wanted = _warp_shape([image.shape], params)
    require_shape("warp_affine", output, f"the image {image.shape}", wanted)
    (xx, xy, x0), (yx, yy, y0) = _matrix(params["matrix"], params["inverse"])
    # About the middle of the output positions are smaller, and keep more of their fractions.
    tall, wide = output.shape[:2]
    about_x, about_y = (wide - 1) / 2, (tall - 1) / 2
    given = {"xx": xx, "xy": xy, "yx": yx, "yy": yy, "about_x": about_x, "about_y": about_y}
    given["middle_x"] = xx * about_x + xy * about_y + x0
    given["middle_y"] = yx * about_x + yy * about_y + y0
    kernel = warp_kernel(params["method"], params["border"])
    yield Stage(kernel, inputs, output, given)


@warp_affine.sized
def _warp_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return sized("warp_affine", shapes[0], params)


def _matrix(matrix: Any, inverse: bool) -> list[list[float]]:
    """The matrix that maps the output to the image."""
    try:
        found = np.array(matrix, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (2, 3) or not np.isfinite(found).all():
        raise ArgumentError(f"warp_affine: matrix is 2 × 3 finite numbers, not {matrix!r}.")
    if not inverse:
        try:
            back = np.linalg.inv(np.vstack([found, [0, 0, 1]]))[:2]
        except np.linalg.LinAlgError:
            back = np.full((2, 3), np.inf)
        if not np.isfinite(back).all():
            raise ArgumentError(
                f"warp_affine: matrix {matrix!r} maps all pixels onto a line, so that none can be "
                f"found back: its first two columns must be independent."
            )
        found = back
    rows: list[list[float]] = np.clip(found, -FURTHEST, FURTHEST).tolist()
    return rows


# -- pixels moved as they are ----------------------------------------------------------------------


@helper
def _shift(image: dala.Image, left: dala.s32 = 0, top: dala.s32 = 0) -> Any:
    y, x = dala.position(2)
    return image[y + top, x + left]


@helper
def _mirror(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[y, image.shape[1] - 1 - x]


@helper
def _turn_over(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[image.shape[0] - 1 - y, x]


@helper
def _turn_around(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[image.shape[0] - 1 - y, image.shape[1] - 1 - x]


@helper
def _turn_left(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[x, image.shape[1] - 1 - y]


@helper
def _turn_right(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[image.shape[0] - 1 - x, y]


QUARTERS = (_shift, _turn_left, _turn_around, _turn_right)
"""What each of `TURNS` does."""
