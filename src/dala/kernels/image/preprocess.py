"""Images as the tensors that models take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.ir.types import F32, U8
from dala.kernels import language as dala
from dala.kernels.builtin import Given, Inputs, helper, recipe
from dala.kernels.image import resampling
from dala.kernels.shapes import pair_of
from dala.runtime.buffer import Buffer, scratch
from dala.runtime.kernel import Kernel
from dala.runtime.recipe import Stage, reshaped

Triple = tuple[float, float, float]

NORMALS: dict[str, tuple[Triple, Triple]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "signed": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
"""Mean and deviation by the name of what they make: ImageNet's, 0 to 1, -1 to 1."""


@recipe("image", size=None, mean=0, std=1, layout="nchw", normalize=None)
def preprocess(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """An image, resized and normalised, as a tensor (1, 3, h, w)

    With layout "nhwc" it is (1, h, w, 3). The image is gray, RGB or RGBA, u8 or f32; alpha is
    dropped. `size` is (h, w), the output's own unless given. Between pixels it is bilinear, with
    half-pixel centres; an axis that shrinks to a half or less is averaged over what each new pixel
    covers. Values in 0..1 have `mean` subtracted and are divided by `std`, each one number or
    three; or `normalize` names both: "imagenet", "unit" for 0..1, "signed" for -1..1.
    """
    (image,) = inputs
    height, width, channels = _image(image)
    layout = params["layout"]
    if layout not in ("nchw", "nhwc"):
        raise ArgumentError(f"preprocess: layout {layout!r} is not known: give 'nchw' or 'nhwc'.")
    mean, deviation = _normal(params)
    tall, wide = _target(output, params["size"], layout)
    if 0 in output.shape:
        return
    rows = reshaped(image, (height, width * channels))
    if tall != height:
        resized = scratch((tall, width * channels), F32)
        axis = resampling.rows("preprocess", height, tall, _method(height, tall))
        given = [rows, axis.first, axis.weights]
        yield Stage(resampling.down_kernel(axis.written), given, resized)
        rows = resized
    planar = layout == "nchw"
    # Where channels lie side by side, so do their weights: they are read along the row then.
    spread = 1 if planar else 3
    axis = resampling.columns("preprocess", width, wide, _method(width, wide), spread=spread)
    params = {
        "full": 255.0 if image.scalar == U8 else 1.0,
        **{f"mean_{i}": value for i, value in enumerate(mean)},
        **{f"std_{i}": value for i, value in enumerate(deviation)},
    }
    kernel = _column_kernel(axis.written, planar)
    target = reshaped(output, (3, tall, wide) if planar else (tall, wide * 3))
    pixels = reshaped(rows, (tall, width, channels))
    yield Stage(kernel, [pixels, axis.first, axis.weights], target, params)


def _method(old: int, new: int) -> str:
    """How an axis is resized."""
    if old == new:
        return "nearest"
    return "area" if old >= 2 * new else "blend"


def _image(image: Buffer) -> tuple[int, int, int]:
    """Height, width and channels of an image; an error where it is none."""
    shape = image.shape
    if image.scalar not in (U8, F32):
        raise DtypeError(f"preprocess: the image is {image.dtype}, but images are u8 or f32.")
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3, 4)):
        raise ShapeError(
            f"preprocess: the image is {shape}, but images are (height, width), (height, width, 3) "
            f"or (height, width, 4)."
        )
    if 0 in shape:
        raise ShapeError(f"preprocess: the image is {shape}: it has no pixels.")
    return shape[0], shape[1], shape[2] if len(shape) == 3 else 1


def _target(output: Buffer, size: Any, layout: str) -> tuple[int, int]:
    """Height and width of the tensor; a ShapeError where the output is not such a tensor."""
    shape = output.shape
    fits = len(shape) == 4 and shape[0] == 1 and shape[1 if layout == "nchw" else 3] == 3
    if not output.scalar.is_float:
        raise DtypeError(
            f"preprocess: the output is {output.dtype}, but normalised values are floats: give f32."
        )
    if not fits:
        wanted = "(1, 3, h, w)" if layout == "nchw" else "(1, h, w, 3)"
        raise ShapeError(
            f"preprocess: the output is {shape}, but with layout {layout!r} it is {wanted}."
        )
    found = (shape[2], shape[3]) if layout == "nchw" else (shape[1], shape[2])
    if size is not None and pair_of("preprocess", "size", size, 0) != found:
        raise ShapeError(
            f"preprocess: size is {size!r}, but the output {shape} has room for {found}."
        )
    return found


def _normal(params: Given) -> tuple[Triple, Triple]:
    name = params["normalize"]
    mean, deviation = _triple("mean", params["mean"]), _triple("std", params["std"])
    if name is not None:
        if name not in NORMALS:
            raise ArgumentError(
                f"preprocess: normalize {name!r} is not known: give {', '.join(NORMALS)}, or mean "
                f"and std themselves."
            )
        if (mean, deviation) != NORMALS["unit"]:
            raise ArgumentError(
                f"preprocess: normalize {name!r} stands for a mean and a std, but those are given "
                f"too: leave one or the other out."
            )
        return NORMALS[name]
    if 0 in deviation:
        raise ArgumentError(f"preprocess: std = {params['std']!r}: nothing is divided by 0.")
    return mean, deviation


def _triple(name: str, value: Any) -> Triple:
    items = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (value,) * 3
    if len(items) != 3 or not all(isinstance(item, Real) and math.isfinite(item) for item in items):
        raise ArgumentError(f"preprocess: {name} is a number or three of them, not {value!r}.")
    red, green, blue = map(float, items)
    return red, green, blue


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _column_kernel(taps: int, planar: bool) -> Kernel:
    """Columns, resized and normalised; 0 taps are as many as there are weights."""
    count = resampling.counter(taps, 0)

    def resize_columns(
        x: Any,
        first: Any,
        weights: Any,
        full: dala.f32,
        mean_0: dala.f32,
        mean_1: dala.f32,
        mean_2: dala.f32,
        std_0: dala.f32,
        std_1: dala.f32,
        std_2: dala.f32,
    ) -> Any:
        if planar:
            c, i, j = dala.position(3)
        else:
            i, j = dala.position(2)
            c = j % 3
        start = first[j]
        value = dala.f32(0)
        for k in range(count(weights)):
            value += dala.f32(x[i, start + k, c]) * weights[k, j]
        value = value / full
        return (value - (mean_0, mean_1, mean_2)[c]) / (std_0, std_1, std_2)[c]

    return helper(resize_columns)
