"""Rewrites float arithmetic on levels in 8 and 16 bits: a vector holds two to four times as many.

What a program stores as u8 is a rounded number. Where that number is a weighted sum of levels
(`level_forms`), it is computed in 16 bits: exactly if all weights are fractions of a small
denominator, else within a sixteenth of a level before it is rounded (`level_plans`). All other
values stay as they are.
"""

from __future__ import annotations

import numpy as np

from dala.base.record import changed, record, remembered
from dala.ir.level_forms import Form, Level, form_of, leaf_form
from dala.ir.level_plans import CLOSE, Close, Exact, plan_of
from dala.ir.level_sums import LevelSums
from dala.ir.loop_forms import Place, loop_forms
from dala.ir.nodes import Apply, Const, For, Load, Program, Reduce, Result, Statement, Value, walk
from dala.ir.ops import CONVERT, SELECT
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import F32, F64, S32, U8, U16, Scalar

MOST_TERMS = 16
"""The most levels that a sum in floats is written down for."""
MOST_APART = 512
"""The largest odd denominator whose fractions are farther from a half than float errors are."""


@record
class Narrowed:
    """A program in fixed point.

    `never_ties` says that all it stores are exact sums that no float arithmetic could round to
    another level: none is ever near the middle between two.
    """

    program: Program
    never_ties: bool = False


@record
class Encoded:
    """A program whose results are integers of 16 bits: times `unit`, they are the values meant."""

    program: Program
    unit: float
    most: int


def in_fixed_point(program: Program) -> Program:
    """Returns the program with the levels it stores in fixed point, where that can be done."""
    return narrowed(program).program


@remembered
def narrowed(program: Program) -> Narrowed:
    """Returns the program in fixed point."""
    if program.narrowed:
        return Narrowed(program)
    if not _is_pure(program) or not any(map(_is_rounded, program.body.statements)):
        return Narrowed(changed(program, narrowed=True))
    rewriter = _Fixed(program)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    if not rewriter.rounded:
        return Narrowed(changed(program, narrowed=True))
    drop_dead(body)
    plans = [rewriter.plans.get(value) for value in program.body.results]
    return Narrowed(changed(program, body=body, narrowed=True), all(map(_never_ties, plans)))


@remembered
def encoded(program: Program) -> Encoded | None:
    """Returns the program with its float results as exact integers of 16 bits, or None.

    That is so where each is a sum of levels that all have the same weight.
    """
    results = program.body.results
    is_float = len(program.outputs) == 1 and program.output.type in (F32, F64)
    if not _is_straight(program) or program.narrowed or not is_float:
        return None
    rewriter = _Fixed(program)
    with rewriter.builder.block() as body:
        rewriter.copy(program.body)
        forms = [rewriter.form(value) for value in results]
        sums = [form for form in forms if form is not None and form.is_plain_sum]
        weights = {weight for form in sums for weight in form.levels.values()}
        most = max((sum(level.most for level in form.levels) for form in sums), default=0)
        if len(sums) != len(forms) or len(weights) != 1 or most > U16.highest:
            return None
        body.results = tuple(rewriter.sums.sum(tuple(form.levels)) for form in sums)
    drop_dead(body)
    output = changed(program.output, type=U16)
    return Encoded(changed(program, body=body, outputs=(output,)), weights.pop(), most)


def decoding(program: Program, name: str, unit: float, most: int) -> Program | None:
    """Returns the program with a float input encoded, or None if that could change a result."""
    if not _is_straight(program) or program.narrowed:
        return None
    inputs = tuple(
        changed(item, type=U16, most=most) if item.name == name else item for item in program.inputs
    )
    rewriter = _Decoding(name, unit)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    made = changed(program, inputs=inputs, body=body)
    return made if narrowed(made).never_ties else None


def stored_forms(program: Program) -> list[Form] | None:
    """Returns the levels that a program stores as forms, or None if one of them has none."""
    if not _is_pure(program) or program.narrowed:
        return None
    rewriter = _Fixed(program)
    with rewriter.builder.block():
        rewriter.copy(program.body)
        stored = [
            value.args[0] if isinstance(value, Apply) and _is_rounded(value) else value
            for value in program.body.results
        ]
        forms = [rewriter.form(value) for value in stored]
    found = [form for form in forms if form is not None]
    return found if len(found) == len(forms) else None


def _never_ties(plan: Exact | Close | None) -> bool:
    """Whether sums are exact and so far from the middle of two levels that floats round alike."""
    if not isinstance(plan, Exact) or plan.divisor << plan.shift > MOST_APART:
        return False
    return bool(plan.divisor % 2) and not plan.shift and plan.is_plain


def _is_straight(program: Program) -> bool:
    return all(isinstance(item, Apply | Load) for item in program.body.statements)


def _is_pure(program: Program) -> bool:
    """Whether it has nothing but operations, reads and counted loops of them."""
    return all(isinstance(item, Apply | Load | For | Reduce) for item in walk(program.body))


def _is_rounded(value: Value | Statement) -> bool:
    """Whether a value is a float that is converted to a level; integers wrap."""
    if not isinstance(value, Apply) or value.op != CONVERT or value.type not in (U8, U16):
        return False
    return value.args[0].type.is_float


def _unscaled(value: Value) -> Value | None:
    """Returns what is divided by white and then multiplied with it again, if a value is that."""
    scales = []
    for _ in range(2):
        if not isinstance(value, Apply) or value.op != "mul" or value.type != F32:
            return None
        value, scale = value.args
        if not isinstance(scale, Const):
            return None
        scales.append(np.float32(scale.value))
    return value if scales[0] * scales[1] == 1 else None


class _Decoding(Rewriter):
    """Copies statements; reads of one input are multiplied by their unit."""

    def __init__(self, name: str, unit: float) -> None:
        super().__init__()
        self._name = name
        self._unit = unit

    def load(self, old: Load) -> Value:
        if old.source != self._name:
            return super().load(old)
        build = self.builder
        index = None if old.index is None else self._values(old.index)
        level = build.load(U16, old.source, index, old.channel, old.border)
        return build.apply("mul", build.convert(level, old.type), build.const(old.type, self._unit))


class _Fixed(Rewriter):
    """Copies statements, and remembers which of them are sums of levels."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.sums = LevelSums(self.builder)
        self._most = {item.name: item.most for item in program.inputs}
        self._forms: dict[object, Form | None] = {}
        self._loops = {item for item in program.body.statements if isinstance(item, For | Reduce)}
        self.rounded: set[Value] = set()
        """The values of the old program that are levels now."""
        self.plans: dict[Value, Exact | Close] = {}

    def form(self, old: Value) -> Form | None:
        """Returns the form of a value of the old program, over values of the new."""
        known = self._forms.get((old.node, old.index) if isinstance(old, Result) else old)
        return known or leaf_form(self.value(old), self._bound(old))

    def _bound(self, old: Value) -> int | None:
        """Returns the greatest that a level can be; None for other values."""
        if old.type not in (U8, U16):
            return None
        known = self._most[old.source] if isinstance(old, Load) else None
        return old.type.highest if known is None else known

    def statement(self, old: Statement) -> None:
        super().statement(old)
        if isinstance(old, For | Reduce) and old in self._loops:
            forms = loop_forms(old, self.form, self._level) or []
            results = [old] if isinstance(old, Reduce) else [(old, i) for i in range(len(forms))]
            self._forms.update(zip(results, forms, strict=False))
        if not isinstance(old, Apply):
            return
        if not _is_rounded(old):
            self._forms[old] = form_of(old, self.form, self._merged)
        elif (form := self.form(old.args[0])) is not None:
            level = self._moved(form, old.type)
            plan = plan_of(form) if level is None and old.type == U8 else None
            if plan is not None:
                self.plans[old] = plan
                level = self.sums.rounded(form, plan)
            elif level is None and old.type == U16 and 0 < len(form.weights) <= MOST_TERMS:
                level = self.sums.in_floats(form)
            if level is not None:
                self._new[old] = level
                self.rounded.add(old)
        if _is_rounded(old) and old not in self.rounded:
            plain = _unscaled(old.args[0])
            if plain is not None:
                self._new[old] = self.builder.convert(self.value(plain), old.type)
                self.rounded.add(old)

    def _level(self, old: Load, places: tuple[Place, ...] | None) -> Level | None:
        """Returns what a read of the old program gives at some places."""
        most = self._bound(old)
        if most is None:
            return None
        build, index = self.builder, None
        if places is not None:
            parts = [(build.position(place.axis), place.offset) for place in places]
            index = tuple(build.apply("add", at, build.const(S32, far)) for at, far in parts)
        return Level(build.load(old.type, old.source, index, old.channel, old.border), most)

    def _merged(self, op: str, *values: Value) -> Value:
        """Returns what is made of levels; the condition of a choice is one of the old program."""
        if op == "mul":
            values = tuple(self.builder.convert(value, U16) for value in values)
        if op != SELECT:
            return self.builder.apply(op, *values)
        condition, a, b = values
        return self.builder.select(self.value(condition), a, b)

    def _moved(self, form: Form, type: Scalar) -> Value | None:
        """Returns a level that is only moved, taken from the highest, or added to another."""
        low, high = form.limits
        if form.uniforms or low > 0 or high < type.highest:
            return None
        levels = [(level.value, weight) for level, weight in form.weights.items()]
        if any(value.type != type or abs(abs(weight) - 1) > CLOSE for value, weight in levels):
            return None
        match sorted(levels, key=lambda item: -item[1]):
            case [(value, weight)]:
                start = 0 if weight > 0 else type.highest
                if abs(form.constant - start) > type.highest * CLOSE:
                    return None
                return value if weight > 0 else self.builder.apply("not", value)
            case [(value, _), (other, weight)] if not form.constant:
                return self._saturated(value, other, "add" if weight > 0 else "sub")
        return None

    def _saturated(self, value: Value, other: Value, op: str) -> Value:
        """Returns a sum or a difference that stops at the ends of its type."""
        build = self.builder
        room = build.apply("not", value) if op == "add" else value
        return build.apply(op, value, build.apply("min", other, room))
