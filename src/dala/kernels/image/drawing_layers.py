"""A picture, a mask or a map of labels laid over a rectangle of an image, stretched to fill it.

A layer is read between its pixels' centers, its colors weighted by their alpha; labels, which mean
nothing in between, are read at the nearest one. The rectangle's edges may lie within pixels, which
it then covers in part.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from dala.kernels.base import language as dala
from dala.kernels.base.builtin import helper
from dala.kernels.image.drawing import mixing, overlap
from dala.runtime.kernels.kernel import Kernel, function

LayerKind = Literal["picture", "mask", "labels"]


@function
def _between(layer: Any, x: Any, y: Any) -> Any:
    """The layer's color, multiplied by its alpha, at a place between its pixels' centers."""
    left, top = dala.floor(x - 0.5), dala.floor(y - 0.5)
    j, i = dala.s32(left), dala.s32(top)
    across, down = x - 0.5 - left, y - 0.5 - top
    r, g, b, a = 0.0, 0.0, 0.0, 0.0
    for k in range(4):
        pixel = layer[i + k // 2, j + k % 2]
        weight = (across if k % 2 == 1 else 1.0 - across) * (down if k >= 2 else 1.0 - down)
        weight = weight * pixel.a
        r, g, b, a = r + weight * pixel.r, g + weight * pixel.g, b + weight * pixel.b, a + weight
    return r, g, b, a


@function
def _picture(layer: Any, colors: Any, u: Any, v: Any) -> Any:
    r, g, b, a = _between(layer, u, v)
    shown = 1.0 / a if a > 0.0 else 0.0
    return r * shown, g * shown, b * shown, a * colors[0, 3]


@function
def _mask(layer: Any, colors: Any, u: Any, v: Any) -> Any:
    r, _, _, _ = _between(layer, u, v)
    return colors[0, 0], colors[0, 1], colors[0, 2], r * colors[0, 3]


@function
def _labels(layer: Any, colors: Any, u: Any, v: Any) -> Any:
    label = dala.s32(layer[dala.s32(dala.floor(v)), dala.s32(dala.floor(u))])
    return colors[label, 0], colors[label, 1], colors[label, 2], colors[label, 3]


_COLORS = {"picture": _picture, "mask": _mask, "labels": _labels}


@cache
def _laying(channels: int, kind: LayerKind) -> Any:
    """What a pixel becomes under a layer.

    `place` has the rectangle's left, top, right and bottom edge, then the clip's.
    """
    mix, color = mixing(channels), _COLORS[kind]

    @function
    def lay(old: Any, layer: Any, size: Any, place: Any, colors: Any, x: Any, y: Any) -> Any:
        share = overlap(x, place[0], place[2]) * overlap(y, place[1], place[3])
        share = share * overlap(x, place[4], place[6]) * overlap(y, place[5], place[7])
        u = (x - place[0]) * (dala.f32(size[1]) / (place[2] - place[0]))
        v = (y - place[1]) * (dala.f32(size[0]) / (place[3] - place[1]))
        red, green, blue, alpha = color(layer, colors, u, v)
        if channels == 1:
            red = dala.luma(dala.rgba(red, green, blue))
        r, g, b, a = mix(old.r, old.g, old.b, old.a, share * alpha, red, green, blue)
        if channels == 1:
            return dala.rgba(r, r, r)
        return dala.rgba(r, g, b, a)

    return lay


@cache
def layer_tiles_kernel(channels: int, kind: LayerKind) -> Kernel:
    """Lays a layer over tiles that lie below one another; `tiles` has x and y of each."""
    lay = _laying(channels, kind)

    def draw_layer_tiles(
        image: dala.Image, tiles: Any, layer: dala.Image, place: Any, colors: Any, rows: dala.s32
    ) -> Any:
        i, j = dala.position(2)
        x = dala.f32(tiles[i // rows, 0] + j) + 0.5
        y = dala.f32(tiles[i // rows, 1] + i % rows) + 0.5
        return lay(image.pixel, layer, layer.shape, place, colors, x, y)

    def draw_label_tiles(
        image: dala.Image, tiles: Any, layer: Any, place: Any, colors: Any, rows: dala.s32
    ) -> Any:
        i, j = dala.position(2)
        x = dala.f32(tiles[i // rows, 0] + j) + 0.5
        y = dala.f32(tiles[i // rows, 1] + i % rows) + 0.5
        return lay(image.pixel, layer, layer.shape, place, colors, x, y)

    return helper(draw_label_tiles if kind == "labels" else draw_layer_tiles)


@cache
def layer_image_kernel(channels: int, kind: LayerKind) -> Kernel:
    """Lays a layer over a whole image."""
    lay = _laying(channels, kind)

    def draw_layer(image: dala.Image, layer: dala.Image, place: Any, colors: Any) -> Any:
        i, j = dala.position(2)
        x, y = dala.f32(j) + 0.5, dala.f32(i) + 0.5
        return lay(image.pixel, layer, layer.shape, place, colors, x, y)

    def draw_labels(image: dala.Image, layer: Any, place: Any, colors: Any) -> Any:
        i, j = dala.position(2)
        x, y = dala.f32(j) + 0.5, dala.f32(i) + 0.5
        return lay(image.pixel, layer, layer.shape, place, colors, x, y)

    return helper(draw_labels if kind == "labels" else draw_layer)
