"""Builds weighted sums of levels: in 16 bits, as they were planned, or in floats."""

from __future__ import annotations

import math

from dala.ir.builder import Builder
from dala.ir.level_forms import Form, Level
from dala.ir.level_plans import Close, Exact, is_binary, offset_bounds
from dala.ir.nodes import Value
from dala.ir.types import F32, F64, S32, U8, U16


class LevelSums:
    """Appends the statements of sums to a builder."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def rounded(self, form: Form, plan: Exact | Close) -> Value:
        """Returns a sum, rounded to a level and held to its limits."""
        level = self._exact(form, plan) if isinstance(plan, Exact) else self._close(form, plan)
        least, most = (round(min(max(limit, 0.0), 255.0)) for limit in form.limits)
        level = self._apply("min", level, most)
        return self.builder.convert(self._apply("max", level, least), U8)

    def in_floats(self, form: Form) -> Value:
        """Returns a sum in f32, rounded to a level of 16 bits and held to its limits.

        Levels of the same weight are added up as integers first.
        """
        build = self.builder
        groups: dict[float, list[Value]] = {}
        for level, weight in form.weights.items():
            groups.setdefault(weight, []).append(build.convert(level.value, S32))
        total = self._held(form)
        for weight, levels in groups.items():
            part = levels[0]
            for value in levels[1:]:
                part = build.apply("add", part, value)
            scaled = build.const(F32, weight)
            total = build.apply("fma", build.convert(part, F32), scaled, total)
        for op, limit in zip(("max", "min"), form.limits, strict=True):
            if math.isfinite(limit):
                total = build.apply(op, total, build.const(F32, limit))
        return build.convert(total, U16)

    def _held(self, form: Form) -> Value:
        """Returns what is added to the levels."""
        build = self.builder
        total: Value = build.const(F32, form.constant)
        for uniform, weight in form.uniforms.items():
            part = build.apply("mul", build.convert(uniform, F32), build.const(F32, weight))
            total = build.apply("add", total, part)
        return total

    def total(self, plan: Close, start: int) -> Value:
        """Returns a close sum with `start` added to it."""
        total: Value = self.builder.const(U16, start + plan.lost + plan.base)
        for group in plan.groups:
            part = self.sum(group.levels)
            if group.shift is None:
                total = self.builder.apply("add", total, self._apply("mul", part, group.factor))
                continue
            part = self._apply("mulhi", self._apply("shl", part, group.shift), abs(group.factor))
            total = self.builder.apply("add" if group.factor > 0 else "sub", total, part)
        return total

    def _close(self, form: Form, plan: Close) -> Value:
        unit = 1 << plan.bits
        start = 0 if form.uniforms else math.floor((form.constant + 0.5) * unit)
        total = self.total(plan, start)
        if form.uniforms:
            offset = self.builder.convert(self._offset(form, unit), U16)
            total = self.builder.apply("add", total, offset)
        return self._apply("shr", self._above(total, plan.base), plan.bits)

    def _exact(self, form: Form, plan: Exact) -> Value:
        build, unit = self.builder, plan.divisor << plan.shift
        if form.uniforms:
            offset = self._offset(form, unit)
        else:
            offset = build.const(S32, math.floor((form.constant + 0.5) * unit))
        base = build.const(U16, plan.base * plan.divisor)
        upper = build.apply("shr", offset, build.const(S32, plan.shift))
        total = build.apply("add", base, build.convert(upper, U16))
        sums = [self.sum(levels) for levels, _, _ in plan.groups]
        for part, (_, factor, _) in zip(sums, plan.groups, strict=True):
            total = build.apply("add", total, self._apply("mul", part, factor))
        if plan.shift:
            rest = build.apply("and", offset, build.const(S32, (1 << plan.shift) - 1))
            lower: Value = build.convert(rest, U16)
            for part, (_, _, factor) in zip(sums, plan.groups, strict=True):
                lower = build.apply("add", lower, self._apply("mul", part, factor))
            total = build.apply("add", total, self._apply("shr", lower, plan.shift))
        if not is_binary(plan.divisor):
            return self._above(self._apply("floordiv", total, plan.divisor), plan.base)
        level = self._apply("shr", total, plan.divisor.bit_length() - 1)
        level = build.apply("sub", level, self._odd_tie(form, plan, total, level))
        return self._above(level, plan.base)

    def _odd_tie(self, form: Form, plan: Exact, total: Value, level: Value) -> Value:
        """Returns 1 where a level was rounded up from the middle of two and is odd, else 0."""
        build = self.builder
        odd = self._apply("and", level, 1)
        if form.uniforms:
            wanted = build.apply("mul", self._sum_of_uniforms(form), build.const(F64, plan.divisor))
            is_tie = build.apply("eq", build.apply("floor", wanted), wanted)
            odd = build.select(is_tie, odd, build.const(U16, 0))
        elif (form.constant + 0.5) * plan.divisor % 1:
            return build.const(U16, 0)
        if plan.divisor == 1:
            return odd
        rest = self._apply("and", total, plan.divisor - 1)
        zero = build.const(U16, 0)
        return build.select(build.apply("eq", rest, zero), odd, zero)

    def _above(self, value: Value, base: int) -> Value:
        """Returns how far a value is above the base, or 0."""
        return self._apply("sub", self._apply("max", value, base), base)

    def sum(self, levels: tuple[Level, ...]) -> Value:
        """Returns the sum of some levels."""
        build = self.builder
        total = build.convert(levels[0].value, U16)
        for level in levels[1:]:
            total = build.apply("add", total, build.convert(level.value, U16))
        return total

    def _offset(self, form: Form, unit: int) -> Value:
        """Returns what is the same everywhere and half a level, in units, rounded down.

        It is held to where it still makes a difference.
        """
        build, total = self.builder, self._sum_of_uniforms(form)
        low, high = offset_bounds(form)
        ends = [build.const(F64, bound + form.constant + 0.5) for bound in (low, high)]
        held = build.apply("max", build.apply("min", total, ends[1]), ends[0])
        # What is not a number is stored as 0.
        held = build.select(build.apply("eq", total, total), held, ends[0])
        scaled = build.apply("mul", held, build.const(F64, float(unit)))
        return build.convert(build.apply("floor", scaled), S32)

    def _sum_of_uniforms(self, form: Form) -> Value:
        """Returns what is the same everywhere, and half a level."""
        build = self.builder
        total: Value = build.const(F64, form.constant + 0.5)
        for uniform, weight in form.uniforms.items():
            wide = build.convert(uniform, F64)
            total = build.apply("add", total, build.apply("mul", wide, build.const(F64, weight)))
        return total

    def _apply(self, op: str, value: Value, constant: int) -> Value:
        return self.builder.apply(op, value, self.builder.const(U16, constant))
