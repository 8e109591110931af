"""Lowers random numbers: Philox 4×32-10, a generator without state.

A number depends on its seed and its counters alone, so that every device gives the same one,
whatever was drawn before it. (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dala.ir.builder import Builder
from dala.ir.nodes import Value
from dala.ir.types import F32, S32, U32
from dala.lang.arithmetic import Mismatch
from dala.lang.language_names import INTRINSICS, SCALARS
from dala.lang.values import Literal, LoweredValue, Number, Tuple, describe

if TYPE_CHECKING:
    from typing import Any

    from dala.lang.expressions import Expressions

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MOST_COUNTERS = 4
_WORD = (1 << 32) - 1

f32, u32 = SCALARS["f32"], SCALARS["u32"]
cos, log, sqrt = (INTRINSICS[name] for name in ("cos", "log", "sqrt"))
TURN = math.tau * 2.0**-24


def philox(build: Builder, counter: list[Value], key: list[Value]) -> list[Value]:
    """Returns the four random words of four words of counter and two of key."""
    factors = [build.const(U32, factor) for factor in MULTIPLIERS]
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for round_ in range(ROUNDS):
        if round_:
            k0 = build.apply("add", k0, build.const(U32, KEY_STEPS[0]))
            k1 = build.apply("add", k1, build.const(U32, KEY_STEPS[1]))
        high0, low0 = (build.apply(op, c0, factors[0]) for op in ("mulhi", "mul"))
        high1, low1 = (build.apply(op, c2, factors[1]) for op in ("mulhi", "mul"))
        c0 = build.apply("xor", build.apply("xor", high1, c1), k0)
        c2 = build.apply("xor", build.apply("xor", high0, c3), k1)
        c1, c3 = low1, low0
    return [c0, c1, c2, c3]


# -- arguments -------------------------------------------------------------------------------------


def _key(lower: Expressions, seed: LoweredValue) -> list[Value]:
    """Returns the two words of a seed, which counts as an integer of 64 bits."""
    build = lower.build
    if isinstance(seed, Literal) and type(seed.value) is int:
        return [build.const(U32, (seed.value >> shift) & _WORD) for shift in (0, 32)]
    number = lower.arithmetic.typed(seed)
    if not number.type.is_integer:
        raise Mismatch(
            f"a seed is an integer, not {describe(seed)}.", "Annotate it with dala.u32 or dala.s64."
        )
    low = build.convert(number.value, U32)
    if number.type.bits == 64:
        high = build.apply("shr", number.value, build.const(number.type, 32))
        return [low, build.convert(high, U32)]
    if number.type.kind == "u":
        return [low, build.const(U32, 0)]
    sign = build.apply("shr", build.convert(number.value, S32), build.const(S32, 31))
    return [low, build.convert(sign, U32)]


def _counter(lower: Expressions, counters: tuple[LoweredValue, ...]) -> list[Value]:
    """Returns the words of the counters, and 0 for each that is not given."""
    words: list[Value] = []
    for counter in counters:
        number = lower.arithmetic.typed(counter)
        if not number.type.is_integer or number.type.bits > 32:
            wide = number.type.is_integer
            raise Mismatch(
                f"a counter is an integer of at most 32 bits, not {describe(counter)}.",
                "Give its halves as two: dala.u32(n), dala.u32(n >> 32)."
                if wide
                else "Count with positions or loop variables; to draw more, give one more counter.",
            )
        words.append(lower.build.convert(number.value, U32))
    zero = lower.build.const(U32, 0)
    return [*words, *[zero] * (MOST_COUNTERS - len(words))]


def _words(
    lower: Expressions, seed: LoweredValue, counters: tuple[LoweredValue, ...]
) -> list[Value]:
    return philox(lower.build, _counter(lower, counters), _key(lower, seed))


# -- what is drawn ---------------------------------------------------------------------------------


def _random_bits(lower: Expressions, seed: LoweredValue, *counters: LoweredValue) -> LoweredValue:
    return Tuple(tuple(Number(word) for word in _words(lower, seed, counters)))


def _random(lower: Expressions, seed: LoweredValue, *counters: LoweredValue) -> LoweredValue:
    build = lower.build
    upper = build.apply("shr", _words(lower, seed, counters)[0], build.const(U32, 8))
    return Number(build.apply("mul", build.convert(upper, F32), build.const(F32, 2.0**-24)))


def _random_normal(lower: Expressions, seed: LoweredValue, *counters: LoweredValue) -> LoweredValue:
    first, second, *_ = _words(lower, seed, counters)
    return lower.inline_python(_normal, [Number(first), Number(second)])


def _normal(a: Any, b: Any) -> Any:
    # Box and Muller; what 24 bits leave over makes small numbers finer, and so the tails longer.
    rest = (f32(a & 255) + 0.5) * 0.00390625
    share = (f32(a >> 8) + rest) * 5.9604644775390625e-08
    return sqrt(log(share) * -2.0) * cos(f32(b >> 8) * TURN)


def _random_int(
    lower: Expressions,
    low: LoweredValue,
    high: LoweredValue,
    seed: LoweredValue,
    *counters: LoweredValue,
) -> LoweredValue:
    build, given = lower.build, f"{describe(low)} and {describe(high)}"
    if isinstance(low, Literal) and isinstance(high, Literal) and not low.value < high.value:
        raise Mismatch(
            f"dala.random_int draws from low up to, not including, high: {given} leave nothing.",
            "Give the larger one second.",
        )
    least, end = lower.arithmetic.to_common_type(low, high)
    type = least.type
    if not type.is_integer or type.bits > 32:
        raise Mismatch(
            f"dala.random_int draws between integers of at most 32 bits, not {given}.",
            "Convert them: dala.s32(…) or dala.u32(…).",
        )
    first, second, *_ = _words(lower, seed, counters)
    span = build.apply("sub", build.convert(end.value, U32), build.convert(least.value, U32))
    span = build.select(build.apply("lt", least.value, end.value), span, build.const(U32, 0))
    # The upper word of span times 64 random bits: no number is drawn more often by over 2**-32.
    below = build.apply("mul", span, first)
    total = build.apply("add", below, build.apply("mulhi", span, second))
    carry = build.convert(build.apply("lt", total, below), U32)
    offset = build.apply("add", build.apply("mulhi", span, first), carry)
    return Number(build.apply("add", least.value, build.convert(offset, type)))


_COUNTED = tuple(range(2, MOST_COUNTERS + 2))
HANDLERS: dict[str, tuple[Callable[..., LoweredValue], tuple[int, ...]]] = {
    "random": (_random, _COUNTED),
    "random_normal": (_random_normal, _COUNTED),
    "random_bits": (_random_bits, _COUNTED),
    "random_int": (_random_int, tuple(count + 2 for count in _COUNTED)),
}
"""The intrinsics of this module, and how many arguments they take."""
