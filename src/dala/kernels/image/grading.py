"""Grading of colors: by a matrix, by the white of a light, by a color that is keyed out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dala.errors import ArgumentError, ShapeError
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, dispatch, helper
from dala.kernels.base.limits import SHARE, Limit
from dala.kernels.base.parameters import number, other
from dala.kernels.image.colors import entries, mix_channels
from dala.kernels.image.images import require_image
from dala.kernels.image.paint import color_of
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.pipelines.composite import Stage

NEUTRAL_K = 6500
LEAST_K, MOST_K = 2000, 40_000
LUMA = np.array([0.299, 0.587, 0.114])
STEEPEST = 1e30
"""How alpha rises without a blend."""
ROUNDING = 1e-6
"""What rounding may add to a distance: that of the key itself must not come out above 0."""

_LINEAR_OF_XYZ = np.array(
    [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]]
)
"""Linear sRGB of CIE XYZ, as IEC 61966-2-1 gives it."""


@dispatch(
    "image",
    group="color",
    matrix=other("matrix", "the factors: 3 × 3, 3 × 4 or 4 × 5, a row for each channel made"),
)
def color_matrix(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """A matrix applied to (r, g, b, a, 1), with a row for each channel that it makes

    3 × 3 mixes colors, 3 × 4 also adds its last column, 4 × 5 makes alpha as well. Without a
    fourth row alpha stays as it was. An image without alpha has an alpha of 1.
    """
    matrix = _matrix(params["matrix"])
    if matrix.shape == (3, 3):
        yield Stage(mix_channels, inputs, output, entries(matrix))
    elif matrix.shape == (3, 4):
        yield Stage(_mix_and_add, inputs, output, entries(matrix, "rgb1"))
    else:
        yield Stage(_mix_with_alpha, inputs, output, entries(matrix, "rgba1"))


@dispatch(
    "image",
    group="color",
    temperature=number(
        "the temperature of the light that is taken for white; higher makes the image warmer",
        NEUTRAL_K,
        unit="kelvin",
        usual=(2000, 12000),
        limit=Limit(LEAST_K, MOST_K),
    ),
    tint=number(
        "how far the light is off towards green; higher makes the image more magenta",
        0,
        usual=(-1, 1),
        limit=Limit(-1, 1),
    ),
)
def white_balance(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Colors as if the light, of a temperature in kelvin and a tint, had been white

    Each channel is multiplied by w(6500) / w(temperature), all three then by what keeps the luma of
    gray. w is the white of that temperature as sRGB stores it: the Planckian locus by Krystek's
    formula, in linear sRGB with the brightest channel at 1, encoded; its green times 2^tint. So
    a higher temperature makes the image warmer, a higher tint more magenta; 6500 and 0 change
    nothing. Temperature is 2000 to 40000, tint -1 to 1.
    """
    light = _white(params["temperature"]) * [1, 2 ** params["tint"], 1]
    gains = _white(NEUTRAL_K) / light
    red, green, blue = gains / (LUMA @ gains)
    yield Stage(_multiply, inputs, output, {"red": red, "green": green, "blue": blue})


@dispatch(
    "image",
    group="compositing",
    color=other("color", "the color that becomes transparent"),
    similarity=number(
        "the distance of chroma up to which nothing is left", 0.1, usual=(0.01, 1), limit=SHARE
    ),
    blend=number(
        "how much further away all is kept; between, alpha rises", 0.05, usual=(0, 1), limit=SHARE
    ),
)
def chroma_key(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Transparent where the chroma is near that of a color, into an RGBA image

    With d = √((ΔCb² + ΔCr²) / 2), Cb = (b - luma) / 1.772 and Cr = (r - luma) / 1.402, alpha is
    multiplied by (d - similarity) / blend, kept in 0..1: nothing is left up to a distance of
    similarity, all from similarity + blend on. With a blend of 0 there is nothing between. The
    color is a name such as "green", a code such as "#00b140", or (r, g, b) in 0..1; similarity
    and blend are 0 to 1.
    """
    (image,) = inputs
    require_image("chroma_key", "the image", image)
    _keyed_shape([image.shape], params)
    require_image("chroma_key", "the output", output)
    if output.shape != (*image.shape[:2], 4):
        raise ShapeError(
            f"chroma_key: the image is {image.shape}, but the output is {output.shape}: give one "
            f"with alpha, {(*image.shape[:2], 4)}."
        )
    red, green, blue = color_of("chroma_key", "color", params["color"])
    light = float(LUMA @ (red, green, blue))
    similarity = params["similarity"]
    blend = params["blend"]
    key = {"key_cb": (blue - light) / 1.772, "key_cr": (red - light) / 1.402}
    if blend:
        ramp = {"start": similarity, "steepness": 1 / blend}
    else:
        ramp = {"start": similarity + ROUNDING, "steepness": STEEPEST}
    yield Stage(_key, inputs, output, {**key, **ramp})


@chroma_key.sized
def _keyed_shape(shapes: Any, _: Given) -> tuple[int, ...]:
    if len(shapes[0]) == 3 and shapes[0][2] in (3, 4):
        return (*shapes[0][:2], 4)
    raise ShapeError(
        f"chroma_key: the image is {shapes[0]}, but only (height, width, 3) and (height, width, 4) "
        f"have colors to tell apart."
    )


# -- what is given ---------------------------------------------------------------------------------


def _matrix(given: Any) -> np.ndarray:
    try:
        matrix = np.asarray(given)
    except ValueError:  # rows of several lengths
        matrix = np.empty(0)
    if matrix.shape not in ((3, 3), (3, 4), (4, 5)) or matrix.dtype.kind not in "fiu":
        is_array = matrix.dtype.kind in "fiu" and matrix.size
        said = f"of shape {matrix.shape}" if is_array else f"{given!r:.60}"
        raise ArgumentError(
            f"color_matrix: matrix is 3 × 3, 3 × 4 or 4 × 5 numbers, a row for each channel that "
            f"it makes, not {said}."
        )
    if not np.isfinite(matrix).all():
        raise ArgumentError(f"color_matrix: matrix is of finite numbers, not {matrix.tolist()}.")
    return matrix


def _white(temperature_k: float) -> np.ndarray:
    """The white of a temperature as sRGB stores it, with the brightest channel at 1.

    M. Krystek, An algorithm to calculate correlated color temperature, 1985: u and v of CIE 1960.
    """
    t = temperature_k
    u = (0.860117757 + 1.54118254e-4 * t + 1.28641212e-7 * t**2) / (
        1 + 8.42420235e-4 * t + 7.08145163e-7 * t**2
    )
    v = (0.317398726 + 4.22806245e-5 * t + 4.20481691e-8 * t**2) / (
        1 - 2.89741816e-5 * t + 1.61456053e-7 * t**2
    )
    # With y as the unit, X = x / y = 3u / 2v, and Z = (1 - x - y) / y.
    linear = _LINEAR_OF_XYZ @ [1.5 * u / v, 1, (4 - u - 10 * v) / (2 * v)]
    linear /= linear.max()
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


# -- kernels ---------------------------------------------------------------------------------------


@helper
def _mix_and_add(
    image: dala.Image,
    rr: dala.f32,
    rg: dala.f32,
    rb: dala.f32,
    r1: dala.f32,
    gr: dala.f32,
    gg: dala.f32,
    gb: dala.f32,
    g1: dala.f32,
    br: dala.f32,
    bg: dala.f32,
    bb: dala.f32,
    b1: dala.f32,
) -> Any:
    p = image.pixel
    return dala.rgba(
        rr * p.r + rg * p.g + rb * p.b + r1,
        gr * p.r + gg * p.g + gb * p.b + g1,
        br * p.r + bg * p.g + bb * p.b + b1,
        p.a,
    )


@helper
def _mix_with_alpha(
    image: dala.Image,
    rr: dala.f32,
    rg: dala.f32,
    rb: dala.f32,
    ra: dala.f32,
    r1: dala.f32,
    gr: dala.f32,
    gg: dala.f32,
    gb: dala.f32,
    ga: dala.f32,
    g1: dala.f32,
    br: dala.f32,
    bg: dala.f32,
    bb: dala.f32,
    ba: dala.f32,
    b1: dala.f32,
    ar: dala.f32,
    ag: dala.f32,
    ab: dala.f32,
    aa: dala.f32,
    a1: dala.f32,
) -> Any:
    p = image.pixel
    return dala.rgba(
        rr * p.r + rg * p.g + rb * p.b + ra * p.a + r1,
        gr * p.r + gg * p.g + gb * p.b + ga * p.a + g1,
        br * p.r + bg * p.g + bb * p.b + ba * p.a + b1,
        ar * p.r + ag * p.g + ab * p.b + aa * p.a + a1,
    )


@helper
def _multiply(image: dala.Image, red: dala.f32, green: dala.f32, blue: dala.f32) -> Any:
    p = image.pixel
    return dala.rgba(p.r * red, p.g * green, p.b * blue, p.a)


@helper
def _key(
    image: dala.Image,
    key_cb: dala.f32,
    key_cr: dala.f32,
    start: dala.f32,
    steepness: dala.f32,
) -> Any:
    p = image.pixel
    light = dala.luma(p)
    across = (p.b - light) * (1 / 1.772) - key_cb
    up = (p.r - light) * (1 / 1.402) - key_cr
    distance = dala.sqrt((across * across + up * up) * 0.5)
    kept = dala.clamp((distance - start) * steepness, 0.0, 1.0)
    return dala.rgba(p.r, p.g, p.b, p.a * kept)
