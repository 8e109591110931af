"""Faces made a little smoother and brighter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, composite, helper
from dala.kernels.base.limits import SHARE
from dala.kernels.base.parameters import number
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.colors import recolored
from dala.kernels.image.images import require_image
from dala.kernels.image.smoothing import bilateral_mean
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.pipelines.composite import Stage

RADIUS, SIGMA_COLOR, SIGMA_SPACE = 3, 0.2, 3.0
"""How the skin is smoothed: so that pores go, and eyes, lips and hair stay."""
SKIN_BLUE, SKIN_RED = 0.40, 0.60
"""The Cb and Cr of skin, whatever its luma."""
BLUE_REACH, RED_REACH = 0.10, 0.08
"""How far the Cb and Cr of skin are from those."""
TAKEN = 0.8
"""The share of the fine detail that full strength takes away; the rest is put back."""
LIFT = 0.2
"""What full strength adds, times x · (1 - x)."""


@composite(
    "image",
    group="smoothing",
    strength=number(
        "how much skin is smoothed; 0 leaves it as it was", 0.3, usual=(0, 1), limit=SHARE
    ),
)
def beauty(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """Skin smoothed and lifted a little, with a strength of 0 to 1; all else stays as it was

    x + strength · skin · (0.2 · x · (1 - x) - 0.8 · (x - s)), where s is the `bilateral` mean with
    radius 3, sigma_color 0.2 and sigma_space 3, and x - s the fine detail. skin is
    1 - smoothstep(0.75, 1.25, d), where d is how far s is from the color of skin:
    √(((Cb - 0.4) / 0.1)² + ((Cr - 0.6) / 0.08)²), Cb = 0.5 + (B - luma) / 1.772 and
    Cr = 0.5 + (R - luma) / 1.402. Gray has no skin. Alpha stays as it was.
    """
    (image,) = inputs
    require_image("beauty", "the image", image)
    require_image("beauty", "the output", output)
    require_alike("beauty", image, output)
    smooth = scratch(image.shape, F32)
    yield bilateral_mean(image, image, smooth, "clamp", RADIUS, SIGMA_COLOR, SIGMA_SPACE)
    yield Stage(_beautify, [image, smooth], output, {"strength": params["strength"]})


@helper
def _beautify(image: dala.Image, smooth: dala.Image, strength: dala.f32) -> Any:
    x, s = image.pixel, smooth.pixel
    light = dala.luma(s)
    blue = 0.5 + (s.b - light) * (1 / 1.772)
    red = 0.5 + (s.r - light) * (1 / 1.402)
    down = (blue - SKIN_BLUE) * (1 / BLUE_REACH)
    across = (red - SKIN_RED) * (1 / RED_REACH)
    skin = 1.0 - dala.smoothstep(0.75, 1.25, dala.sqrt(down * down + across * across))
    change = LIFT * x * (1.0 - x) - TAKEN * (x - s)
    return recolored(x, x + (strength * skin) * change)
