"""Filters that give each pixel of an image another color; alpha stays as it was.

Channels are numbers in 0..1. Of a gray image the one channel is red, green and blue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dala.ir.types import U8, U16
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, builtin, dispatch, helper
from dala.kernels.base.limits import ABOVE_0, FROM_0, SHARE, Limit
from dala.kernels.base.parameters import number
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.kernel import function
from dala.runtime.pipelines.composite import Stage

HALF_A_STEP = 0.5 / 255_000
"""Half of the least by which the luma of two u8 pixels can differ."""

_HUE = np.array([[0.213, 0.715, 0.072]] * 3)
_HUE_COS = np.array([[0.787, -0.715, -0.072], [-0.213, 0.285, -0.072], [-0.213, -0.715, 0.928]])
_HUE_SIN = np.array([[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]])
_SEPIA = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])


@function
def recolored(old: Any, new: Any) -> Any:
    """The new pixel with the alpha of the old."""
    return dala.rgba(new.r, new.g, new.b, old.a)


@function
def gray(old: Any, light: Any) -> Any:
    """A gray pixel with the alpha of the old."""
    return dala.rgba(light, light, light, old.a)


@builtin(group="color")
def grayscale(image: dala.Image) -> Any:
    """The luma of each pixel in every color channel, or in the one of a gray output"""
    return gray(image.pixel, dala.luma(image.pixel))


@builtin(
    group="color",
    value=number(
        "how much is added to each channel, where white is 1", usual=(-1, 1), limit=Limit(-1, 1)
    ),
)
def brightness(image: dala.Image, value: dala.f32) -> Any:
    """x + value"""
    return recolored(image.pixel, image.pixel + value)


@builtin(
    group="color",
    value=number("how much farther from middle gray; -1 leaves nothing but gray", usual=(-1, 2)),
)
def contrast(image: dala.Image, value: dala.f32) -> Any:
    """(1 + value) · (x - 0.5) + 0.5"""
    return recolored(image.pixel, (1.0 + value) * (image.pixel - 0.5) + 0.5)


@builtin(
    group="color",
    value=number("how much farther from gray; -1 leaves no color", usual=(-1, 2)),
)
def saturation(image: dala.Image, value: dala.f32) -> Any:
    """luma + (1 + value) · (x - luma): -1 leaves no color"""
    light = dala.luma(image.pixel)
    return recolored(image.pixel, light + (1.0 + value) * (image.pixel - light))


@builtin(
    group="color",
    stops=number("how many times the light doubles", unit="stops", usual=(-4, 4)),
)
def exposure(image: dala.Image, stops: dala.f32) -> Any:
    """x · 2^stops"""
    return recolored(image.pixel, image.pixel * dala.exp2(stops))


@builtin(group="color")
def invert(image: dala.Image) -> Any:
    """1 - x"""
    return recolored(image.pixel, 1.0 - image.pixel)


@dispatch(
    "image",
    group="color",
    degrees=number("how far around the color wheel", unit="degrees", usual=(-180, 180)),
)
def hue(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Colors turned by an angle, in degrees, as CSS hue-rotate does"""
    angle = math.radians(params["degrees"] % 360)
    matrix = _HUE + math.cos(angle) * _HUE_COS + math.sin(angle) * _HUE_SIN
    yield Stage(mix_channels, inputs, output, entries(matrix))


@dispatch(
    "image",
    group="color",
    intensity=number(
        "the share of brown; 0 leaves the image as it was", 0.8, usual=(0, 1), limit=SHARE
    ),
)
def sepia(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The brown of old photographs as CSS sepia makes it, with an intensity of 0 to 1"""
    intensity = params["intensity"]
    matrix = (1 - intensity) * np.eye(3) + intensity * _SEPIA
    yield Stage(mix_channels, inputs, output, entries(matrix))


@dispatch(
    "image",
    group="color",
    value=number("the gamma; above 1 lightens midtones", usual=(0.1, 5), limit=ABOVE_0),
)
def gamma(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """x^(1/value), and 0 where x is negative"""
    yield Stage(_raise, inputs, output, {"exponent": 1 / params["value"]})


@dispatch(
    "image",
    group="color",
    value=number("the luma above which a pixel is white", 0.5, usual=(0, 1), limit=SHARE),
)
def threshold(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """White where luma > value, else black"""
    value, scalar = params["value"], inputs[0].scalar
    if scalar == U16:
        # In f32 the luma of two such pixels may come out alike: thousandths of a level are exact.
        limit = math.floor(value * scalar.white * 1000 + 1e-6)
        yield Stage(_separate_levels, inputs, output, {"limit": limit})
        return
    # The luma of integers is rounded: what equals the value must not come out above it.
    limit = value + HALF_A_STEP if scalar == U8 else value
    yield Stage(_separate, inputs, output, {"limit": limit})


@dispatch(
    "image",
    group="color",
    exposure=number(
        "how strongly highlights are compressed", 1.0, usual=(0.1, 10), limit=Limit(1e-6, 1e6)
    ),
)
def hdr(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Highlights tamed: (1 - exp(-exposure · x)) / (1 - exp(-exposure))"""
    half = params["exposure"] / 2
    scale = (1 + math.tanh(half)) / math.tanh(half)
    yield Stage(_tone_map, inputs, output, {"half": half, "scale": scale})


@dispatch(
    "image",
    group="color",
    intensity=number("how dark the corners become", 0.5, usual=(0, 1), limit=SHARE),
    radius=number(
        "how far from the center it is darkest, in shares of the height and the width",
        0.75,
        usual=(0, 1.5),
        limit=FROM_0,
    ),
    softness=number(
        "how wide the way from bright to dark is, in the same shares",
        0.45,
        usual=(0.01, 1),
        limit=ABOVE_0,
    ),
)
def vignette(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Darkened towards the corners: x · (1 - intensity · smoothstep(radius - softness, radius, d))

    d is how far a pixel is from the center in shares of the height and the width: 0.5 in the middle
    of an edge, 0.707 in a corner. Intensity is 0 to 1, softness above 0.
    """
    radius, bright = params["radius"], params["radius"] - params["softness"]
    given = {"intensity": params["intensity"], "dark": radius, "bright": bright}
    yield Stage(_darken, inputs, output, given)


# -- kernels ---------------------------------------------------------------------------------------


def entries(matrix: np.ndarray, columns: str = "rgb") -> dict[str, float]:
    """A matrix as parameters: each entry by the channel it makes and the one it is of."""
    rows = zip("rgba", matrix.tolist(), strict=False)
    return {f"{to}{of}": x for to, row in rows for of, x in zip(columns, row, strict=True)}


# -- kernels ---------------------------------------------------------------------------------------


@helper
def mix_channels(
    image: dala.Image,
    rr: dala.f32,
    rg: dala.f32,
    rb: dala.f32,
    gr: dala.f32,
    gg: dala.f32,
    gb: dala.f32,
    br: dala.f32,
    bg: dala.f32,
    bb: dala.f32,
) -> Any:
    p = image.pixel
    return dala.rgba(
        rr * p.r + rg * p.g + rb * p.b,
        gr * p.r + gg * p.g + gb * p.b,
        br * p.r + bg * p.g + bb * p.b,
        p.a,
    )


@helper
def _raise(image: dala.Image, exponent: dala.f32) -> Any:
    return recolored(image.pixel, dala.pow(max(image.pixel, 0.0), exponent))


@helper
def _separate(image: dala.Image, limit: dala.f32) -> Any:
    return gray(image.pixel, 1.0 if dala.luma(image.pixel) > limit else 0.0)


@helper
def _separate_levels(image: dala.Image, limit: dala.s32) -> Any:
    p = image.levels.pixel
    light = 299 * p.r + 587 * p.g + 114 * p.b
    return gray(image.pixel, 1.0 if light > limit else 0.0)


@helper
def _tone_map(image: dala.Image, half: dala.f32, scale: dala.f32) -> Any:
    # 1 - exp(-2t) is 2 tanh(t) / (1 + tanh(t)), which loses nothing where t is small.
    part = dala.tanh(image.pixel * half)
    return recolored(image.pixel, part / (1.0 + part) * scale)


@helper
def _darken(image: dala.Image, intensity: dala.f32, bright: dala.f32, dark: dala.f32) -> Any:
    y, x = dala.position(2)
    height, width = image.shape
    down = (dala.f32(y) + 0.5) / dala.f32(height) - 0.5
    across = (dala.f32(x) + 0.5) / dala.f32(width) - 0.5
    shade = dala.smoothstep(bright, dark, dala.sqrt(down * down + across * across))
    return recolored(image.pixel, image.pixel * (1.0 - intensity * shade))
