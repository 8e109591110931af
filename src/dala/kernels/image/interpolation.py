"""Images read between their pixels, whose centers lie at integers."""

from __future__ import annotations

from functools import cache
from typing import Any

from dala.ir.nodes import Border
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.images import reader
from dala.runtime.kernels.kernel import Kernel, function

METHODS = ("nearest", "bilinear", "bicubic")
FARTHEST = 1 << 30
"""Positions beyond this are taken for this, so that neighbors can still be counted."""


@function
def _cubic(t: Any) -> Any:
    """The weights of the four pixels around a place that is t past the second."""
    s = 1.0 - t
    return (
        -0.75 * t * s * s,
        (1.25 * t - 2.25) * t * t + 1.0,
        (1.25 * s - 2.25) * s * s + 1.0,
        -0.75 * s * t * t,
    )


@cache
def _sampler(method: str, is_gray: bool) -> Any:
    """What reads an image between its pixels."""
    pixel_at = reader(is_gray)

    @function
    def nearest(image: Any, y: Any, x: Any) -> Any:
        return pixel_at(image, dala.s32(dala.floor(y + 0.5)), dala.s32(dala.floor(x + 0.5)))

    @function
    def bilinear(image: Any, y: Any, x: Any) -> Any:
        above, before = dala.floor(y), dala.floor(x)
        i, j, v, u = dala.s32(above), dala.s32(before), y - above, x - before
        upper = pixel_at(image, i, j) * (1.0 - u) + pixel_at(image, i, j + 1) * u
        lower = pixel_at(image, i + 1, j) * (1.0 - u) + pixel_at(image, i + 1, j + 1) * u
        return upper * (1.0 - v) + lower * v

    @function
    def row(image: Any, i: Any, j: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        near = pixel_at(image, i, j) * b + pixel_at(image, i, j + 1) * c
        return near + pixel_at(image, i, j - 1) * a + pixel_at(image, i, j + 2) * d

    @function
    def bicubic(image: Any, y: Any, x: Any) -> Any:
        above, before = dala.floor(y), dala.floor(x)
        i, j = dala.s32(above), dala.s32(before)
        a, b, c, d = _cubic(x - before)
        e, f, g, h = _cubic(y - above)
        near = row(image, i, j, a, b, c, d) * f + row(image, i + 1, j, a, b, c, d) * g
        far = row(image, i - 1, j, a, b, c, d) * e + row(image, i + 2, j, a, b, c, d) * h
        return near + far

    return {"nearest": nearest, "bilinear": bilinear, "bicubic": bicubic}[method]


@cache
def warp_kernel(method: str, border: Border, is_gray: bool) -> Kernel:
    """What warps an image: its middle x and y come to lie where the output's about x and y are."""
    sample = _sampler(method, is_gray)
    least, most = -float(FARTHEST), float(FARTHEST)

    def warp(
        image: dala.Image,
        xx: dala.f32,
        xy: dala.f32,
        yx: dala.f32,
        yy: dala.f32,
        middle_x: dala.f32,
        middle_y: dala.f32,
        about_x: dala.f32,
        about_y: dala.f32,
    ) -> Any:
        i, j = dala.position(2)
        y, x = dala.f32(i) - about_y, dala.f32(j) - about_x
        across = dala.clamp(xx * x + xy * y + middle_x, least, most)
        down = dala.clamp(yx * x + yy * y + middle_y, least, most)
        return sample(image, down, across)

    return helper(warp, border)
