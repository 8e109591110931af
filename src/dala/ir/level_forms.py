"""Recognizes values that are weighted sums of levels, which are integers of 8 or 16 bits.

A float program over images says what it means in 0..1 and in reals. Where the meaning of a value
is a sum of levels with constant weights, code generation may compute it in any arithmetic that is
exact enough to round to the same level.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dala.base.record import changed, record, value
from dala.ir.nodes import Apply, Const, Param, Value
from dala.ir.ops import SELECT
from dala.ir.types import BOOL

MOST_LEVELS = 1 << 14
"""The most levels that one form has."""
MOST_PRODUCTS = 4
"""The most products of levels that are worth being computed one by one."""
ROOM = (1 << 16) - 1
"""The greatest number of 16 bits."""
LEAST_SHARE = 1 << 18
"""A float holds a level, to 64 parts, beside numbers that are so many times as large."""
EVERYTHING = (-math.inf, math.inf)


@value
class Level:
    """An integer of 8 or 16 bits, and the greatest that it can be."""

    value: Value
    most: int


@record
class Form:
    """A sum of levels, of values that are the same at all positions, and of a constant.

    Each is multiplied by its weight; the sum lies within `limits` or is set to the nearer one.
    """

    levels: dict[Level, float]
    uniforms: dict[Value, float]
    constant: float
    limits: tuple[float, float] = EVERYTHING

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest value of the levels and the constant."""
        ends = [level.most * weight for level, weight in self.levels.items()]
        low, high = sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)
        return self.constant + low, self.constant + high

    @property
    def weights(self) -> dict[Level, float]:
        """The levels that count, and their weights."""
        return {level: weight for level, weight in self.levels.items() if weight}

    @property
    def is_plain_sum(self) -> bool:
        """Whether it has nothing but levels with positive weights."""
        plain = not self.uniforms and not self.constant and self.limits == EVERYTHING
        return plain and bool(self.levels) and all(item > 0 for item in self.levels.values())

    @property
    def is_constant(self) -> bool:
        return not self.levels and not self.uniforms

    def scaled(self, factor: float) -> Form:
        if not factor:
            return Form({}, dict.fromkeys(self.uniforms, 0.0), 0.0)
        low, high = sorted(limit * factor for limit in self.limits)
        return Form(
            {value: weight * factor for value, weight in self.levels.items()},
            {value: weight * factor for value, weight in self.uniforms.items()},
            self.constant * factor,
            (low, high),
        )

    def plus(self, other: Form) -> Form | None:
        if (self.limits, other.limits) != (EVERYTHING, EVERYTHING):
            return None
        levels, uniforms = dict(self.levels), dict(self.uniforms)
        for level, weight in other.levels.items():
            levels[level] = levels.get(level, 0.0) + weight
        for uniform, weight in other.uniforms.items():
            uniforms[uniform] = uniforms.get(uniform, 0.0) + weight
        if len(levels) > MOST_LEVELS:
            return None
        return Form(levels, uniforms, self.constant + other.constant)

    def limited(self, op: str, bound: float) -> Form:
        nearer = min if op == "min" else max
        low, high = (nearer(limit, bound) for limit in self.limits)
        return changed(self, limits=(low, high))

    def is_map_like(self, other: Form) -> bool:
        """Whether both are the same function of one level each."""
        same = self.constant == other.constant and self.limits == other.limits
        if not same or self.uniforms or other.uniforms or len(self.levels) != 1:
            return False
        return list(self.levels.values()) == list(other.levels.values())


def form_of(
    node: Apply, known: Callable[[Value], Form | None], merge: Callable[..., Value]
) -> Form | None:
    """Returns the form of a number that is computed from numbers with forms, or None.

    `merge(op, *levels)` gives the minimum, the maximum, a choice or the product of levels.
    """
    if node.type == BOOL:
        return None
    if node.op == SELECT:
        condition, *sides = node.args
        a, b = (known(side) for side in sides)
        if a is None or b is None or not a.is_map_like(b):
            return None
        return _joined(a, b, lambda *levels: merge(SELECT, condition, *levels))
    forms = [known(arg) for arg in node.args]
    if any(form is None for form in forms):
        return None
    first, *rest = (form for form in forms if form is not None)
    form = _combined(node, first, rest, merge)
    return form if form is not None and _is_faithful(node, form) else None


def leaf_form(leaf: Value, most: int | None) -> Form | None:
    """Returns the form of a value by itself; `most` is how great it is, where it is a level."""
    if isinstance(leaf, Const) and leaf.type != BOOL and math.isfinite(leaf.value):
        return Form({}, {}, float(leaf.value))
    if isinstance(leaf, Param) and leaf.type.is_float:
        return Form({}, {leaf: 1.0}, 0.0)
    return None if most is None else Form({Level(leaf, most): 1.0}, {}, 0.0)


def _combined(node: Apply, a: Form, rest: list[Form], merge: Callable[..., Value]) -> Form | None:
    b = rest[0] if rest else a
    match node.op:
        case "convert" if not node.type.is_storage and (
            node.type.is_float or node.args[0].type.is_integer
        ):
            return a
        case "neg":
            return a.scaled(-1.0)
        case "add":
            return a.plus(b)
        case "sub":
            return a.plus(b.scaled(-1.0))
        case "mul" if b.is_constant:
            return a.scaled(b.constant)
        case "mul" if a.is_constant:
            return b.scaled(a.constant)
        case "mul":
            return _product(a, b, merge)
        case "div" if b.is_constant and b.constant:
            return a.scaled(1.0 / b.constant)
        case "min" | "max" if b.is_constant:
            return a.limited(node.op, b.constant)
        case "min" | "max" if a.is_constant:
            return b.limited(node.op, a.constant)
        case "min" | "max" if a.is_map_like(b):
            (weight,) = a.levels.values()
            op = node.op if weight > 0 else {"min": "max", "max": "min"}[node.op]
            return _joined(a, b, lambda *levels: merge(op, *levels))
        case "abs":
            return _distance(a, merge)
    return None


def _product(a: Form, b: Form, merge: Callable[..., Value]) -> Form | None:
    """Returns the form of a product: that of two levels is another, if it has room."""
    if a.uniforms or b.uniforms or (a.limits, b.limits) != (EVERYTHING, EVERYTHING):
        return None
    if len(a.levels) * len(b.levels) > MOST_PRODUCTS:
        return None
    form = Form({}, {}, 0.0).plus(a.scaled(b.constant))
    for level, weight in b.levels.items():
        if form is None or any(other.most * level.most > ROOM for other in a.levels):
            return None
        terms = {
            Level(merge("mul", other.value, level.value), other.most * level.most): own * weight
            for other, own in a.levels.items()
        }
        terms[level] = terms.get(level, 0.0) + a.constant * weight
        form = form.plus(Form(terms, {}, 0.0))
    return form


def _distance(form: Form, merge: Callable[..., Value]) -> Form | None:
    """Returns the form of how far apart two levels are, which is a level."""
    plain = not form.uniforms and not form.constant and form.limits == EVERYTHING
    if not plain or len(form.levels) != 2:
        return None
    (a, weight), (b, other) = form.levels.items()
    if weight != -other or a.value.type != b.value.type:
        return None
    ends = [merge(op, a.value, b.value) for op in ("max", "min")]
    return changed(form, levels={Level(merge("sub", *ends), max(a.most, b.most)): abs(weight)})


def _joined(a: Form, b: Form, merge: Callable[..., Value]) -> Form | None:
    """Returns the form of what is made of the levels of two forms that are the same function."""
    ((x, weight),), (y,) = a.levels.items(), b.levels
    if x.value.type != y.value.type:
        return None
    level = Level(merge(x.value, y.value), max(x.most, y.most))
    return changed(a, levels={level: weight})


def _is_faithful(node: Apply, form: Form) -> bool:
    """Whether the type computes the form as reals do: no integer wraps, no float is lost."""
    low, high = form.range
    if node.type.is_float:
        weight = sum(map(abs, form.levels.values())) if form.levels else math.inf
        return max(abs(low), abs(high)) <= LEAST_SHARE * weight
    return not form.uniforms and node.type.lowest <= low and high <= node.type.highest
