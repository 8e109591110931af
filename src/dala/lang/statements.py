"""Lowers statements of the kernel language: assignments, branches, loops, writes."""

from __future__ import annotations

import ast
import copy
from abc import abstractmethod
from typing import Literal as OneOf
from typing import cast

from dala.errors import KernelTypeError
from dala.ir.nodes import AtomicUpdate, Block, If, Store, Value
from dala.ir.types import BOOL, Scalar
from dala.lang.arithmetic import Mismatch, decided
from dala.lang.bundles import kind_of, rebuilt, scalars
from dala.lang.calls import Calls
from dala.lang.early_exits import (
    RESULT,
    assigned,
    assigned_items,
    returns,
    structured,
    without_inner_returns,
)
from dala.lang.reports import lower_report, report_name
from dala.lang.values import (
    Componentwise,
    InputRef,
    Literal,
    Local,
    LoweredValue,
    Number,
    OutRef,
    Tuple,
    Unset,
    describe,
)
from dala.lang.vectors import components

_ADVICE: dict[type[ast.stmt], str] = {
    ast.Try: "Nothing in a kernel raises: check the values with `if`.",
    ast.With: "Put it around run_kernel.",
    ast.Raise: "Nothing in a kernel raises: return a value that says so.",
    ast.Assert: "Check the values before the kernel runs.",
    ast.FunctionDef: "Define it outside, with @dala.function.",
    ast.ClassDef: "Define it outside.",
    ast.Import: "Import outside the kernel.",
    ast.ImportFrom: "Import outside the kernel.",
    ast.Delete: "Leave it out: variables end with the kernel.",
    ast.Global: "A kernel has no state: pass values in, return them.",
    ast.Nonlocal: "A kernel has no state: pass values in, return them.",
    ast.Match: "Write if … elif … else.",
    ast.AsyncFor: "Write `for k in range(…):`.",
    ast.AsyncWith: "Put it around run_kernel.",
}
_UPDATES: tuple[OneOf["add", "min", "max"], ...] = ("add", "min", "max")
"""The methods of the output."""


class Statements(Calls):
    """Lowers the statements of functions."""

    returned_values: tuple[list[LoweredValue], ...] = ()
    """What `return`s inside the loops at hand have given, while that is looked for."""

    def run_function(self, call: ast.AST) -> LoweredValue:
        tree = self.frame.source.tree
        self.frame.assigned = frozenset(assigned(tree.body))
        # What a function returns is no return of the loops that it is called in.
        around, self.returned_values = self.returned_values, ()
        found = self.block(structured(without_inner_returns(tree.body)))
        self.returned_values = around
        if found is None:
            raise self.error(
                call, f"`{self.frame.source.name}` returns nothing.", "End it with `return …`."
            )
        return found

    def block(self, statements: list[ast.stmt]) -> LoweredValue | None:
        """Lowers statements; returns their return value, if any."""
        for i, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                if statement.value is None:
                    raise self.error(
                        statement, "`return` gives no value.", "Return the output's element."
                    )
                return self.operand(statement.value)
            if isinstance(statement, ast.If) and returns([statement]):
                # `structured` has moved all following statements into the branches.
                assert i == len(statements) - 1
                return self.branch(statement)
            self.statement(statement)
        return None

    def statement(self, node: ast.stmt) -> None:
        try:
            self._statement(node)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value)
            case ast.AnnAssign(value=ast.expr()):
                self.assign(node.target, self.value(cast(ast.expr, node.value)))
            case ast.AugAssign():
                self._augment(node)
            case ast.If():
                self.branch(node)
            case ast.For():
                self.for_loop(node)
            case ast.While():
                self.while_loop(node)
            case ast.Expr():
                self._expression(node)
            case ast.Pass():
                pass
            case _:
                what = type(node).__name__.lower()
                instead = _ADVICE.get(type(node), "Use assignments, if, for, while and return.")
                raise self.error(node, f"`{what}` is not part of the kernel language.", instead)

    @abstractmethod
    def for_loop(self, node: ast.For) -> None:
        """Lowers a counted loop."""

    @abstractmethod
    def while_loop(self, node: ast.While) -> None:
        """Lowers a loop on a condition."""

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name):
            name = report_name(self, call)
            if name is not None:
                return lower_report(self, call, name)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = self.value(call.func.value)
            if isinstance(owner, OutRef):
                return self._update(call, owner)
        self.value(node.value)
        raise self.error(node, "this value goes nowhere.", "Assign it, or return it.")

    # -- assignments -----------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: LoweredValue) -> None:
        match target:
            case ast.Name():
                if target.id == RESULT:
                    value = self.settled(value)
                    for found in self.returned_values:
                        found.append(value)
                self.frame.variables[target.id] = value
            case ast.Tuple() | ast.List():
                if isinstance(value, InputRef) and value.vectors:
                    value = self.element(value)
                if isinstance(value, Componentwise):
                    value = Tuple(components(value))
                if not isinstance(value, Tuple) or len(value.items) != len(target.elts):
                    raise self.error(
                        target,
                        f"{describe(value)} cannot be unpacked into {len(target.elts)} names.",
                        "Write as many names as there are values.",
                        KernelTypeError,
                    )
                for name, item in zip(target.elts, value.items, strict=True):
                    self.assign(name, item)
            case ast.Subscript():
                owner = self.value(target.value)
                if isinstance(owner, Local) and isinstance(target.value, ast.Name):
                    self._set_item(target, target.value.id, owner, value)
                    return
                if not isinstance(owner, OutRef):
                    raise self.error(
                        target,
                        f"{describe(owner)} cannot be written to.",
                        "Write to `out: dala.Out`, or to an array of this position's own: "
                        "`x = dala.local(9, dala.f32)`.",
                    )
                self.build.append(Store(*self._written(target.slice, owner, value, target)))
            case ast.Attribute():
                owner, written = self.value(target.value), ast.unparse(target.value)
                instead = f"Make a new one: {written} = {written}._replace({target.attr}=…)."
                if not isinstance(owner, Tuple) or owner.named is None:
                    instead = f"Make a new one, and assign that to `{written}`."
                raise self.error(target, f"{describe(owner)} does not change.", instead)
            case _:
                raise self.error(target, "this cannot be assigned to.", "Assign to a name.")

    def _augment(self, node: ast.AugAssign) -> None:
        target = node.target
        is_item = isinstance(target, ast.Subscript) and isinstance(self.value(target.value), Local)
        if not isinstance(target, ast.Name) and not is_item:
            raise self.error(
                node,
                "only names and elements of local arrays can be changed in place.",
                "To change the output, write out.add(i, value), out.min(…) or out.max(…).",
            )
        read = copy.copy(target)
        read.ctx = ast.Load()
        operation = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        self.assign(target, self.value(operation))

    def _set_item(self, node: ast.Subscript, name: str, owner: Local, value: LoweredValue) -> None:
        """Changes an element of a local array; an index outside of it changes none."""
        stored = self.arithmetic.convert(self.element(value), owner.type)
        index, count = self.operand(node.slice), len(owner.items)
        items = list(owner.items)
        if isinstance(index, Literal) and type(index.value) is int:
            if not -count <= index.value < count:
                raise self.error(
                    node,
                    f"index {index.value} is outside a local array of {count}.",
                    f"Use 0 to {count - 1}.",
                    KernelTypeError,
                )
            items[index.value] = stored
        elif not self.arithmetic.typed(index).type.is_integer:
            raise self.error(
                node, "an array is indexed by an integer.", "Use dala.s32(…).", KernelTypeError
            )
        else:
            for i, item in enumerate(items):
                here = self.arithmetic.condition(self.arithmetic.binary("eq", index, Literal(i)))
                items[i] = self.arithmetic.typed(self.arithmetic.choose(here, stored, item))
        self.frame.variables[name] = Local(tuple(items), owner.type)

    def _written(
        self,
        index: ast.expr,
        owner: OutRef,
        value: LoweredValue,
        node: ast.AST,
        *,
        updates: bool = False,
    ) -> tuple[tuple[Value, ...], Value]:
        """Returns where something is written to the output, and what; updates are computed."""
        where = self.index(index, owner.output.rank, owner.name)
        try:
            element = self.element(value)
            self.findings.yielded.append(self.arithmetic.type_of(element))
            type = owner.output.type
            if updates and type == BOOL:
                raise Mismatch(
                    "nothing can be added to a bool; it has no least, either.",
                    "Give an output of numbers.",
                )
            stored = self.arithmetic.stored(element, type.computed if updates else type)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None
        return where, stored

    def _update(self, call: ast.Call, owner: OutRef) -> None:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        op = next((name for name in _UPDATES if name == method), None)
        if op is None or len(call.args) != 2 or call.keywords:
            raise self.error(
                call,
                f"the output has no `{ast.unparse(call.func)}` like this.",
                "Write out.add(i, value), out.min(i, value) or out.max(i, value).",
            )
        value = self.value(call.args[1])
        written = self._written(call.args[0], owner, value, call, updates=True)
        self.build.append(AtomicUpdate(op, *written))

    # -- branches --------------------------------------------------------------------------------

    def branch(self, node: ast.If) -> LoweredValue | None:
        """Lowers an `if`; returns its return value, if its branches have one."""
        condition = self.condition(node.test)
        known = decided(condition)
        if known is not None:
            taken = node.body if known else node.orelse
            return self._returned(node, self.block(structured(taken)))
        changing = self.changing([node])
        self.settle_inputs(changing)
        before = dict(self.frame.variables)
        sides: list[tuple[Block, dict[str, LoweredValue], LoweredValue | None]] = []
        for statements in (node.body, node.orelse):
            self.frame.variables = dict(before)
            with self.build.block() as block:
                returned = self._returned(node, self.block(structured(statements)))
            sides.append((block, self.frame.variables, returned))
        self.frame.variables = dict(before)
        (then, then_names, then_value), (otherwise, else_names, else_value) = sides
        alike = [name for name in changing if then_names.get(name) is else_names.get(name)]
        same = {name: then_names[name] for name in alike if name in then_names}
        self.frame.variables.update(same)
        names = [name for name in changing if name not in alike]
        pairs: list[tuple[LoweredValue, LoweredValue]] = []
        merged: list[str] = []
        for name in names:
            a, b = then_names.get(name), else_names.get(name)
            if a is None or b is None or isinstance(a, Unset) or isinstance(b, Unset):
                line = self.frame.source.first_line + node.lineno - 1
                self.frame.variables[name] = Unset(
                    f"only one side of the `if` in line {line} sets it"
                )
            else:
                pairs.append((self.element(a), self.element(b)))
                merged.append(name)
        if then_value is not None and else_value is not None:
            pairs.append((self.settled(then_value), self.settled(else_value)))
        joined = self._join(node, condition, then, otherwise, pairs)
        self.frame.variables.update(zip(merged, joined, strict=False))
        return joined[-1] if then_value is not None else None

    def changing(self, statements: list[ast.stmt]) -> list[str]:
        """Returns the names that statements may assign, or whose elements they may."""
        items = [
            name
            for name in assigned_items(statements)
            if isinstance(self.frame.variables.get(name), Local)
        ]
        return list(dict.fromkeys([*assigned(statements), *items]))

    def settled(self, returned: LoweredValue) -> LoweredValue:
        """Returns what is returned, with elements in place of inputs."""
        if isinstance(returned, Tuple):
            return Tuple(tuple(map(self.settled, returned.items)), returned.named)
        return self.element(returned)

    def settle_inputs(self, names: list[str]) -> None:
        """Replaces inputs that are assigned to by their elements, which can change."""
        variables = self.frame.variables
        variables.update(
            {name: self.element(variables[name]) for name in names if name in variables}
        )

    def _returned(self, node: ast.If, value: LoweredValue | None) -> LoweredValue | None:
        if value is None and returns([node]):
            raise self.error(
                node, "not every path through this returns a value.", "Return on each path."
            )
        return value

    def condition(self, node: ast.expr) -> Number:
        lowered = self.operand(node)
        try:
            return self.arithmetic.condition(lowered)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None

    def _join(
        self,
        node: ast.If,
        condition: Number,
        then: Block,
        otherwise: Block,
        pairs: list[tuple[LoweredValue, LoweredValue]],
    ) -> list[LoweredValue]:
        """Emits one `If` for the values of all pairs; conversions go into their own branch."""
        plans = [self._join_types(node, a, b) for a, b in pairs]
        for block, side in ((then, 0), (otherwise, 1)):
            results: list[Value] = []
            with self.build.block() as converted:
                for pair, types in zip(pairs, plans, strict=True):
                    for item, type in zip(scalars(pair[side]), types, strict=True):
                        results.append(self.arithmetic.convert(item, type).value)
            block.statements.extend(converted.statements)
            block.results = tuple(results)
        left = list(self.build.results(If(condition.value, then, otherwise)))
        joined: list[LoweredValue] = []
        for a, b in pairs:
            count = len(scalars(a))
            if a == b and isinstance(a, Literal):
                joined.append(a)
            else:
                joined.append(rebuilt(a, [Number(value) for value in left[:count]]))
            del left[:count]
        return joined

    def _join_types(self, node: ast.AST, a: LoweredValue, b: LoweredValue) -> list[Scalar]:
        if kind_of(a) != kind_of(b):
            raise self.error(
                node,
                f"the two sides differ in kind: {describe(a)} and {describe(b)}.",
                "Make both sides the same kind of value.",
                KernelTypeError,
            )
        pairs = zip(scalars(a), scalars(b), strict=True)
        return [self._common(node, x, y) for x, y in pairs]

    def _common(self, node: ast.AST, a: LoweredValue, b: LoweredValue) -> Scalar:
        try:
            return self.arithmetic.common_type_of(a, b)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None
