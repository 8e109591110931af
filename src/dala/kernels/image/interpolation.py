"""Images read between their pixels, whose centers lie at integers."""

from __future__ import annotations

from functools import cache
from typing import Any

from dala.ir.nodes import Border
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.runtime.kernels.kernel import Kernel

METHODS = ("nearest", "bilinear", "bicubic")


@cache
def warp_kernel(method: str, border: Border) -> Kernel:
    """What warps an image: its middle x and y come to lie where the output's about x and y are."""

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
        across, down = xx * x + xy * y + middle_x, yx * x + yy * y + middle_y
        return image.sample(down, across, method=method)

    return helper(warp, border)
