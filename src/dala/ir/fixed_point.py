"""Rewrites float arithmetic on levels in 8 and 16 bits: a vector holds two to four times as many.

What a program stores as u8 is a rounded number. Where that number is a weighted sum of levels
(`level_forms`), it is computed in 16 bits: exactly if all weights are fractions of a small
denominator, else within a sixteenth of a level before it is rounded (`level_plans`). All other
values stay as they are.
"""

from __future__ import annotations

from dala.base.record import changed, record, remembered
from dala.ir.level_forms import Form, form_of, leaf_form
from dala.ir.level_plans import BETWEEN_BITS, CLOSE, common_weight, plan_between, plan_of
from dala.ir.level_sums import LevelSums
from dala.ir.nodes import Apply, Load, Program, Statement, Value
from dala.ir.ops import CONVERT, SELECT
from dala.ir.simplify import Rewriter, drop_dead
from dala.ir.types import U8, U16


@record
class Narrowed:
    """A program in fixed point, and whether all that it stores is."""

    program: Program
    wholly: bool


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
    if not _is_straight(program) or not any(map(_is_rounded, program.body.results)):
        return Narrowed(program, wholly=False)
    rewriter = _Fixed(program)
    with rewriter.builder.block() as body:
        plain = rewriter.copy(program.body)
        body.results, wholly = rewriter.stored(program.body.results)
    if body.results == plain:
        return Narrowed(program, wholly=False)
    drop_dead(body)
    return Narrowed(changed(program, body=body), wholly)


@remembered
def encoded(program: Program) -> Encoded | None:
    """Returns the program with its float results as integers of 16 bits, or None."""
    results = program.body.results
    if not _is_straight(program) or not results or not all(item.type.is_float for item in results):
        return None
    rewriter = _Fixed(program)
    with rewriter.builder.block() as body:
        rewriter.copy(program.body)
        forms = [rewriter.form(value) for value in results]
        sums = [form for form in forms if form is not None]
        if len(sums) != len(forms) or (highest := max(form.range[1] for form in sums)) <= 0:
            return None
        scale = 1 / common if (common := common_weight(sums)) else (255 << BETWEEN_BITS) / highest
        plans = [plan_between(form, scale) for form in sums]
        fitting = [plan for plan in plans if plan is not None]
        if len(fitting) != len(plans):
            return None
        body.results = tuple(
            rewriter.sums.total(plan, round(form.constant * scale))
            for form, (plan, _) in zip(sums, fitting, strict=True)
        )
    drop_dead(body)
    output = changed(program.output, type=U16)
    made = changed(program, body=body, output=output)
    return Encoded(made, 1 / scale, max(most for _, most in fitting))


def decoding(program: Program, name: str, unit: float, most: int) -> Program | None:
    """Returns the program with a float input encoded, or None if it would not be narrow then."""
    if not _is_straight(program):
        return None
    inputs = tuple(
        changed(item, type=U16, most=most) if item.name == name else item for item in program.inputs
    )
    rewriter = _Decoding(name, unit)
    with rewriter.builder.block() as body:
        body.results = rewriter.copy(program.body)
    drop_dead(body)
    made = changed(program, inputs=inputs, body=body)
    return made if narrowed(made).wholly else None


def _is_straight(program: Program) -> bool:
    return all(isinstance(item, Apply | Load) for item in program.body.statements)


def _is_rounded(value: Value) -> bool:
    """Whether a value is a number that is converted to a level."""
    return isinstance(value, Apply) and value.op == CONVERT and value.type == U8


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
        self._forms: dict[Value, Form | None] = {}

    def form(self, old: Value) -> Form | None:
        """Returns the form of a value of the old program, over values of the new."""
        known = self._forms.get(old)
        return known or leaf_form(self.value(old), self._bound(old))

    def _bound(self, old: Value) -> int | None:
        """Returns the greatest that a level can be; None for other values."""
        if old.type == U8:
            return U8.highest
        return self._most[old.source] if isinstance(old, Load) and old.type == U16 else None

    def statement(self, old: Statement) -> None:
        super().statement(old)
        if isinstance(old, Apply) and not _is_rounded(old):
            self._forms[old] = form_of(old, self.form, self._merged)

    def _merged(self, op: str, *values: Value) -> Value:
        """Returns an extreme of levels, or a choice, whose condition is one of the old program."""
        if op != SELECT:
            return self.builder.apply(op, *values)
        condition, a, b = values
        return self.builder.select(self.value(condition), a, b)

    def stored(self, results: tuple[Value, ...]) -> tuple[tuple[Value, ...], bool]:
        """Returns what is stored; sums are approximated only if that narrows all of the program."""
        forms = [self._rounded_form(value) for value in results]
        moved = [None if form is None else self._moved(form) for form in forms]
        plans = [None if form is None else plan_of(form) for form in forms]
        wholly = all(a is not None or b is not None for a, b in zip(moved, plans, strict=True))
        stored = []
        for old, form, level, plan in zip(results, forms, moved, plans, strict=True):
            if level is not None:
                stored.append(level)
            elif wholly and form is not None and plan is not None:
                stored.append(self.sums.rounded(form, plan))
            else:
                stored.append(self.value(old))
        return tuple(stored), wholly

    def _rounded_form(self, old: Value) -> Form | None:
        """Returns the form of what is converted to a level."""
        if not isinstance(old, Apply) or not _is_rounded(old):
            return None
        return self.form(old.args[0])

    def _moved(self, form: Form) -> Value | None:
        """Returns a level that is only moved, or taken from 255; else None."""
        if len(form.levels) != 1 or form.uniforms:
            return None
        ((level, weight),) = form.levels.items()
        low, high = form.limits
        if level.value.type != U8 or low > 0 or high < U8.highest or abs(abs(weight) - 1) > CLOSE:
            return None
        if abs(form.constant - (0 if weight > 0 else U8.highest)) > U8.highest * CLOSE:
            return None
        return level.value if weight > 0 else self.builder.apply("not", level.value)
