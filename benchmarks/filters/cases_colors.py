"""Filters of colors that take all channels of a pixel, or its place, into account."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import (
    COLORED,
    F32,
    FORMATS,
    GRAY,
    RGB,
    RGBA,
    Format,
    Size,
    Sizes,
    picture,
)
from benchmarks.filters.peers_opencv import opencv
from benchmarks.filters.peers_others import numba, numpy, torch, vips
from benchmarks.filters.peers_pillow import pillow, pillow_filter
from benchmarks.filters.tables import table_peers

f32 = np.float32
LUMA = np.array([0.299, 0.587, 0.114])
SATURATION, DEGREES, SEPIA, CUBE, KEY = 0.3, 50, 0.8, 33, (0.1, 0.9, 0.2)
SIMILARITY, BLEND = 0.1, 0.3
LIMIT = 0.5
MIX = np.array([[0.4, 0.5, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
FARTHER = {"u8": 1.0, "u16": 4 / 257, "f32": 0.01}
"""Of u16, sums of products are computed in f32, whose last bit is 1/256 of a level of 65,535."""


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in COLORED:
        shape, images = format.shape(sizes.full), partial(_alone, format, sizes.full)
        for name, (kernel, params, matrix) in MATRICES.items():
            peers = list(matrix_peers(format, matrix))
            yield f"{name}-{format.name}", Case(kernel, params, format, images, shape, peers)
        yield f"grayscale-{format.name}", grayscale(format, sizes.full)
        yield f"chroma-key-{format.name}", chroma_key(format, sizes.full)
        for method in ("trilinear", "tetrahedral"):
            yield f"lut-3d-{method}-{format.name}", lut(format, method, sizes.full)
    yield "grayscale-128px-rgba", grayscale(RGBA, sizes.thumbnail)
    for format in FORMATS:
        yield f"threshold-{format.name}", threshold(format, sizes.full)
        yield f"vignette-{format.name}", vignette(format, sizes.full)


def _alone(format: Format, size: Size) -> list[np.ndarray]:
    return [picture(format, size)]


# -- matrices --------------------------------------------------------------------------------------


def turned(degrees: float) -> np.ndarray:
    """The matrix of CSS hue-rotate."""
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    still = np.array([[0.213, 0.715, 0.072]] * 3)
    with_cos = np.eye(3) - still
    with_sin = [[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]]
    return still + cos * with_cos + sin * np.array(with_sin)


def browned(amount: float) -> np.ndarray:
    """The matrix of CSS sepia."""
    full = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]
    return amount * np.array(full) + (1 - amount) * np.eye(3)


def saturated(value: float) -> np.ndarray:
    return (1 + value) * np.eye(3) - value * np.stack([LUMA] * 3)


MATRICES: dict[str, tuple[str, dict[str, Any], np.ndarray]] = {
    "saturation": ("saturation", {"value": SATURATION}, saturated(SATURATION)),
    "hue": ("hue", {"degrees": DEGREES}, turned(DEGREES)),
    "sepia": ("sepia", {"intensity": SEPIA}, browned(SEPIA)),
    "color-matrix": ("color_matrix", {"matrix": MIX.tolist()}, MIX),
}


def matrix_peers(format: Format, matrix: np.ndarray) -> Iterator[Peer]:
    given = np.eye(format.channels, dtype=f32)
    given[:3, :3] = matrix
    yield opencv("transform", given)
    yield numba("loops_points.mix_channels", matrix.astype(f32)).off("f32", **FARTHER)
    if format.dtype == "f32":
        across = np.ascontiguousarray(matrix.T, f32)
        yield torch(lambda torch, x, out, m: torch.mm(_flat(x), m, out=_flat(out)), across)
        yield numpy(lambda np, x, out, m: np.matmul(_flat(x), m, out=_flat(out)), across)
    if format is RGB:
        numbers = np.column_stack([matrix, np.zeros(3)]).ravel().tolist()
        yield pillow(lambda _, shown: shown.convert("RGB", numbers))
    kind = {"u8": "uchar", "u16": "ushort", "f32": "float"}[format.dtype]
    rint = format.dtype != "f32"
    yield vips(partial(_recombine, kind, rint), given.astype(np.float64))


def _recombine(kind: str, rounds: bool, _: Any, shown: Any, matrix: Any) -> Any:
    made = shown.recomb(matrix)
    return (made.rint() if rounds else made).cast(kind)


def _flat(pixels: Any) -> Any:
    return pixels.reshape(-1, pixels.shape[-1])


def grayscale(format: Format, size: Size) -> Case:
    code = "COLOR_RGBA2GRAY" if format.has_alpha else "COLOR_RGB2GRAY"
    peers = [opencv("cvtColor", code), numba("loops_points.gray")]
    if format.dtype == "u8":
        peers.append(pillow(lambda _, shown: shown.convert("L")))
    if format is F32:
        column = LUMA.astype(f32)[:, None]
        into = lambda torch, x, out, m: torch.mm(_flat(x), m, out=out.view(-1, 1))  # noqa: E731
        peers.append(torch(into, column))
    return Case("grayscale", {}, format, partial(_alone, format, size), size, peers)


# -- places and limits -----------------------------------------------------------------------------


def threshold(format: Format, size: Size) -> Case:
    """A pixel whose luma is that of the limit but for rounding may go either way."""
    top, half = format.top, LIMIT if format.dtype == "f32" else int(LIMIT * format.top)
    limit = f32(LIMIT * top)
    if format is GRAY:
        peers = [opencv("threshold", half, top, "THRESH_BINARY")]
        peers += table_peers(lambda x: np.where(x > LIMIT, 1.0, 0.0), format)
    else:
        named = {"u8": np.uint8, "u16": np.uint16, "f32": f32}[format.dtype]
        found = numba("loops_points.tell_apart", limit, named(top))
        peers = [found.off("luma that is rounded otherwise", share=1e-5, on_average=0.01)]
    images = partial(_alone, format, size)
    return Case("threshold", {"value": LIMIT}, format, images, format.shape(size), peers)


def light_of(size: Size) -> np.ndarray:
    """What the vignette multiplies colors by, with its own defaults."""
    height, width = size
    down = (np.arange(height)[:, None] + 0.5) / height - 0.5
    across = (np.arange(width) + 0.5) / width - 0.5
    t = ((np.hypot(down, across) - 0.3) / 0.45).clip(0, 1)
    return (1 - 0.5 * (3 * t**2 - 2 * t**3)).astype(f32)


def vignette(format: Format, size: Size) -> Case:
    """Peers have the map of the light beforehand."""
    light = partial(light_of, size)
    peers = [numba("loops_points.shade", light), opencv("multiply", partial(_spread, format, size),
             dtype={"u8": 0, "u16": 2, "f32": 5}[format.dtype])]  # fmt: skip
    if format is F32:
        wide = lambda: light()[..., None]  # noqa: E731
        peers.append(numpy(lambda np, x, out, by: np.multiply(x, by, out=out), wide))
        peers.append(torch(lambda torch, x, out, by: torch.mul(x, by, out=out), wide))
    images = partial(_alone, format, size)
    return Case("vignette", {}, format, images, format.shape(size), peers)


def _spread(format: Format, size: Size) -> np.ndarray:
    """The map of the light for each channel, 1 for alpha."""
    if format is GRAY:
        return light_of(size)
    made = np.repeat(light_of(size)[..., None], format.channels, -1)
    made[..., 3:] = 1
    return made


# -- tables and keys -------------------------------------------------------------------------------


def cube() -> np.ndarray:
    """A table (blue, green, red, channel) that bends and mixes colors."""
    axis = np.linspace(0, 1, CUBE, dtype=f32)
    b, g, r = np.meshgrid(axis, axis, axis, indexing="ij")
    return np.stack([r**0.8, 0.9 * g + 0.1 * r, b**1.2], -1).astype(f32)


def lut(format: Format, method: str, size: Size) -> Case:
    peers = [numba(f"loops_points.look_up_{method}", cube, f32(format.top))]
    if method == "trilinear" and format.dtype == "u8":
        peers.append(pillow_filter("Color3DLUT", CUBE, lambda: cube().reshape(-1)))
    params = {"table": cube(), "interpolation": method}
    images = partial(_alone, format, size)
    return Case("lut", params, format, images, format.shape(size), peers)


def chroma_key(format: Format, size: Size) -> Case:
    light = float(LUMA @ KEY)
    key = f32((KEY[2] - light) / 1.772), f32((KEY[0] - light) / 1.402)
    loop = numba("loops_points.key_out", f32(format.top), *key, f32(SIMILARITY), f32(BLEND))
    params = {"color": KEY, "similarity": SIMILARITY, "blend": BLEND}
    return Case("chroma_key", params, format, partial(_alone, format, size), (*size, 4), [loop])
