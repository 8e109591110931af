"""Filters of images whose colors count for as much as they are opaque.

A spatial filter mixes the colors of pixels. Where some are transparent, theirs should not show:
colors times alpha are filtered instead, and divided by the filtered alpha again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

from dala.devices import using
from dala.ir.types import F32
from dala.kernels.base import language as dala
from dala.kernels.base.builtin import Given, Inputs, helper
from dala.runtime.buffers.buffer import Buffer, scratch
from dala.runtime.kernels.specialization import image_channels
from dala.runtime.pipelines.composite import Expand, Stage


def premultiplied(expand: Expand) -> Expand:
    """The filter with a parameter `premultiply`, which its kernel declares.

    It filters its first input. With `premultiply=True` and RGBA on both sides, what it gets are
    f32 colors times alpha, with the level of `white` that they are made of; those of the output
    are divided by its alpha, and 0 where that is not above 0. Gray and RGB images are filtered as
    they are.
    """

    @wraps(expand)
    def expand_premultiplied(inputs: Inputs, output: Buffer, params: Given) -> Iterator[Stage]:
        image, *others = inputs
        if not params["premultiply"] or not _is_rgba(image) or not _is_rgba(output):
            yield from expand(inputs, output, params)
            return
        with using(image.device):
            colors, filtered = scratch(image.shape, F32), scratch(output.shape, F32)
        yield Stage(_multiply, [image], colors)
        white = max(image.scalar.white, output.scalar.white)
        yield from expand([colors, *others], filtered, {**params, "white": white})
        yield Stage(_divide, [filtered], output)

    return expand_premultiplied


def _is_rgba(image: Buffer) -> bool:
    return image_channels((image.scalar, image.shape)) == 4


@helper
def _multiply(image: dala.Image) -> Any:
    p = image.pixel
    return dala.rgba(p.r * p.a, p.g * p.a, p.b * p.a, p.a)


@helper
def _divide(image: dala.Image) -> Any:
    p = image.pixel
    opaque = p.a > 0.0
    red, green, blue = p.r / p.a, p.g / p.a, p.b / p.a
    return dala.rgba(red if opaque else 0.0, green if opaque else 0.0, blue if opaque else 0.0, p.a)
