"""Filters that act on each channel alone: of levels they are tables, of floats formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.case import Case
from benchmarks.filters.formats import FORMATS, GRAY, Format, Size, Sizes, picture
from benchmarks.filters.peers_opencv import opencv
from benchmarks.filters.peers_others import numba, numpy, torch
from benchmarks.filters.tables import Formula, table_peers
from dala.gpu import compute

f32 = np.float32
Peers = Callable[[Format], Iterator[Peer]]
STOPS, CONTRAST, BRIGHTNESS, GAMMA, EXPOSURE, TEMPERATURE = 0.7, 0.3, 0.2, 2.2, 3.0, 10_000
CURVES = np.stack([np.linspace(0, 1, 20) ** power for power in (0.7, 1.2, 1.6)], -1).astype(f32)
"""A table of 20 entries (entry, channel) that bends each channel in its own way."""


@dataclass(frozen=True)
class Point:
    """A filter of single channels: its formula, and those who have it beside tables of levels."""

    kernel: str
    params: dict[str, Any]
    formula: Formula
    peers: Peers
    alike: bool = True
    """Whether all channels have one formula; where not, a gray image has another filter."""


def cases(sizes: Sizes) -> Iterator[tuple[str, Case]]:
    for name, point in POINTS.items():
        for format in FORMATS:
            if point.alike or format is not GRAY:
                yield f"{name}-{format.name}", case_of(point, format, sizes.full)
    for name in ("brightness", "gamma", "invert"):
        for format in FORMATS[:3]:
            yield f"{name}-128px-{format.name}", case_of(POINTS[name], format, sizes.thumbnail)


def case_of(point: Point, format: Format, size: Size) -> Case:
    peers = list(point.peers(format))
    if format.dtype != "f32":
        peers += table_peers(point.formula, format, alike=point.alike)
    images = partial(picture, format, size)
    return Case(point.kernel, point.params, format, lambda: [images()], format.shape(size), peers)


# -- sums and products -----------------------------------------------------------------------------


def sums(format: Format, amount: float) -> Iterator[Peer]:
    yield opencv("add", (*(amount * format.top,) * 3, 0.0), name="OpenCV add")
    yield from scaled(format, 1, amount)


def products(format: Format, factor: float) -> Iterator[Peer]:
    yield opencv("multiply", (*(factor,) * 3, 1.0), name="OpenCV multiply")
    yield from scaled(format, factor, 0)


def complements(format: Format) -> Iterator[Peer]:
    if format.dtype == "f32":
        yield numpy(lambda np, x, out: np.subtract(f32(1), x, out=out))
    elif format.has_alpha:
        mask = (255.0, 255.0, 255.0, 0.0)
        yield opencv("bitwise_xor", mask, name="OpenCV bitwise_xor")
        yield numpy(_invert_words)
    else:
        yield opencv("bitwise_not", name="OpenCV bitwise_not")
        yield numpy(lambda np, x, out: np.invert(x, out=out))
    if format.dtype == "u8" and not format.has_alpha:
        yield torch(lambda torch, x, out: torch.bitwise_not(x, out=out))
    yield from scaled(format, -1, 1)


def _invert_words(_: Any, x: np.ndarray, out: np.ndarray) -> None:
    np.bitwise_xor(x.view(np.uint32), np.uint32(0x00FFFFFF), out=out.view(np.uint32))


def scaled(format: Format, a: float, b: float) -> Iterator[Peer]:
    """a · x + b, which does not spare alpha."""
    if format.has_alpha:
        return
    yield Peer("OpenCV addWeighted", partial(_add_weighted, a, b * format.top))
    if format.dtype == "u8" and b >= 0:
        given = {"alpha": a, "beta": b * format.top}
        yield opencv("convertScaleAbs", name="OpenCV convertScaleAbs", **given)
    if format.dtype == "f32":
        yield numpy(_scale_floats, f32(a), f32(b))
        yield torch(_scale_tensors, float(a), np.array(b, f32))
        yield numba("loops_points.scale_and_add", f32(a), f32(b))


def _add_weighted(a: float, b: float, images: Sequence[np.ndarray], out: np.ndarray) -> Call:
    return opencv("addWeighted", a, images[0], 0.0, b).make(images, out)


def _scale_floats(_: Any, x: np.ndarray, out: np.ndarray, a: Any, b: Any) -> None:
    if a == 1:
        np.add(x, b, out=out)
    else:
        np.multiply(x, a, out=out)
        if b:
            np.add(out, b, out=out)


def _scale_tensors(torch: Any, x: Any, out: Any, a: float, b: Any) -> None:
    if a == 1:
        torch.add(x, b, out=out)
    elif b == 0:
        torch.mul(x, a, out=out)
    else:
        torch.add(b, x, alpha=a, out=out)


# -- curves ----------------------------------------------------------------------------------------


def powers(format: Format, power: float) -> Iterator[Peer]:
    if format.dtype == "f32":
        yield opencv("pow", power)
        yield numpy(lambda np, x, out: np.power(x, f32(power), out=out))
        yield torch(lambda torch, x, out: torch.pow(x, power, out=out))
        yield numba("loops_points.raise_to", f32(power))


def exponentials(format: Format) -> Iterator[Peer]:
    scale = 1 / (1 - np.exp(-EXPOSURE))

    def tame(torch: Any, x: Any, out: Any) -> None:
        torch.mul(x, -EXPOSURE, out=out)
        out.expm1_().mul_(-scale)

    if format.dtype == "f32":
        yield torch(tame)
        yield numba("loops_points.tame", f32(EXPOSURE), f32(scale))


@cache
def gains() -> np.ndarray:
    """What the white balance multiplies channels by: what it makes of white."""
    white, out = compute.from_numpy(np.ones((1, 1, 3), f32)), compute.buffer_zeros((1, 1, 3), "f32")
    compute.run_kernel("white_balance", [white], out, {"temperature": TEMPERATURE})
    return np.asarray(out)[0, 0].copy()


def factors(format: Format) -> np.ndarray:
    """The gains of as many channels as there are; alpha stays."""
    return np.append(gains(), f32(1))[: format.channels].copy()


def balances(format: Format) -> Iterator[Peer]:
    by = partial(factors, format)
    yield opencv("multiply", lambda: (*gains().tolist(), 1.0), name="OpenCV multiply")
    yield opencv("transform", lambda: np.diag(by()), name="OpenCV transform")
    yield numba("loops_points.multiply", by)
    if format.dtype == "f32":
        yield numpy(lambda np, x, out, by: np.multiply(x, by, out=out), by)
        yield torch(lambda torch, x, out, by: torch.mul(x, by, out=out), by)


def bends(format: Format) -> Iterator[Peer]:
    if format.dtype == "f32":
        yield numba("loops_points.follow_curves", CURVES)


def bent(colors: np.ndarray) -> np.ndarray:
    axis = np.linspace(0, 1, len(CURVES))
    return np.stack([np.interp(colors[..., k], axis, CURVES[:, k]) for k in range(3)], -1)


POINTS = {
    "brightness": Point(
        "brightness",
        {"value": BRIGHTNESS},
        lambda x: x + BRIGHTNESS,
        lambda format: sums(format, BRIGHTNESS),
    ),
    "contrast": Point(
        "contrast",
        {"value": CONTRAST},
        lambda x: (1 + CONTRAST) * (x - 0.5) + 0.5,
        lambda format: scaled(format, 1 + CONTRAST, -CONTRAST / 2),
    ),
    "exposure": Point(
        "exposure",
        {"stops": STOPS},
        lambda x: x * 2**STOPS,
        lambda format: products(format, 2**STOPS),
    ),
    "invert": Point("invert", {}, lambda x: 1 - x, complements),
    "gamma": Point(
        "gamma",
        {"value": GAMMA},
        lambda x: x ** (1 / GAMMA),
        lambda format: powers(format, 1 / GAMMA),
    ),
    "hdr": Point(
        "hdr",
        {"exposure": EXPOSURE},
        lambda x: np.expm1(-EXPOSURE * x) / np.expm1(-EXPOSURE),
        exponentials,
    ),
    "white-balance": Point(
        "white_balance",
        {"temperature": TEMPERATURE},
        lambda x: x * gains(),
        balances,
        alike=False,
    ),
    "lut-1d": Point("lut", {"table": CURVES}, bent, bends, alike=False),
}
