"""Images as the tensors that models take."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from dala.devices import current_device
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import F32, IMAGES, U8, Scalar
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import SHARE, Limit
from dala.kernels.base.parameters import choice, integer, number, other
from dala.kernels.base.shapes import Shape
from dala.kernels.image import axis_parts, resampling
from dala.kernels.image.canvas import require_room, rows_and_columns
from dala.kernels.image.fitting import FITS
from dala.kernels.image.parameters import shape_param, size_param
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.buffers.views import reshaped
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

Triple = tuple[float, float, float]

NORMALS: dict[str, tuple[Triple, Triple]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "signed": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "levels": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
}
"""Mean and deviation by the name of what they make: ImageNet's, 0 to 1, -1 to 1, 0 to 255."""
SIDE = Limit(0, 1 << 15)
LAYOUTS, ORDERS = ("nchw", "nhwc"), ("rgb", "bgr")


@composite(
    "image",
    size=size_param("the tensor, the output's own unless given"),
    mean=other("any", "what is subtracted: one number, or three", None),
    std=other("any", "what is divided by then: one number, or three", None),
    layout=choice("the order of the tensor's axes", *LAYOUTS, default="nchw"),
    normalize=other("any", f"mean and std by name: True, {', '.join(NORMALS)}", None),
    fit=choice("what becomes of the image's proportions", *FITS, default="stretch"),
    order=choice("the order of the channels", *ORDERS, default="rgb"),
    fill=number("the gray around a letterboxed image", 0.0, limit=SHARE),
    shape=shape_param("the tensor"),
    resize=integer("what the shorter side is made before the middle is cropped", 0, limit=SIDE),
)
def preprocess(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """An image, resized and normalized, as a tensor (1, 3, h, w)

    With layout "nhwc" it is (1, h, w, 3). The image is gray, RGB or RGBA; alpha is
    dropped. `size` is (w, h), the output's own unless given; `shape` is the same as an array has
    it, (h, w), in its place. Between pixels it is bilinear, with half-pixel centers; an axis that
    shrinks to a half or less is averaged over what each new pixel covers. `fit` says what becomes
    of the image's proportions: "stretch" gives it the tensor's, "crop" takes the largest middle
    part that has the tensor's, or with `resize` the middle of an image whose shorter side is made
    so long first; "letterbox" puts all of it into the middle and makes the rest
    `fill`, a gray in 0..1.

    Values in 0..1 have `mean` subtracted and are divided by `std`, each one number or three, of
    red, green and blue, 0 and 1 unless given; or `normalize` says both: True or "imagenet" for
    ImageNet's, "unit" for 0..1, "signed" for -1..1, "levels" for 0..255, which a u8 output holds
    rounded. With order "bgr" blue comes first.
    """
    (image,) = inputs
    height, width, channels = _image(image)
    layout, order, fit, fill = (params[name] for name in ("layout", "order", "fit", "fill"))
    mean, deviation = _normal(params)
    tall, wide = _target(output, params, layout)
    if 0 in output.shape:
        return
    planar = layout == "nchw"
    # Where channels lie side by side, so do their weights: they are read along the row then.
    spread = 1 if planar else 3
    sizes = (height, width), (tall, wide)
    device, resize = current_device(), params["resize"]
    plan = axis_parts.planned("preprocess", *sizes, fit, channels, spread, device, resize)
    rows = image
    if plan.down is not None:
        rows = scratch(plan.between, F32)
        kernel = axis_parts.down_kernel(plan.down.written, plan.skipped)
        pixels = reshaped(image, (height, width * channels))
        yield Stage(kernel, [pixels, plan.down.first, plan.down.weights], rows)
    full = float(image.scalar.white)
    given = {"first_row": plan.first_row, **_affine(mean, deviation, full, order)}
    framed = fit == "letterbox"
    if framed:
        given |= {**plan.frame, "fill": fill * full}
    across = plan.across
    kernel = _column_kernel(across.written, channels, planar, order == "bgr", framed)
    target = reshaped(output, (3, tall, wide) if planar else (tall, wide * 3))
    flat = reshaped(rows, (rows.shape[0], math.prod(rows.shape[1:])))
    yield Stage(kernel, [flat, across.first, across.weights], target, given)


@preprocess.sized
def _tensor_shape(shapes: Sequence[Shape], params: Given) -> Shape:
    height, width = rows_and_columns("preprocess", params) or shapes[0][:2]
    return (1, 3, height, width) if params["layout"] == "nchw" else (1, height, width, 3)


@preprocess.typed
def _tensor_dtype(scalars: Sequence[Scalar], params: Given) -> Scalar:
    return F32


def _affine(mean: Triple, deviation: Triple, full: float, order: str) -> dict[str, float]:
    """What levels are multiplied by, and what is added then, for each channel of the tensor."""
    normals = list(zip(mean, deviation, strict=True))
    if order == "bgr":
        normals.reverse()
    given = {f"scale_{i}": 1 / (full * each) for i, (_, each) in enumerate(normals)}
    return given | {f"shift_{i}": -middle / each for i, (middle, each) in enumerate(normals)}


def _image(image: Buffer) -> tuple[int, int, int]:
    """Height, width and channels of an image; an error where it is none."""
    shape = image.shape
    if image.scalar not in IMAGES:
        known = ", ".join(map(str, IMAGES))
        raise DtypeError(f"preprocess: the image is {image.dtype}, but images are {known}.")
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise ShapeError(
            f"preprocess: the image is {shape}, but images are (height, width), (height, width, 3) "
            f"or (height, width, 4)."
        )
    if 0 in shape:
        raise ShapeError(f"preprocess: the image is {shape}: it has no pixels.")
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1


def _target(output: Buffer, params: Given, layout: str) -> tuple[int, int]:
    """Height and width of the tensor; a ShapeError where the output is not such a tensor."""
    shape = output.shape
    fits = len(shape) == 4 and shape[0] == 1 and shape[1 if layout == "nchw" else 3] == 3
    if not (output.scalar.is_float or (output.scalar == U8 and params["normalize"] == "levels")):
        raise DtypeError(
            f"preprocess: the output is {output.dtype}, but normalized values are floats: give "
            f"f32, or u8 with normalize='levels'."
        )
    if not fits:
        wanted = "(1, 3, h, w)" if layout == "nchw" else "(1, h, w, 3)"
        raise ShapeError(
            f"preprocess: the output is {shape}, but with layout {layout!r} it is {wanted}."
        )
    found = (shape[2], shape[3]) if layout == "nchw" else (shape[1], shape[2])
    require_room("preprocess", params, shape, found)
    return found


def _normal(params: Given) -> tuple[Triple, Triple]:
    given, mean, deviation = params["normalize"], params["mean"], params["std"]
    if given is not None and given is not False:
        name = "imagenet" if given is True else given
        if not isinstance(name, str) or name not in NORMALS:
            raise ArgumentError(
                f"preprocess: normalize {given!r} is not known: give True, "
                f"{', '.join(NORMALS)}, or mean and std themselves."
            )
        if mean is not None or deviation is not None:
            raise ArgumentError(
                f"preprocess: normalize={given!r} stands for a mean and a std, but those are given "
                f"too: leave one or the other out."
            )
        return NORMALS[name]
    middle = _triple("mean", 0 if mean is None else mean)
    spread = _triple("std", 1 if deviation is None else deviation)
    if 0 in spread:
        raise ArgumentError(f"preprocess: std = {deviation!r}: nothing is divided by 0.")
    return middle, spread


def _triple(name: str, value: Any) -> Triple:
    items = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (value,) * 3
    if len(items) != 3 or not all(isinstance(item, Real) and math.isfinite(item) for item in items):
        raise ArgumentError(f"preprocess: {name} is a number or three of them, not {value!r}.")
    red, green, blue = map(float, items)
    return red, green, blue


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _column_kernel(taps: int, channels: int, planar: bool, flipped: bool, framed: bool) -> Kernel:
    """Columns, resized and normalized; 0 taps are as many as there are weights."""
    count = resampling.counter(taps, 0)

    @function
    def weighed(x: Any, first: Any, weights: Any, i: Any, j: Any, c: Any) -> Any:
        start = first[j]
        if channels > 1:
            start += 2 - c if flipped else c
        value = dala.f32(0)
        for k in range(count(weights)):
            value += dala.f32(x[i, start + channels * k]) * weights[k, j]
        return value

    @function
    def place() -> Any:
        if planar:
            c, i, j = dala.position(3)
        else:
            i, j = dala.position(2)
            c = j % 3
        return c, i, j

    def resize_columns(
        x: Any,
        first: Any,
        weights: Any,
        first_row: dala.s32,
        scale_0: dala.f32,
        scale_1: dala.f32,
        scale_2: dala.f32,
        shift_0: dala.f32,
        shift_1: dala.f32,
        shift_2: dala.f32,
    ) -> Any:
        c, i, j = place()
        value = weighed(x, first, weights, i + first_row, j, c)
        return value * (scale_0, scale_1, scale_2)[c] + (shift_0, shift_1, shift_2)[c]

    def resize_columns_in_a_frame(
        x: Any,
        first: Any,
        weights: Any,
        first_row: dala.s32,
        scale_0: dala.f32,
        scale_1: dala.f32,
        scale_2: dala.f32,
        shift_0: dala.f32,
        shift_1: dala.f32,
        shift_2: dala.f32,
        top: dala.s32,
        bottom: dala.s32,
        left: dala.s32,
        right: dala.s32,
        fill: dala.f32,
    ) -> Any:
        c, i, j = place()
        value = fill
        if top <= i < bottom:
            value = weighed(x, first, weights, i + first_row, j, c)
            value = value if left <= j < right else fill
        return value * (scale_0, scale_1, scale_2)[c] + (shift_0, shift_1, shift_2)[c]

    return helper(resize_columns_in_a_frame if framed else resize_columns)
