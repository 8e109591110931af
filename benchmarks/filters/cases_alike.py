"""Filters that weigh pixels by how alike they are: bilateral means, denoising, skin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import COLORED, FORMATS, Format, Size, Sizes, picture
from benchmarks.filters.peers_opencv import opencv, opencv_module
from benchmarks.filters.peers_others import numba

f32 = np.float32
SIGMA_COLOR = 0.1
SIGMA_SPACE = {2: 2.0, 5: 4.0}
STRENGTH = 0.5
SKIN = (3, 0.2, 3.0)
"""Radius, sigma of colors and of space of the smoothing of `beauty`."""
BY_OPENCV = ("rgb", "gray", "f32")


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in FORMATS:
        for radius in SIGMA_SPACE:
            yield f"bilateral-{radius}-{format.name}", bilateral(format, radius, sizes.full)
        yield f"denoise-{format.name}", denoise(format, sizes.full)
    for format in COLORED:
        yield f"beauty-{format.name}", beauty(format, sizes.full)


def case_of(
    kernel: str, params: dict[str, Any], format: Format, size: Size, peers: Sequence[Peer]
) -> Case:
    images = partial(picture, format, size)
    return Case(kernel, params, format, lambda: [images()], format.shape(size), peers)


def around(radius: int, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """The places in a circle, (down, across), and how much each counts by its distance."""
    reach = range(-radius, radius + 1)
    places = np.array([(i, j) for i in reach for j in reach if i * i + j * j <= radius**2])
    nearness = np.exp(-(places**2).sum(-1) / (2 * sigma**2))
    return places.astype(np.int32), nearness.astype(f32)


def likeness_of(format: Format, sigma: float) -> np.ndarray:
    """The weight of each distance of colors; of all but u8 the factor in the exponent."""
    factor = -1 / (2 * (sigma * format.top) ** 2)
    if format.dtype != "u8":
        return np.array([factor], f32)
    return np.exp(factor * np.arange(255 * format.channels + 1) ** 2).astype(f32)


def bilateral(format: Format, radius: int, size: Size) -> Case:
    space = SIGMA_SPACE[radius]
    if format.name in BY_OPENCV:
        color = SIGMA_COLOR * format.top
        taps = 2 * radius + 1
        peer = opencv("bilateralFilter", taps, color, space, borderType="BORDER_REPLICATE")
        peers = [peer.off("weights of floats are in a table", f32=0.05)]
    else:
        peers = [Peer("Numba", partial(_numba_mean, format, radius, SIGMA_COLOR, space))]
    params = {"radius": radius, "sigma_color": SIGMA_COLOR, "sigma_space": space}
    return case_of("bilateral", params, format, size, peers)


def _numba_mean(
    format: Format,
    radius: int,
    color: float,
    space: float,
    images: Sequence[np.ndarray],
    out: np.ndarray,
) -> Call:
    (x,), (places, nearness) = images, around(radius, space)
    loop = numba("loops_windows.weigh_alike", places, nearness, likeness_of(format, color))
    return loop.make([x, x], out)


def denoise(format: Format, size: Size) -> Case:
    def make(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        """A blur of OpenCV's shows which pixels are alike."""
        cv2, (x,) = opencv_module(), images
        wide, guide = (np.empty(x.shape, f32) for _ in range(2))
        places, nearness = around(3, 3 * STRENGTH)
        factor = np.array([-1 / (2 * (0.3 * STRENGTH * format.top) ** 2)], f32)
        mean = numba("loops_windows.weigh_alike", places, nearness, factor).make([x, guide], out)

        def run() -> None:
            np.copyto(wide, x)
            cv2.GaussianBlur(wide, (3, 3), 1.0, dst=guide, borderType=cv2.BORDER_REPLICATE)
            mean()

        return run

    return case_of("denoise", {"strength": STRENGTH}, format, size, [Peer("Numba", make)])


def beauty(format: Format, size: Size) -> Case:
    def make(images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        (x,), (radius, color, space) = images, SKIN
        smooth, top = np.empty(x.shape, f32), f32(format.top)
        mean = _numba_mean(format, radius, color, space, [x], smooth)
        finish = numba("loops_windows.beautify", f32(STRENGTH), top).make([x, smooth], out)

        def run() -> None:
            mean()
            finish()

        return run

    return case_of("beauty", {"strength": STRENGTH}, format, size, [Peer("Numba", make)])
