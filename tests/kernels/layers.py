"""Layers over images, by the formulas of W3C Compositing and Blending Level 1, in exact numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from kernels.pictures import LUMA, in_units

Mode = Callable[[np.ndarray, np.ndarray], np.ndarray]


def hard_light(cb: np.ndarray, cs: np.ndarray) -> np.ndarray:
    return np.where(cs <= 0.5, cb * 2 * cs, cb + (2 * cs - 1) - cb * (2 * cs - 1))


def color_dodge(cb: np.ndarray, cs: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(cb == 0, 0, np.where(cs == 1, 1, np.minimum(1, cb / (1 - cs))))


def color_burn(cb: np.ndarray, cs: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(cb == 1, 1, np.where(cs == 0, 0, 1 - np.minimum(1, (1 - cb) / cs)))


def soft_light(cb: np.ndarray, cs: np.ndarray) -> np.ndarray:
    d = np.where(cb <= 0.25, ((16 * cb - 12) * cb + 4) * cb, np.sqrt(cb))
    return np.where(cs <= 0.5, cb - (1 - 2 * cs) * cb * (1 - cb), cb + (2 * cs - 1) * (d - cb))


def divide(cb: np.ndarray, cs: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where(cb == 0, 0, np.where(cs == 0, 1, np.minimum(1, cb / cs)))


def lum(c: np.ndarray) -> np.ndarray:
    return (c @ np.array([0.3, 0.59, 0.11]))[..., None]


def sat(c: np.ndarray) -> np.ndarray:
    return c.max(-1, keepdims=True) - c.min(-1, keepdims=True)


def clip_color(c: np.ndarray) -> np.ndarray:
    light, n, x = lum(c), c.min(-1, keepdims=True), c.max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        c = np.where(n < 0, light + (c - light) * light / (light - n), c)
        return np.where(x > 1, light + (c - light) * (1 - light) / (x - light), c)


def set_lum(c: np.ndarray, light: np.ndarray) -> np.ndarray:
    return clip_color(c + (light - lum(c)))


def set_sat(c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """As the text has it: the least becomes 0, the greatest s, the middle one in between."""
    order = c.argsort(-1)
    low, middle, high = (np.take_along_axis(c, order[..., k : k + 1], -1) for k in range(3))
    with np.errstate(all="ignore"):
        between = np.where(high > low, (middle - low) * s / (high - low), 0)
    values = np.concatenate([0 * low, between, np.where(high > low, s, 0)], -1)
    made = np.empty_like(c)
    np.put_along_axis(made, order, values, -1)
    return made


MODES: dict[str, Mode] = {
    "normal": lambda cb, cs: cs,
    "multiply": lambda cb, cs: cb * cs,
    "screen": lambda cb, cs: cb + cs - cb * cs,
    "overlay": lambda cb, cs: hard_light(cs, cb),
    "darken": np.minimum,
    "lighten": np.maximum,
    "color-dodge": color_dodge,
    "color-burn": color_burn,
    "hard-light": hard_light,
    "soft-light": soft_light,
    "difference": lambda cb, cs: np.abs(cb - cs),
    "exclusion": lambda cb, cs: cb + cs - 2 * cb * cs,
    "subtract": lambda cb, cs: (cb - cs).clip(0),
    "divide": divide,
    "hue": lambda cb, cs: set_lum(set_sat(cs, sat(cb)), lum(cb)),
    "saturation": lambda cb, cs: set_lum(set_sat(cb, sat(cs)), lum(cb)),
    "color": lambda cb, cs: set_lum(cs, lum(cb)),
    "luminosity": lambda cb, cs: set_lum(cb, lum(cs)),
}


def rgba_of(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Colours and alpha in 0..1; gray in all three, opaque where there is no alpha."""
    x = in_units(image)
    if x.ndim == 2:
        x = x[..., None].repeat(3, -1)
    return x[..., :3], x[..., 3:] if x.shape[2] == 4 else np.ones((*x.shape[:2], 1))


def fitted(colour: np.ndarray, alpha: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Colours and alpha as an image of that shape stores them."""
    if len(shape) == 2:
        return colour @ LUMA
    return colour if shape[2] == 3 else np.concatenate([colour, alpha], -1)


def unmultiplied(co: np.ndarray, alpha: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Colours not multiplied by alpha any more; those of the image where nothing is opaque."""
    with np.errstate(all="ignore"):
        return np.where(alpha > 0, co / alpha, old)


def composed(image: np.ndarray, layer: np.ndarray, mode: Mode, strength: float) -> np.ndarray:
    """co = cs · αs · (1 - αb) + cs' · αs · αb + (1 - αs) · αb · cb, divided by αo."""
    (cb, ab), (cs, a) = rgba_of(image), rgba_of(layer)
    a = a * strength
    co = cs * a * (1 - ab) + a * ab * mode(cb, cs) + (1 - a) * ab * cb
    alpha = a + ab * (1 - a)
    return fitted(unmultiplied(co, alpha, cb), alpha, image.shape)


def added(image: np.ndarray, layer: np.ndarray, strength: float) -> np.ndarray:
    """plus-lighter: co = min(1, αs · cs + αb · cb), αo = min(1, αs + αb)."""
    (cb, ab), (cs, a) = rgba_of(image), rgba_of(layer)
    a = a * strength
    alpha = np.minimum(1, a + ab)
    return fitted(unmultiplied(np.minimum(1, a * cs + ab * cb), alpha, cb), alpha, image.shape)


def placed(layer: np.ndarray, shape: tuple[int, ...], x: int, y: int) -> np.ndarray:
    """The layer as RGBA of the image's size, transparent where it does not reach."""
    colour, alpha = rgba_of(layer)
    whole = np.zeros((*shape[:2], 4))
    for i in range(max(0, y), min(shape[0], y + layer.shape[0])):
        for j in range(max(0, x), min(shape[1], x + layer.shape[1])):
            whole[i, j] = [*colour[i - y, j - x], *alpha[i - y, j - x]]
    return whole
