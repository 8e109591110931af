"""Filters that move pixels: crops, flips, turns, warps, and frames around an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import (
    FORMATS,
    FULL,
    GRAY,
    RGB,
    RGBA,
    Format,
    Size,
    Sizes,
    picture,
)
from benchmarks.filters.peers_opencv import opencv, opencv_module
from benchmarks.filters.peers_others import numba, numpy, torch, torch_planes, vips
from benchmarks.filters.peers_pillow import pillow

f32 = np.float32
FLIPS = {"horizontal": 1, "vertical": 0, "both": -1}
AXES = {"horizontal": (1,), "vertical": (0,), "both": (0, 1)}
TRANSPOSED = {"horizontal": "FLIP_LEFT_RIGHT", "vertical": "FLIP_TOP_BOTTOM", "both": "ROTATE_180"}
TURNS = {90: "ROTATE_90_COUNTERCLOCKWISE", 180: "ROTATE_180", 270: "ROTATE_90_CLOCKWISE"}
ANGLE = 17
WARP = np.array([[0.9071, 0.3117, -40.4029], [-0.2713, 1.0209, 150.1013]])
ROUNDED = "OpenCV rounds places to 1/32 of a pixel, beside edges as much as 8 levels"
COLOR = (0.2, 0.4, 1.0)


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in FORMATS:
        yield f"crop-{format.name}", crop(format, sizes.full)
        for direction in FLIPS:
            yield f"flip-{direction}-{format.name}", flip(format, direction, sizes.full)
        for degrees in TURNS:
            yield f"rotate-{degrees}-{format.name}", quarter_turn(format, degrees, sizes.full)
        yield f"rotate-{ANGLE}-{format.name}", rotate(format, sizes.full)
        yield f"warp-affine-{format.name}", warp_affine(format, sizes.full)
    for format in (RGBA, RGB, GRAY):
        yield f"letterbox-bilinear-{format.name}", letterbox(format, "bilinear", sizes.full)
    for format in FORMATS:
        yield f"letterbox-area-{format.name}", letterbox(format, "area", sizes.full)
    yield "flip-horizontal-128px-rgba", flip(RGBA, "horizontal", sizes.thumbnail)
    yield "rotate-90-128px-rgba", quarter_turn(RGBA, 90, sizes.thumbnail)
    yield "flip-horizontal-4k-rgba", flip(RGBA, "horizontal", sizes.large)


def one(format: Format, size: Size) -> list[np.ndarray]:
    return [picture(format, size)]


# -- pixels as they are ----------------------------------------------------------------------------


def crop(format: Format, size: Size) -> Case:
    """Two thirds of each side."""
    height, width = (side * 2 // 3 for side in size)
    y, x = size[0] // 9, size[1] // 9
    part = np.s_[y : y + height, x : x + width]

    def copied(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        return opencv("copyTo", None).make([images[0][part]], out)

    peers = [
        Peer("OpenCV copyTo", copied),
        numpy(lambda np, image, out: np.copyto(out, image[part])),
        torch(lambda torch, image, out: out.copy_(image[part])),
        numba("loops_layers.take_part", x, y),
    ]
    if format.dtype == "u8":
        peers.append(pillow(lambda _, image: image.crop((x, y, x + width, y + height))))
    params = {"x": x, "y": y, "width": width, "height": height}
    shape = format.shape((height, width))
    return Case("crop", params, format, partial(one, format, size), shape, peers)


def flip(format: Format, direction: str, size: Size) -> Case:
    axes = AXES[direction]
    turned = tuple(np.s_[::-1] if axis in axes else np.s_[:] for axis in (0, 1))
    peers = [
        opencv("flip", FLIPS[direction]),
        numpy(lambda np, image, out: np.copyto(out, image[turned])),
        torch_planes(lambda torch, planes: torch.flip(planes, [axis + 2 for axis in axes])),
        vips(partial(_vips_flip, direction)),
    ]
    if format.dtype == "u8":
        peers.append(pillow(partial(_transposed, TRANSPOSED[direction])))
    params, shape = {"direction": direction}, format.shape(size)
    return Case("flip", params, format, partial(one, format, size), shape, peers)


def _vips_flip(direction: str, _: Any, image: Any) -> Any:
    if direction == "both":
        return image.rot180()
    return image.fliphor() if direction == "horizontal" else image.flipver()


def _transposed(method: str, image_module: Any, image: Any) -> Any:
    return image.transpose(getattr(image_module.Transpose, method))


def quarter_turn(format: Format, degrees: int, size: Size) -> Case:
    """Counter-clockwise, into an image of the size that it has then."""
    turns = degrees // 90
    peers = [
        opencv("rotate", TURNS[degrees]),
        numpy(lambda np, image, out: np.copyto(out, np.rot90(image, turns))),
        torch_planes(lambda torch, planes: torch.rot90(planes, turns, (2, 3)).contiguous(
            memory_format=torch.channels_last)),
        vips(lambda _, image: getattr(image, f"rot{360 - degrees}")()),
    ]  # fmt: skip
    if format.dtype == "u8":
        peers.append(pillow(partial(_transposed, f"ROTATE_{degrees}")))
    shape = format.shape(size[::-1] if turns % 2 else size)
    params = {"degrees": degrees, "expand": True}
    return Case("rotate", params, format, partial(one, format, size), shape, peers)


# -- pixels between others -------------------------------------------------------------------------


def rotation(size: Size, degrees: float) -> np.ndarray:
    """The matrix that turns an image about its center, counter-clockwise."""
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turn = np.array([[cos, sin], [-sin, cos]])
    center = (np.array(size[::-1]) - 1) / 2
    return np.column_stack([turn, center - turn @ center])


def moving_peers(size: Size, matrix: np.ndarray) -> list[Peer]:
    """Those who map (x, y, 1) of the image to (x, y) of an output of the same size."""
    warp = opencv("warpAffine", matrix, size[::-1], flags="INTER_LINEAR")
    inverse = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))[:2]
    loop = numba("loops_windows.warp", inverse.astype(f32))
    place = "places of 32 bits are up to 1/8000 of a pixel off"
    return [
        warp.off(ROUNDED, u8=9.0, u16=9.0, f32=9.0, on_average=0.5),
        loop.off(place, u8=1.0, u16=0.25, f32=0.25, on_average=0.01),
    ]


def rotate(format: Format, size: Size) -> Case:
    peers = moving_peers(size, rotation(size, ANGLE))
    images, shape = partial(one, format, size), format.shape(size)
    return Case("rotate", {"degrees": ANGLE}, format, images, shape, peers)


def warp_affine(format: Format, size: Size) -> Case:
    matrix = WARP.copy()
    matrix[:, 2] *= size[0] / FULL[0]
    peers = moving_peers(size, matrix)
    images, shape = partial(one, format, size), format.shape(size)
    return Case("warp_affine", {"matrix": matrix.tolist()}, format, images, shape, peers)


# -- frames ----------------------------------------------------------------------------------------


def letterbox(format: Format, method: str, size: Size) -> Case:
    """A third of the size in the middle of a square."""
    height, width = size[0] // 3, size[1] // 3
    above = (width - height) // 2
    levels = [round(part * format.top, 6) for part in COLOR]
    if format.dtype != "f32":
        levels = [round(level) for level in levels]
    fill = [*levels, format.top] if format.has_alpha else levels
    light = COLOR[0] if format is GRAY else COLOR

    def framed(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        cv2, (x,), inner = opencv_module(), images, out[above : above + height]
        outer = [out[:above], out[above + height :]]
        filled = fill[0] if format is GRAY else fill

        def run() -> None:
            cv2.resize(x, (width, height), dst=inner, interpolation=cv2.INTER_AREA)
            for part in outer:
                part[...] = filled

        return run

    if method == "area":
        peers = [Peer("OpenCV resize", framed)]
    else:
        color = fill[0] if format is GRAY else tuple(fill)
        peers = [pillow(partial(_padded, (width, height), above, color), weighed=False)]
    params = {"color": light, "method": method}
    shape = format.shape((width, width))
    return Case("letterbox", params, format, partial(one, format, size), shape, peers)


def _padded(size: tuple[int, int], above: int, color: Any, image_module: Any, image: Any) -> Any:
    made = image_module.new(image.mode, (size[0], size[0]), color)
    made.paste(image.resize(size, image_module.Resampling.BILINEAR), (0, above))
    return made
