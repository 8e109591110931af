"""Planes of video of more than 8 bits, as colors and back, of images of any size."""

from __future__ import annotations

from functools import cache
from typing import Any

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.runtime.kernels.kernel import Kernel


@cache
def colors_kernel(alpha: bool) -> Kernel:
    """What makes colors of three planes, each a sum of their levels, and of a plane of alpha.

    A level of the last two planes is that of `down` × `across` pixels. Where both share a plane,
    their levels are `apart`, from `first` and `second` on.
    """

    def expand(
        x: Any,
        y: Any,
        z: Any,
        a: Any,
        rx: dala.f32,
        ry: dala.f32,
        rz: dala.f32,
        r: dala.f32,
        gx: dala.f32,
        gy: dala.f32,
        gz: dala.f32,
        g: dala.f32,
        bx: dala.f32,
        by: dala.f32,
        bz: dala.f32,
        b: dala.f32,
        opacity: dala.f32,
        down: dala.s32,
        across: dala.s32,
        apart: dala.s32,
        second: dala.s32,
    ) -> Any:
        i, j = dala.position(2)
        row, column = i // down, j // across * apart
        p, q, s = dala.f32(x[i, j]), dala.f32(y[row, column]), dala.f32(z[row, column + second])
        red = r + rx * p + ry * q + rz * s
        green = g + gx * p + gy * q + gz * s
        blue = b + bx * p + by * q + bz * s
        if alpha:
            return dala.rgba(red, green, blue, dala.f32(a[i, j]) * opacity)
        return dala.rgba(red, green, blue)

    return helper(expand)


@cache
def plane_kernel(down: int, across: int) -> Kernel:
    """What makes a plane: a weighted sum of the colors of `down` × `across` pixels, their mean."""
    offsets = tuple((y, x) for y in range(down) for x in range(across))
    share = 1.0 / len(offsets)

    def reduce(
        image: dala.Image, red: dala.f32, green: dala.f32, blue: dala.f32, base: dala.f32
    ) -> Any:
        i, j = dala.position(2)
        level = 0.0
        for y, x in offsets:
            p = image[i * down + y, j * across + x]
            level += red * p.r + green * p.g + blue * p.b
        return dala.u16(base + level * share)

    return helper(reduce)
