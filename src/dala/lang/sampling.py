"""Reads between elements, written in the kernel language: what `image.sample(y, x)` inlines.

Centers of elements are at integers. Coordinates beyond ±2**30 are taken for that, so that the
elements around them can be counted.
"""

from __future__ import annotations

from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f32, s32 = SCALARS["f32"], SCALARS["s32"]
clamp, floor = INTRINSICS["clamp"], INTRINSICS["floor"]

FARTHEST = float(1 << 30)


def nearest(image: Any, y: Any, x: Any) -> Any:
    i = s32(clamp(floor(y + 0.5), -FARTHEST, FARTHEST))
    j = s32(clamp(floor(x + 0.5), -FARTHEST, FARTHEST))
    return image[i, j]


def bilinear(image: Any, y: Any, x: Any) -> Any:
    y, x = clamp(y, -FARTHEST, FARTHEST), clamp(x, -FARTHEST, FARTHEST)
    above, before = floor(y), floor(x)
    i, j, v, u = s32(above), s32(before), y - above, x - before
    upper = image[i, j] * (1.0 - u) + image[i, j + 1] * u
    lower = image[i + 1, j] * (1.0 - u) + image[i + 1, j + 1] * u
    return upper * (1.0 - v) + lower * v


def bicubic(image: Any, y: Any, x: Any) -> Any:
    """Cubic convolution with a = -0.75, as OpenCV has it."""
    y, x = clamp(y, -FARTHEST, FARTHEST), clamp(x, -FARTHEST, FARTHEST)
    above, before = floor(y), floor(x)
    i, j, t, u = s32(above), s32(before), y - above, x - before
    s, r = 1.0 - t, 1.0 - u
    a, d = -0.75 * u * r * r, -0.75 * r * u * u
    b, c = (1.25 * u - 2.25) * u * u + 1.0, (1.25 * r - 2.25) * r * r + 1.0
    e, h = -0.75 * t * s * s, -0.75 * s * t * t
    f, g = (1.25 * t - 2.25) * t * t + 1.0, (1.25 * s - 2.25) * s * s + 1.0
    near = image[i, j] * b + image[i, j + 1] * c + image[i, j - 1] * a + image[i, j + 2] * d
    next_ = image[i + 1, j] * b + image[i + 1, j + 1] * c
    next_ = next_ + image[i + 1, j - 1] * a + image[i + 1, j + 2] * d
    far = image[i - 1, j] * b + image[i - 1, j + 1] * c
    far = far + image[i - 1, j - 1] * a + image[i - 1, j + 2] * d
    last = image[i + 2, j] * b + image[i + 2, j + 1] * c
    last = last + image[i + 2, j - 1] * a + image[i + 2, j + 2] * d
    return (near * f + next_ * g) + (far * e + last * h)


METHODS = {"bilinear": bilinear, "nearest": nearest, "bicubic": bicubic}


def from_uv(size: Any, at: Any) -> Any:
    """The coordinate of a place that is given as a share of the extent."""
    return at * f32(size) - 0.5
