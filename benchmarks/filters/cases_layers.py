"""Filters of two images: blend modes, a layer over an image, backgrounds behind a mask.

RGBA is composed by alpha, which varies; peers that would blend alpha as if it were a color are not
compared there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import (
    F32,
    FORMATS,
    RGB,
    RGBA,
    Format,
    Size,
    Sizes,
    picture,
)
from benchmarks.filters.peers_opencv import opencv, opencv_module
from benchmarks.filters.peers_others import numba, numpy, torch
from benchmarks.filters.peers_pillow import pillow

f32 = np.float32
ALPHA = 0.3
MODES = (
    "normal", "add", "subtract", "multiply", "screen", "darken", "lighten", "difference", "overlay",
)  # fmt: skip
OPENCV = {
    "add": "add",
    "subtract": "subtract",
    "darken": "min",
    "lighten": "max",
    "difference": "absdiff",
}
PILLOW = {"darken": "darker", "lighten": "lighter"}
ARRAYS = {"darken": "minimum", "lighten": "maximum"}
"""What NumPy and PyTorch call these."""
RADIUS, SIGMA = 15, 7.5


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in FORMATS:
        for mode in MODES:
            yield f"blend-{mode}-{format.name}", blend(format, mode, sizes.full)
        yield f"overlay-logo-{format.name}", overlay(format, sizes.full, whole=False)
        yield f"background-replace-{format.name}", background_replace(format, sizes.full)
        yield f"background-blur-{format.name}", background_blur(format, sizes.full)
    yield "overlay-frame-rgba", overlay(RGBA, sizes.full, whole=True)
    yield "overlay-frame-rgb", overlay(RGB, sizes.full, whole=True)
    yield "blend-normal-128px-rgba", blend(RGBA, "normal", sizes.thumbnail)
    yield "blend-add-128px-rgb", blend(RGB, "add", sizes.thumbnail)


def both(format: Format, size: Size) -> list[np.ndarray]:
    """Two pictures."""
    return [picture(format, size), picture(format, size, seed=2)]


# -- blends ----------------------------------------------------------------------------------------


def blend(format: Format, mode: str, size: Size) -> Case:
    alpha = ALPHA if mode == "normal" else 1.0
    peers = [numba_blend(format, mode)]
    if mode == "normal" and not format.has_alpha:
        peers += list(mixing_peers(format))
    elif not format.has_alpha:
        peers += list(blending_peers(format, mode))
    params = {"mode": mode, "alpha": alpha}
    return Case("blend", params, format, partial(both, format, size), format.shape(size), peers)


@cache
def _blending(mode: str) -> Any:
    from benchmarks.filters import loops_layers

    return loops_layers.blending(mode)


def numba_blend(format: Format, mode: str) -> Peer:
    top = f32(format.top)
    if mode == "normal" and not format.has_alpha:
        return numba("loops_layers.mix", f32(ALPHA))
    if mode == "add" and format.has_alpha:
        return numba("loops_layers.add_with_alpha", f32(1), top)
    if not format.has_alpha:
        return numba(lambda: _blending(mode)[0], top)
    return numba(lambda: _blending(mode)[1], f32(ALPHA if mode == "normal" else 1), top)


def mixing_peers(format: Format) -> Iterator[Peer]:
    def weighted(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        cv2, (x, y) = opencv_module(), images

        def run() -> None:
            cv2.addWeighted(x, 1 - ALPHA, y, ALPHA, 0.0, dst=out)

        return run

    yield Peer("OpenCV addWeighted", weighted)
    if format.dtype == "u8":
        yield pillow(lambda image, x, y: image.blend(x, y, ALPHA))
    if format is F32:
        yield torch(lambda torch, x, y, out: torch.lerp(x, y, ALPHA, out=out))


def blending_peers(format: Format, mode: str) -> Iterator[Peer]:
    floats = format is F32
    if mode in OPENCV and not (floats and mode in ("add", "subtract")):
        yield opencv(OPENCV[mode])
    if mode == "multiply":
        yield opencv("multiply", scale=1 / format.top)
    if format.dtype == "u8":
        yield pillow(partial(_chopped, PILLOW.get(mode, mode)))
    if mode in ARRAYS:
        yield numpy(lambda np, x, y, out: getattr(np, ARRAYS[mode])(x, y, out=out))
        if format.dtype != "u16":
            yield torch(lambda torch, x, y, out: getattr(torch, ARRAYS[mode])(x, y, out=out))
    if floats and mode in ON_TENSORS:
        yield torch(ON_TENSORS[mode])
    if floats and mode == "multiply":
        yield numpy(lambda np, x, y, out: np.multiply(x, y, out=out))


ON_TENSORS: dict[str, Callable[..., Any]] = {
    "add": lambda torch, x, y, out: torch.add(x, y, out=out).clamp_max_(1.0),
    "subtract": lambda torch, x, y, out: torch.sub(x, y, out=out).clamp_min_(0.0),
    "multiply": lambda torch, x, y, out: torch.mul(x, y, out=out),
    "difference": lambda torch, x, y, out: torch.sub(x, y, out=out).abs_(),
}


def _chopped(function: str, image_module: Any, x: Any, y: Any) -> Any:
    from PIL import ImageChops

    return getattr(ImageChops, function)(x, y)


# -- layers ----------------------------------------------------------------------------------------


def overlay(format: Format, size: Size, *, whole: bool) -> Case:
    """A logo of about a twentieth of the image, or a layer that covers all of it; with alpha."""
    height, width = size
    layer = size if whole else (max(height // 5, 1), max(width // 4, 1))
    x, y = (0, 0) if whole else (width // 2, height // 8)
    layered = Format("layer", 4, format.dtype)

    def images() -> list[np.ndarray]:
        return [picture(format, size), picture(layered, layer, seed=3)]

    peers = [numba("loops_layers.put_over", x, y, f32(format.top))]
    if format is RGBA and whole:
        peers.append(pillow(lambda image, below, above: image.alpha_composite(below, above)))
    elif format is RGBA:
        peers.append(pillow(partial(_composed, (x, y))))
    elif format is RGB:
        peers.append(pillow(partial(_pasted, (x, y))))
    return Case("overlay", {"x": x, "y": y}, format, images, format.shape(size), peers)


def _composed(place: tuple[int, int], _: Any, below: Any, above: Any) -> Any:
    made = below.copy()
    made.alpha_composite(above, place)
    return made


def _pasted(place: tuple[int, int], _: Any, below: Any, above: Any) -> Any:
    made = below.copy()
    made.paste(above, place, above)
    return made


# -- masks -----------------------------------------------------------------------------------------


def mask_of(format: Format, size: Size) -> np.ndarray:
    return picture(Format("mask", 1, format.dtype), size, seed=4)


def background_replace(format: Format, size: Size) -> Case:
    peers = [numba("loops_layers.mix_by_mask", f32(format.top))]
    if format.dtype == "u8":
        peers.append(pillow(lambda image, x, y, mask: image.composite(x, y, mask)))
    return Case(
        "background_replace",
        {},
        format,
        lambda: [*both(format, size), mask_of(format, size)],
        format.shape(size),
        peers,
    )


def background_blur(format: Format, size: Size) -> Case:
    def make(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        """The blurs are OpenCV's, in floats."""
        cv2, (x, mask), top = opencv_module(), images, f32(format.top)
        color = np.empty((*size, format.colors), f32)
        weight, soft, softer = np.empty(size, f32), np.empty_like(color), np.empty(size, f32)
        weigh = numba("loops_layers.weigh_background", weight, top).make([x, mask], color)
        reveal = numba("loops_layers.reveal", top)
        finish = reveal.make([x, mask, soft, softer], out)
        taps, rim = (2 * RADIUS + 1,) * 2, cv2.BORDER_REPLICATE

        def run() -> None:
            weigh()
            cv2.GaussianBlur(color, taps, SIGMA, dst=soft, borderType=rim)
            cv2.GaussianBlur(weight, taps, SIGMA, dst=softer, borderType=rim)
            finish()

        return run

    return Case(
        "background_blur",
        {"radius": RADIUS, "sigma": SIGMA},
        format,
        lambda: [picture(format, size), mask_of(format, size)],
        format.shape(size),
        [Peer("OpenCV and Numba", make)],
    )
