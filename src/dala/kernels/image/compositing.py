"""Two images as one: a layer over an image, by the compositing formulas of the W3C.

Colors are not multiplied by alpha, as images are stored; gray and RGB are opaque. With αs the
alpha of the layer and αb that of the image, the result's is αo = αs + αb · (1 - αs). Its color cb
moves by αs / αo towards (1 - αb) · cs + αb · B(cb, cs), where B is the blend mode: that is their
formula, divided by αo. Where the layer is transparent the image stays as it was, its color too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from dala.errors import ShapeError
from dala.ir.types import U8, U32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, dispatch, helper
from dala.kernels.base.limits import SHARE
from dala.kernels.base.parameters import choice, integer, number
from dala.kernels.base.shapes import require_alike
from dala.kernels.image.blend_modes import COLORS, CURVES
from dala.kernels.image.images import require_image
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.buffers.views import view
from dala.runtime.kernels.kernel import Kernel, function
from dala.runtime.pipelines.composite import Stage

MODES = (*CURVES, *COLORS, "add", "dissolve")
FARTHEST = 1 << 30
"""A layer that is as far away is not seen."""


@dispatch(
    "image",
    "layer",
    group="compositing",
    x=integer(
        "where the left of the layer lies; it may be outside", 0, unit="pixels", usual=(-4096, 4096)
    ),
    y=integer(
        "where the top of the layer lies; it may be outside", 0, unit="pixels", usual=(-4096, 4096)
    ),
    alpha=number("how opaque the layer is", 1.0, usual=(0, 1), limit=SHARE),
)
def overlay(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The layer over the image, its upper left corner at (x, y), by source-over

    The layer is of any size; what lies outside of the image is cut off. Its alpha, 1 where it has
    none, is multiplied by `alpha`, from 0 to 1. On a gray image a colored layer is its luma.
    """
    image, layer = _checked("overlay", inputs, output)
    place = {name: max(-FARTHEST, min(params[name], FARTHEST)) for name in ("x", "y")}
    alpha = params["alpha"]
    if 0 in layer.shape:
        # Reads of what is not there are zeros: as the image itself is, it is hidden by alpha 0.
        layer, alpha = image, 0.0
    # What is read anywhere is best read at once: the four bytes of a pixel.
    words = layer.scalar == U8 and _channels(layer) == 4 and layer.is_host
    seen = view(layer, U32, layer.shape[:2]) if words else layer
    kernel = _overlay_kernel(_channels(image), words)
    yield Stage(kernel, [image, seen], output, {**place, "alpha": alpha})


@dispatch(
    "image",
    "layer",
    group="compositing",
    mode=choice("the formula that mixes both colors", *MODES, default="normal"),
    alpha=number("how opaque the layer is", 0.5, usual=(0, 1), limit=SHARE),
)
def blend(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
    """The layer blended with an image of its size, as the W3C compositing formulas say

    Modes are normal, multiply, screen, overlay, darken, lighten, color-dodge, color-burn,
    hard-light, soft-light, difference, exclusion, hue, saturation, color and luminosity; subtract,
    max(cb - cs, 0), and divide, min(cb / cs, 1); add, which is plus-lighter: αs · cs + αb · cb and
    αs + αb, each at most 1; and dissolve, where αs is the share of the pixels that are opaque, the
    same ones every time. The layer's alpha is multiplied by `alpha`, from 0 to 1. On a gray image
    the luma of the result is stored.
    """
    image, layer = _checked("blend", inputs, output)
    if image.shape[:2] != layer.shape[:2]:
        raise ShapeError(
            f"blend: the image is {image.shape}, but the layer is {layer.shape}: give one of the "
            f"same height and width (resize it), or place it with overlay."
        )
    has_alpha = 4 in (_channels(image), _channels(layer))
    opaque = params["alpha"] == 1.0 and not has_alpha
    kernel = _blend_kernel(params["mode"], _channels(image), opaque)
    yield Stage(kernel, inputs, output, {} if opaque else {"alpha": params["alpha"]})


def _checked(kernel: str, inputs: Inputs, output: Buffer) -> tuple[Buffer, Buffer]:
    image, layer = inputs
    for what, given in (("the image", image), ("the layer", layer), ("the output", output)):
        require_image(kernel, what, given)
    require_alike(kernel, image, output)
    return image, layer


def _channels(image: Buffer) -> int:
    return image.shape[2] if len(image.shape) == 3 else 1


# -- kernels ---------------------------------------------------------------------------------------


@cache
def _moving(channels: int) -> Any:
    """What moves a pixel of an image towards a color by the share that the layer has of it."""

    @function
    def move(old: Any, color: Any, covered: Any) -> Any:
        if channels == 1:
            light = old.r + covered * (dala.luma(color) - old.r)
            return dala.rgba(light, light, light)
        if channels == 3:
            new = old + covered * (color - old)
            return dala.rgba(new.r, new.g, new.b)
        alpha = covered + old.a * (1.0 - covered)
        new = old + (covered / alpha if covered > 0.0 else 0.0) * (color - old)
        return dala.rgba(new.r, new.g, new.b, alpha)

    return move


@function
def _pixel_of(word: Any) -> Any:
    """The pixel that four bytes are, as they lie in memory."""
    return dala.rgba(
        dala.f32(word & 255) * (1 / 255),
        dala.f32(word >> 8 & 255) * (1 / 255),
        dala.f32(word >> 16 & 255) * (1 / 255),
        dala.f32(word >> 24) * (1 / 255),
    )


@cache
def _overlay_kernel(channels: int, words: bool) -> Kernel:
    move = _moving(channels)

    @function
    def put(image: Any, layer: Any, height: Any, width: Any, x: Any, y: Any, alpha: Any) -> Any:
        i, j = dala.position(2)
        down, across = i - y, j - x
        inside = down >= 0 and down < height and across >= 0 and across < width
        top = layer[down, across]
        if words:
            top = _pixel_of(top)
        return move(image.pixel, top, top.a * alpha) if inside else image.pixel

    def overlay(
        image: dala.Image, layer: dala.Image, x: dala.s32, y: dala.s32, alpha: dala.f32
    ) -> Any:
        return put(image, layer, layer.shape[0], layer.shape[1], x, y, alpha)

    def overlay_words(
        image: dala.Image, layer: Any, x: dala.s32, y: dala.s32, alpha: dala.f32
    ) -> Any:
        return put(image, layer, layer.shape[0], layer.shape[1], x, y, alpha)

    return helper(overlay_words if words else overlay)


def _blend_kernel(mode: str, channels: int, opaque: bool) -> Kernel:
    if opaque:
        return _opaque_kernel(mode, channels)
    if mode == "add":
        return _add
    if mode == "dissolve":
        return _dissolving_kernel(channels)
    return _blending_kernel(mode, channels)


def _by_channel(curve: Any) -> Any:
    @function
    def blended(below: Any, above: Any) -> Any:
        return curve(below.r, above.r), curve(below.g, above.g), curve(below.b, above.b)

    return blended


@function
def _added(below: Any, above: Any) -> Any:
    return min(below + above, 1.0)


@cache
def _opaque_kernel(mode: str, channels: int) -> Kernel:
    """What a mode alone makes of an image and a layer that have no alpha."""
    curve = {**CURVES, "add": _added, "dissolve": CURVES["normal"]}.get(mode)
    blended = COLORS[mode] if curve is None else _by_channel(curve)

    def blend(image: dala.Image, layer: dala.Image) -> Any:
        r, g, b = blended(image.pixel, layer.pixel)
        color = dala.rgba(r, g, b)
        if channels == 1:
            light = dala.luma(color)
            return dala.rgba(light, light, light)
        return color

    return helper(blend)


@cache
def _blending_kernel(mode: str, channels: int) -> Kernel:
    blended = COLORS[mode] if mode in COLORS else _by_channel(CURVES[mode])
    move = _moving(channels)

    def blend(image: dala.Image, layer: dala.Image, alpha: dala.f32) -> Any:
        old, new = image.pixel, layer.pixel
        r, g, b = blended(old, new)
        mixed = dala.rgba(r, g, b, new.a)
        if channels == 4:
            mixed = new + old.a * (mixed - new)
        return move(old, mixed, new.a * alpha)

    return helper(blend)


@helper
def _add(image: dala.Image, layer: dala.Image, alpha: dala.f32) -> Any:
    old, new = image.pixel, layer.pixel
    covered = new.a * alpha
    total = min(old.a + covered, 1.0)
    lit = min(old.a * old + covered * new, 1.0) / total
    shown = lit if covered > 0.0 else old
    return dala.rgba(shown.r, shown.g, shown.b, total)


@cache
def _dissolving_kernel(channels: int) -> Kernel:
    move = _moving(channels)

    def dissolve(image: dala.Image, layer: dala.Image, alpha: dala.f32) -> Any:
        i, j = dala.position(2)
        # A number that looks random: every bit of the place moves about half of its bits.
        mixed = dala.u32(i) * dala.u32(0x9E3779B1) + dala.u32(j)
        mixed = (mixed ^ (mixed >> 16)) * dala.u32(0x7FEB352D)
        mixed = (mixed ^ (mixed >> 15)) * dala.u32(0x846CA68B)
        chance = dala.f32((mixed ^ (mixed >> 16)) >> 8) * 2.0**-24
        top = layer.pixel
        return move(image.pixel, top, 1.0 if chance < top.a * alpha else 0.0)

    return helper(dissolve)
