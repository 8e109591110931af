"""Filters that smooth an image where it is even and keep what stands out: edges and details."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np

from dala.devices import Device, current_device, using
from dala.ir.nodes import Border
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import ABOVE_0, FROM_0, SHARE, Limit
from dala.kernels.base.parameters import number
from dala.kernels.image.blurs import MOST_TAPS, gaussian, halo_of, weigh_down, weights_of
from dala.kernels.image.images import checked_border, reader
from dala.kernels.image.parameters import AROUND, radius_param
from dala.kernels.image.premultiplied import premultiplied
from dala.runtime.buffers.buffer import Buffer, from_numpy, scratch
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

MOST_WRITTEN = 4
"""The radius up to which the taps of a window are written out; larger ones are loops."""
MOST_WEIGHTS = 32
"""Sets of weights that are remembered, the latest ones."""
NOTHING = -1000.0
"""The logarithm of what counts as no weight."""
TINY = 1e-9
DENOISE_RADIUS = 3
MOST_BILATERAL = 256


@composite(
    "image",
    group="detail",
    radius=radius_param(2, (0, 50)),
    sigma=number(
        "the standard deviation of the Gaussian",
        1.0,
        unit="pixels",
        usual=(0.1, 25),
        limit=ABOVE_0,
    ),
    amount=number("how much of the detail is added", 1.0, usual=(0, 5)),
    threshold=number(
        "the difference up to which a channel stays as it was", 0, usual=(0, 1), limit=FROM_0
    ),
    **AROUND,
)
@premultiplied
def unsharp(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """x + amount · (x - blur x) where x and blur x differ by more than threshold, else x

    The blur is that of the kernel `blur`. The threshold is in 0..1 and held against each channel.
    """
    (image,), border = inputs, checked_border("unsharp", inputs[0], output, params)
    radius, sigma = params["radius"], params["sigma"]
    given = {name: params[name] for name in ("amount", "threshold")}
    blurred, halo = scratch(image.shape, F32), halo_of(radius, sigma)
    if halo > MOST_TAPS:
        yield from gaussian(image, blurred, border, radius, sigma, params.get("white"))
        yield Stage(_unsharpen, [image, blurred], output, given)
    else:
        yield weigh_down(image, blurred, border, halo, sigma)
        weights = weights_of(halo, sigma, 1.0, current_device())
        across = _unsharpen_across_kernel(border, len(image.shape) == 2)
        yield Stage(across, [image, blurred, weights], output, {"radius": halo, **given})


@composite(
    "image",
    group="smoothing",
    radius=radius_param(
        2,
        (0, 10),
        limit=Limit(
            0,
            MOST_BILATERAL,
            advice=": every pixel in a circle of it is looked at. Filter a smaller image instead",
        ),
    ),
    sigma_color=number(
        "the distance of colors at which a pixel counts for less",
        0.1,
        usual=(0.01, 1),
        limit=ABOVE_0,
    ),
    sigma_space=number(
        "the distance at which a pixel counts for less",
        2.0,
        unit="pixels",
        usual=(0.1, 10),
        limit=ABOVE_0,
    ),
    **AROUND,
)
@premultiplied
def bilateral(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The mean of the pixels around each, those of other colors counting less

    As OpenCV's bilateralFilter: over pixels up to `radius` away, in a circle, with the weights
    exp(-d² / (2 · sigma_space²) - c² / (2 · sigma_color²)). d is the distance in pixels; c that of
    the colors: how far the channels are apart, added up. All channels of a pixel have one weight,
    and alpha is one of them.
    """
    border = checked_border("bilateral", inputs[0], output, params)
    yield bilateral_mean(
        inputs[0],
        inputs[0],
        output,
        border,
        params["radius"],
        params["sigma_color"],
        params["sigma_space"],
    )


@composite(
    "image",
    group="smoothing",
    strength=number(
        "how much is smoothed; 0 leaves the image as it was", 0.5, usual=(0, 1), limit=SHARE
    ),
    **AROUND,
)
@premultiplied
def denoise(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Noise smoothed away, edges kept, with a strength of 0 to 1

    The mean of the pixels up to 3 away, in a circle, with the weights
    exp(-d² / (2 · (3 · strength)²) - c² / (2 · (0.3 · strength)²)). d is the distance in pixels; c
    that of the colors, as `bilateral` has it, but in the image blurred with radius 1 and sigma 1:
    it shows which pixels are alike under the noise. Strength 0 leaves the image as it was.
    """
    (image,), border = inputs, checked_border("denoise", inputs[0], output, params)
    strength = params["strength"]
    guide = scratch(image.shape, F32)
    yield from gaussian(image, guide, border, 1, 1.0)
    # At a sigma of almost 0 no pixel but the one itself has a weight.
    sigmas = max(0.3 * strength, TINY), max(3 * strength, TINY)
    yield bilateral_mean(image, guide, output, border, DENOISE_RADIUS, *sigmas)


def bilateral_mean(
    image: Buffer,
    guide: Buffer,
    output: Buffer,
    border: Border,
    radius: int,
    sigma_color: float,
    sigma_space: float,
) -> Stage:
    """The stage that takes the bilateral mean of an image; colors are compared in the guide."""
    unit = 1 / guide.scalar.white
    # An f32 holds the square of at most 1e19.
    scale = min(unit * np.sqrt(np.log2(np.e) / 2) / sigma_color, 1e15)
    nearness = _nearness(radius, sigma_space, current_device())
    given = {"scale": float(scale)}
    is_gray, white, is_guided = len(image.shape) == 2, image.scalar.white, image is not guide
    if radius > MOST_WRITTEN and not is_guided:
        wide = _wide_bilateral_kernel(border, is_gray, white)
        return Stage(wide, [image, nearness], output, given)
    kernel = _bilateral_kernel(border, is_gray, white, is_guided)
    read = [image, guide] if is_guided else [image]
    return Stage(kernel, [*read, nearness], output, {"radius": radius, **given})


@lru_cache(MOST_WEIGHTS)
def _nearness(radius: int, sigma: float, device: Device) -> Buffer:
    """The binary logarithms of the weights of pixels so far down and across, up to the radius."""
    away = np.arange(radius + 1)
    squares = (away**2)[:, None] + away**2
    with np.errstate(over="ignore"):
        logs = squares * (-np.log2(np.e) / 2 / np.square(max(sigma, 1e-100)))
    logs[squares > radius**2] = NOTHING
    with using(device):
        return from_numpy(logs.clip(NOTHING, 0).astype(np.float32))


# -- kernels ---------------------------------------------------------------------------------------


@function
def _weight(x: Any) -> Any:
    """2^x for x up to 0, to 3 parts in a million; 0 from -127 down."""
    x = max(x, -127.0)
    n = dala.round(x)
    r = x - n
    p = ((0.00958285 * r + 0.05590643) * r + 0.24024099) * r + 0.69312419
    # Added to an integer, this puts it into the lowest bits, to be shifted to the exponent's.
    shifted = dala.bits(n + 1.5 * 2.0**23, dala.s32) << 23
    return dala.bits(dala.bits(p * r + 1.0, dala.s32) + shifted, dala.f32)


@cache
def _distance(is_gray: bool) -> Any:
    """How far the channels of two pixels are apart, added up."""

    @function
    def apart(a: Any, b: Any) -> Any:
        c = abs(a - b)
        if is_gray:
            return c
        return c.r + c.g + c.b + c.a

    return apart


@cache
def _bilateral_kernel(border: Border, is_gray: bool, white: int, is_guided: bool) -> Kernel:
    at, apart, unit = reader(is_gray), _distance(is_gray), 1 / white

    @function
    def mean(x: Any, guide: Any, nearness: Any, scale: Any, radius: Any) -> Any:
        i, j = dala.position(2)
        # As floats: vectors of u8 are subtracted and converted more slowly.
        here, total, weights = at(guide, i, j) * 1.0, at(x, i, j) * 1.0, 1.0
        for k in range(-radius, radius + 1):
            for m in range(-radius, radius + 1):
                if 0 < k * k + m * m <= radius * radius:
                    c = apart(at(guide, i + k, j + m) * 1.0, here) * scale
                    weight = _weight(nearness[abs(k), abs(m)] - c * c)
                    total += at(x, i + k, j + m) * weight
                    weights += weight
        return total * (unit / weights)

    def smooth(image: dala.Image, nearness: Any, scale: dala.f32, radius: dala.const) -> Any:
        return mean(image.levels, image.levels, nearness, scale, radius)

    def smooth_guided(
        image: dala.Image, guide: dala.Image, nearness: Any, scale: dala.f32, radius: dala.const
    ) -> Any:
        return mean(image.levels, guide.levels, nearness, scale, radius)

    return helper(smooth_guided if is_guided else smooth, border)


@cache
def _wide_bilateral_kernel(border: Border, is_gray: bool, white: int) -> Kernel:
    at, apart, unit = reader(is_gray), _distance(is_gray), 1 / white

    def smooth(image: dala.Image, nearness: Any, scale: dala.f32) -> Any:
        i, j = dala.position(2)
        x = image.levels
        radius = nearness.shape[0] - 1
        here, total, weights = at(x, i, j) * 1.0, at(x, i, j) * 0.0, 0.0
        for k in range(-radius, radius + 1):
            for m in range(-radius, radius + 1):
                there = at(x, i + k, j + m) * 1.0
                c = apart(there, here) * scale
                weight = _weight(nearness[abs(k), abs(m)] - c * c)
                total += there * weight
                weights += weight
        return total * (unit / weights)

    return helper(smooth, border)


@cache
def _unsharpen_across_kernel(border: Border, is_gray: bool) -> Kernel:
    at = reader(is_gray)

    def unsharpen(
        image: dala.Image,
        down: dala.Image,
        weights: Any,
        amount: dala.f32,
        threshold: dala.f32,
        radius: dala.const,
    ) -> Any:
        y, x = dala.position(2)
        blurred = at(down, y, x) * weights[0]
        for k in range(1, radius + 1):
            blurred += (at(down, y, x - k) + at(down, y, x + k)) * weights[k]
        return _sharpened(image.pixel, blurred, amount, threshold)

    return helper(unsharpen, border)


@function
def _sharpened(old: Any, blurred: Any, amount: Any, threshold: Any) -> Any:
    detail = old - blurred
    # 0 or 1 for each channel: a condition is about single numbers.
    even = dala.step(abs(detail), threshold)
    return old + detail * (amount * (1.0 - even))


@helper
def _unsharpen(
    image: dala.Image, blurred: dala.Image, amount: dala.f32, threshold: dala.f32
) -> Any:
    return _sharpened(image.pixel, blurred.pixel, amount, threshold)
