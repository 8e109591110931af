"""Trigonometric functions for f64: as in `trigonometry_f32`, with more terms.

Two literals promote to f32: where both sides of a conditional are literals, one is f64(…).
"""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f64, s64 = SCALARS["f64"], SCALARS["s64"]
atan, bits, round_, sqrt = (INTRINSICS[name] for name in ("atan", "bits", "round", "sqrt"))

PI, HALF_PI = math.pi, math.pi / 2
SIGN = -(1 << 63)
ROUNDING_SHIFT = 1.5 * 2.0**52

_SIN = (
    *(-0.16666666666666666, 0.008333333333333194, -0.0001984126984120926, 2.755731921114346e-06),
    *(-2.5052106873328254e-08, 1.6058939730242604e-10, -7.642992067970598e-13),
    *(2.721180489259636e-15,),
)
_SIN_NEAR = (
    *(-0.1666666666666663, 0.008333333333322115, -0.00019841269829584923, 2.7557313619086265e-06),
    *(-2.5050747307610963e-08, 1.5896199045449548e-10),
)
_COS_NEAR = (
    *(0.041666666666666595, -0.0013888888888873036, 2.4801587288838266e-05),
    *(-2.7557314175306405e-07, 2.0875700285613824e-09, -1.1358507026196514e-11),
)
_ATAN = (
    *(-0.333333333333332, 0.1999999999995324, -0.14285714280165734, 0.11111110782108495),
    *(-0.09090897723794308, 0.07692059689647163, -0.06663098868976056, 0.05847856710914736),
    *(-0.05039178352945485, 0.038061820643927574, -0.017904676994009248),
)
_ASIN = (
    *(0.16666666666665408, 0.07500000000336958, 0.044642856828373406, 0.030381959135137297),
    *(0.022371758094167166, 0.017359704102334356, 0.013885242021520427, 0.012169168452636872),
    *(0.006528162222608601, 0.019527754731310548, -0.01622345592600375, 0.03191172778324828),
)


def sin_f64(x: Any) -> Any:
    n = round_(x * 0.3183098861837907)
    r = ((x - n * 3.141592651605606) - n * 1.9841871479187034e-09) - n * 1.1442377452219664e-17
    r = 1.5708 if r > 1.5708 else r
    r = -1.5708 if r < -1.5708 else r
    z = r * r
    p = ((_SIN[7] * z + _SIN[6]) * z + _SIN[5]) * z + _SIN[4]
    p = (((p * z + _SIN[3]) * z + _SIN[2]) * z + _SIN[1]) * z + _SIN[0]
    y = p * (z * r) + r
    return bits(bits(y, s64) ^ (bits(n + ROUNDING_SHIFT, s64) << 63), f64)


def cos_f64(x: Any) -> Any:
    n = round_(x * 0.3183098861837907 - 0.5)
    h = n + 0.5
    r = ((x - h * 3.141592651605606) - h * 1.9841871479187034e-09) - h * 1.1442377452219664e-17
    r = 1.5708 if r > 1.5708 else r
    r = -1.5708 if r < -1.5708 else r
    z = r * r
    p = ((_SIN[7] * z + _SIN[6]) * z + _SIN[5]) * z + _SIN[4]
    p = (((p * z + _SIN[3]) * z + _SIN[2]) * z + _SIN[1]) * z + _SIN[0]
    y = p * (z * r) + r
    return bits(bits(y, s64) ^ (bits(n + (ROUNDING_SHIFT + 1.0), s64) << 63), f64)


def tan_f64(x: Any) -> Any:
    n = round_(x * 0.6366197723675814)
    r = ((x - n * 1.570796325802803) - n * 9.920935739593517e-10) - n * 5.721188726109832e-18
    r = 0.7855 if r > 0.7855 else r
    r = -0.7855 if r < -0.7855 else r
    z = r * r
    p = ((_SIN_NEAR[5] * z + _SIN_NEAR[4]) * z + _SIN_NEAR[3]) * z + _SIN_NEAR[2]
    sine = ((p * z + _SIN_NEAR[1]) * z + _SIN_NEAR[0]) * (z * r) + r
    p = ((_COS_NEAR[5] * z + _COS_NEAR[4]) * z + _COS_NEAR[3]) * z + _COS_NEAR[2]
    cosine = ((p * z + _COS_NEAR[1]) * z + _COS_NEAR[0]) * (z * z) + (1.0 - z * 0.5)
    odd = (bits(n + ROUNDING_SHIFT, s64) & 1) == 1
    return (-cosine if odd else sine) / (sine if odd else cosine)


def asin_f64(x: Any) -> Any:
    a = abs(x)
    z = (1.0 - a) * 0.5 if a > 0.5 else a * a
    s = sqrt(z) if a > 0.5 else a
    p = ((_ASIN[11] * z + _ASIN[10]) * z + _ASIN[9]) * z + _ASIN[8]
    p = (((p * z + _ASIN[7]) * z + _ASIN[6]) * z + _ASIN[5]) * z + _ASIN[4]
    p = (((p * z + _ASIN[3]) * z + _ASIN[2]) * z + _ASIN[1]) * z + _ASIN[0]
    y = p * (z * s) + s
    y = HALF_PI - (y + y) if a > 0.5 else y
    return bits(bits(y, s64) | (bits(x, s64) & SIGN), f64)


def acos_f64(x: Any) -> Any:
    a = abs(x)
    z = (1.0 - a) * 0.5 if a > 0.5 else a * a
    root = sqrt(z)
    s = (-root if x > 0.0 else root) if a > 0.5 else x
    p = ((_ASIN[11] * z + _ASIN[10]) * z + _ASIN[9]) * z + _ASIN[8]
    p = (((p * z + _ASIN[7]) * z + _ASIN[6]) * z + _ASIN[5]) * z + _ASIN[4]
    p = (((p * z + _ASIN[3]) * z + _ASIN[2]) * z + _ASIN[1]) * z + _ASIN[0]
    y = p * (z * s) + s
    return (0.0 if x > 0.0 else f64(PI)) - (y + y) if a > 0.5 else HALF_PI - y


def atan_f64(x: Any) -> Any:
    a = abs(x)
    far, middle = a > 2.414213562373095, a > 0.4142135623730951
    above = -1.0 if far else (a - 1.0 if middle else a)
    below = a if far else (a + 1.0 if middle else 1.0)
    t = above / below
    z = t * t
    p = ((_ATAN[10] * z + _ATAN[9]) * z + _ATAN[8]) * z + _ATAN[7]
    p = (((p * z + _ATAN[6]) * z + _ATAN[5]) * z + _ATAN[4]) * z + _ATAN[3]
    p = ((p * z + _ATAN[2]) * z + _ATAN[1]) * z + _ATAN[0]
    y = (p * (z * t) + t) + (HALF_PI if far else (f64(HALF_PI / 2) if middle else 0.0))
    return bits(bits(y, s64) | (bits(x, s64) & SIGN), f64)


def atan2_f64(y: Any, x: Any) -> Any:
    a, b = abs(y), abs(x)
    steep = b < a
    t = (b if steep else a) / (a if steep else b)
    angle = atan((0.0 if a == 0.0 else 1.0) if a == b else t)
    angle = HALF_PI - angle if steep else angle
    angle = PI - angle if bits(x, s64) < 0 else angle
    return bits(bits(angle, s64) | (bits(y, s64) & SIGN), f64)
