"""Exponentials, logarithms and related functions for f64: as in `math_f32`, with more terms.

Two literals promote to f32: where both sides of a conditional are literals, one is f64(…).
"""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f64, s64 = SCALARS["f64"], SCALARS["s64"]
bits, exp, erfc, round_ = (INTRINSICS[name] for name in ("bits", "exp", "erfc", "round"))

INF, NAN = math.inf, math.nan
SMALLEST_NORMAL = 2.0**-1022
SIGN = -(1 << 63)
HIGH_HALF = -(1 << 27)
ROUNDING_SHIFT = 1.5 * 2.0**52
LN2_HIGH, LN2_LOW = 0.6931471805601177, -1.7239444525614835e-13
ONE, ROOT_HALF, FRACTION = 0x3FF0000000000000, 0x3FE6A09E667F3BCD, (1 << 52) - 1
"""The bits of 1 and of √½, and the mask of a significand."""
EXPONENT = 0x4330000000000000
"""The bits of 2**52: with an integer in the lowest bits, the float is 2**52 plus that integer."""

_EXP = (
    *(0.500000000000001, 0.16666666666666674, 0.04166666666652199, 0.008333333333322207),
    *(0.0013888888947820891, 0.00019841269886591, 2.4801487326012337e-05, 2.7557242336680357e-06),
    *(2.763265575933203e-07, 2.5110049895858716e-08),
)
_EXP2 = (
    *(0.6931471805599453, 0.2402265069591014, 0.055504108664819925, 0.00961812910759129),
    *(0.0013333558146803196, 0.00015403530461014016, 1.5252733474045656e-05),
    *(1.3215433199197656e-06, 1.0178204178784273e-07, 7.074161410386571e-09, 4.434553915669999e-10),
)
_LOG = (
    *(0.6666666666666734, 0.39999999999416064, 0.28571428742089555, 0.2222219860265379),
    *(0.18183562855361746, 0.1531408661505885, 0.14795604332050213),
)
_POW = (
    *(0.9617966939259853, 0.5770780163471609, 0.41219858557324995, 0.3205985572169827),
    *(0.2623333595712315, 0.22093556815289453, 0.21345544996804108),
)
_ERF = (
    *(1.1283791670955126, -0.3761263890318352, 0.11283791670944177, -0.02686617064311056),
    *(0.00522397760611239, -0.0008548325929064934, 0.00012055293570309093, -1.4924712187632598e-05),
    *(1.6447130274874734e-06, -1.62063045186225e-07, 1.3710942820684124e-08),
    *(-7.779402000303591e-10,),
)
_ERFC = (
    *(1.0959956610004908, -0.976548729080899, 0.773208702265302, -0.5408538313116669),
    *(0.33085158787470526, -0.1740109372829122, 0.07638151496796582, -0.026370052796519522),
    *(0.006112055184286843, -0.00028096266402419256, -0.0004550508743048415),
    *(0.00017682871474838566, -3.637609467595771e-06, -1.8901850572023727e-05),
    *(4.689597403924217e-06, 1.4879851956706565e-06, -8.241010310377726e-07),
    *(-1.3068023278535738e-07, 9.40280193464283e-08, 2.1300252820911142e-08),
)


def exp_f64(x: Any) -> Any:
    x = 710.0 if x > 710.0 else x
    x = -746.0 if x < -746.0 else x
    n = round_(x * 1.4426950408889634)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    p = (((_EXP[9] * r + _EXP[8]) * r + _EXP[7]) * r + _EXP[6]) * r + _EXP[5]
    p = (((p * r + _EXP[4]) * r + _EXP[3]) * r + _EXP[2]) * r + _EXP[1]
    y = ((p * r + _EXP[0]) * (r * r) + r) + 1.0
    k = bits(n + (ROUNDING_SHIFT + 2046.0), s64)
    half = k >> 1
    return y * bits(half << 52, f64) * bits((k - half) << 52, f64)


def exp2_f64(x: Any) -> Any:
    x = 1025.0 if x > 1025.0 else x
    x = -1076.0 if x < -1076.0 else x
    n = round_(x)
    r = x - n
    p = ((_EXP2[10] * r + _EXP2[9]) * r + _EXP2[8]) * r + _EXP2[7]
    p = (((p * r + _EXP2[6]) * r + _EXP2[5]) * r + _EXP2[4]) * r + _EXP2[3]
    p = ((p * r + _EXP2[2]) * r + _EXP2[1]) * r + _EXP2[0]
    k = bits(n + (ROUNDING_SHIFT + 2046.0), s64)
    half = k >> 1
    return (p * r + 1.0) * bits(half << 52, f64) * bits((k - half) << 52, f64)


def log_f64(x: Any) -> Any:
    # x is 2**e · (1 + f); with s = f / (2 + f), log(1 + f) = 2·atanh(s) = f - s·(f - s²·P(s²)).
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 18014398509481984.0 if tiny else x, s64) + (ONE - ROOT_HALF)
    e = bits((t >> 52) | EXPONENT, f64) - (f64(4503599627371573.0) if tiny else 4503599627371519.0)
    f = bits((t & FRACTION) + ROOT_HALF, f64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    p = ((_LOG[6] * z + _LOG[5]) * z + _LOG[4]) * z + _LOG[3]
    p = ((p * z + _LOG[2]) * z + _LOG[1]) * z + _LOG[0]
    y = ((e * LN2_LOW - s * (f - p * z)) + f) + e * LN2_HIGH
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def log2_f64(x: Any) -> Any:
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 18014398509481984.0 if tiny else x, s64) + (ONE - ROOT_HALF)
    e = bits((t >> 52) | EXPONENT, f64) - (f64(4503599627371573.0) if tiny else 4503599627371519.0)
    f = bits((t & FRACTION) + ROOT_HALF, f64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    p = ((_LOG[6] * z + _LOG[5]) * z + _LOG[4]) * z + _LOG[3]
    p = ((p * z + _LOG[2]) * z + _LOG[1]) * z + _LOG[0]
    y = (f - s * (f - p * z)) * 1.4426950408889634 + e
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def log10_f64(x: Any) -> Any:
    tiny = x < SMALLEST_NORMAL
    t = bits(x * 18014398509481984.0 if tiny else x, s64) + (ONE - ROOT_HALF)
    e = bits((t >> 52) | EXPONENT, f64) - (f64(4503599627371573.0) if tiny else 4503599627371519.0)
    f = bits((t & FRACTION) + ROOT_HALF, f64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    p = ((_LOG[6] * z + _LOG[5]) * z + _LOG[4]) * z + _LOG[3]
    p = ((p * z + _LOG[2]) * z + _LOG[1]) * z + _LOG[0]
    y = (f - s * (f - p * z)) * 0.4342944819032518
    y = (y + e * -8.532344317057107e-14) + e * 0.3010299956640665
    y = y if x < INF else x
    return y if x > 0.0 else (-INF if x == 0.0 else NAN)


def pow_f64(x: Any, y: Any) -> Any:
    # The same steps as in `pow_f32`.
    a = abs(x)
    tiny = a < SMALLEST_NORMAL
    t = bits(a * 18014398509481984.0 if tiny else a, s64) + (ONE - ROOT_HALF)
    e = bits((t >> 52) | EXPONENT, f64) - (f64(4503599627371573.0) if tiny else 4503599627371519.0)
    m = bits((t & FRACTION) + ROOT_HALF, f64)
    f = m - 1.0
    d = m + 1.0
    inverse = 1.0 / d
    s_high = bits(bits(f * inverse, s64) & HIGH_HALF, f64)
    d_high = bits(bits(d, s64) & HIGH_HALF, f64)
    s_low = ((f - s_high * d_high) - s_high * (m - (d_high - 1.0))) * inverse
    s = s_high + s_low
    z = s * s
    p = ((_POW[6] * z + _POW[5]) * z + _POW[4]) * z + _POW[3]
    tail = (((p * z + _POW[2]) * z + _POW[1]) * z + _POW[0]) * (z * s)
    high = s_high * 2.8853901028633118
    low = s_high * -2.1085384952858276e-08 + s_low * 2.885390081777927
    log_high = bits(bits(e + (high + tail), s64) & HIGH_HALF, f64)
    log_low = ((high - (log_high - e)) + tail) + low
    y_kept = 18446744073709551616.0 if y > 18446744073709551616.0 else y
    y_kept = -18446744073709551616.0 if y_kept < -18446744073709551616.0 else y_kept
    y_high = bits(bits(y_kept, s64) & HIGH_HALF, f64)
    integer_part = y_high * log_high
    rest = (y_kept - y_high) * log_high + y_kept * log_low
    n = integer_part + rest
    n = 1025.0 if n > 1025.0 else n
    n = round_(-1077.0 if n < -1077.0 else n)
    r = (integer_part - n) + rest
    r = -0.505 if r < -0.505 else r
    p = ((_EXP2[10] * r + _EXP2[9]) * r + _EXP2[8]) * r + _EXP2[7]
    p = (((p * r + _EXP2[6]) * r + _EXP2[5]) * r + _EXP2[4]) * r + _EXP2[3]
    p = ((p * r + _EXP2[2]) * r + _EXP2[1]) * r + _EXP2[0]
    k = bits(n + (ROUNDING_SHIFT + 2046.0), s64)
    half = k >> 1
    power = (p * r + 1.0) * bits(half << 52, f64) * bits((k - half) << 52, f64)
    is_integer = round_(y) == y
    power = NAN if x < 0.0 and not is_integer else power
    zero = a == 0.0
    extreme = INF if zero == (y < 0.0) else 0.0
    power = extreme if zero or a == INF else power
    odd = is_integer and round_(y * 0.5) != y * 0.5
    power = bits(bits(power, s64) | (bits(x, s64) & SIGN if odd else 0), f64)
    power = power if x == x and y == y else NAN
    return 1.0 if y == 0.0 else power


def tanh_f64(x: Any) -> Any:
    a = abs(x)
    a = 20.0 if a > 20.0 else a
    n = round_(a * -2.885390081777927)
    r = (a * -2.0 - n * LN2_HIGH) - n * LN2_LOW
    p = (((_EXP[9] * r + _EXP[8]) * r + _EXP[7]) * r + _EXP[6]) * r + _EXP[5]
    p = (((p * r + _EXP[4]) * r + _EXP[3]) * r + _EXP[2]) * r + _EXP[1]
    scale = bits(bits(n + (ROUNDING_SHIFT + 1023.0), s64) << 52, f64)
    t = ((p * r + _EXP[0]) * (r * r) + r) * scale
    y = ((1.0 - scale) - t) / ((scale + 1.0) + t)
    return bits(bits(y, s64) | (bits(x, s64) & SIGN), f64)


def sigmoid_f64(x: Any) -> Any:
    e = exp(-abs(x))
    return (1.0 if x > 0.0 else e) / (e + 1.0)


def erf_f64(x: Any) -> Any:
    a = abs(x)
    z = 1.0 if a > 1.0 else a * a
    p = ((_ERF[11] * z + _ERF[10]) * z + _ERF[9]) * z + _ERF[8]
    p = (((p * z + _ERF[7]) * z + _ERF[6]) * z + _ERF[5]) * z + _ERF[4]
    p = (((p * z + _ERF[3]) * z + _ERF[2]) * z + _ERF[1]) * z + _ERF[0]
    y = 1.0 - erfc(a) if a > 1.0 else p * a
    return bits(bits(y, s64) | (bits(x, s64) & SIGN), f64)


def erfc_f64(x: Any) -> Any:
    # erfc(a) = exp(-a²) · P(t) / (a + 4) with t = (a - 4) / (a + 4).
    a = abs(x)
    a = 27.3 if a > 27.3 else a
    inverse = 1.0 / (a + 4.0)
    t = (a - 4.0) * inverse
    p = (((_ERFC[19] * t + _ERFC[18]) * t + _ERFC[17]) * t + _ERFC[16]) * t + _ERFC[15]
    p = (((p * t + _ERFC[14]) * t + _ERFC[13]) * t + _ERFC[12]) * t + _ERFC[11]
    p = (((p * t + _ERFC[10]) * t + _ERFC[9]) * t + _ERFC[8]) * t + _ERFC[7]
    p = (((p * t + _ERFC[6]) * t + _ERFC[5]) * t + _ERFC[4]) * t + _ERFC[3]
    p = ((p * t + _ERFC[2]) * t + _ERFC[1]) * t + _ERFC[0]
    square = a * a
    high = bits(bits(a, s64) & HIGH_HALF, f64)
    short = (high * high - square) + (a - high) * (a + high)
    y = (p * inverse) * (1.0 - short) * exp(-square)
    return 2.0 - y if x < 0.0 else y
