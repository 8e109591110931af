"""Filters that look around a pixel: blurs, medians, extremes, what sharpens and what smooths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import (
    F32,
    FORMATS,
    GRAY,
    RGB,
    RGBA,
    U16,
    Format,
    Size,
    Sizes,
    picture,
)
from benchmarks.filters.peers_opencv import opencv, opencv_steps
from benchmarks.filters.peers_others import numba, torch_planes, vips, vips_mask
from benchmarks.filters.peers_pillow import pillow_filter

f32 = np.float32
EDGE = "BORDER_REPLICATE"
RADII = (1, 3, 5, 20)
SIGMAS = {1: 0.8, 3: 1.5, 5: 2.5, 20: 6.7}
AMOUNT = 0.5
CROSS = np.array([[0, -AMOUNT, 0], [-AMOUNT, 1 + 4 * AMOUNT, -AMOUNT], [0, -AMOUNT, 0]], f32)
FIXED = "OpenCV blurs bytes in fixed point, up to 2.3 levels off its own result in floats"


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for format in FORMATS:
        for radius in RADII:
            yield f"blur-{radius}-{format.name}", blur(format, radius, sizes.full)
            yield f"box-blur-{radius}-{format.name}", box_blur(format, radius, sizes.full)
            yield f"erode-{radius}-{format.name}", extreme("erode", format, radius, sizes.full)
            yield f"dilate-{radius}-{format.name}", extreme("dilate", format, radius, sizes.full)
        for radius in (1, 2):
            yield f"median-{radius}-{format.name}", median(format, radius, sizes.full)
        yield f"sharpen-{format.name}", sharpen(format, sizes.full)
        yield f"unsharp-{format.name}", unsharp(format, sizes.full)
        yield f"edge-detect-{format.name}", edge_detect(format, sizes.full)
    for format in (RGBA, RGB, GRAY):
        yield f"blur-3-128px-{format.name}", blur(format, 3, sizes.thumbnail)
    yield "sharpen-128px-rgba", sharpen(RGBA, sizes.thumbnail)
    yield "erode-1-128px-rgba", extreme("erode", RGBA, 1, sizes.thumbnail)
    yield "box-blur-3-128px-rgba", box_blur(RGBA, 3, sizes.thumbnail)
    yield "median-1-128px-rgba", median(RGBA, 1, sizes.thumbnail)
    yield "blur-3-4k-rgba", blur(RGBA, 3, sizes.large)
    yield "sharpen-4k-rgba", sharpen(RGBA, sizes.large)


def case_of(
    kernel: str, params: dict[str, Any], format: Format, size: Size, peers: Sequence[Peer]
) -> Case:
    images = partial(picture, format, size)
    return Case(kernel, params, format, lambda: [images()], format.shape(size), peers)


# -- means -----------------------------------------------------------------------------------------


def weights_of(radius: int, sigma: float) -> np.ndarray:
    weights = np.exp(-((np.arange(-radius, radius + 1) / sigma) ** 2) / 2)
    return weights / weights.sum()


def blur(format: Format, radius: int, size: Size) -> Case:
    sigma, taps = SIGMAS[radius], 2 * radius + 1
    gauss = opencv("GaussianBlur", (taps, taps), sigma, borderType=EDGE)
    peers = [gauss.off(FIXED, u8=3.0, on_average=1.0)]
    row = weights_of(radius, sigma)[None]
    if format.dtype == "f32":
        peers.append(vips(lambda _, x, mask: x.convsep(mask, precision="float"), row))
        peers.append(torch_planes(partial(_torch_blur, radius), lambda: row.astype(f32).ravel()))
    return case_of("blur", {"radius": radius, "sigma": sigma}, format, size, peers)


def _torch_blur(radius: int, torch: Any, planes: Any, weights: Any) -> Any:
    functional, channels = torch.nn.functional, planes.shape[1]
    taps = torch.from_numpy(weights)
    padded = functional.pad(planes, (radius,) * 4, mode="replicate")
    down = taps.view(1, 1, -1, 1).expand(channels, 1, -1, 1)
    across = taps.view(1, 1, 1, -1).expand(channels, 1, 1, -1)
    return functional.conv2d(functional.conv2d(padded, down, groups=channels), across,
                             groups=channels)  # fmt: skip


def box_blur(format: Format, radius: int, size: Size) -> Case:
    taps = 2 * radius + 1
    peers = [opencv("blur", (taps, taps), borderType=EDGE)]
    if format.dtype == "u8":
        peers.append(pillow_filter("BoxBlur", radius))
    if format.dtype == "f32":
        peers.append(torch_planes(partial(_torch_mean, radius)))
    return case_of("box_blur", {"radius": radius}, format, size, peers)


def _torch_mean(radius: int, torch: Any, planes: Any) -> Any:
    functional, taps = torch.nn.functional, 2 * radius + 1
    padded = functional.pad(planes, (radius,) * 4, mode="replicate")
    down = functional.avg_pool2d(padded, (taps, 1), stride=1)
    return functional.avg_pool2d(down, (1, taps), stride=1)


# -- ranks -----------------------------------------------------------------------------------------


def extreme(kernel: str, format: Format, radius: int, size: Size) -> Case:
    taps = 2 * radius + 1
    peers = [opencv(kernel, np.ones((taps, taps), np.uint8), borderType=EDGE)]
    if format.dtype == "u8" and radius <= 3:  # its time grows with the window
        peers.append(pillow_filter("MinFilter" if kernel == "erode" else "MaxFilter", taps))
    if format.dtype == "f32":
        peers.append(torch_planes(partial(_torch_extreme, kernel, radius)))
    return case_of(kernel, {"radius": radius}, format, size, peers)


def _torch_extreme(kernel: str, radius: int, torch: Any, planes: Any) -> Any:
    """What PyTorch pads is less than all there is, as nothing outside counts for an extreme."""
    pool, taps = torch.nn.functional.max_pool2d, 2 * radius + 1
    sign = -1 if kernel == "erode" else 1
    down = pool(planes * sign if sign < 0 else planes, (taps, 1), stride=1, padding=(radius, 0))
    made = pool(down, (1, taps), stride=1, padding=(0, radius))
    return made.neg_() if sign < 0 else made


def median(format: Format, radius: int, size: Size) -> Case:
    taps = 2 * radius + 1
    peers = [opencv("medianBlur", taps)]
    if format.dtype == "u8":
        peers.append(pillow_filter("MedianFilter", taps))
    return case_of("median", {"radius": radius}, format, size, peers)


# -- details ---------------------------------------------------------------------------------------


def sharpen(format: Format, size: Size) -> Case:
    peers = [
        opencv("filter2D", -1, CROSS, borderType=EDGE),
        numba("loops_windows.sharpen", f32(AMOUNT)),
    ]
    if format.dtype == "u8":
        peers.append(vips(_vips_sharpen, lambda: vips_mask(CROSS * 2, 2)))
    return case_of("sharpen", {"amount": AMOUNT}, format, size, peers)


def _vips_sharpen(_: Any, image: Any, mask: Any) -> Any:
    return image.conv(mask, precision="integer")


def unsharp(format: Format, size: Size) -> Case:
    def steps(cv2: Any, images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        (x,), soft = images, np.empty_like(out)

        def run() -> None:
            cv2.GaussianBlur(x, (5, 5), 1.0, dst=soft, borderType=cv2.BORDER_REPLICATE)
            cv2.addWeighted(x, 2.0, soft, -1.0, 0.0, dst=out)

        return run

    peer = opencv_steps(steps).off(FIXED + ", and rounds it", u8=4.0, u16=2 / 257, on_average=1.0)
    return case_of("unsharp", {"radius": 2, "sigma": 1.0, "amount": 1.0}, format, size, [peer])


def edge_detect(format: Format, size: Size) -> Case:
    """Into one channel, where OpenCV rounds the luma of integers first."""

    def steps(cv2: Any, images: Sequence[np.ndarray], out: np.ndarray) -> Call:
        (x,), rim = images, cv2.BORDER_REPLICATE
        code = cv2.COLOR_RGBA2GRAY if format.has_alpha else cv2.COLOR_RGB2GRAY
        light = x if format is GRAY else np.empty(out.shape, out.dtype)
        across, down, steep = (np.empty(out.shape, f32) for _ in range(3))
        wide = out if format is F32 else steep

        def run() -> None:
            if format is not GRAY:
                cv2.cvtColor(x, code, dst=light)
            cv2.Sobel(light, cv2.CV_32F, 1, 0, dst=across, borderType=rim)
            cv2.Sobel(light, cv2.CV_32F, 0, 1, dst=down, borderType=rim)
            cv2.magnitude(across, down, magnitude=wide)
            if format is U16:
                np.copyto(
                    out, np.minimum(np.add(steep, 0.5, out=steep), 65535, out=steep), "unsafe"
                )
            elif format is not F32:
                cv2.convertScaleAbs(steep, dst=out)

        return run

    opencv_peer = opencv_steps(steps).off(
        "the luma is rounded first", u8=6.0, u16=10 / 257, on_average=1.5
    )
    light = partial(np.empty, size, f32)
    peers = [opencv_peer, numba("loops_windows.find_edges", light)]
    images = partial(picture, format, size)
    return Case("edge_detect", {}, format, lambda: [images()], size, peers)
