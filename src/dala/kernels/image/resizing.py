"""Images of another size: resampled, or fitted into a frame.

The two axes are resampled one after the other, in the order that takes less work; between them the
values are f32. An axis that keeps its length is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dala.devices import CPU
from dala.errors import ArgumentError
from dala.ir.types import F32, S64, U8, U32
from dala.kernels import language as dala
from dala.kernels.builtin import Given, Inputs, helper, recipe
from dala.kernels.image import resampling
from dala.kernels.image.canvas import one_of, require_images, require_room, sized
from dala.kernels.image.images import flat
from dala.kernels.image.premultiplied import premultiplied
from dala.kernels.shapes import Shape, number_within
from dala.runtime.buffer import Buffer, scratch
from dala.runtime.recipe import Stage, view

METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "area")
GATHERED = 4.0
"""What a pixel read anywhere costs, where one read along a row costs 1."""
GATHERED_WHOLE = 1.5
"""The same of a pixel that is gathered as one word."""


@recipe("image", size=None, method="bilinear", premultiply=False)
@premultiplied
def resize(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image in another size, antialiased when it shrinks

    `size` is (height, width), the output's own unless given. Pixel i of n has its centre at
    (i + 0.5) / n of an axis. By method, a new pixel is: "nearest", the old one that its centre lies
    in; "bilinear", "bicubic" (a = -0.5) and "lanczos" (3 lobes), the mean of those around, weighed
    by the filter at their distance in old pixels, or in new ones along an axis that shrinks;
    "area", the mean of all that it covers, shrinking or growing. Pixels outside do not count.
    """
    (image,) = inputs
    require_images("resize", image, output)
    require_room("resize", output, params["size"])
    method = one_of("resize", "method", params, METHODS)
    if 0 not in output.shape:
        yield from _resized("resize", image, output, method)


@resize.sized
def _resize_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return sized("resize", shapes[0], params["size"])


@recipe("image", size=None, color=114 / 255, method="bilinear", premultiply=False)
@premultiplied
def letterbox(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image scaled to fit into a frame, centred, the rest filled with a colour

    `size` of the frame is (height, width), the output's own unless given. The side that fits
    tighter fills the frame; the other keeps the aspect, rounded to the nearest pixel (ties to even)
    and at least 1. An odd rest has its larger half below and on the right. `color` is a gray or
    (r, g, b) in 0..1, opaque. `method` is that of `resize`.
    """
    (image,) = inputs
    require_images("letterbox", image, output)
    require_room("letterbox", output, params["size"])
    method = one_of("letterbox", "method", params, METHODS)
    red, green, blue = _colour(params["color"])
    if 0 in output.shape:
        return
    tall, wide = output.shape[:2]
    height, width = fitted(image.shape[:2], (tall, wide))
    inner = scratch((height, width, *image.shape[2:]), output.scalar)
    yield from _resized("letterbox", image, inner, method)
    place = {"top": (tall - height) // 2, "left": (wide - width) // 2}
    yield Stage(_frame, [inner], output, {**place, "red": red, "green": green, "blue": blue})


@letterbox.sized
def _letterbox_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return sized("letterbox", shapes[0], params["size"])


def fitted(size: Shape, frame: Shape) -> tuple[int, int]:
    """The height and width of an image scaled to fit into a frame."""
    (height, width), (tall, wide) = size, frame
    if tall * width <= wide * height:
        return tall, max(1, round(width * tall / height))
    return max(1, round(height * wide / width)), wide


# -- what is given ---------------------------------------------------------------------------------


def _colour(value: Any) -> tuple[float, float, float]:
    given = value if isinstance(value, tuple | list) else (value,) * 3
    if len(given) != 3:
        raise ArgumentError(f"letterbox: color is a number or (r, g, b), not {value!r}.")
    red, green, blue = (number_within("letterbox", "color", item, 0, 1) for item in given)
    return red, green, blue


# -- stages ----------------------------------------------------------------------------------------


def _resized(kernel: str, image: Buffer, output: Buffer, method: str) -> Iterator[Stage]:
    """Stages that resample the axes which change."""
    (height, width), (tall, wide) = image.shape[:2], output.shape[:2]
    if (height, width) == (tall, wide):
        yield Stage(_copy, [image], output)
    elif method == "nearest":
        down = resampling.rows(kernel, height, tall, method)
        across = resampling.columns(kernel, width, wide, method)
        yield Stage(_pick, [image, down.first, across.first], output)
    elif method == "area" and (height, width) == (2 * tall, 2 * wide) and _is_words(image, output):
        pairs = view(image, S64, (height, wide))
        yield Stage(_mean_of_four, [pairs], view(output, U32, (tall, wide)))
    elif width == wide:
        yield _down(kernel, image, output, method)
    elif height == tall:
        yield _across(kernel, image, output, method)
    elif _across_first(image, output, method):
        between = scratch((height, wide, *image.shape[2:]), F32)
        yield _across(kernel, image, between, method)
        yield _down(kernel, between, output, method)
    else:
        between = scratch((tall, width, *image.shape[2:]), F32)
        yield _down(kernel, image, between, method)
        yield _across(kernel, between, output, method)


def _across_first(image: Buffer, output: Buffer, method: str) -> bool:
    """Whether fewer pixels are weighed if columns come first."""
    (height, width), (tall, wide) = image.shape[:2], output.shape[:2]
    down = resampling.most_taps(height, tall, method)
    across = resampling.most_taps(width, wide, method)
    gathered = GATHERED_WHOLE if _is_words(image) else GATHERED
    first = height * wide * across * gathered + tall * wide * down
    return first <= tall * width * down + tall * wide * across * GATHERED


def _down(kernel: str, image: Buffer, output: Buffer, method: str) -> Stage:
    total = (1 / 255 if image.scalar == U8 else 1.0) * (255 if output.scalar == U8 else 1.0)
    axis = resampling.rows(kernel, image.shape[0], output.shape[0], method, total)
    kernel_down = resampling.down_kernel(axis.written)
    return Stage(kernel_down, [flat(image), axis.first, axis.weights], flat(output))


def _across(kernel: str, image: Buffer, output: Buffer, method: str) -> Stage:
    total = 1 / 255 if image.scalar == U8 else 1.0
    axis = resampling.columns(kernel, image.shape[1], output.shape[1], method, total)
    if _is_words(image):
        words = view(image, U32, image.shape[:2])
        kernel_across = resampling.across_words_kernel(axis.written)
        return Stage(kernel_across, [words, axis.first, axis.weights], output)
    kernel_across = resampling.across_kernel(axis.written, len(image.shape) == 2)
    return Stage(kernel_across, [image, axis.first, axis.weights], output)


def _is_words(*images: Buffer) -> bool:
    """Whether all are RGBA of u8 on the host, where a pixel may be read as a word."""
    return all(
        item.device == CPU.id and item.scalar == U8 and item.shape[2:] == (4,) for item in images
    )


# -- kernels ---------------------------------------------------------------------------------------


@helper
def _copy(image: dala.Image) -> Any:
    return image.pixel


@helper
def _pick(image: dala.Image, down: Any, across: Any) -> Any:
    y, x = dala.position(2)
    return image[down[y], across[x]]


@helper
def _frame(
    image: dala.Image,
    top: dala.s32,
    left: dala.s32,
    red: dala.f32,
    green: dala.f32,
    blue: dala.f32,
) -> Any:
    y, x = dala.position(2)
    height, width = image.size
    y, x = y - top, x - left
    if 0 <= y < height and 0 <= x < width:
        return image[y, x]
    return dala.rgba(red, green, blue, 1.0)


@helper
def _mean_of_four(pairs: Any) -> Any:
    # Two pixels to a number: every other channel is added up in 16 bits of its own, first the rows,
    # then the two pixels, and 2 is for rounding.
    i, j = dala.position(2)
    upper, lower = pairs[2 * i, j], pairs[2 * i + 1, j]
    even = (upper & 0x00FF00FF00FF00FF) + (lower & 0x00FF00FF00FF00FF)
    odd = ((upper >> 8) & 0x00FF00FF00FF00FF) + ((lower >> 8) & 0x00FF00FF00FF00FF)
    even += (even >> 32) + 0x00020002
    odd += (odd >> 32) + 0x00020002
    return dala.u32(((even >> 2) & 0x00FF00FF) | ((odd << 6) & 0xFF00FF00))
