"""Images from one way of storing pixels to another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import Format, Size, Sizes, picture
from benchmarks.filters.peers_opencv import opencv
from benchmarks.filters.peers_others import numba, numpy
from benchmarks.filters.peers_pillow import pillow

CHANNELS = {"rgb": 3, "rgba": 4, "bgr": 3, "bgra": 4, "gray": 1}
CODES = {"yuv420p": "I420", "nv12": "NV12"}
ORDERS = {"rgb": (0, 1, 2), "rgba": (0, 1, 2), "bgr": (2, 1, 0), "bgra": (2, 1, 0)}
REORDERED = (
    ("rgb", "rgba"), ("rgb", "bgr"), ("rgb", "bgra"), ("rgb", "gray"), ("rgba", "rgb"),
    ("rgba", "bgra"), ("rgba", "bgr"), ("rgba", "gray"), ("bgra", "rgb"), ("gray", "rgb"),
    ("gray", "rgba"),
)  # fmt: skip
DEEP = (("rgb", "bgr"), ("rgb", "rgba"), ("rgb", "gray"))
EXPANDED = [(a, b) for a in CODES for b in ("rgb", "rgba", "bgr", "bgra")]
REDUCED = [(a, b) for a in ("rgb", "rgba", "bgr", "bgra") for b in CODES]
YUV = Format("yuv", 1, "u8")


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for source, target in REORDERED:
        yield f"convert-{source}-to-{target}-u8", reorder(source, target, "u8", sizes.full)
    for dtype in ("f32", "u16"):
        for source, target in DEEP:
            case = reorder(source, target, dtype, sizes.full)
            yield f"convert-{source}-to-{target}-{dtype}", case
    for source, target in EXPANDED:
        yield f"convert-{source}-to-{target}", expand(source, target, sizes.full)
    for source, target in REDUCED:
        yield f"convert-{source}-to-{target}", reduce(source, target, sizes.full)
    yield "convert-yuv420p-to-nv12", repack("yuv420p", "nv12", sizes.full)
    yield "convert-nv12-to-rgba-4k", expand("nv12", "rgba", sizes.large)


def format_of(name: str, dtype: str) -> Format:
    if dtype != "u8":
        return Format(dtype, CHANNELS[name], dtype)
    return Format({"bgr": "rgb", "bgra": "rgba"}.get(name, name), CHANNELS[name], dtype)


def reorder(source: str, target: str, dtype: str, size: Size) -> Case:
    format = format_of(source, dtype)
    peers = [opencv("cvtColor", f"COLOR_{source.upper()}2{target.upper()}")]
    if {source, target} <= {"rgb", "rgba", "gray"} and dtype == "u8":
        peers.append(pillow(partial(_converted, {"gray": "L"}.get(target, target.upper()))))
    if (source, target) in (("rgb", "bgr"), ("rgba", "bgra")):
        order = [2, 1, 0, 3][: format.channels]
        peers.append(numpy(lambda np, x, out: np.take(x, order, -1, out=out, mode="clip")))
    params = {"from": source, "to": target}
    shape = size if target == "gray" else (*size, CHANNELS[target])
    return Case(
        "convert", params, format, lambda: [picture(format, size)], shape, peers, dtype=dtype
    )


def _converted(mode: str, _: Any, image: Any) -> Any:
    return image.convert(mode)


# -- planes of video -------------------------------------------------------------------------------


def planes_of(size: Size, format: str) -> np.ndarray:
    """Smooth luma and chroma that stay within what colors can be."""
    height, width = size
    random = np.random.default_rng(5)
    y, x = np.mgrid[:height, :width]
    light = (40 + (x + 2 * y) % 160 + random.integers(-8, 9, size)).clip(16, 235)
    v, u = np.mgrid[: height // 2, : width // 2]
    blue, red = 128 + (u % 64) - 32, 128 + (v % 64) - 32
    chroma = [blue.ravel(), red.ravel()] if format == "yuv420p" else [np.stack([blue, red], -1)]
    flat = np.concatenate([light.ravel(), *(part.ravel() for part in chroma)])
    return flat.astype(np.uint8).reshape(height * 3 // 2, width)


def expand(source: str, target: str, size: Size) -> Case:
    interleaved, order = source == "nv12", np.array(ORDERS[target])
    peers = [
        opencv("cvtColor", f"COLOR_YUV2{target.upper()}_{CODES[source]}"),
        numba("loops_windows.expand_planes", size[1], interleaved, order),
    ]
    params, shape = {"from": source, "to": target}, (*size, CHANNELS[target])
    return Case("convert", params, YUV, lambda: [planes_of(size, source)], shape, peers)


def blocks(channels: int, size: Size) -> np.ndarray:
    """Colors that are the same in each 2 × 2 pixels: OpenCV takes the chroma of one of them."""
    small = picture(Format("blocks", channels, "u8"), (size[0] // 2, size[1] // 2))
    return np.ascontiguousarray(small.repeat(2, 0).repeat(2, 1))


def reduce(source: str, target: str, size: Size) -> Case:
    peers: list[Peer] = []
    if target == "yuv420p":
        peers.append(opencv("cvtColor", f"COLOR_{source.upper()}2YUV_I420"))
    order = np.array(ORDERS[source])
    peers.append(numba("loops_windows.reduce_colors", target == "nv12", order))
    params, shape = {"from": source, "to": target}, (size[0] * 3 // 2, size[1])
    images = partial(blocks, CHANNELS[source], size)
    return Case("convert", params, YUV, lambda: [images()], shape, peers)


def repack(source: str, target: str, size: Size) -> Case:
    """The chroma of both planes in turns, the luma copied."""
    height, width = size
    luma, chroma = height * width, height * width // 4

    def weave(_: Any, x: np.ndarray, out: np.ndarray) -> None:
        given, made = x.reshape(-1), out.reshape(-1)
        made[:luma] = given[:luma]
        made[luma::2], made[luma + 1 :: 2] = given[luma : luma + chroma], given[luma + chroma :]

    params = {"from": source, "to": target}
    images = partial(planes_of, size, source)
    shape = (height * 3 // 2, width)
    return Case("convert", params, YUV, lambda: [images()], shape, [numpy(weave)])
