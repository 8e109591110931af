"""Kernels as a newcomer writes them: beside the built-in that does the same, and beside peers.

A kernel of `OWN` is written in the plain way: whole pixels, floats, no tricks. What a built-in
gains by knowing better is what the compiler does not know yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dala
from benchmarks.harness import Comparison, Row
from benchmarks.pipelines import SHAPE, image
from benchmarks.programs import ROWS as PROGRAMS
from dala.gpu import compute

BAR = 1.1
WEIGHTS = tuple((w := np.exp(-((np.arange(-3, 4) / 1.5) ** 2) / 2)) / w.sum())


@dala.kernel
def blurred(image: dala.Image):
    y, x = dala.position(2)
    total = dala.rgba(0.0, 0.0, 0.0, 0.0)
    for i in range(7):
        for j in range(7):
            total += image[y + i - 3, x + j - 3] * WEIGHTS[i] * WEIGHTS[j]
    return total


@dala.kernel
def averaged(image: dala.Image):
    y, x = dala.position(2)
    total = dala.rgba(0.0, 0.0, 0.0, 0.0)
    for i in range(-5, 6):
        for j in range(-5, 6):
            total += image[y + i, x + j]
    return total / 121


@dala.kernel
def sharpened(image: dala.Image):
    y, x = dala.position(2)
    around = image[y - 1, x] + image[y + 1, x] + image[y, x - 1] + image[y, x + 1]
    return image.pixel + 0.5 * (4 * image.pixel - around)


@dala.kernel
def brightened(image: dala.Image, value: float):
    p = image.pixel
    return dala.rgba(p.r + value, p.g + value, p.b + value, p.a)


@dala.kernel
def grayed(image: dala.Image):
    p = image.pixel
    gray = 0.299 * p.r + 0.587 * p.g + 0.114 * p.b
    return dala.rgba(gray, gray, gray, p.a)


@dala.kernel
def eroded(image: dala.Image):
    y, x = dala.position(2)
    least = image.pixel
    for i in range(-1, 2):
        for j in range(-1, 2):
            least = min(least, image[y + i, x + j])
    return least


@dala.kernel
def inverted(image: dala.Image):
    p = image.pixel
    return dala.rgba(1 - p.r, 1 - p.g, 1 - p.b, p.a)


@dala.kernel
def sepia_toned(image: dala.Image):
    p = image.pixel
    return dala.rgba(
        0.393 * p.r + 0.769 * p.g + 0.189 * p.b,
        0.349 * p.r + 0.686 * p.g + 0.168 * p.b,
        0.272 * p.r + 0.534 * p.g + 0.131 * p.b,
        p.a,
    )


OWN: dict[str, tuple[str, dict[str, Any], compute.Kernel, dict[str, Any]]] = {
    "own-blur": ("blur", {"radius": 3, "sigma": 1.5}, blurred, {}),
    "own-sharpen": ("sharpen", {"amount": 0.5}, sharpened, {}),
    "own-brightness": ("brightness", {"value": 0.1}, brightened, {"value": 0.1}),
    "own-grayscale": ("grayscale", {}, grayed, {}),
    "own-box-blur": ("box_blur", {"radius": 5}, averaged, {}),
    "own-erode": ("erode", {"radius": 1}, eroded, {}),
    "own-invert": ("invert", {}, inverted, {}),
    "own-sepia": ("sepia", {"intensity": 1.0}, sepia_toned, {}),
}
"""A built-in with its parameters, and the kernel and parameters of the user's own."""


def own_kernel(name: str) -> Comparison:
    """A user's kernel in a pipeline, beside the built-in in one."""
    builtin, params, kernel, given = OWN[name]
    source = compute.from_numpy(image())
    ours, theirs = (compute.buffer_zeros(SHAPE, "u8") for _ in range(2))
    plain, known = compute.pipeline(), compute.pipeline()
    plain.add(kernel=kernel, inputs=[source], output=ours, params=given)
    known.add(kernel=builtin, inputs=[source], output=theirs, params=params)

    def check() -> None:
        apart = np.abs(np.asarray(ours).astype(int) - np.asarray(theirs))
        assert apart.max() <= 1, f"{name}: {apart.max()} levels off {builtin}"

    return Comparison(f"own {builtin}, 1080p RGBA : built-in", BAR, plain.run, known.run, check)


ROWS: dict[str, Callable[[], Row]] = {
    **{name: partial(own_kernel, name) for name in OWN},
    **PROGRAMS,
}
