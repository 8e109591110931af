"""Plans how a weighted sum of levels is computed in 16 bits.

Where all weights are fractions of one small denominator, as 0.299 and 3/4 are, the sum is exact.
Else products lose what is below a fraction of a level, and the sum is close.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dala.base.record import record
from dala.ir.level_forms import ROOM, Form, Level

LARGEST_ERROR = 1 / 16
"""How far off a close sum may be before it is rounded, in levels."""
MOST_FRACTION_BITS = 8
MOST_LEVELS = 256
"""The most levels that are added one by one."""
LARGEST_DENOMINATOR = 10_000
MOST_SPLIT = 8
"""The most weights that are worth two multiplications each."""
CLOSE = 3e-7
"""How far from a fraction a weight may be to be taken for it: f32 rounds 255 · (0.299 / 255)."""


@record
class Exact:
    """A sum of integers over `divisor` · 2^`shift`; `base` levels are added, to stay above 0.

    A weight is given by its upper part and its lowest `shift` bits.
    """

    groups: tuple[tuple[tuple[Level, ...], int, int], ...]
    shift: int
    divisor: int
    base: int
    is_plain: bool
    """Whether nothing is added to the levels."""
    error: float = 0.0


@record
class Group:
    """Levels of one weight: their sum is multiplied by `factor`, or its upper half is taken.

    With a shift, the sum is shifted by it, and the factor is in 65536ths.
    """

    levels: tuple[Level, ...]
    factor: int
    shift: int | None


@record
class Close:
    """A sum in units of 2^-`bits` levels; `base` units are added to it, to stay above 0."""

    groups: tuple[Group, ...]
    bits: int
    base: int
    lost: int
    """What makes up for rounding down the upper halves of products."""
    error: float
    """How far off it is at most, in levels."""


def plan_of(form: Form) -> Exact | Close | None:
    """Returns how to round a form to a level, or None if 16 bits do not do."""
    if not 0 < len(form.weights) <= MOST_LEVELS or (form.uniforms and form.limits[0] > 0):
        return None
    return _exact(form) or closest(form)


def offset_bounds(form: Form) -> tuple[float, float]:
    """Returns the bounds beyond which what parameters add makes no difference, in levels."""
    low, high = form.range
    return (-(high + 1), 256 - low) if form.uniforms else (0.0, 0.0)


def _range(form: Form) -> tuple[int, float]:
    """Returns how many levels below 0 a sum may be, and the greatest that it is above that."""
    low, high = form.range
    lowest, highest = offset_bounds(form)
    below = math.ceil(-(low + lowest)) + 1 if low + lowest < 0 else 0
    base = below + below % 2  # so that even levels stay even
    return base, base + max(0.0, high + highest)


# -- exact -----------------------------------------------------------------------------------------


def _exact(form: Form) -> Exact | None:
    fractions = {level: as_fraction(weight) for level, weight in form.weights.items()}
    denominator = math.lcm(*(item.denominator for item in fractions.values()))
    if is_binary(denominator) and form.constant * 256 == round(form.constant * 256):
        denominator = math.lcm(denominator, Fraction(form.constant).denominator)
    if denominator > LARGEST_DENOMINATOR:
        return None
    base, most = _range(form)
    shift = 0
    while (most + 0.5) * (denominator >> shift) > ROOM:
        shift += 1
        if denominator % (1 << shift) or is_binary(denominator):
            return None
    weights: dict[int, list[Level]] = {}
    for level, fraction in fractions.items():
        weights.setdefault(int(fraction * denominator), []).append(level)
    groups = tuple(
        (tuple(levels), weight >> shift, weight % (1 << shift))
        for weight, levels in weights.items()
    )
    lower = sum(low * level.most for levels, _, low in groups for level in levels)
    if shift and (lower + (1 << shift) > ROOM or len(groups) > MOST_SPLIT):
        return None
    if any(sum(level.most for level in levels) > ROOM for levels, _, _ in groups):
        return None
    return Exact(groups, shift, denominator >> shift, base, form.is_plain_sum)


def is_binary(denominator: int) -> bool:
    """Whether it is a power of two: floats are exact then, and so are ties."""
    return denominator & (denominator - 1) == 0


def as_fraction(weight: float) -> Fraction:
    """Returns the fraction that a weight was meant to be, else the weight."""
    for most in (1, 256, 1000, LARGEST_DENOMINATOR):
        near = Fraction(weight).limit_denominator(most)
        if near and abs(near - Fraction(weight)) <= CLOSE * abs(weight):
            return near
    return Fraction(weight)


# -- close -----------------------------------------------------------------------------------------


def closest(form: Form, most_bits: int = MOST_FRACTION_BITS) -> Close | None:
    """Returns the plan with the most fraction bits that fit, if it is close enough."""
    base, most = _range(form)
    for bits in range(most_bits, -1, -1):
        unit = 1 << bits
        groups = _groups(form, unit)
        rough = [group for group in groups if group.shift is not None]
        if (most + 0.5) * unit + len(rough) > ROOM or any(abs(g.factor) > ROOM for g in groups):
            continue
        lost = sum(1 if group.factor > 0 else -1 for group in rough) // 2
        error = (len(rough) / 2 + _misweighed(form, groups, unit) + 1) / unit
        return Close(groups, bits, base * unit, lost, error) if error <= LARGEST_ERROR else None
    return None


def _misweighed(form: Form, groups: tuple[Group, ...], unit: int) -> float:
    """Returns how far off a sum may be because its factors are integers, in units."""
    apart = 0.0
    for group in groups:
        scale = 1 if group.shift is None else (1 << group.shift) / (ROOM + 1)
        for level in group.levels:
            apart += abs(form.levels[level] * unit - group.factor * scale) * level.most
    return apart


def _groups(form: Form, unit: int) -> tuple[Group, ...]:
    """Returns the levels by weight; the sum of each group fits 16 bits."""
    found: dict[Fraction, list[list[Level]]] = {}
    for level, weight in form.weights.items():
        parts = found.setdefault(_whole_or(weight * unit), [[]])
        if sum(other.most for other in parts[-1]) + level.most > ROOM:
            parts.append([])
        parts[-1].append(level)
    return tuple(_group(part, weight) for weight, parts in found.items() for part in parts)


def _group(levels: list[Level], weight: Fraction) -> Group:
    if weight.denominator == 1:
        return Group(tuple(levels), weight.numerator, None)
    shift = (ROOM // sum(level.most for level in levels)).bit_length() - 1
    return Group(tuple(levels), round(weight * (1 << 16 - shift)), shift)


def _whole_or(weight: float) -> Fraction:
    """Returns the integer that a weight was meant to be, else the weight."""
    near = round(weight)
    return Fraction(near) if abs(weight - near) <= CLOSE * abs(weight) else Fraction(weight)
