"""Lowers counted and conditional loops, with their loop-carried values."""

from __future__ import annotations

import ast
from collections.abc import Callable

from dala.errors import KernelTypeError
from dala.ir.nodes import For, Value, Variable, While
from dala.ir.types import BOOL, Scalar
from dala.lang.arithmetic import Mismatch, is_weak
from dala.lang.bundles import kind_of, rebuilt, scalars
from dala.lang.early_exits import BROKEN, RESULT, assigned, breaks, structured
from dala.lang.iteration import MOST_UNROLLED
from dala.lang.statements import Statements
from dala.lang.values import Literal, LoweredValue, Number, Unset, describe

_MOST_ROUNDS = 6
"""How often a loop is lowered until the types of its variables are stable."""

_DEEPEST_LOOP = 8
"""Nested loops are limited: each is lowered at least twice, and so is its body."""

Lower = Callable[[tuple[Variable, ...], tuple[Value, ...]], For | While]


class Lowering(Statements):
    """Lowers everything that a function of the kernel language may contain."""

    _depth = 0

    def for_loop(self, node: ast.For) -> None:
        if not self.is_range(node.iter):
            return self._unrolled_loop(node)
        if not isinstance(node.target, ast.Name):
            raise self.error(
                node.target, "a loop counts with one name.", "Write `for k in range(n):`."
            )
        start, stop, step, counting = self.bounds(node.iter)
        target = node.target.id
        around = self.frame.variables.get(BROKEN)
        body = self._loop_body(node)

        def lower(carried: tuple[Variable, ...], initial: tuple[Value, ...]) -> For:
            counter = Variable(counting, target)
            self.frame.variables[target] = Number(counter)
            with self.build.block() as block:
                self.block(body)
            return For(counter, start.value, stop.value, step, carried, initial, block)

        self._loop(node, lower)
        self._leave(around)
        self.frame.variables[target] = Unset("it counts a loop that is over")
        return None

    def _unrolled_loop(self, node: ast.For) -> None:
        """Lowers a loop over a tuple: its body once for each item."""
        items = self.items(node.iter)
        around, body = self.frame.variables.get(BROKEN), self._loop_body(node)
        outside = self.unrolled
        self.unrolled *= max(1, len(items))
        if self.unrolled > MOST_UNROLLED:
            raise self.error(
                node,
                f"loops over tuples take {self.unrolled} iterations here, each lowered by itself "
                f"(at most {MOST_UNROLLED}).",
                "Write `for k in range(n):` and index the tuple: t[k].",
            )

        def lower() -> None:
            if breaks(node.body):
                self.frame.variables[BROKEN] = Literal(False)
            for item in items:
                self.assign(node.target, item)
                self.block(body)

        self._find_result(node, lower)
        lower()
        self.unrolled = outside
        self._leave(around)
        for name in assigned([ast.For(node.target, node.iter, [], [])]):
            self.frame.variables[name] = Unset("it belongs to a loop that is over")

    def while_loop(self, node: ast.While) -> None:
        test = node.test
        if breaks(node.body):
            going_on = ast.UnaryOp(ast.Not(), ast.Name(BROKEN, ast.Load()))
            both = ast.copy_location(ast.BoolOp(ast.And(), [going_on, test]), test)
            test = ast.fix_missing_locations(both)
        body = self._loop_body(node)
        around = self.frame.variables.get(BROKEN)

        def lower(carried: tuple[Variable, ...], initial: tuple[Value, ...]) -> While:
            at_start = dict(self.frame.variables)
            with self.build.block() as condition:
                condition.results = (self.condition(test).value,)
            self.frame.variables = at_start
            with self.build.block() as block:
                self.block(body)
            return While(carried, initial, condition, block)

        self._loop(node, lower)
        self._leave(around)

    def _leave(self, around: LoweredValue | None) -> None:
        """Restores the enclosing loop's record of a `break`."""
        self.frame.variables.pop(BROKEN, None)
        if around is not None:
            self.frame.variables[BROKEN] = around

    def _loop_body(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """Returns the body with structured early exits; `break` skips the rest of a for loop."""
        if node.orelse:
            raise self.error(node.orelse[0], "loops have no `else` in kernels.", "Use a variable.")
        body = structured(node.body)
        if not breaks(node.body):
            return body
        if isinstance(node, ast.While):
            return body
        going_on = ast.UnaryOp(ast.Not(), ast.Name(BROKEN, ast.Load()))
        guarded = ast.copy_location(ast.If(going_on, body, []), node.body[0])
        return [ast.fix_missing_locations(guarded)]

    def _loop(self, node: ast.For | ast.While, lower: Lower) -> None:
        """Lowers a loop repeatedly until the types of its carried values are stable."""
        if self._depth == _DEEPEST_LOOP:
            raise self.error(
                node,
                f"loops are nested more than {_DEEPEST_LOOP} deep.",
                "Count with fewer of them, or split the kernel.",
            )
        if breaks(node.body):
            self.frame.variables[BROKEN] = Number(self.build.const(BOOL, False))
        changing = self.changing(node.body)
        self.settle_inputs(changing)
        before = dict(self.frame.variables)
        changed = [*changing, *([BROKEN] if breaks(node.body) else [])]
        names = [name for name in changed if name in before and not isinstance(before[name], Unset)]
        types: list[list[Scalar]] = [
            [self.arithmetic.type_of(item) for item in scalars(before[name])] for name in names
        ]

        def lower_once() -> None:
            lower(*self._enter(names, before, types, True))

        if self._find_result(node, lower_once):
            return self._loop(node, lower)
        weak = True
        for _ in range(_MOST_ROUNDS):
            self.frame.variables = dict(before)
            carried, initial = self._enter(names, before, types, weak)
            self._depth += 1
            loop = lower(carried, initial)
            self._depth -= 1
            found = self._types_after(node, names, before, types)
            if found == types and not weak:
                break
            types, weak = found, False
        results: list[Value] = []
        with self.build.block() as converted:
            for name, kinds in zip(names, types, strict=True):
                for item, type in zip(scalars(self.frame.variables[name]), kinds, strict=True):
                    results.append(self.arithmetic.convert(item, type).value)
        loop.body.statements.extend(converted.statements)
        loop.body.results = tuple(results)
        left = list(self.build.results(loop))
        self.frame.variables = dict(before)
        for name in changed:
            self.frame.variables.setdefault(name, Unset("it is set only inside a loop"))
        for name in names:
            count = len(scalars(before[name]))
            literal = [name == RESULT and is_weak(item) for item in scalars(before[name])]
            after = [Number(*pair) for pair in zip(left[:count], literal, strict=True)]
            self.frame.variables[name] = rebuilt(before[name], after)
            del left[:count]
        return None

    def _find_result(self, node: ast.For | ast.While, lower: Callable[[], None]) -> bool:
        """Gives what a `return` inside a loop will have returned its type, before the loop.

        The loop is lowered once, and forgotten, to see what it returns. Returns False where nothing
        was to be done.
        """
        known = self.frame.variables.get(RESULT)
        if RESULT not in assigned(node.body) or not (known is None or isinstance(known, Unset)):
            return False
        before, around, depth = dict(self.frame.variables), self.returned_values, self._depth
        found: list[LoweredValue] = []
        self.returned_values = (*around, found)
        self._depth += 1
        with self.build.block():
            lower()
        self._depth = depth
        self.returned_values = around
        self.frame.variables = before
        self.frame.variables[RESULT] = self._zero_of(node, found)
        return True

    def _zero_of(self, node: ast.AST, found: list[LoweredValue]) -> LoweredValue:
        """Returns a value of the kind and the types that all those found have in common."""
        zero = found[0]
        for other in found:
            if kind_of(zero) != kind_of(other):
                raise self.error(
                    node,
                    f"what this returns differs in kind: {describe(zero)} and {describe(other)}.",
                    "Return one kind of value throughout.",
                    KernelTypeError,
                )
            pairs = zip(scalars(zero), scalars(other), strict=True)
            zero = rebuilt(zero, [self._zero(node, *pair) for pair in pairs])
        return zero

    def _zero(self, node: ast.AST, a: LoweredValue, b: LoweredValue) -> Number:
        zero = self.build.const(self._common(node, a, b), 0)
        return Number(zero, weak=is_weak(a) and is_weak(b))

    def _enter(
        self,
        names: list[str],
        before: dict[str, LoweredValue],
        types: list[list[Scalar]],
        weak: bool,
    ) -> tuple[tuple[Variable, ...], tuple[Value, ...]]:
        """Sets the carried variables in the frame; returns them and their initial values."""
        carried: list[Variable] = []
        initial: list[Value] = []
        for name, kinds in zip(names, types, strict=True):
            items: list[Number] = []
            for item, type in zip(scalars(before[name]), kinds, strict=True):
                literal = is_weak(item)
                variable = Variable(type, name)
                carried.append(variable)
                initial.append(self.arithmetic.convert(item, type).value)
                items.append(Number(variable, weak=weak and literal))
            self.frame.variables[name] = rebuilt(before[name], items)
        return tuple(carried), tuple(initial)

    def _types_after(
        self,
        node: ast.AST,
        names: list[str],
        before: dict[str, LoweredValue],
        types: list[list[Scalar]],
    ) -> list[list[Scalar]]:
        found: list[list[Scalar]] = []
        for name, kinds in zip(names, types, strict=True):
            after = self.frame.variables[name] = self.element(self.frame.variables[name])
            if isinstance(after, Unset):
                raise self.error(
                    node,
                    f"`{name}` may have no value after an iteration: {after.why}.",
                    "Set it always.",
                )
            items = scalars(after)
            if kind_of(after) != kind_of(before[name]):
                raise self.error(
                    node,
                    f"`{name}` is {describe(before[name])} before the loop and "
                    f"{describe(after)} after an iteration.",
                    "Give it one kind of value throughout.",
                    KernelTypeError,
                )
            found.append(
                [
                    self._after_iteration(node, first, kind, item)
                    for first, kind, item in zip(scalars(before[name]), kinds, items, strict=True)
                ]
            )
        return found

    def _after_iteration(
        self, node: ast.AST, first: LoweredValue, kind: Scalar, item: LoweredValue
    ) -> Scalar:
        """Returns the type of a carried value, from its types before and after an iteration."""
        if isinstance(item, Literal):
            own = self.arithmetic.literal_type(item.value, beside=kind)
            return self.arithmetic.common_type(kind, own)
        assert isinstance(item, Number)
        if item.weak:
            return self.arithmetic.common_type(kind, item.type)
        if isinstance(first, Literal) and kind.is_integer == item.type.is_integer:
            return item.type
        try:
            return self.arithmetic.common_type(kind, item.type)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None
