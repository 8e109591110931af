"""Filters that compare each pixel of an image with those around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.errors import ShapeError
from dala.ir.nodes import Border
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, dispatch, helper
from dala.kernels.base.parameters import number
from dala.kernels.image.colors import gray
from dala.kernels.image.images import checked_border, flat, reader, require_image
from dala.kernels.image.parameters import AROUND, border_param, radius_param
from dala.kernels.image.premultiplied import premultiplied
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_COMPARED = 11
"""The most pixels that a pass of minima or maxima compares."""


@composite("image", group="detail", radius=radius_param(1, (0, 50)), **AROUND)
@premultiplied
def erode(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The least of the (2 · radius + 1)² pixels around each, by channel"""
    yield from _extremes("erode", inputs[0], output, params)


@composite("image", group="detail", radius=radius_param(1, (0, 50)), **AROUND)
@premultiplied
def dilate(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The largest of the (2 · radius + 1)² pixels around each, by channel"""
    yield from _extremes("dilate", inputs[0], output, params)


@dispatch(
    "image",
    group="detail",
    amount=number("how much of the detail is added", 0.5, usual=(0, 3)),
    **AROUND,
)
@premultiplied
def sharpen(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """x + amount · (4x - up - down - left - right)"""
    border = checked_border("sharpen", inputs[0], output, params)
    kernel = _sharpen_kernel(border, inputs[0].scalar.white)
    yield Stage(kernel, inputs, output, {"amount": params["amount"]})


@composite("image", group="detail", border=border_param())
def edge_detect(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """How steep the luma is, by Sobel: √(across² + down²), in every color channel

    A step from 0 to 1 gives 4, which u8 and u16 store as white. Alpha stays as it was.
    """
    (image,) = inputs
    require_image("edge_detect", "the image", image)
    require_image("edge_detect", "the output", output)
    if image.shape[:2] != output.shape[:2]:
        raise ShapeError(
            f"edge_detect: the image is {image.shape}, but the output is {output.shape}: give one "
            f"of the same height and width."
        )
    light = scratch(image.shape[:2], F32)
    yield Stage(_take_luma, [image], light)
    yield Stage(_sobel_kernel(params["border"]), [light, image], output)


# -- minima and maxima -----------------------------------------------------------------------------


def _extremes(kernel: str, image: Buffer, output: Buffer, params: Given) -> Iterator[Stage]:
    """Stages that take the extreme of a few pixels, across and then down, until all are covered."""
    border = checked_border(kernel, image, output, params)
    radius, least = params["radius"], kernel == "erode"
    # Zeros outside are met by the first pass; later ones find them in what it made of the edge.
    later: Border = "clamp" if border == "zero" else border
    height, width = image.shape[:2]
    for i, places in enumerate(_passes(min(radius, width))):
        is_gray = len(image.shape) == 2
        across = _extreme_across_kernel(later if i else border, least, is_gray, places)
        found = scratch(output.shape, output.scalar)
        yield Stage(across, [image], found)
        image = found
    passes = _passes(min(radius, height))
    for i, places in enumerate(passes):
        down = _extreme_down_kernel(later if i else border, least, places)
        found = output if i == len(passes) - 1 else scratch(output.shape, output.scalar)
        yield Stage(down, [flat(image)], flat(found))
        image = found


def _passes(radius: int) -> list[tuple[int, ...]]:
    """How far away the pixels are that each pass compares: windows grow until they have all."""
    passes: list[tuple[int, ...]] = []
    reached, whole, times = 0, 2 * radius + 1, 1
    while MOST_COMPARED**times < whole:
        times += 1
    most = next(count for count in range(1, whole + 2, 2) if count**times >= whole)
    while reached < radius:
        left = radius - reached
        length = 2 * reached + 1  # of what the passes before have compared
        far = min(left, length * (most // 2))
        count = -(-2 * far // length)
        passes.append(tuple(-far + 2 * far * i // count for i in range(count + 1)))
        reached += far
    return passes or [(0,)]


@cache
def _extreme_across_kernel(
    border: Border, least: bool, is_gray: bool, places: tuple[int, ...]
) -> Kernel:
    pixel_at, better = reader(is_gray), min if least else max
    first, *others = places
    rest = tuple(others)

    def find_across(image: dala.Image) -> Any:
        y, x = dala.position(2)
        levels = image.levels
        found = pixel_at(levels, y, x + first)
        for place in rest:
            found = better(found, pixel_at(levels, y, x + place))
        return found

    return helper(find_across, border)


@cache
def _extreme_down_kernel(border: Border, least: bool, places: tuple[int, ...]) -> Kernel:
    better = min if least else max
    first, *others = places
    rest = tuple(others)

    def find_down(x: Any) -> Any:
        i, j = dala.position(2)
        found = x[i + first, j]
        for place in rest:
            found = better(found, x[i + place, j])
        return found

    return helper(find_down, border)


# -- differences -----------------------------------------------------------------------------------


@cache
def _sharpen_kernel(border: Border, white: int) -> Kernel:
    # Levels are integers, which are added up exactly before they are converted.
    unit = 1 / white

    def sharpen(image: dala.Image, amount: dala.f32) -> Any:
        y, x = dala.position(2)
        levels = image.levels
        here = levels[y, x]
        around = levels[y - 1, x] + levels[y + 1, x] + levels[y, x - 1] + levels[y, x + 1]
        return dala.fma(amount, dala.f32(here * 4 - around), dala.f32(here)) * unit

    return helper(sharpen, border)


@helper
def _take_luma(image: dala.Image) -> Any:
    return dala.luma(image.pixel)


@cache
def _sobel_kernel(border: Border) -> Kernel:
    def slope(light: dala.Image, image: dala.Image) -> Any:
        y, x = dala.position(2)
        before = light[y - 1, x - 1].r + 2.0 * light[y, x - 1].r + light[y + 1, x - 1].r
        after = light[y - 1, x + 1].r + 2.0 * light[y, x + 1].r + light[y + 1, x + 1].r
        above = light[y - 1, x - 1].r + 2.0 * light[y - 1, x].r + light[y - 1, x + 1].r
        below = light[y + 1, x - 1].r + 2.0 * light[y + 1, x].r + light[y + 1, x + 1].r
        across, down = after - before, below - above
        return gray(image.pixel, dala.sqrt(across * across + down * down))

    return helper(slope, border)
