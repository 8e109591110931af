"""Lowers reductions: `sum`, `min`, `max`, `any` and `all` of generator expressions and tuples."""

from __future__ import annotations

import ast
from typing import Any
from typing import Literal as OneOf

from dala.ir.nodes import Reduce, Variable
from dala.ir.ops import neutral_of
from dala.ir.types import BOOL, S8, S16, S32, U8, U16, U32, Scalar
from dala.lang.arithmetic import Mismatch
from dala.lang.iteration import Iteration
from dala.lang.values import Literal, LoweredValue, Number, Pixel, Tuple, Vector, describe

Op = OneOf["add", "min", "max"]
REDUCTIONS: dict[Any, tuple[Op, bool]] = {
    sum: ("add", False),
    min: ("min", False),
    max: ("max", False),
    any: ("max", True),
    all: ("min", True),
}
"""Each reduction as an operation; those of conditions count them as 0 and 1."""


class Reductions(Iteration):
    """Lowers reductions; those over ranges become one node of the IR."""

    def reduce(self, node: ast.Call, op: Op, conditions: bool) -> LoweredValue:
        """Returns the reduction of a generator expression."""
        generator = node.args[0]
        assert isinstance(generator, ast.GeneratorExp)
        reduced = self._reduce_over(node, op, generator, 0, conditions)
        return self.arithmetic.binary("gt", reduced, Literal(0)) if conditions else reduced

    def reduce_tuple(self, node: ast.Call, target: Any) -> LoweredValue:
        """Returns `sum`, `any` or `all` of a tuple."""
        given = self.value(node.args[0]) if len(node.args) == 1 else None
        name = target.__name__
        if not isinstance(given, Tuple):
            raise self.error(
                node,
                f"`{name}` takes a tuple or `… for k in range(…)`, not {describe(given)}."
                if given is not None
                else f"`{name}` takes one argument, not {len(node.args)}.",
                f"Write `{name}(… for k in range(…))`.",
            )
        if target is sum:
            return self._joined_terms("add", list(given.items))
        parts = [self.arithmetic.condition(item) for item in given.items]
        return self._joined("and" if target is all else "or", parts)

    def _reduce_over(
        self, node: ast.Call, op: Op, generator: ast.GeneratorExp, depth: int, conditions: bool
    ) -> LoweredValue:
        clause = generator.generators[depth]
        if not self.is_range(clause.iter):
            return self._reduce_items(node, op, generator, depth, conditions)
        if not isinstance(clause.target, ast.Name) or clause.is_async:
            raise self.error(
                clause.target, "a reduction counts with one name.", "Write `for k in …`."
            )
        start, stop, step, counting = self.bounds(clause.iter)
        if step != 1:
            raise self.error(
                clause.iter,
                "a reduction counts by one.",
                "Multiply: x[2 * k] for k in range(n // 2).",
            )
        name = clause.target.id

        def lower(component: int) -> tuple[LoweredValue, Number]:
            """Returns the term and the reduction of its only number, or of a component."""
            counter = Variable(counting, name)
            before = dict(self.frame.variables)
            self.frame.variables[name] = Number(counter)
            with self.build.block() as body:
                term = self._term(node, op, generator, depth, conditions)
                number = self.arithmetic.typed(_parts(term)[component])
                body.results = (number.value,)
            self.frame.variables = before
            reduced = Reduce(number.type, op, counter, start.value, stop.value, body)
            return term, Number(self.build.reduce(reduced))

        term, reduced = lower(0)
        others = (lower(i)[1] for i in range(1, len(_parts(term))))
        if isinstance(term, Pixel):
            red, green, blue, alpha = (reduced, *others)
            return Pixel((red, green, blue, alpha))
        return Vector((reduced, *others)) if isinstance(term, Vector) else reduced

    def _reduce_items(
        self, node: ast.Call, op: Op, generator: ast.GeneratorExp, depth: int, conditions: bool
    ) -> LoweredValue:
        """Returns the reduction over a tuple, term by term."""
        clause = generator.generators[depth]
        before = dict(self.frame.variables)
        terms: list[LoweredValue] = []
        for item in self.items(clause.iter):
            self.assign(clause.target, item)
            terms.append(self._term(node, op, generator, depth, conditions))
            self.frame.variables = dict(before)
        if not terms and conditions:
            return Literal(neutral_of(op, S32))
        return self._joined_terms(op, terms)

    def _joined_terms(self, op: Op, terms: list[LoweredValue]) -> LoweredValue:
        if not terms and op != "add":
            raise Mismatch(f"{op} goes over an empty tuple.", "Give it at least one value.")
        joined = terms[0] if terms else Literal(0)
        for term in terms[1:]:
            joined = self.arithmetic.binary(op, joined, term)
        return joined

    def _term(
        self, node: ast.Call, op: Op, generator: ast.GeneratorExp, depth: int, conditions: bool
    ) -> LoweredValue:
        """Returns one term of a reduction: neutral where its conditions do not hold."""
        clause = generator.generators[depth]
        if depth + 1 < len(generator.generators):
            term = self._reduce_over(node, op, generator, depth + 1, conditions)
        else:
            term = self.operand(generator.elt)
            if conditions:
                term = self.arithmetic.convert(self.arithmetic.condition(term), S32)
        if isinstance(term, Literal) and not clause.ifs:
            return term
        if isinstance(term, Vector | Pixel):
            return self.arithmetic.by_component(
                lambda part: self._counted_term(op, part, clause.ifs), term
            )
        return self._counted_term(op, term, clause.ifs)

    def _counted_term(self, op: Op, term: LoweredValue, conditions: list[ast.expr]) -> Number:
        number = self.arithmetic.typed(term)
        narrow = op != "add" and number.type != BOOL  # the least of bools is a number, too
        type = number.type if narrow else summed_type(number.type)
        number = self.arithmetic.convert(number, type)
        for condition in conditions:
            holds = self.arithmetic.condition(self.operand(condition))
            neutral = self.build.const(number.type, neutral_of(op, number.type))
            number = Number(self.build.select(holds.value, number.value, neutral))
        return number


def _parts(term: LoweredValue) -> tuple[LoweredValue, ...]:
    """Returns the components of a vector or a pixel, or a number by itself."""
    if isinstance(term, Pixel):
        return term.channels
    return term.items if isinstance(term, Vector) else (term,)


def summed_type(type: Scalar) -> Scalar:
    """Returns the type of a sum: narrow integers are added up in 32 bits, and so are bools."""
    return {U8: U32, U16: U32, BOOL: S32, S8: S32, S16: S32}.get(type, type)
