"""Roots, remainders and scaling by powers of two, written in the kernel language.

`fmod` and `ldexp` are exact, or correctly rounded, for all numbers, as those of C are.
"""

from __future__ import annotations

import math
from typing import Any

from dala.lang.language_names import INTRINSICS, SCALARS

f32, f64, s32, s64, u32 = (SCALARS[name] for name in ("f32", "f64", "s32", "s64", "u32"))
bits, ldexp, sqrt = (INTRINSICS[name] for name in ("bits", "ldexp", "sqrt"))

INF, NAN = math.inf, math.nan
SIGN_F32, SIGN_F64 = -(1 << 31), -(1 << 63)
TWO_52_BITS = 0x4330000000000000
"""The bits of 2**52: with an integer in the lowest bits, the float is 2**52 plus that integer."""


def hypot_f32(x: Any, y: Any) -> Any:
    a, b = abs(x), abs(y)
    infinite = a == INF or b == INF  # noqa: PLR1714
    most = b if b > a else a
    # Powers of two, so that no square overflows or vanishes beside a larger one.
    up = 2.0**100 if most < 2.0**-50 else f32(1.0)
    scale = 2.0**-100 if most > 2.0**50 else up
    back = 2.0**100 if most > 2.0**50 else (2.0**-100 if most < 2.0**-50 else f32(1.0))
    a, b = a * scale, b * scale
    return INF if infinite else sqrt(a * a + b * b) * back


def hypot_f64(x: Any, y: Any) -> Any:
    a, b = abs(x), abs(y)
    infinite = a == INF or b == INF  # noqa: PLR1714
    most = b if b > a else a
    up = 2.0**700 if most < 2.0**-400 else f64(1.0)
    scale = 2.0**-700 if most > 2.0**400 else up
    back = 2.0**700 if most > 2.0**400 else (2.0**-700 if most < 2.0**-400 else f64(1.0))
    a, b = a * scale, b * scale
    return INF if infinite else sqrt(a * a + b * b) * back


def cbrt_f32(x: Any) -> Any:
    a = abs(x)
    tiny, huge = a < 2.0**-100, a > 2.0**100
    up = 2.0**48 if tiny else f32(1.0)
    scaled = a * (2.0**-48 if huge else up)
    # A third of the bits is a third of the logarithm, to 4 %: Halley's steps triple the digits.
    t = bits(s32(f32(bits(scaled, s32)) * (1.0 / 3.0)) + 709921077, f32)
    cube = t * t * t
    t = t * ((cube + (scaled + scaled)) / ((cube + cube) + scaled))
    cube = t * t * t
    t = t - t * ((cube - scaled) / ((cube + cube) + scaled))
    down = 2.0**-16 if tiny else f32(1.0)
    y = t * (2.0**16 if huge else down)
    y = bits(bits(y, s32) | (bits(x, s32) & SIGN_F32), f32)
    return y if a > 0.0 and a < INF else x


def cbrt_f64(x: Any) -> Any:
    a = abs(x)
    tiny, huge = a < 2.0**-900, a > 2.0**900
    up = 2.0**300 if tiny else f64(1.0)
    scaled = a * (2.0**-300 if huge else up)
    third = (bits((bits(scaled, s64) >> 20) | TWO_52_BITS, f64) - 2.0**52) * (1.0 / 3.0)
    guess = bits((third + 715094163.0 * 4096.0) + 2.0**52, s64) - TWO_52_BITS
    t = bits(guess << 20, f64)
    cube = t * t * t
    t = t * ((cube + (scaled + scaled)) / ((cube + cube) + scaled))
    cube = t * t * t
    t = t * ((cube + (scaled + scaled)) / ((cube + cube) + scaled))
    cube = t * t * t
    t = t - t * ((cube - scaled) / ((cube + cube) + scaled))
    down = 2.0**-100 if tiny else f64(1.0)
    y = t * (2.0**100 if huge else down)
    y = bits(bits(y, s64) | (bits(x, s64) & SIGN_F64), f64)
    return y if a > 0.0 and a < INF else x


def fmod_f32(x: Any, y: Any) -> Any:
    # Long division of the significands, 8 bits at a time: a quotient in floats would be rounded.
    a, b = bits(x, s32) & 0x7FFFFFFF, bits(y, s32) & 0x7FFFFFFF
    a_exponent, b_exponent = max(a >> 23, 1), max(b >> 23, 1)
    rest = u32((a & 0x7FFFFF) | (0x800000 if a > 0x7FFFFF else s32(0)))
    divisor = u32((b & 0x7FFFFF) | (0x800000 if b > 0x7FFFFF else s32(0)))
    apart = a_exponent - b_exponent
    apart = 0 if apart < 0 or b == 0 or a >= 0x7F800000 or b >= 0x7F800000 else apart
    rest = rest % divisor
    for k in range((apart + 7) >> 3):
        rest = (rest << u32(min(apart - (k << 3), 8))) % divisor
    z = ldexp(f32(rest), b_exponent - 150)
    z = bits(bits(z, s32) | (bits(x, s32) & SIGN_F32), f32)
    z = x if a < b else z
    return NAN if b == 0 or a >= 0x7F800000 or b > 0x7F800000 else z


def fmod_f64(x: Any, y: Any) -> Any:
    a, b = bits(x, s64) & 0x7FFFFFFFFFFFFFFF, bits(y, s64) & 0x7FFFFFFFFFFFFFFF
    a_exponent, b_exponent = max(s32(a >> 52), 1), max(s32(b >> 52), 1)
    a_normal, b_normal = a > 0xFFFFFFFFFFFFF, b > 0xFFFFFFFFFFFFF
    rest = (a & 0xFFFFFFFFFFFFF) | (0x10000000000000 if a_normal else s64(0))
    divisor = (b & 0xFFFFFFFFFFFFF) | (0x10000000000000 if b_normal else s64(0))
    apart = a_exponent - b_exponent
    finite = a < 0x7FF0000000000000 and b < 0x7FF0000000000000
    apart = apart if apart > 0 and b != 0 and finite else 0
    rest = rest % divisor
    for k in range((apart + 9) // 10):
        rest = (rest << s64(min(apart - k * 10, 10))) % divisor
    z = ldexp(f64(rest), b_exponent - 1075)
    z = bits(bits(z, s64) | (bits(x, s64) & SIGN_F64), f64)
    z = x if a < b else z
    return NAN if b == 0 or a >= 0x7FF0000000000000 or b > 0x7FF0000000000000 else z


def ldexp_f32(x: Any, n: Any) -> Any:
    # Only the last factor rounds: those before it leave normal numbers, 0 or infinity.
    x = x * (2.0**127 if n > 127 else (2.0**-102 if n < -126 else f32(1.0)))
    n = n - (127 if n > 127 else (-102 if n < -126 else 0))
    x = x * (2.0**127 if n > 127 else (2.0**-102 if n < -126 else f32(1.0)))
    n = n - (127 if n > 127 else (-102 if n < -126 else 0))
    n = max(min(n, 127), -126)
    return x * bits((n + 127) << 23, f32)


def ldexp_f64(x: Any, n: Any) -> Any:
    x = x * (2.0**1023 if n > 1023 else (2.0**-969 if n < -1022 else f64(1.0)))
    n = n - (1023 if n > 1023 else (-969 if n < -1022 else 0))
    x = x * (2.0**1023 if n > 1023 else (2.0**-969 if n < -1022 else f64(1.0)))
    n = n - (1023 if n > 1023 else (-969 if n < -1022 else 0))
    n = max(min(n, 1023), -1022)
    return x * bits(s64(n + 1023) << 52, f64)
