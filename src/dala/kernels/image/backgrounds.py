"""Filters of what lies behind a person, whom a soft mask tells from it: 1 there, 0 behind.

A mask is a gray image. Of another size than the image it is sampled between its pixels,
bilinearly, with half-pixel centers, as models give smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dala.errors import ShapeError
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.blurs import gaussian, spread_of
from dala.kernels.image.images import require_image
from dala.kernels.image.parameters import border_param, spread_params
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.kernel import function
from dala.runtime.pipelines.composite import Stage

LEAST_WEIGHT = 1e-6
"""The share of background around a pixel below which no color can be told from it."""


@composite("image", "mask", group="compositing", **spread_params(15), border=border_param())
def background_blur(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image with a Gaussian blur where the mask is 0, and as it was where it is 1

    x becomes m · x + (1 - m) · b. What b is blurred from counts by 1 - m, so that the person does
    not smear into the background: blur((1 - m) · x) / blur(1 - m). Alpha stays as it was. Where
    only a radius is given, sigma is radius / 2, at least 0.5; where only a sigma is given, the
    radius is 3 · sigma, rounded up; without both they are 15 and 7.5.
    """
    name = "background_blur"
    image, mask = inputs
    radius, sigma = spread_of(name, params, radius=15)
    _require_fitting(name, image, output)
    sampled, mask = _sampled(name, image, mask)
    yield from sampled
    spread = (params["border"], radius, sigma, image.scalar.white)
    if len(image.shape) == 2:
        light, weight, blurred, total = (scratch(image.shape, F32) for _ in range(4))
        yield Stage(_weigh_light, [image, mask], light)
        yield Stage(_weight, [mask], weight)
        yield from gaussian(light, blurred, *spread)
        yield from gaussian(weight, total, *spread)
        yield Stage(_reveal_light, [image, blurred, total, mask], output)
        return
    behind, blurred = (scratch((*image.shape[:2], 4), F32) for _ in range(2))
    yield Stage(_weigh, [image, mask], behind)
    yield from gaussian(behind, blurred, *spread)
    yield Stage(_reveal, [image, blurred, mask], output)


@composite("image", "background", "mask", group="compositing")
def background_replace(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The image where the mask is 1, and the background, of the same size, where it is 0

    x becomes m · x + (1 - m) · b, alpha too, which is 1 where one of them has none. On a gray image
    a colored background is its luma.
    """
    name = "background_replace"
    image, background, mask = inputs
    _require_fitting(name, image, output)
    require_image(name, "the background", background)
    if background.shape[:2] != image.shape[:2]:
        raise ShapeError(
            f"{name}: the image is {image.shape}, but the background is {background.shape}: give "
            f"one of the same height and width, made by resize."
        )
    sampled, mask = _sampled(name, image, mask)
    yield from sampled
    yield Stage(_mix_light if len(image.shape) == 2 else _mix, [image, background, mask], output)


def _require_fitting(kernel: str, image: Buffer, output: Buffer) -> None:
    require_image(kernel, "the image", image)
    require_image(kernel, "the output", output)
    require_alike(kernel, image, output)


def _sampled(kernel: str, image: Buffer, mask: Buffer) -> tuple[list[Stage], Buffer]:
    """The mask in the size of the image, and the stages that make it so."""
    require_image(kernel, "the mask", mask)
    height, width = image.shape[:2]
    if len(mask.shape) != 2 or (0 in mask.shape and height * width > 0):
        raise ShapeError(
            f"{kernel}: the mask is {mask.shape}, but it is gray, (height, width), with at least "
            f"one pixel: give one channel of it."
        )
    if mask.shape == (height, width) or height * width == 0:
        return [], mask if mask.shape == (height, width) else scratch((height, width), F32)
    rows, fitting = scratch((height, mask.shape[1]), F32), scratch((height, width), F32)
    return [
        Stage(_sample_rows, [mask], rows, {"half_step": mask.shape[0] / (2 * height)}),
        Stage(_sample_columns, [rows], fitting, {"half_step": mask.shape[1] / (2 * width)}),
    ], fitting


# -- kernels ---------------------------------------------------------------------------------------


@helper
def _sample_rows(mask: dala.Image, half_step: dala.f32) -> Any:
    i, j = dala.position(2)
    at = dala.f32(2 * i + 1) * half_step - 0.5
    first = dala.s32(dala.floor(at))
    return dala.mix(mask[first, j].r, mask[first + 1, j].r, at - dala.floor(at))


@helper
def _sample_columns(rows: Any, half_step: dala.f32) -> Any:
    i, j = dala.position(2)
    at = dala.f32(2 * j + 1) * half_step - 0.5
    first = dala.s32(dala.floor(at))
    return dala.mix(rows[i, first], rows[i, first + 1], at - dala.floor(at))


@helper
def _weigh(image: dala.Image, mask: dala.Image) -> Any:
    p, weight = image.pixel, 1.0 - dala.clamp(mask.pixel.r, 0.0, 1.0)
    return dala.rgba(p.r * weight, p.g * weight, p.b * weight, weight)


@function
def _merge(p: Any, behind: Any, mask: Any) -> Any:
    """What is in front, or what is behind it as far as the mask is not 1."""
    return p + (1.0 - dala.clamp(mask, 0.0, 1.0)) * (behind - p)


@helper
def _reveal(image: dala.Image, blurred: dala.Image, mask: dala.Image) -> Any:
    p, b = image.pixel, blurred.pixel
    behind = b / b.a if b.a > LEAST_WEIGHT else p
    shown = _merge(p, behind, mask.pixel.r)
    return dala.rgba(shown.r, shown.g, shown.b, p.a)


@helper
def _weigh_light(image: dala.Image, mask: dala.Image) -> Any:
    return image.pixel.r * (1.0 - dala.clamp(mask.pixel.r, 0.0, 1.0))


@helper
def _weight(mask: dala.Image) -> Any:
    return 1.0 - dala.clamp(mask.pixel.r, 0.0, 1.0)


@helper
def _reveal_light(image: dala.Image, blurred: Any, weight: Any, mask: dala.Image) -> Any:
    light = image.pixel.r
    behind = blurred / weight if weight > LEAST_WEIGHT else light
    shown = _merge(light, behind, mask.pixel.r)
    return dala.rgba(shown, shown, shown)


@helper
def _mix(image: dala.Image, background: dala.Image, mask: dala.Image) -> Any:
    return _merge(image.pixel, background.pixel, mask.pixel.r)


@helper
def _mix_light(image: dala.Image, background: dala.Image, mask: dala.Image) -> Any:
    light = _merge(image.pixel.r, dala.luma(background.pixel), mask.pixel.r)
    return dala.rgba(light, light, light)
