"""Filters that make each pixel of an image the weighted mean of those around it.

First down the columns, where an image is a plain array with all channels side by side, and u8 is
added up before it is converted. Then across, where pixels are needed: the border rule is theirs.
Down comes first because what lies between is then read along its own row only. On the CPU u8 is
blurred by few pixels in 16 bits, 7 of them for fractions of a level; all else is in f32.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.ir.nodes import Border
from dala.ir.types import F32, U8, U16
from dala.kernels import language as dala
from dala.kernels.builtin import Given, Inputs, helper, recipe
from dala.kernels.images import checked_border, flat, radius_of, reader
from dala.kernels.shapes import positive_number
from dala.lang.marks import ScalarMark
from dala.runtime.buffer import Buffer, from_numpy, scratch
from dala.runtime.kernel import Kernel, function
from dala.runtime.recipe import Stage, on_host

_narrow = ScalarMark(U16)
"""Converts to 16 bits in a kernel."""
MOST_TAPS = 32
"""The radius up to which a mean is written out; farther ones are loops."""
MOST_NARROW = 7
"""The radius up to which 16 bits do: with every tap up to 1/128 of a level is lost."""
MOST_WEIGHTS = 32
"""Sets of weights that are remembered, the latest ones."""


@recipe("image", radius=3, sigma=1.5, border="clamp")
def blur(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A Gaussian blur of 2 · radius + 1 taps along each axis

    The weights are exp(-k² / (2 · sigma²)) for a pixel k away, divided by their sum.
    """
    radius = radius_of("blur", params)
    sigma = positive_number("blur", "sigma", params["sigma"])
    yield from _means("blur", inputs[0], output, params, radius, sigma)


@recipe("image", radius=1, border="clamp")
def box_blur(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The mean of the (2 · radius + 1)² pixels around each"""
    yield from _means("box_blur", inputs[0], output, params, radius_of("box_blur", params), None)


def _means(
    kernel: str, image: Buffer, output: Buffer, params: Given, radius: int, sigma: float | None
) -> Iterator[Stage]:
    """Stages that weigh pixels down, then across; past some radius both by loops down columns."""
    border = checked_border(kernel, image, output, params)
    weights = _weights(radius, sigma, 1.0, current_device())
    between = scratch(image.shape, F32)
    if 0 < radius <= MOST_NARROW and image.scalar == output.scalar == U8 and on_host(output):
        yield from _narrow_means(image, output, border, radius, sigma)
        return
    if radius <= MOST_TAPS:
        is_u8 = image.scalar == U8
        scaled = _weights(radius, sigma, 1 / 255 if is_u8 else 1.0, current_device())
        given = {"radius": radius}
        yield Stage(_down_kernel(border, is_u8), [flat(image), scaled], flat(between), given)
        across = _across_kernel(border, len(image.shape) == 2)
        yield Stage(across, [between, weights], output, given)
        return
    # Neighbours that a loop counts are read as vectors only where they lie below each other.
    height, width, *channels = image.shape
    turned, weighed = (scratch((width, height, *channels), F32) for _ in range(2))
    down = _loop_down_kernel(border)
    yield Stage(down, [flat(image), weights], flat(between))
    yield Stage(_turn, [between], turned)
    yield Stage(down, [flat(turned), weights], flat(weighed))
    yield Stage(_turn, [weighed], output)


def _narrow_means(
    image: Buffer, output: Buffer, border: Border, radius: int, sigma: float | None
) -> Iterator[Stage]:
    """Stages that weigh levels of u8, down and then across, in 16 bits."""
    whole = _weights(radius, sigma, 65536.0, current_device())
    between = scratch(image.shape, U16)
    given = {"radius": radius}
    yield Stage(_narrow_down_kernel(border), [flat(image), whole], flat(between), given)
    across = _narrow_across_kernel(border, len(image.shape) == 2)
    yield Stage(across, [between, whole], output, given)


@lru_cache(MOST_WEIGHTS)
def _weights(radius: int, sigma: float | None, total: float, device: Device) -> Buffer:
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
def _down_kernel(border: Border, is_u8: bool) -> Kernel:
    exact = dala.s32 if is_u8 else dala.f32

    def weigh_down(x: Any, weights: Any, radius: dala.const) -> Any:
        y, j = dala.position(2)
        total = dala.f32(x[y, j]) * weights[0]
        for k in range(1, radius + 1):
            total += dala.f32(exact(x[y - k, j]) + exact(x[y + k, j])) * weights[k]
        return total

    return helper(weigh_down, border)


@function
def _share(value: Any, weight: Any) -> Any:
    """The value times a weight of so many 65536ths: one instruction on vectors of 16 bits."""
    return _narrow((dala.u32(value) * dala.u32(_narrow(weight))) >> 16)


@cache
def _narrow_down_kernel(border: Border) -> Kernel:
    def weigh_down(x: Any, weights: Any, radius: dala.const) -> Any:
        y, j = dala.position(2)
        # Each tap loses half a unit on average.
        total = _narrow((radius + 1) // 2) + _share(_narrow(x[y, j]) << 7, weights[0])
        for k in range(1, radius + 1):
            both = _narrow(x[y - k, j]) + _narrow(x[y + k, j])
            total += _share(both << 7, weights[k])
        return total

    return helper(weigh_down, border)


@cache
def _narrow_across_kernel(border: Border, is_gray: bool) -> Kernel:
    level_at = reader(is_gray)

    def weigh_across(image: dala.Image, weights: Any, radius: dala.const) -> Any:
        y, x = dala.position(2)
        levels = image.levels
        # Each tap loses half a unit on average, and half a level is for rounding.
        total = _share(level_at(levels, y, x), weights[0]) + _narrow((radius + 1) // 2 + 64)
        for k in range(1, radius + 1):
            both = level_at(levels, y, x - k) + level_at(levels, y, x + k)
            total += _share(both, weights[k])
        return total >> 7

    return helper(weigh_across, border)


@cache
def _loop_down_kernel(border: Border) -> Kernel:
    def weigh_down(image: dala.Image, weights: Any) -> Any:
        y, x = dala.position(2)
        total = image[y, x].r * weights[0]
        for k in range(1, weights.shape[0]):
            total += (image[y - k, x].r + image[y + k, x].r) * weights[k]
        return total

    return helper(weigh_down, border)


@helper
def _turn(image: dala.Image) -> Any:
    y, x = dala.position(2)
    return image[x, y]
