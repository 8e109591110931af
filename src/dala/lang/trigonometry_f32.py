"""Trigonometric functions for f32, written in the kernel language like those of `math_f32`."""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f32, s32 = SCALARS["f32"], SCALARS["s32"]
bits, round_, sqrt = (INTRINSICS[name] for name in ("bits", "round", "sqrt"))

PI, HALF_PI = math.pi, math.pi / 2
SIGN = -(1 << 31)
ROUNDING_SHIFT = 1.5 * 2.0**23
"""Added to an integer below 2**22, it shifts that integer into the lowest bits."""

_SIN = (-0.1666665226, 0.008332924917, -0.0001980112429, 2.589710448e-06)
_TAN = (0.3333315253, 0.1333892196, 0.05340057984, 0.02446979284, 0.00305440207, 0.009425148368)
_ATAN = (-0.3333311677, 0.199893862, -0.1411420554, 0.09863068908, -0.04637736455)
_ATAN2 = (
    *(-0.3333329856, 0.1999852955, -0.142640397, 0.1095115244, -0.08400528133),
    *(0.05790927261, -0.0311313048, 0.01089041587, -0.001788378344),
)
_ASIN = (0.166667521, 0.07495309412, 0.04546914995, 0.02418475784, 0.04215839133)


def sin_f32(x: Any) -> Any:
    # x is n·π + r.
    n = round_(x * 0.3183098861837907)
    r = ((x - n * 3.140625) - n * 0.0009675025939941406) - n * 1.5099580252808664e-07
    # For huge arguments r is meaningless, but the result must still lie in -1..1.
    r = 1.573 if r > 1.573 else r
    r = -1.573 if r < -1.573 else r
    z = r * r
    p = ((_SIN[3] * z + _SIN[2]) * z + _SIN[1]) * z + _SIN[0]
    y = p * (z * r) + r
    return bits(bits(y, s32) ^ (bits(n + ROUNDING_SHIFT, s32) << 31), f32)


def cos_f32(x: Any) -> Any:
    # x is (n + ½)·π + r, and the cosine an odd function of r.
    n = round_(x * 0.3183098861837907 - 0.5)
    h = n + 0.5
    r = ((x - h * 3.140625) - h * 0.0009675025939941406) - h * 1.5099580252808664e-07
    r = 1.573 if r > 1.573 else r
    r = -1.573 if r < -1.573 else r
    z = r * r
    p = ((_SIN[3] * z + _SIN[2]) * z + _SIN[1]) * z + _SIN[0]
    y = p * (z * r) + r
    return bits(bits(y, s32) ^ (bits(n + (ROUNDING_SHIFT + 1.0), s32) << 31), f32)


def tan_f32(x: Any) -> Any:
    n = round_(x * 0.6366197723675814)
    r = (x - n * 1.5703125) - n * 0.0004837512969970703
    r = (r - n * 7.549533620476723e-08) - n * 2.5633441515971301e-12
    r = 0.787 if r > 0.787 else r
    r = -0.787 if r < -0.787 else r
    z = r * r
    p = ((_TAN[5] * z + _TAN[4]) * z + _TAN[3]) * z + _TAN[2]
    p = (p * z + _TAN[1]) * z + _TAN[0]
    y = p * (z * r) + r
    return -1.0 / y if (bits(n + ROUNDING_SHIFT, s32) & 1) == 1 else y


def asin_f32(x: Any) -> Any:
    # Above ½, asin(a) = π/2 - 2·asin(√((1 - a) / 2)).
    a = abs(x)
    z = (1.0 - a) * 0.5 if a > 0.5 else a * a
    s = sqrt(z) if a > 0.5 else a
    p = (((_ASIN[4] * z + _ASIN[3]) * z + _ASIN[2]) * z + _ASIN[1]) * z + _ASIN[0]
    y = p * (z * s) + s
    y = HALF_PI - (y + y) if a > 0.5 else y
    return bits(bits(y, s32) | (bits(x, s32) & SIGN), f32)


def acos_f32(x: Any) -> Any:
    a = abs(x)
    z = (1.0 - a) * 0.5 if a > 0.5 else a * a
    root = sqrt(z)
    s = (-root if x > 0.0 else root) if a > 0.5 else x
    p = (((_ASIN[4] * z + _ASIN[3]) * z + _ASIN[2]) * z + _ASIN[1]) * z + _ASIN[0]
    y = p * (z * s) + s
    return (0.0 if x > 0.0 else PI) - (y + y) if a > 0.5 else HALF_PI - y


def atan_f32(x: Any) -> Any:
    # atan(a) = π/4 + atan((a - 1) / (a + 1)) = π/2 + atan(-1 / a).
    a = abs(x)
    far, middle = a > 2.414213562373095, a > 0.5463
    above = -1.0 if far else (a - 1.0 if middle else a)
    below = a if far else (a + 1.0 if middle else 1.0)
    t = above / below
    z = t * t
    p = (((_ATAN[4] * z + _ATAN[3]) * z + _ATAN[2]) * z + _ATAN[1]) * z + _ATAN[0]
    y = (p * (z * t) + t) + (HALF_PI if far else (HALF_PI / 2 if middle else 0.0))
    return bits(bits(y, s32) | (bits(x, s32) & SIGN), f32)


def atan2_f32(y: Any, x: Any) -> Any:
    a, b = abs(y), abs(x)
    steep = b < a
    t = (b if steep else a) / (a if steep else b)
    t = (0.0 if a == 0.0 else 1.0) if a == b else t
    z = t * t
    p = ((_ATAN2[8] * z + _ATAN2[7]) * z + _ATAN2[6]) * z + _ATAN2[5]
    p = (((p * z + _ATAN2[4]) * z + _ATAN2[3]) * z + _ATAN2[2]) * z + _ATAN2[1]
    angle = (p * z + _ATAN2[0]) * (z * t) + t
    angle = HALF_PI - angle if steep else angle
    angle = PI - angle if bits(x, s32) < 0 else angle
    return bits(bits(angle, s32) | (bits(y, s32) & SIGN), f32)
