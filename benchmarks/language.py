"""Kernels as a newcomer writes them: beside the built-in that does the same, and beside peers.

A kernel of `USERS` is written in the plain way: whole pixels, floats, no tricks. What a built-in
gains by knowing better is what the compiler does not know yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import dala
from benchmarks.harness import Comparison, Row
from benchmarks.pipelines import image
from benchmarks.programs import ROWS as PROGRAMS
from dala.gpu import compute

BAR = 1.2
WEIGHTS = tuple((w := np.exp(-((np.arange(-3, 4) / 1.5) ** 2) / 2)) / w.sum())
THREE = tuple((w := np.exp(-((np.arange(-1, 2) / 0.8) ** 2) / 2)) / w.sum())


@dala.kernel
def blurred(image: dala.Image):
    y, x = dala.position(2)
    total = dala.rgba(0.0, 0.0, 0.0, 0.0)
    for i in range(7):
        for j in range(7):
            total += image[y + i - 3, x + j - 3] * WEIGHTS[i] * WEIGHTS[j]
    return total


@dala.kernel
def softened(image: dala.Image):
    y, x = dala.position(2)
    total = dala.rgba(0.0, 0.0, 0.0, 0.0)
    for i in range(3):
        for j in range(3):
            total += image[y + i - 1, x + j - 1] * THREE[i] * THREE[j]
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


@dala.kernel
def bent(image: dala.Image, value: float):
    p = image.pixel
    power = 1 / value
    return dala.rgba(p.r**power, p.g**power, p.b**power, p.a)


@dala.kernel
def added(image: dala.Image, layer: dala.Image):
    return image.pixel + layer.pixel


@dala.kernel
def flipped(image: dala.Image):
    y, x = dala.position(2)
    _, width = dala.shape(2)
    return image[y, width - 1 - x]


@dataclass(frozen=True)
class User:
    """A built-in with its parameters, and the kernel and parameters of the user's own."""

    builtin: str
    params: dict[str, Any]
    kernel: compute.Kernel
    given: dict[str, Any] = field(default_factory=dict)
    inputs: int = 1
    channels: int = 4


USERS = {
    "user-blur-3": User("blur", {"radius": 3, "sigma": 1.5}, blurred),
    "user-blur-1": User("blur", {"radius": 1, "sigma": 0.8}, softened),
    "user-box-blur-5": User("box_blur", {"radius": 5}, averaged),
    "user-sharpen": User("sharpen", {"amount": 0.5}, sharpened),
    "user-erode-1": User("erode", {"radius": 1}, eroded),
    "user-brightness": User("brightness", {"value": 0.1}, brightened, {"value": 0.1}),
    "user-gamma": User("gamma", {"value": 2.2}, bent, {"value": 2.2}),
    "user-grayscale": User("grayscale", {}, grayed),
    "user-invert": User("invert", {}, inverted),
    "user-sepia": User("sepia", {"intensity": 1.0}, sepia_toned),
    # Of RGBA the built-in also adds alpha, by which colors are weighed.
    "user-blend-add": User("blend", {"mode": "add", "alpha": 1.0}, added, inputs=2, channels=3),
    "user-flip": User("flip", {"direction": "horizontal"}, flipped),
}


def user_kernel(name: str) -> Comparison:
    """A user's kernel in a pipeline, beside the built-in in one."""
    user = USERS[name]
    pixels = np.ascontiguousarray(image()[..., : user.channels])
    sources = [compute.from_numpy(turned) for turned in (pixels, pixels[::-1])[: user.inputs]]
    ours, theirs = (compute.buffer_zeros(pixels.shape, "u8") for _ in range(2))
    plain, known = compute.pipeline(), compute.pipeline()
    plain.add(kernel=user.kernel, inputs=sources, output=ours, params=user.given)
    known.add(kernel=user.builtin, inputs=sources, output=theirs, params=user.params)

    def check() -> None:
        apart = np.abs(np.asarray(ours).astype(int) - np.asarray(theirs))
        assert apart.max() <= 1, f"{name}: {apart.max()} levels off {user.builtin}"

    kind = "RGBA" if user.channels == 4 else "RGB"
    work = f"user: {name.removeprefix('user-')}, 1080p {kind} : built-in"
    return Comparison(work, BAR, plain.run, known.run, check)


ROWS: dict[str, Callable[[], Row]] = {
    **{name: partial(user_kernel, name) for name in USERS},
    **PROGRAMS,
}
