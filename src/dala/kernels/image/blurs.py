"""Filters that make each pixel of an image the weighted mean of those around it.

First down the columns, where an image is a plain array with all channels side by side, and levels
are added up before they are converted. Then across, where pixels are needed: the border rule is
theirs. Down comes first because what lies between is then read along its own row only. On the CPU
u8 is blurred in 16 bits as far as that is exact enough (`narrow_blurs`, `narrow_boxes`); all else
is in f32. Far taps are put together of fewer (`wide_blurs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.errors import ArgumentError
from dala.ir.nodes import Border
from dala.ir.types import F32, U8
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import LARGEST_RADIUS
from dala.kernels.image.images import checked_border, flat, reader
from dala.kernels.image.narrow_blurs import MOST_NARROW, narrow_means
from dala.kernels.image.narrow_boxes import is_narrow_box, narrow_boxes
from dala.kernels.image.parameters import AROUND, radius_param, spread_params
from dala.kernels.image.premultiplied import premultiplied
from dala.kernels.image.wide_blurs import wide_boxes, wide_means
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.kernels.kernel import Kernel
from dala.runtime.pipelines.composite import Stage

MOST_TAPS = 32
"""The radius up to which every tap of a mean is computed."""
MOST_BOX_TAPS = 7
"""The radius up to which every tap of a box is computed."""
MOST_PLAIN_BOX = 10
"""The same where levels are added up in 16 bits, in the two passes that the compiler finds."""
MOST_WEIGHTS = 32
"""Sets of weights that are remembered, the latest ones."""
LEAST_HALO = 8
"""Taps up to here are computed even where a small sigma lets nobody see them."""
LEAST_SIGMA = 0.5
"""That of a blur of which only the radius is given, however small."""
SIGMAS = 3
"""How many of them the radius is where only sigma is given."""
FARTHEST_SIGMAS = 6.2
"""Pixels that are more sigmas away weigh less than an f32 shows beside the nearest."""


@composite("image", group="smoothing", **spread_params(3), **AROUND)
@premultiplied
def blur(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A Gaussian blur of 2 · radius + 1 taps along each axis

    Where only a radius is given, sigma is radius / 2, at least 0.5; where only a sigma is given,
    the radius is 3 · sigma, rounded up; without both they are 3 and 1.5.

    The weights are exp(-k² / (2 · sigma²)) for a pixel k away, divided by their sum. Those that are
    too small to show are left out. Results are exact, but for u8 on the CPU, where up to a radius
    of 32 they are within half a level before they are rounded; and for radii above 32, where a
    line between every few weights stands for those between them if that changes no image by more
    than 0.4 levels of 255, or of 65535 for u16.
    """
    radius, sigma = spread_of("blur", params, radius=3)
    border = checked_border("blur", inputs[0], output, params)
    yield from gaussian(inputs[0], output, border, radius, sigma, params.get("white"))


@composite("image", group="smoothing", radius=radius_param(1), **AROUND)
@premultiplied
def box_blur(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The mean of the (2 · radius + 1)² pixels around each

    Results are exact, but for u8 on the CPU, where from a radius of 11 to one of 50 they are within
    a fifth of a level before they are rounded.
    """
    (image,), radius = inputs, params["radius"]
    border = checked_border("box_blur", image, output, params)
    if 0 in output.shape:
        return
    is_narrow = image.scalar == output.scalar == U8 and output.is_host
    if radius <= MOST_PLAIN_BOX and is_narrow:
        yield Stage(_box_kernel(border), inputs, output, {"radius": radius})
    elif radius <= MOST_BOX_TAPS:
        yield from _means(image, output, border, radius, None)
    elif is_narrow_box(image, output, radius):
        yield from narrow_boxes(image, output, border, radius)
    else:
        yield from wide_boxes(image, output, border, radius)


def gaussian(
    image: Buffer,
    output: Buffer,
    border: Border,
    radius: int,
    sigma: float,
    white: int | None = None,
) -> Iterator[Stage]:
    """Stages that blur an image, of a border and parameters that were checked.

    `white` is the level of white that it is exact for, where neither of the two tells.
    """
    if 0 in output.shape:
        return
    radius = halo_of(radius, sigma)
    if radius > MOST_TAPS:
        white = max(white or U8.white, image.scalar.white, output.scalar.white)
        yield from wide_means(image, output, border, radius, sigma, white)
    elif image.scalar == output.scalar == U8 and output.is_host and radius <= MOST_NARROW:
        yield from narrow_means(image, output, border, radius, sigma)
    else:
        yield from _means(image, output, border, radius, sigma)


def spread_of(kernel: str, params: Given, *, radius: int) -> tuple[int, float]:
    """The radius and the sigma of a Gaussian; the one that is None follows from the other.

    Without both, the radius is the one given here.
    """
    if params["sigma"] is None:
        halo = radius if params["radius"] is None else params["radius"]
        return halo, max(halo / 2, LEAST_SIGMA)
    sigma = params["sigma"]
    if params["radius"] is not None:
        return params["radius"], sigma
    if sigma > LARGEST_RADIUS / SIGMAS:
        raise ArgumentError(
            f"{kernel}: sigma = {params['sigma']!r} makes the radius {SIGMAS} · sigma, but that is "
            f"at most {LARGEST_RADIUS}: give a smaller sigma, or a radius too."
        )
    return math.ceil(SIGMAS * sigma), sigma


def halo_of(radius: int, sigma: float) -> int:
    """How far the taps of a blur are that can be seen, in steps: each is compiled by itself."""
    seen = math.ceil(min(FARTHEST_SIGMAS * sigma, radius))
    return min(radius, max(LEAST_HALO, 1 << (seen - 1).bit_length()))


def _means(
    image: Buffer, output: Buffer, border: Border, radius: int, sigma: float | None
) -> Iterator[Stage]:
    """Stages that weigh pixels down, then across."""
    between = scratch(image.shape, F32)
    yield weigh_down(image, between, border, radius, sigma)
    weights = weights_of(radius, sigma, 1.0, current_device())
    across = _across_kernel(border, len(image.shape) == 2)
    yield Stage(across, [between, weights], output, {"radius": radius})


def weigh_down(
    image: Buffer, between: Buffer, border: Border, radius: int, sigma: float | None
) -> Stage:
    """The stage that weighs pixels down the columns, in 0..1."""
    weights = weights_of(radius, sigma, 1 / image.scalar.white, current_device())
    down = _down_kernel(border, image.scalar.is_integer)
    return Stage(down, [flat(image), weights], flat(between), {"radius": radius})


@lru_cache(MOST_WEIGHTS)
def weights_of(radius: int, sigma: float | None, total: float, device: Device) -> Buffer:
    """The weights of the pixel itself and of those 1 to radius away; all alike without a sigma.

    All together, with those on both sides, they add up to `total`.
    """
    away = np.arange(radius + 1)
    with np.errstate(over="ignore", under="ignore"):
        weights = np.ones(radius + 1) if sigma is None else np.exp(-((away / sigma) ** 2) / 2)
        weights *= total / (weights[0] + 2 * weights[1:].sum())
        stored = weights.astype(np.float32)
    with using(device):
        return from_numpy(stored)


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _box_kernel(border: Border) -> Kernel:
    def add_up(image: dala.Image, radius: dala.const) -> Any:
        y, x = dala.position(2)
        total = dala.rgba(0.0, 0.0, 0.0, 0.0)
        for i in range(-radius, radius + 1):
            for j in range(-radius, radius + 1):
                total += image[y + i, x + j]
        return total * (1 / ((2 * radius + 1) * (2 * radius + 1)))

    return helper(add_up, border)


@cache
def _across_kernel(border: Border, is_gray: bool) -> Kernel:
    pixel_at = reader(is_gray)

    def weigh_across(image: dala.Image, weights: Any, radius: dala.const) -> Any:
        y, x = dala.position(2)
        total = pixel_at(image, y, x) * weights[0]
        for k in range(1, radius + 1):
            total += (pixel_at(image, y, x - k) + pixel_at(image, y, x + k)) * weights[k]
        return total

    return helper(weigh_across, border)


@cache
def _down_kernel(border: Border, has_levels: bool) -> Kernel:
    exact = dala.s32 if has_levels else dala.f32

    def weigh_down(x: Any, weights: Any, radius: dala.const) -> Any:
        y, j = dala.position(2)
        total = dala.f32(x[y, j]) * weights[0]
        for k in range(1, radius + 1):
            total += dala.f32(exact(x[y - k, j]) + exact(x[y + k, j])) * weights[k]
        return total

    return helper(weigh_down, border)
