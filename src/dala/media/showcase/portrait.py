"""The person in the sample picture, in drawing points."""

from __future__ import annotations

import numpy as np

from dala.media.showcase.canvas import Canvas, Field, color, disc, oval, rectangle

# The middle of the face.
_U, _V = 540.0, 190.0
_SKIN, _SHADE, _LIT = "#e0a98a", "#a8664f", "#fbd9bf"


def outline(u: Field, v: Field) -> Field:
    """Returns the signed distance to the person, negative inside."""
    return np.asarray(np.minimum.reduce([_hair(u, v), _face(u, v), _throat(u, v), _body(u, v)]))


def paint_person(canvas: Canvas) -> None:
    """Paints the person: hair, striped shirt, neck, face."""
    canvas = canvas.part(_U - 180, _V - 130, _U + 180, _V + 400)
    u, v = canvas.u, canvas.v
    _paint_hair(canvas, _hair(u, v))
    throat = _throat(u, v)
    _paint_skin(canvas, throat, _V + 90)
    under_chin = np.exp(-((np.maximum(_face(u, v), 0) / 20) ** 2))
    canvas.paint("#8a4a38", 0.60 * under_chin * canvas.cover(throat))
    _paint_body(canvas)
    _paint_skin(canvas, _face(u, v), _V)
    _paint_features(canvas)
    _paint_hair(canvas, _fringe(u, v))


def _face(u: Field, v: Field) -> Field:
    narrow = 1 + 0.20 * np.clip((v - _V) / 90, 0.0, 1.0) ** 2
    return oval(_U + (u - _U) * narrow, v, _U, _V, 66, 90)


def _hair(u: Field, v: Field) -> Field:
    crown = oval(u, v, _U, _V - 22, 86, 92)
    long = rectangle(u, v, _U - 88, _V - 30, _U + 88, _V + 118, 44)
    wave = 4 * np.sin(v / 15 + np.sign(u - _U) * 1.2)
    return np.asarray(np.minimum(crown, long + wave * np.clip((v - _V) / 60, 0.0, 1.0)))


def _fringe(u: Field, v: Field) -> Field:
    crown = oval(u, v, _U, _V - 22, 86, 92)
    parting = oval(u, v, _U + 8, _V + 26, 62, 94)
    return np.asarray(np.maximum.reduce([crown, -parting, v - _V - 60]))


def _throat(u: Field, v: Field) -> Field:
    neck = rectangle(u, v, _U - 30, _V + 50, _U + 30, _V + 150, 16)
    return np.asarray(np.minimum(neck, oval(u, v, _U, _V + 118, 50, 42)))


def _body(u: Field, v: Field) -> Field:
    return np.asarray(np.maximum(_shoulders(u, v), -_neckline(u, v)))


def _shoulders(u: Field, v: Field) -> Field:
    slope = 0.24 * np.sqrt((u - _U) ** 2 + 900.0)
    return rectangle(u, v - slope, _U - 134, _V + 106, _U + 134, _V + 900, 62)


def _neckline(u: Field, v: Field) -> Field:
    return oval(u, v, _U, _V + 112, 47, 38)


def _paint_body(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    body = _body(u, v)
    along = v - 0.00105 * (u - _U) ** 2
    stripe = np.clip(0.5 + 3.0 * np.sin(along * 0.52), 0.0, 1.0)[..., None]
    cloth = color("#f7f3ea") + (color("#16407f") - color("#f7f3ea")) * stripe
    light = 0.70 + 0.36 * np.clip(0.55 - (u - _U) / 260, 0.0, 1.0)
    folds = 0.05 * np.sin((u - _U) / 17 + v / 29) + 0.05 * (canvas.grain(2.2, 31) - 0.5)
    canvas.paint(np.clip(cloth * (light + folds)[..., None], 0.0, 1.0), canvas.cover(body))
    collar = np.maximum(np.abs(_neckline(u, v)) - 3.0, _shoulders(u, v))
    canvas.paint("#c6262e", canvas.cover(collar))


def _paint_hair(canvas: Canvas, shape: Field) -> None:
    u, v = canvas.u, canvas.v
    bend = np.hypot((u - _U) / 86, (v - _V + 6) / 110)
    strands = np.sin(bend * 150 + 7 * canvas.grain(30.0, 41)) * 0.5 + np.sin(bend * 61) * 0.3
    gloss = np.exp(-(((bend - 0.84) / 0.07) ** 2)) * np.clip(0.6 - (u - _U) / 120, 0.0, 1.0)
    tone = 0.75 + 0.22 * strands + 0.75 * gloss * np.clip((_V + 10 - v) / 60, 0.0, 1.0)
    canvas.paint(np.clip(color("#5a2d18") * tone[..., None], 0.0, 1.0), canvas.cover(shape))


def _paint_skin(canvas: Canvas, shape: Field, middle: float) -> None:
    """Paints skin in soft light from the left, with pores and blotches for `beauty` to smooth."""
    u, v = canvas.u, canvas.v
    x, y = (u - _U) / 78, (v - middle) / 104
    z = np.sqrt(np.clip(1.15 - x * x - y * y, 0.0, 1.15))
    lit = np.clip(-0.42 * x - 0.22 * y + 0.72 * z, 0.0, 1.0)[..., None]
    dark, base, bright = color(_SHADE), color(_SKIN), color(_LIT)
    tone = np.where(
        lit < 0.5, dark + (base - dark) * lit * 2, base + (bright - base) * (lit * 2 - 1)
    )
    pores = 0.075 * (canvas.grain(1.7, 51) - 0.5) + 0.07 * (canvas.grain(5.0, 52) - 0.5)
    skin = tone * (1 + pores[..., None])
    blotches = np.clip(canvas.grain(8.0, 53) * 2.6 - 1.9, 0.0, 1.0)[..., None] * 0.30
    skin += (skin * np.array([0.98, 0.72, 0.68]) - skin) * blotches
    canvas.paint(np.clip(skin, 0.0, 1.0), canvas.cover(shape))


def _paint_features(canvas: Canvas) -> None:
    u, v = canvas.u, canvas.v
    for side in (-1, 1):
        cheek = np.exp(-(((u - _U - side * 35) / 19) ** 2) - ((v - _V - 30) / 15) ** 2)
        canvas.paint("#e2705f", 0.30 * cheek)
        _paint_eye(canvas, _U + side * 27, _V - 4)
        arch = v - (_V - 27) - 0.011 * (u - _U - side * 25) ** 2 + 1.5
        brow = np.maximum(np.abs(arch) - 2.6, np.abs(u - _U - side * 28) - 16)
        canvas.paint("#4a2413", 0.9 * canvas.cover(brow, soft=1.2))
    for k in range(16):  # freckles over the nose and the cheeks
        fu, fv = _U + 40 * np.sin(k * 2.4), _V + 22 + 8 * np.sin(k * 4.1 + 1)
        canvas.dot("#9c5a3c", fu, fv, 0.7 + 0.35 * (k % 3), 0.6)
    bridge = np.exp(-(((u - _U + 4) / 5) ** 2)) * np.clip(1 - np.abs(v - _V - 8) / 34, 0.0, 1.0)
    canvas.paint("#fff0e2", 0.42 * bridge)
    under = np.exp(-(((u - _U - 4) / 15) ** 2) - ((v - _V - 38) / 4.5) ** 2)
    canvas.paint("#8f4f3c", 0.50 * under)
    for side in (-1, 1):
        nostril = oval(u, v, _U + side * 7, _V + 36, 3.2, 1.8)
        canvas.paint("#6f3527", 0.7 * canvas.cover(nostril, soft=1.0))
    lower, upper = disc(u, v, _U, _V + 41, 26.0), -disc(u, v, _U, _V + 15, 41.0)
    canvas.paint("#b8383f", canvas.cover(np.maximum(lower, upper - 2.0), soft=0.8))
    canvas.paint("#fbf6ee", canvas.cover(np.maximum(lower + 5.0, upper + 1.2), soft=0.6))
    shine = np.exp(-(((u - _U + 5) / 8) ** 2) - ((v - _V - 64.5) / 1.4) ** 2)
    canvas.paint("#ffffff", 0.45 * shine)


def _paint_eye(canvas: Canvas, cu: float, cv: float) -> None:
    canvas = canvas.part(cu - 32, cv - 24, cu + 32, cv + 24)
    u, v = canvas.u, canvas.v
    almond = np.maximum(disc(u, v, cu, cv + 13, 19.5), disc(u, v, cu, cv - 15, 22.0))
    canvas.paint("#7d4636", 0.35 * canvas.cover(almond - 3, soft=5.0))
    canvas.paint("#fdfbf8", canvas.cover(almond))
    inside = canvas.cover(almond)
    rays = 0.8 + 0.2 * np.sin(14 * np.arctan2(v - cv, u - cu))
    canvas.paint(color("#2f7fa8") * rays[..., None], inside * canvas.cover(disc(u, v, cu, cv, 7.6)))
    canvas.paint("#0c0f14", inside * canvas.cover(disc(u, v, cu, cv, 3.6)))
    canvas.paint("#ffffff", canvas.cover(disc(u, v, cu - 2.6, cv - 2.8, 1.7)))
    lid = np.maximum(np.abs(disc(u, v, cu, cv + 13, 19.5)) - 1.3, disc(u, v, cu, cv - 15, 23.5))
    canvas.paint("#2a150d", canvas.cover(lid, soft=0.6))
