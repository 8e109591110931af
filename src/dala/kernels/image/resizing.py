"""Images of another size: resampled, or fitted into a frame.

The two axes are resampled one after the other, in the order that takes less work; between them the
values are f32, or for u8 on the CPU levels of 16 bits (`narrow_resampling`). An axis that keeps its
length is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.parameters import choice, other
from dala.kernels.base.shapes import Shape
from dala.kernels.image import resampling
from dala.kernels.image.canvas import require_images, require_room, sized
from dala.kernels.image.geometry import crop
from dala.kernels.image.images import flat
from dala.kernels.image.narrow_resampling import is_narrow, narrow_stages
from dala.kernels.image.paint import color_of
from dala.kernels.image.parameters import GRAY, PREMULTIPLY, shape_param, size_param
from dala.kernels.image.premultiplied import premultiplied
from dala.kernels.image.resampling import FloatWeights
from dala.kernels.image.sizes import is_relative, wanted_size
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "area")
METHOD = choice("how a new pixel is made of old ones", *METHODS, default="bilinear")
ANYWHERE, BY_RATIO = 2.5, 1.5
"""What a pixel costs that is read anywhere, or by a simple ratio; one straight above costs 1."""


@composite(
    "image",
    group="geometry",
    size=size_param("the output, its own unless given", relative=True),
    method=METHOD,
    premultiply=PREMULTIPLY,
    shape=shape_param("the output"),
)
@premultiplied
def resize(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image in another size, antialiased when it shrinks

    `size` is (width, height), the output's own unless given; `shape` is the same as an array has
    it, (height, width), in its place. A size may also be a text that keeps the image's proportions:
    "640x" and "x360" are one side, "50%" a share of both, "fit:640x360" is as large as fits into
    that box, also where the image is smaller, and "fill:640x360" covers it with the middle of the
    image. Sides that follow are rounded.

    Pixel i of n has its center at (i + 0.5) / n of an axis. By method, a new pixel is: "nearest",
    the old one that its center lies in; "bilinear", "bicubic" (a = -0.5) and "lanczos" (3 lobes),
    the mean of those around, weighed by the filter at their distance in old pixels, or in new ones
    along an axis that shrinks; "area", the mean of all that it covers, shrinking or growing. Pixels
    outside do not count. Results are exact, but for u8 on the CPU, where they are within half a
    level before they are rounded.
    """
    (image,) = inputs
    require_images("resize", image, output)
    require_room("resize", params, output.shape, output.shape[:2], image.shape)
    if 0 in output.shape:
        return
    part = _part(image, params["size"])
    if part is not None:
        middle = scratch((part["height"], part["width"], *image.shape[2:]), image.scalar)
        yield Stage(crop, [image], middle, part)
        image = middle
    yield from _resized("resize", image, output, params["method"])


def _part(image: Buffer, size: Any) -> dict[str, int] | None:
    """What is cut out of the image before it is resized, if anything, as `crop` takes it."""
    height, width = image.shape[:2]
    if not is_relative(size):
        return None
    x, y, wide, tall = wanted_size("resize", size).part_of(width, height)
    cut = {"x": x, "y": y, "width": wide, "height": tall}
    return None if (wide, tall) == (width, height) else cut


@resize.sized
def _resize_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return sized("resize", shapes[0], params, relative=True)


@composite(
    "image",
    group="geometry",
    size=size_param("the frame, the output's own unless given"),
    color=other("color", "what the rest of the frame is filled with", GRAY),
    method=METHOD,
    premultiply=PREMULTIPLY,
    shape=shape_param("the frame"),
)
@premultiplied
def letterbox(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image scaled to fit into a frame, centered, the rest filled with a color

    `size` of the frame is (width, height), the output's own unless given; `shape` is the same as an
    array has it, (height, width), in its place. The side that fits tighter fills the frame; the
    other keeps the aspect, rounded to the nearest pixel (ties to even) and at least 1. An odd rest
    has its larger half below and on the right. `color`, which is opaque, is a name, a code such as
    "#ff8000", a gray or (r, g, b) in 0..1. `method` is that of `resize`.
    """
    (image,) = inputs
    require_images("letterbox", image, output)
    require_room("letterbox", params, output.shape, output.shape[:2])
    red, green, blue = color_of("letterbox", "color", params["color"])
    if 0 in output.shape:
        return
    tall, wide = output.shape[:2]
    height, width = fitted(image.shape[:2], (tall, wide))
    inner = scratch((height, width, *image.shape[2:]), output.scalar)
    yield from _resized("letterbox", image, inner, params["method"])
    place = {"top": (tall - height) // 2, "left": (wide - width) // 2}
    yield Stage(_frame, [inner], output, {**place, "red": red, "green": green, "blue": blue})


@letterbox.sized
def _letterbox_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    return sized("letterbox", shapes[0], params)


def fitted(shape: Shape, frame: Shape) -> tuple[int, int]:
    """The height and width of an image scaled to fit into a frame, both given as arrays' shapes."""
    (height, width), (tall, wide) = shape, frame
    if tall * width <= wide * height:
        return tall, max(1, round(width * tall / height))
    return max(1, round(height * wide / width)), wide


# -- stages ----------------------------------------------------------------------------------------


def _resized(kernel: str, image: Buffer, output: Buffer, method: str) -> Iterator[Stage]:
    """Stages that resample the axes which change."""
    (height, width), (tall, wide) = image.shape[:2], output.shape[:2]
    if (height, width) == (tall, wide):
        yield Stage(_copy, [image], output)
    elif method == "nearest":
        down = resampling.rows(kernel, height, tall, method, FloatWeights())
        if (ratio := resampling.small_ratio(width, wide)) is not None:
            yield Stage(_pick_kernel(*ratio), [image, down.first], output)
        else:
            across = resampling.columns(kernel, width, wide, method, FloatWeights())
            yield Stage(_pick, [image, down.first, across.first], output)
    elif method == "area" and None not in (steps := (_step(height, tall), _step(width, wide))):
        yield Stage(_mean_kernel(*steps), [image], output)
    elif is_narrow(image, output, method):
        across_first = _across_first(image, output, method)
        yield from narrow_stages(kernel, image, output, method, across_first=across_first)
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
    across: float = resampling.most_taps(width, wide, method)
    across *= ANYWHERE if resampling.small_ratio(width, wide) is None else BY_RATIO
    first = height * wide * across + tall * wide * down
    return first <= tall * width * down + tall * wide * across


def _step(old: int, new: int) -> int | None:
    """How many old pixels a new one covers, if that is a few whole ones."""
    return old // new if old % new == 0 and 1 <= old // new <= resampling.MOST_STEP else None


def _down(kernel: str, image: Buffer, output: Buffer, method: str) -> Stage:
    total = output.scalar.white / image.scalar.white
    axis = resampling.rows(kernel, image.shape[0], output.shape[0], method, FloatWeights(total))
    kernel_down = resampling.down_kernel(axis.written)
    return Stage(kernel_down, [flat(image), axis.first, axis.weights], flat(output))


def _across(kernel: str, image: Buffer, output: Buffer, method: str) -> Stage:
    total = 1 / image.scalar.white
    axis = resampling.columns(kernel, image.shape[1], output.shape[1], method, FloatWeights(total))
    kernel_across = resampling.across_kernel(axis.written, axis.ratio, len(image.shape) == 2)
    return Stage(kernel_across, [image, *axis.tables], output)


# -- kernels ---------------------------------------------------------------------------------------


@helper
def _copy(image: dala.Image) -> Any:
    return image.pixel


@helper
def _pick(image: dala.Image, down: Any, across: Any) -> Any:
    y, x = dala.position(2)
    return image[down[y], across[x]]


@cache
def _pick_kernel(old: int, new: int) -> Kernel:
    """The columns that the middle of each new one lies in, on the right one if between two."""

    def pick(image: dala.Image, down: Any) -> Any:
        y, x = dala.position(2)
        return image[down[y], (old * x + old // 2) // new]

    return helper(pick)


@cache
def _mean_kernel(down: int, across: int) -> Kernel:
    """The mean of the pixels that a new one covers, which are whole."""

    def mean(image: dala.Image) -> Any:
        y, x = dala.position(2)
        total = image[down * y, across * x]
        for i in range(down):
            for j in range(across):
                if i + j > 0:
                    total += image[down * y + i, across * x + j]
        return total * (1 / (down * across))

    return helper(mean)


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
    height, width = image.shape
    y, x = y - top, x - left
    if 0 <= y < height and 0 <= x < width:
        return image[y, x]
    return dala.rgba(red, green, blue, 1.0)
