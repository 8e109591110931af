"""Many small pictures, one after another: what a call costs counts as much as its pixels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Comparison, Row
from dala.gpu import compute

COUNT = 1000
SIDE = 128
BAR = 1.1
WORKS: dict[str, tuple[str, dict[str, Any], int, float]] = {
    "resize": ("resize", {"method": "area"}, 2 * SIDE, 1),
    "blur": ("blur", {"radius": 3, "sigma": 1.5}, SIDE, 3),
    "gamma": ("gamma", {"value": 2.2}, SIDE, 1),
}
"""A filter, its parameters, the side of the pictures before, and how far apart results may be."""


def peer_of(name: str) -> Callable[[np.ndarray, np.ndarray], object]:
    """OpenCV's way to make one of the thumbnails."""
    import cv2

    cv2.setNumThreads(compute.device_info()["threads"])
    if name == "resize":
        size, area = (SIDE, SIDE), cv2.INTER_AREA
        return lambda x, out: cv2.resize(x, size, dst=out, interpolation=area)
    if name == "blur":
        rim = cv2.BORDER_REPLICATE
        return lambda x, out: cv2.GaussianBlur(x, (7, 7), 1.5, dst=out, borderType=rim)
    curve = np.rint((np.arange(256) / 255) ** (1 / 2.2) * 255)
    tables = np.stack([curve] * 3 + [np.arange(256)], -1)[None].astype(np.uint8)
    return lambda x, out: cv2.LUT(x, tables, dst=out)


def thumbnails(name: str) -> Comparison:
    kernel, params, side, within = WORKS[name]
    call = peer_of(name)
    random = np.random.default_rng(1)
    pictures = [random.integers(0, 256, (side, side, 4), np.uint8) for _ in range(COUNT)]
    shape = (SIDE, SIDE, 4)
    ours = [(compute.from_numpy(x), compute.buffer_zeros(shape, "u8")) for x in pictures]
    theirs = [(x, np.empty(shape, np.uint8)) for x in pictures]

    def run() -> None:
        for source, out in ours:
            compute.run_kernel(kernel, [source], out, params)

    def peer() -> None:
        for source, out in theirs:
            call(source, out)

    def check() -> None:
        for (_, out), (_, made) in zip(ours, theirs, strict=True):
            apart = np.abs(np.asarray(out).astype(int) - made)
            assert apart.max() <= within, f"{name}: {apart.max()} levels off OpenCV"

    work = f"{COUNT:,} thumbnails of {SIDE} × {SIDE}, {name} : OpenCV"
    return Comparison(work, BAR, run, peer, check)


ROWS: dict[str, Callable[[], Row]] = {
    f"thumbnails-{name}": partial(thumbnails, name) for name in WORKS
}
