"""Exponentials, logarithms and related functions for f32, written in the kernel language.

They are polynomials, so that loops vectorize, fitted for the least maximum relative error.
`math_f64` has the f64 versions, `trigonometry_f32` and `trigonometry_f64` those of angles. A
conditional expression computes both sides and selects; `a if x > a else x` is one instruction and
propagates NaN.
"""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f32, s32 = SCALARS["f32"], SCALARS["s32"]
bits, exp, round_ = (INTRINSICS[name] for name in ("bits", "exp", "round"))

INF, NAN = math.inf, math.nan
SMALLEST_NORMAL = 2.0**-126
SIGN = -(1 << 31)
HIGH_HALF = -(1 << 12)
"""A mask that keeps the upper 12 bits of a significand, so that products are exact."""
ROUNDING_SHIFT = 1.5 * 2.0**23
"""Added to an integer below 2**22, it shifts that integer into the lowest bits."""

_EXP = (0.4999999404, 0.1666651666, 0.04166828468, 0.008369249292, 0.001382044167)
_EXP2 = (0.6931472421, 0.2402265519, 0.05550261959, 0.009617367759, 0.001342307543, 0.0001567854779)
_EXPM1 = (0.5, 0.1666666567, 0.04166648537, 0.008333530277, 0.00139331969, 0.0001977596112)
_LOG = (
    *(-0.4999999106, 0.3333394527, -0.2500177622, 0.1996223778, -0.1657030731),
    *(0.1491636634, -0.1430779099, 0.08738860488),
)
_LOG2 = (
    *(0.4426950514, -0.7213475108, 0.4808965027, -0.3606825769, 0.2886187732),
    *(-0.2399520576, 0.2041577399, -0.1882565618, 0.1868581921, -0.1163791567),
)
_LOG10 = (
    *(-0.06570551544, -0.217147246, 0.1447645426, -0.1085766703, 0.08687262982),
    *(-0.07221051306, 0.06158137321, -0.05695982277, 0.05579017103, -0.03393335268),
)
_POW = (0.961796701, 0.5770788193, 0.4119273126, 0.3364884257)
_ERF = (
    *(0.1283791661, 0.6366195679, 0.1027762964, -0.01914777793, -0.0001696045947),
    *(0.0016757868, -0.0006374269724, 0.0001188795941, -9.390019841e-06),
)
_ERFC = (
    *(0.2256356031, 0.2264199704, 0.2020509541, 0.1927615553, 0.08122320473),
    *(0.08586414903, 0.08580350131, -0.1411889642, 0.04143007845),
)


def exp_f32(x: Any) -> Any:
    x = 89.0 if x > 89.0 else x
    x = -104.0 if x < -104.0 else x
    n = round_(x * 1.4426950408889634)
    r = (x - n * 0.693359375) - n * -2.1219444005469e-4
    p = (((_EXP[4] * r + _EXP[3]) * r + _EXP[2]) * r + _EXP[1]) * r + _EXP[0]
    # 2**n in two factors: their product may be infinite or denormal.
    k = bits(n + (ROUNDING_SHIFT + 254.0), s32)
    half = k >> 1
    return (p * (r * r) + r + 1.0) * bits(half << 23, f32) * bits((k - half) << 23, f32)


def exp2_f32(x: Any) -> Any:
    x = 129.0 if x > 129.0 else x
    x = -151.0 if x < -151.0 else x
    n = round_(x)
    r = x - n
    p = ((_EXP2[5] * r + _EXP2[4]) * r + _EXP2[3]) * r + _EXP2[2]
    p = (p * r + _EXP2[1]) * r + _EXP2[0]
    k = bits(n + (ROUNDING_SHIFT + 254.0), s32)
    half = k >> 1
    return (p * r + 1.0) * bits(half << 23, f32) * bits((k - half) << 23, f32)


def log_f32(x: Any) -> Any:
    # x is 2**e · (1 + f) with 1 + f between √½ and √2.
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 8388608.0 if tiny else x, s32) + (0x3F800000 - 0x3F3504F3)
    e = f32(t >> 23) - (150.0 if tiny else 127.0)
    f = bits((t & 0x7FFFFF) + 0x3F3504F3, f32) - 1.0
    p = ((_LOG[7] * f + _LOG[6]) * f + _LOG[5]) * f + _LOG[4]
    p = (((p * f + _LOG[3]) * f + _LOG[2]) * f + _LOG[1]) * f + _LOG[0]
    y = (p * (f * f) + e * -2.1219444005469e-4) + f + e * 0.693359375
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def log2_f32(x: Any) -> Any:
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 8388608.0 if tiny else x, s32) + (0x3F800000 - 0x3F3504F3)
    e = f32(t >> 23) - (150.0 if tiny else 127.0)
    f = bits((t & 0x7FFFFF) + 0x3F3504F3, f32) - 1.0
    p = (((_LOG2[9] * f + _LOG2[8]) * f + _LOG2[7]) * f + _LOG2[6]) * f + _LOG2[5]
    p = (((p * f + _LOG2[4]) * f + _LOG2[3]) * f + _LOG2[2]) * f + _LOG2[1]
    y = (p * f + _LOG2[0]) * f + f + e
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def log10_f32(x: Any) -> Any:
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 8388608.0 if tiny else x, s32) + (0x3F800000 - 0x3F3504F3)
    e = f32(t >> 23) - (150.0 if tiny else 127.0)
    f = bits((t & 0x7FFFFF) + 0x3F3504F3, f32) - 1.0
    p = (((_LOG10[9] * f + _LOG10[8]) * f + _LOG10[7]) * f + _LOG10[6]) * f + _LOG10[5]
    p = (((p * f + _LOG10[4]) * f + _LOG10[3]) * f + _LOG10[2]) * f + _LOG10[1]
    y = ((p * f + _LOG10[0]) * f + e * 2.4874566398119521e-4) + f * 0.5 + e * 0.30078125
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def pow_f32(x: Any, y: Any) -> Any:
    a = abs(x)
    tiny = a < SMALLEST_NORMAL
    t = bits(a * 8388608.0 if tiny else a, s32) + (0x3F800000 - 0x3F3504F3)
    e = f32(t >> 23) - (150.0 if tiny else 127.0)
    m = bits((t & 0x7FFFFF) + 0x3F3504F3, f32)
    # log2(m) = 2 / ln 2 · atanh(s) with s = (m - 1) / (m + 1), as a high part and the rest.
    f = m - 1.0
    d = m + 1.0
    inverse = 1.0 / d
    s_high = bits(bits(f * inverse, s32) & HIGH_HALF, f32)
    d_high = bits(bits(d, s32) & HIGH_HALF, f32)
    s_low = ((f - s_high * d_high) - s_high * (m - (d_high - 1.0))) * inverse
    s = s_high + s_low
    z = s * s
    tail = (((_POW[3] * z + _POW[2]) * z + _POW[1]) * z + _POW[0]) * (z * s)
    high = s_high * 2.884765625
    low = s_high * 6.2445677792706e-4 + s_low * 2.885390081777927
    log_high = bits(bits(e + (high + tail), s32) & HIGH_HALF, f32)
    log_low = ((high - (log_high - e)) + tail) + low
    # y · log2(a) = n + r; for |y| above 2**32 the result is the same as for 2**32.
    y_kept = 4294967296.0 if y > 4294967296.0 else y
    y_kept = -4294967296.0 if y_kept < -4294967296.0 else y_kept
    y_high = bits(bits(y_kept, s32) & HIGH_HALF, f32)
    integer_part = y_high * log_high
    rest = (y_kept - y_high) * log_high + y_kept * log_low
    n = integer_part + rest
    n = 129.0 if n > 129.0 else n
    n = round_(-152.0 if n < -152.0 else n)
    r = (integer_part - n) + rest
    r = -0.505 if r < -0.505 else r
    p = ((_EXP2[5] * r + _EXP2[4]) * r + _EXP2[3]) * r + _EXP2[2]
    p = (p * r + _EXP2[1]) * r + _EXP2[0]
    k = bits(n + (ROUNDING_SHIFT + 254.0), s32)
    half = k >> 1
    power = (p * r + 1.0) * bits(half << 23, f32) * bits((k - half) << 23, f32)
    is_integer = round_(y) == y
    power = NAN if x < 0.0 and not is_integer else power
    zero = a == 0.0
    extreme = INF if zero == (y < 0.0) else 0.0
    power = extreme if zero or a == INF else power
    odd = is_integer and round_(y * 0.5) != y * 0.5
    power = bits(bits(power, s32) | (bits(x, s32) & SIGN if odd else 0), f32)
    power = power if x == x and y == y else NAN
    return 1.0 if y == 0.0 else power


def tanh_f32(x: Any) -> Any:
    # exp(-2a) is scale · (1 + q); neither 1 - exp(-2a) nor 1 + exp(-2a) needs its rounded value.
    a = abs(x)
    a = 9.5 if a > 9.5 else a
    n = round_(a * -2.885390081777927)
    r = (a * -2.0 - n * 0.693359375) - n * -2.1219444005469e-4
    p = (((_EXPM1[5] * r + _EXPM1[4]) * r + _EXPM1[3]) * r + _EXPM1[2]) * r + _EXPM1[1]
    scale = bits(bits(n + (ROUNDING_SHIFT + 127.0), s32) << 23, f32)
    t = ((p * r + _EXPM1[0]) * (r * r) + r) * scale
    y = ((1.0 - scale) - t) / ((scale + 1.0) + t)
    return bits(bits(y, s32) | (bits(x, s32) & SIGN), f32)


def sigmoid_f32(x: Any) -> Any:
    # exp(-x) is up / down · (1 + q); neither factor overflows or underflows.
    x = 89.0 if x > 89.0 else x
    x = -104.0 if x < -104.0 else x
    n = round_(x * -1.4426950408889634)
    r = (n * -0.693359375 - x) - n * -2.1219444005469e-4
    p = (((_EXP[4] * r + _EXP[3]) * r + _EXP[2]) * r + _EXP[1]) * r + _EXP[0]
    k = bits(n + (ROUNDING_SHIFT + 254.0), s32)
    half = k >> 1
    up = bits((k - half) << 23, f32)
    down = bits(0x7F000000 - (half << 23), f32)
    return down / (((p * (r * r) + r) * up + down) + up)


def erf_f32(x: Any) -> Any:
    # erf(a) = 1 - exp(-u) where u / a is smooth.
    a = abs(x)
    a = 3.95 if a > 3.95 else a
    q = (((_ERF[8] * a + _ERF[7]) * a + _ERF[6]) * a + _ERF[5]) * a + _ERF[4]
    q = (((q * a + _ERF[3]) * a + _ERF[2]) * a + _ERF[1]) * a + _ERF[0]
    u = q * a + a
    n = round_(u * -1.4426950408889634)
    r = (-u - n * 0.693359375) - n * -2.1219444005469e-4
    p = (((_EXPM1[5] * r + _EXPM1[4]) * r + _EXPM1[3]) * r + _EXPM1[2]) * r + _EXPM1[1]
    scale = bits(bits(n + (ROUNDING_SHIFT + 127.0), s32) << 23, f32)
    y = (1.0 - scale) - ((p * r + _EXPM1[0]) * (r * r) + r) * scale
    return bits(bits(y, s32) | (bits(x, s32) & SIGN), f32)


def erfc_f32(x: Any) -> Any:
    # erfc(a) = exp(-a²) · t · P(t); the rounding error of a² is corrected afterwards.
    a = abs(x)
    a = 10.1 if a > 10.1 else a
    t = 1.0 / (a * 0.4 + 1.0)
    p = (((_ERFC[8] * t + _ERFC[7]) * t + _ERFC[6]) * t + _ERFC[5]) * t + _ERFC[4]
    p = (((p * t + _ERFC[3]) * t + _ERFC[2]) * t + _ERFC[1]) * t + _ERFC[0]
    square = a * a
    high = bits(bits(a, s32) & HIGH_HALF, f32)
    short = (high * high - square) + (a - high) * (a + high)
    y = (p * t) * (1.0 - short) * exp(-square)
    return 2.0 - y if x < 0.0 else y
