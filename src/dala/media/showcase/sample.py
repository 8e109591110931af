"""A generated sample picture, with something for every filter to work on.

A portrait in front of a landscape: smooth gradients, shaded round objects, sharp edges, fine
texture, text-like lines, saturated colors, skin, and a little noise. It is computed from formulas
over a drawing of 720 × 480 points, which is scaled and centered for other sizes.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dala.errors import ArgumentError
from dala.media.showcase.canvas import Canvas, Field, color, disc, rectangle
from dala.media.showcase.portrait import outline, paint_person

HEIGHT, WIDTH = 480, 720
SCREEN = (0, 177, 64)
"""The green of `green_screen`, for `chroma_key`."""

_LARGEST_EXTENT = 1 << 14
_NOISE_LEVELS = 1.6
_HORIZON = 292.0
_CUBE_STEPS = 9


def picture(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Returns the sample picture: (height, width, 4) u8, opaque, the same at every call."""
    canvas = _canvas("picture", height, width)
    _paint_sky(canvas)
    _paint_mountains(canvas)
    _paint_meadow(canvas)
    _paint_balloon(canvas.part(60, 40, 240, 280))
    _paint_card(canvas.part(20, 310, 240, 475))
    for u, v, radius, tint in (
        (300.0, 398.0, 15.0, "#f6c80e"),
        (362.0, 424.0, 17.0, "#2747e0"),
        (268.0, 434.0, 30.0, "#e0202c"),
        (328.0, 449.0, 20.0, "#1f9d3a"),
    ):
        reach = 2 * radius
        part = canvas.part(u - reach, v - reach, u + reach, v + reach)
        _paint_ball(part, u, v, radius, tint)
    paint_person(canvas)
    return canvas.levels(noise=_NOISE_LEVELS, seed=7)


def person_mask(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Returns the mask of the person in `picture`: (height, width) u8, 255 inside, soft edges."""
    canvas = _canvas("person_mask", height, width)
    levels: np.ndarray = np.rint(canvas.cover(outline(canvas.u, canvas.v), soft=2.0) * 255)
    return levels.astype(np.uint8)


def green_screen(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Returns the person of `picture` on a green screen: (height, width, 4) u8, opaque."""
    canvas = _canvas("green_screen", height, width)
    light = 1.0 - 0.10 * np.hypot((canvas.u - 400) / 720, (canvas.v - 200) / 480)
    canvas.fill(np.array(SCREEN) / 255.0 * light[..., None])
    paint_person(canvas)
    return canvas.levels(noise=_NOISE_LEVELS, seed=7)


def cube_text() -> str:
    """Returns a small 3D lookup table with a warm look, as the text of a `.cube` file."""
    steps = np.linspace(0.0, 1.0, _CUBE_STEPS)
    lines = [
        "# Warm light, gently raised shadows, and a soft shoulder.",
        'TITLE "Warm evening"',
        f"LUT_3D_SIZE {_CUBE_STEPS}",
        "DOMAIN_MIN 0.0 0.0 0.0",
        "DOMAIN_MAX 1.0 1.0 1.0",
    ]
    for blue in steps:
        for green in steps:
            for red in steps:
                luma = 0.299 * red + 0.587 * green + 0.114 * blue
                warm = (
                    0.04 + 0.96 * red**0.80,
                    0.02 + 0.93 * (0.9 * green + 0.1 * luma) ** 0.97,
                    0.06 + 0.66 * (0.8 * blue + 0.2 * luma) ** 1.12,
                )
                lines.append(" ".join(f"{min(value, 1.0):.6f}" for value in warm))
    return "\n".join(lines) + "\n"


def write_cube(path: str | os.PathLike[str]) -> None:
    """Writes `cube_text()` to a file."""
    from dala.base.text_file import write_text

    write_text(path, cube_text())


def _canvas(what: str, height: Any, width: Any) -> Canvas:
    for name, extent in (("height", height), ("width", width)):
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer):
            raise ArgumentError(f"{what}: {name} is an integer, not {extent!r}.")
        if not 1 <= extent <= _LARGEST_EXTENT:
            raise ArgumentError(f"{what}: {name} is 1 to {_LARGEST_EXTENT}, not {extent}.")
    return Canvas.blank(int(height), int(width), HEIGHT, WIDTH)


def _paint_sky(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    t = np.clip(v / _HORIZON, 0.0, 1.0)[..., None]
    high, middle, low = color("#1d4f9e"), color("#6fa9dd"), color("#fbd9b0")
    canvas.fill(
        np.where(
            t < 0.6, high + (middle - high) * t / 0.6, middle + (low - middle) * (t - 0.6) / 0.4
        )
    )
    away = np.hypot(u - 330, v - 214)
    canvas.paint("#fff0c8", 0.75 * np.exp(-((away / 90) ** 2)))
    canvas.paint("#fffbe6", canvas.cover(away - 24, soft=2.0))
    for row, (at, thick, seed) in enumerate(((66.0, 17.0, 3), (118.0, 12.0, 5), (176.0, 8.0, 9))):
        billow = canvas.grain(46.0 - 8 * row, seed) + 0.6 * canvas.grain(19.0, seed + 1)
        band = np.exp(-(((v - at - 8 * np.sin(u / 90 + seed)) / thick) ** 2))
        canvas.paint("#ffffff", 0.85 * np.clip(1.7 * band * billow - 0.62, 0.0, 1.0))


def _paint_mountains(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    far = 250 - 30 * np.sin(u / 88 + 0.6) - 13 * np.sin(u / 31 + 2.0) - 4 * np.sin(u / 11)
    canvas.paint("#8ea4c8", canvas.cover(far - v))
    peak = np.abs((u + 40) % 216 - 108) * 0.72
    near = 226 + peak + 7 * np.sin(u / 19) + 3 * np.sin(u / 6.1)
    side = np.where((u + 40) % 216 > 108, 1.0, 0.0) + 0.12 * np.sin(u / 5 + v / 7)
    rock = color("#5b6b93") + (color("#3d4a70") - color("#5b6b93")) * side[..., None]
    canvas.paint(rock, canvas.cover(near - v))
    snow = near + 16 + 6 * np.sin(u / 4.3) + 4 * np.sin(u / 2.1)
    lit = color("#f4f7ff") + (color("#b9c6e4") - color("#f4f7ff")) * side[..., None]
    cap = np.minimum(snow, 262.0 + 4 * np.sin(u / 3.1))
    canvas.paint(lit, canvas.cover(near - v) * canvas.cover(v - cap))


def _paint_meadow(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    hills = _HORIZON + 4 * np.sin(u / 70) + 2 * np.sin(u / 23 + 1)
    depth = np.clip((v - _HORIZON) / 188, 0.0, 1.0)[..., None]
    grass = color("#9cb85a") + (color("#2f6b2a") - color("#9cb85a")) * depth
    stretch = 3.0 + 26 * depth[..., 0]
    blades = canvas.grain(3.2, 21) * 0.6 + canvas.grain(7.0, 22) * 0.4 - 0.5
    rows = 0.5 * np.sin(v * 40 / stretch + 2 * np.sin(u / 37))
    texture = (blades * 0.42 + 0.05 * rows) * (0.35 + 0.65 * depth[..., 0])
    canvas.paint(grass * (1 + texture[..., None]), canvas.cover(hills - v))
    for k in range(240):
        near = ((k * 0.61803) % 1.0) ** 0.7
        tint = ("#ffffff", "#ffd23a", "#e65a8a", "#d83a2e")[k % 4]
        canvas.dot(tint, (k * 97.31) % 760 - 20, 304 + 176 * near, 0.5 + 1.7 * near**2)


def _paint_balloon(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    cu, cv, radius = 150.0, 128.0, 78.0
    below = np.clip((v - cv) / radius, 0.0, 1.5)
    wide = radius * (1 - 0.34 * below**2)
    across = (u - cu) / wide
    inside = np.maximum(np.hypot(u - cu, np.minimum(v - cv, 0)) - radius, np.abs(u - cu) - wide)
    envelope = np.where(v < cv, np.hypot(u - cu, v - cv) - radius, np.maximum(inside, v - cv - 94))
    angle = np.arcsin(np.clip(across, -1, 1))
    gore = np.floor((angle / np.pi + 0.5) * 8 - 1e-6).astype(int) % 4
    stripes = np.stack([color(c) for c in ("#e2231a", "#ffd400", "#0b6fd6", "#fdfdfd")])[gore]
    band = np.abs(v - cv - 20) < 9
    stripes = np.where(band[..., None], color("#1a2b6b"), stripes)
    light = 0.62 + 0.42 * np.clip(0.75 - 0.55 * across - 0.4 * (v - cv) / radius, 0.0, 1.0)
    canvas.paint("#5d4030", canvas.cover(_ropes(u, v, cu, cv)))
    canvas.paint(np.clip(stripes * light[..., None], 0, 1), canvas.cover(envelope))
    shine = np.exp(-(((u - cu + 30) / 16) ** 2) - ((v - cv + 34) / 22) ** 2)
    canvas.paint("#ffffff", 0.55 * shine * canvas.cover(envelope))
    basket = rectangle(u, v, cu - 13, cv + 118, cu + 13, cv + 138, 3.0)
    weave = 0.75 + 0.25 * np.sign(np.sin(u * 1.6) * np.sin(v * 1.6))
    canvas.paint(color("#a8703a") * weave[..., None], canvas.cover(basket))
    canvas.paint("#5d3415", canvas.cover(rectangle(u, v, cu - 14, cv + 116, cu + 14, cv + 120, 2)))


def _ropes(u: Field, v: Field, cu: float, cv: float) -> Field:
    down = np.clip((v - cv - 90) / 28, 0.0, 1.0)
    lines = [np.abs(u - cu - end - (start - end) * (1 - down)) for start, end in _ROPE_ENDS]
    outside = np.maximum(cv + 90 - v, v - cv - 120)
    return np.asarray(np.maximum(np.minimum.reduce(lines) - 0.8, outside))


_ROPE_ENDS = ((-42.0, -12.0), (-15.0, -5.0), (15.0, 5.0), (42.0, 12.0))


def _paint_card(canvas: Canvas) -> None:
    """Paints a test card with text-like lines, lines of growing frequency, and a Siemens star."""
    u, v = canvas.u, canvas.v
    canvas.paint("#000000", 0.35 * canvas.cover(rectangle(u, v, 36, 330, 224, 458, 5), soft=9.0))
    canvas.paint("#fbf8f0", canvas.cover(rectangle(u, v, 32, 322, 218, 450, 4)))
    for line in range(6):
        top = 336.0 + 11 * line
        words = np.sin(u * 0.23 + line * 1.7) + 0.7 * np.sin(u * 0.11 + line * 4.1) > -0.72
        letters = np.sin(u * 2.35 + 0.9 * np.sin(u * 0.71 + line)) > -0.35
        tall = 2.2 + 1.3 * (np.sin(u * 0.97 + 2.3 * line) > 0.55)
        extent = rectangle(u, v, 44, top - 4, 126 - 13 * (line == 5), top + 4, 0)
        ink = canvas.cover(np.abs(v - top) - tall) * canvas.cover(extent)
        canvas.paint("#26262c", ink * words * letters)
    star = np.hypot(u - 173, v - 364)
    spokes = np.sin(18 * np.arctan2(v - 364, u - 173)) > 0
    canvas.paint("#16161a", canvas.cover(star - 33) * spokes)
    fine = 0.28 + 1.35 * np.clip((u - 44) / 162, 0.0, 1.0) ** 1.3
    waves = np.sin((u - 44) * fine) > 0
    canvas.paint("#16161a", canvas.cover(rectangle(u, v, 44, 408, 206, 422, 0)) * waves)
    for k, tint in enumerate(("#e6001f", "#ff8a00", "#ffe600", "#00a651", "#00aeef", "#5b2d90")):
        canvas.paint(tint, canvas.cover(rectangle(u, v, 44 + 27 * k, 428, 71 + 27 * k, 441, 0)))


def _paint_ball(canvas: Canvas, cu: float, cv: float, radius: float, tint: str) -> None:
    u, v = canvas.u, canvas.v
    x, y = (u - cu) / radius, (v - cv) / radius
    ground = np.hypot((x - 0.25) / 1.15, (y - 0.92) / 0.30)
    canvas.paint("#0d260c", 0.55 * np.clip(1.5 - 1.3 * ground, 0.0, 1.0))
    z = np.sqrt(np.clip(1 - x * x - y * y, 0.0, 1.0))
    lit = np.clip(-0.48 * x - 0.58 * y + 0.66 * z, 0.0, 1.0)
    body = color(tint) * (0.22 + 0.9 * lit[..., None]) + 0.85 * (lit**28)[..., None]
    canvas.paint(np.clip(body, 0.0, 1.0), canvas.cover(disc(u, v, cu, cv, radius)))
