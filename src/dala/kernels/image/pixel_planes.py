"""Pixels as video has them, made and read one by one: on every device, of images of any size."""

from __future__ import annotations

from functools import cache
from typing import Any

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.runtime.kernels.kernel import Kernel


@helper
def expand_gray(x: Any, black: dala.f32, y: dala.f32) -> Any:
    """The luma of each pixel"""
    i, j = dala.position(2)
    light = max(dala.f32(x[i * dala.shape(2)[1] + j]) - black, 0.0) * y
    return dala.rgba(light, light, light)


@cache
def expanding_kernel(swapped: bool) -> Kernel:
    """What makes colors; the levels of chroma lie from u and v on, `down` and `across` apart."""

    def expand(
        x: Any,
        black: dala.f32,
        y: dala.f32,
        rv: dala.f32,
        gu: dala.f32,
        gv: dala.f32,
        bu: dala.f32,
        u: dala.s32,
        v: dala.s32,
        down: dala.s32,
        across: dala.s32,
    ) -> Any:
        i, j = dala.position(2)
        light = max(dala.f32(x[i * dala.shape(2)[1] + j]) - black, 0.0) * y
        at = i // 2 * down + j // 2 * across
        to_blue, to_red = dala.f32(x[u + at]) - 128.0, dala.f32(x[v + at]) - 128.0
        red, blue = light + rv * to_red, light + bu * to_blue
        green = light - gu * to_blue - gv * to_red
        if swapped:
            red, blue = blue, red
        return dala.rgba(red, green, blue)

    return helper(expand)


@cache
def reducing_kernel(nv12: bool, swapped: bool) -> Kernel:
    """What makes planes, in a single row, of colors."""

    def reduce(
        image: dala.Image,
        black: dala.f32,
        yr: dala.f32,
        yg: dala.f32,
        yb: dala.f32,
        ur: dala.f32,
        ug: dala.f32,
        ub: dala.f32,
        vr: dala.f32,
        vg: dala.f32,
        vb: dala.f32,
    ) -> Any:
        at = dala.position(2)[1]
        height, width = image.shape
        columns = (width + 1) // 2
        count = (height + 1) // 2 * columns
        place = at - height * width
        number = place // 2 if nv12 else place % count
        is_u = place % 2 == 0 if nv12 else place < count
        y, x = number // columns * 2, number % columns * 2
        mean = image[y, x] + image[y, x + 1] + image[y + 1, x] + image[y + 1, x + 1]
        p = image[at // width, at % width] if place < 0 else mean * 0.25
        red, blue = (p.b, p.r) if swapped else (p.r, p.b)
        light = black + yr * red + yg * p.g + yb * blue
        u = 128.0 + ub * blue - ur * red - ug * p.g
        v = 128.0 + vr * red - vg * p.g - vb * blue
        return dala.u8(light if place < 0 else (u if is_u else v))

    return helper(reduce)


@helper
def weave(x: Any, luma: dala.s32, count: dala.s32) -> Any:
    """Chroma in turns, after so many levels of luma, from planes of `count` levels"""
    (at,) = dala.position(1)
    place = at - luma
    return x[at if place < 0 else luma + place % 2 * count + place // 2]


@helper
def unweave(x: Any, luma: dala.s32, count: dala.s32) -> Any:
    """Chroma in planes of `count` levels, after so many levels of luma, from those in turns"""
    (at,) = dala.position(1)
    place = at - luma
    return x[at if place < 0 else luma + place % count * 2 + place // count]
