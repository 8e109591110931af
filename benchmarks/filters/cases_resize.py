"""Images in other sizes: every method, to a half, to a fifth, to 720p of 1080p, and to twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import FORMATS, GRAY, RGB, RGBA, Format, Size, Sizes, picture
from benchmarks.filters.peers_opencv import opencv
from benchmarks.filters.peers_others import torch_planes, vips
from benchmarks.filters.peers_pillow import pillow, pillow_planes

METHODS = ("nearest", "bilinear", "bicubic", "lanczos", "area")
RATIOS = {"half": (1, 2), "fifth": (1, 5), "720p": (2, 3), "twice": (2, 1)}
CUTS = "Pillow and PyTorch cut what overshoots between their passes"
OVERSHOOTS = ("bicubic", "lanczos")


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in FORMATS:
        for method in METHODS:
            for ratio in RATIOS:
                case = resize(format, method, sizes.full, scaled(sizes.full, ratio))
                yield f"resize-{method}-{ratio}-{format.name}", case
    made = sizes.thumbnail
    twice = (2 * made[0], 2 * made[1])
    for format in (RGBA, RGB, GRAY):
        yield f"resize-area-128px-{format.name}", resize(format, "area", twice, made)


def scaled(size: Size, ratio: str) -> Size:
    part, of = RATIOS[ratio]
    return size[0] * part // of, size[1] * part // of


def resize(format: Format, method: str, size: Size, made: Size) -> Case:
    peers = list(peers_of(format, method, size, made))
    params = {"method": method}
    images, shape = partial(one, format, size), format.shape(made)
    return Case("resize", params, format, images, shape, peers)


def one(format: Format, size: Size) -> list[np.ndarray]:
    return [picture(format, size)]


def peers_of(format: Format, method: str, size: Size, made: Size) -> Iterator[Peer]:
    wide, grows, dtype = made[::-1], made[0] > size[0], format.dtype
    whole = size[0] % made[0] == 0 and size[1] % made[1] == 0
    if method == "nearest":
        yield from nearest_peers(format, size, made)
    elif method == "area":
        yield opencv("resize", wide, interpolation="INTER_AREA")
        if whole:  # else boxes of others take a pixel whole or not at all
            yield vips(lambda _, x: x.shrink(size[1] // made[1], size[0] // made[0]))
            if dtype == "u8":
                box = pillow(partial(_resized, wide, "BOX"), weighed=False)
                yield box.off("Pillow rounds after each axis, and up", on_average=0.6)
    else:
        yield from weighing_peers(format, method, size, made)
        if method == "bilinear" and grows:
            yield opencv("resize", wide, interpolation="INTER_LINEAR")


def weighing_peers(format: Format, method: str, size: Size, made: Size) -> Iterator[Peer]:
    """Those who weigh all pixels under a curve, as wide as the image shrinks."""
    wide, grows = made[::-1], made[0] > size[0]
    resized = partial(_resized, wide, method.upper())
    if format.dtype == "u8":
        yield overshooting(pillow(resized, weighed=False), method)
    else:
        yield overshooting(pillow_planes(resized), method)
    if method != "lanczos" and format.dtype != "u16":
        given = {"mode": method, "antialias": not grows or method == "bicubic"}
        yield overshooting(torch_planes(partial(_interpolated, made, given)), method)
    if method == "lanczos" and not grows:
        shrink = size[1] / made[1], size[0] / made[0]
        peer = vips(lambda _, x: x.reduce(*shrink, kernel="lanczos3"))
        far = {"u8": 16.0, "u16": 16.0, "f32": 1.0}
        yield peer.off("libvips rounds weights, and cuts between passes", on_average=0.5, **far)


def overshooting(peer: Peer, method: str) -> Peer:
    if method in OVERSHOOTS:
        return peer.off(CUTS, u8=28.0, u16=28.0, on_average=0.5, f32=0.02)
    return peer


def nearest_peers(format: Format, size: Size, made: Size) -> Iterator[Peer]:
    wide = made[::-1]
    yield opencv("resize", wide, interpolation="INTER_NEAREST_EXACT", name="OpenCV exact")
    if made[0] > size[0]:
        yield opencv("resize", wide, interpolation="INTER_NEAREST")
    if format.dtype == "u8":
        yield pillow(partial(_resized, wide, "NEAREST"), weighed=False)
    if format.dtype != "u16":
        yield torch_planes(partial(_interpolated, made, {"mode": "nearest-exact"}))


def _interpolated(made: Size, given: dict[str, Any], torch: Any, planes: Any) -> Any:
    return torch.nn.functional.interpolate(planes, size=made, **given)


def _resized(wide: tuple[int, int], method: str, image_module: Any, image: Any) -> Any:
    return image.resize(wide, getattr(image_module.Resampling, method))
