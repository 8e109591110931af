"""Images that are made from nothing."""

from __future__ import annotations

from typing import Any

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import builtin


@builtin
def generate_gradient() -> Any:
    """Red rises with x from 0 to 1 and green with y; blue is 0.5, alpha is 1"""
    y, x = dala.position(2)
    height, width = dala.shape(2)
    red = dala.f32(x) / dala.f32(max(width - 1, 1))
    green = dala.f32(y) / dala.f32(max(height - 1, 1))
    return dala.rgba(red, green, 0.5, 1.0)
