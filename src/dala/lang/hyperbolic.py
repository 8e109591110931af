"""Hyperbolic functions and their inverses, written in the kernel language.

Near zero, and `acosh` near 1, they are polynomials; elsewhere exponentials and logarithms. Both
are computed, and one is selected.
"""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS, Intrinsic
from dala.lang.math_f32 import _EXP as _EXP_F32
from dala.lang.math_f32 import ROUNDING_SHIFT as SHIFT_F32
from dala.lang.math_f32 import SIGN as SIGN_F32
from dala.lang.math_f64 import _EXP as _EXP_F64
from dala.lang.math_f64 import LN2_HIGH, LN2_LOW
from dala.lang.math_f64 import ROUNDING_SHIFT as SHIFT_F64
from dala.lang.math_f64 import SIGN as SIGN_F64

f32, f64, s32, s64 = (SCALARS[name] for name in ("f32", "f64", "s32", "s64"))
bits, log, round_, sqrt = (INTRINSICS[name] for name in ("bits", "log", "round", "sqrt"))
half_exp = Intrinsic("half_exp")
"""exp(x) / 2, which is finite where cosh(x) is; not a public name."""

INF, NAN, LN2 = math.inf, math.nan, math.log(2.0)

_SINH = tuple(1.0 / math.factorial(k) for k in range(3, 20, 2))
_ASINH_F32 = (-0.1666666459, 0.0749958263, -0.04450651099, 0.02878360622, -0.01428850809)
_ASINH_F64 = (
    *(-0.16666666666666666, 0.0749999999999992, -0.044642857142677225, 0.030381944428513684),
    *(-0.022372158355736263, 0.0173527441556904, -0.013964483323351326, 0.011547475926257406),
    *(-0.009725716144151688, 0.00818236764637779, -0.0064746008466359025, 0.00413835813140252),
    *(-0.0014988358499957474,),
)
_ATANH_F32 = (0.3333333168, 0.2000047331, 0.1426397985, 0.1146987516, 0.06493489568, 0.1575178026)
_ATANH_F64 = (
    *(0.3333333333333333, 0.19999999999999934, 0.14285714285734208, 0.11111111108774245),
    *(0.09090909234076455, 0.07692302426298539, 0.0666679262425516, 0.05880296593962229),
    *(0.05286736995315698, 0.0456935407180027, 0.05468265249637926, -0.005783645920519892),
    *(0.16366841241041946, -0.18450627783481666, 0.22653799107253964),
)
_ACOSH_F32 = (
    *(-0.08333333179, 0.01874984828, -0.005577877148, 0.001883342093, -0.0006512617401),
    *(0.0001905107754, -3.137211222e-05),
)
_ACOSH_F64 = (
    *(-0.08333333333333333, 0.018749999999999697, -0.005580357142831269, 0.0018988715269012998),
    *(-0.000699129955936915, 0.0002711367742756888, -0.00010909912562434955),
    *(4.5118162672735726e-05, -1.9043892329179464e-05, 8.136125660467529e-06),
    *(-3.456589299289953e-06, 1.4036107159504199e-06, -5.07178425463502e-07),
    *(1.4652287771243901e-07, -2.887283566028395e-08, 2.820224085361782e-09),
)


def half_exp_f32(a: Any) -> Any:
    a = 91.0 if a > 91.0 else a
    n = round_(a * 1.4426950408889634)
    r = (a - n * 0.693359375) - n * -2.1219444005469e-4
    p = ((_EXP_F32[4] * r + _EXP_F32[3]) * r + _EXP_F32[2]) * r + _EXP_F32[1]
    k = bits(n + (SHIFT_F32 + 253.0), s32)
    half = k >> 1
    power = (p * r + _EXP_F32[0]) * (r * r) + r + 1.0
    return power * bits(half << 23, f32) * bits((k - half) << 23, f32)


def half_exp_f64(a: Any) -> Any:
    a = 712.0 if a > 712.0 else a
    n = round_(a * 1.4426950408889634)
    r = (a - n * LN2_HIGH) - n * LN2_LOW
    p = (((_EXP_F64[9] * r + _EXP_F64[8]) * r + _EXP_F64[7]) * r + _EXP_F64[6]) * r + _EXP_F64[5]
    p = (((p * r + _EXP_F64[4]) * r + _EXP_F64[3]) * r + _EXP_F64[2]) * r + _EXP_F64[1]
    k = bits(n + (SHIFT_F64 + 2045.0), s64)
    half = k >> 1
    power = ((p * r + _EXP_F64[0]) * (r * r) + r) + 1.0
    return power * bits(half << 52, f64) * bits((k - half) << 52, f64)


def cosh_f32(x: Any) -> Any:
    e = half_exp(abs(x))
    return e + 0.25 / e


def cosh_f64(x: Any) -> Any:
    e = half_exp(abs(x))
    return e + 0.25 / e


def sinh_f32(x: Any) -> Any:
    a = abs(x)
    z = a * a
    p = (((_SINH[4] * z + _SINH[3]) * z + _SINH[2]) * z + _SINH[1]) * z + _SINH[0]
    e = half_exp(a)
    y = p * (z * a) + a if a < 1.0 else e - 0.25 / e
    return bits(bits(y, s32) | (bits(x, s32) & SIGN_F32), f32)


def sinh_f64(x: Any) -> Any:
    a = abs(x)
    z = a * a
    p = ((_SINH[8] * z + _SINH[7]) * z + _SINH[6]) * z + _SINH[5]
    p = ((((p * z + _SINH[4]) * z + _SINH[3]) * z + _SINH[2]) * z + _SINH[1]) * z + _SINH[0]
    e = half_exp(a)
    y = p * (z * a) + a if a < 1.0 else e - 0.25 / e
    return bits(bits(y, s64) | (bits(x, s64) & SIGN_F64), f64)


def asinh_f32(x: Any) -> Any:
    a = abs(x)
    near, huge = a < 0.5, a > 8192.0
    z = a * a
    p = (_ASINH_F32[4] * z + _ASINH_F32[3]) * z + _ASINH_F32[2]
    p = (p * z + _ASINH_F32[1]) * z + _ASINH_F32[0]
    # From 2**13 on the root is a itself, and the logarithm that of 2a, which may be infinite.
    far = log(a if huge else a + sqrt(z + 1.0)) + (LN2 if huge else f32(0.0))
    y = p * (z * a) + a if near else far
    return bits(bits(y, s32) | (bits(x, s32) & SIGN_F32), f32)


def asinh_f64(x: Any) -> Any:
    a = abs(x)
    near, huge = a < 0.5, a > 268435456.0
    z = a * a
    p = (_ASINH_F64[12] * z + _ASINH_F64[11]) * z + _ASINH_F64[10]
    p = ((p * z + _ASINH_F64[9]) * z + _ASINH_F64[8]) * z + _ASINH_F64[7]
    p = ((p * z + _ASINH_F64[6]) * z + _ASINH_F64[5]) * z + _ASINH_F64[4]
    p = ((p * z + _ASINH_F64[3]) * z + _ASINH_F64[2]) * z + _ASINH_F64[1]
    far = log(a if huge else a + sqrt(z + 1.0)) + (LN2 if huge else f64(0.0))
    y = (p * z + _ASINH_F64[0]) * (z * a) + a if near else far
    return bits(bits(y, s64) | (bits(x, s64) & SIGN_F64), f64)


def acosh_f32(x: Any) -> Any:
    # acosh(1 + t) is √(2t) times a smooth function of t.
    t = x - 1.0
    p = ((_ACOSH_F32[6] * t + _ACOSH_F32[5]) * t + _ACOSH_F32[4]) * t + _ACOSH_F32[3]
    p = ((p * t + _ACOSH_F32[2]) * t + _ACOSH_F32[1]) * t + _ACOSH_F32[0]
    root = sqrt(t + t)
    huge = x > 8192.0
    far = log(x if huge else x + sqrt(x * x - 1.0)) + (LN2 if huge else f32(0.0))
    y = p * (t * root) + root if x < 2.0 else far
    return NAN if x < 1.0 else y


def acosh_f64(x: Any) -> Any:
    t = x - 1.0
    p = ((_ACOSH_F64[15] * t + _ACOSH_F64[14]) * t + _ACOSH_F64[13]) * t + _ACOSH_F64[12]
    p = (((p * t + _ACOSH_F64[11]) * t + _ACOSH_F64[10]) * t + _ACOSH_F64[9]) * t + _ACOSH_F64[8]
    p = (((p * t + _ACOSH_F64[7]) * t + _ACOSH_F64[6]) * t + _ACOSH_F64[5]) * t + _ACOSH_F64[4]
    p = (((p * t + _ACOSH_F64[3]) * t + _ACOSH_F64[2]) * t + _ACOSH_F64[1]) * t + _ACOSH_F64[0]
    root = sqrt(t + t)
    huge = x > 268435456.0
    far = log(x if huge else x + sqrt(x * x - 1.0)) + (LN2 if huge else f64(0.0))
    y = p * (t * root) + root if x < 2.0 else far
    return NAN if x < 1.0 else y


def atanh_f32(x: Any) -> Any:
    a = abs(x)
    z = a * a
    p = (_ATANH_F32[5] * z + _ATANH_F32[4]) * z + _ATANH_F32[3]
    p = ((p * z + _ATANH_F32[2]) * z + _ATANH_F32[1]) * z + _ATANH_F32[0]
    y = p * (z * a) + a if a < 0.5 else log((a + 1.0) / (1.0 - a)) * 0.5
    signed = bits(bits(y, s32) | (bits(x, s32) & SIGN_F32), f32)
    return NAN if a > 1.0 else signed


def atanh_f64(x: Any) -> Any:
    a = abs(x)
    z = a * a
    p = (_ATANH_F64[14] * z + _ATANH_F64[13]) * z + _ATANH_F64[12]
    p = ((p * z + _ATANH_F64[11]) * z + _ATANH_F64[10]) * z + _ATANH_F64[9]
    p = ((p * z + _ATANH_F64[8]) * z + _ATANH_F64[7]) * z + _ATANH_F64[6]
    p = ((p * z + _ATANH_F64[5]) * z + _ATANH_F64[4]) * z + _ATANH_F64[3]
    p = ((p * z + _ATANH_F64[2]) * z + _ATANH_F64[1]) * z + _ATANH_F64[0]
    y = p * (z * a) + a if a < 0.5 else log((a + 1.0) / (1.0 - a)) * 0.5
    signed = bits(bits(y, s64) | (bits(x, s64) & SIGN_F64), f64)
    return NAN if a > 1.0 else signed
