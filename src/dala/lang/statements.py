"""Lowers statements of the kernel language: assignments, branches, loops, writes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import cast

from dala.errors import KernelTypeError
from dala.ir.nodes import AtomicAdd, Block, If, Store, Value
from dala.ir.types import Scalar
from dala.lang.arithmetic import Mismatch, decided
from dala.lang.calls import Calls
from dala.lang.early_exits import RESULT, assigned, returns, structured, without_inner_returns
from dala.lang.values import (
    Literal,
    LoweredValue,
    Number,
    OutRef,
    Pixel,
    Tuple,
    Unset,
    Vector,
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


class Statements(Calls):
    """Lowers the statements of functions."""

    returned_values: tuple[list[LoweredValue], ...] = ()
    """What `return`s inside the loops at hand have given, while that is looked for."""

    def run_function(self, call: ast.AST) -> LoweredValue:
        tree = self.frame.source.tree
        self.frame.assigned = frozenset(assigned(tree.body))
        found = self.block(structured(without_inner_returns(tree.body)))
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
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = self.value(call.func.value)
            if isinstance(owner, OutRef):
                return self._atomic_add(call, owner)
        self.value(node.value)
        raise self.error(node, "this value goes nowhere.", "Assign it, or return it.")

    # -- assignments -----------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: LoweredValue) -> None:
        match target:
            case ast.Name():
                if target.id == RESULT:
                    value = self.element(value)
                    for found in self.returned_values:
                        found.append(value)
                self.frame.variables[target.id] = value
            case ast.Tuple() | ast.List():
                if isinstance(value, Pixel | Vector):
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
                if not isinstance(owner, OutRef):
                    raise self.error(
                        target,
                        f"{describe(owner)} cannot be written to.",
                        "A kernel returns its element, or takes `out: dala.Out` and writes out[i].",
                    )
                self._store(Store, target.slice, owner, value, target)
            case _:
                raise self.error(target, "this cannot be assigned to.", "Assign to a name.")

    def _augment(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(
                node,
                "only names can be changed in place.",
                "To add to the output, write `out.add(i, value)`.",
            )
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        operation = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        self.frame.variables[node.target.id] = self.value(operation)

    def _store(
        self,
        kind: type[Store] | type[AtomicAdd],
        index: ast.expr,
        owner: OutRef,
        value: LoweredValue,
        node: ast.AST,
    ) -> None:
        where = self.index(index, owner.output.rank, owner.name)
        try:
            element = self.element(value)
            self.findings.yielded.append(self.arithmetic.type_of(element))
            stored = self.arithmetic.convert(element, owner.output.type)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None
        self.build.append(kind(where, stored.value))

    def _atomic_add(self, call: ast.Call, owner: OutRef) -> None:
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method != "add" or len(call.args) != 2 or call.keywords:
            raise self.error(
                call,
                f"the output has no `{ast.unparse(call.func)}` like this.",
                "Write out.add(i, value).",
            )
        self._store(AtomicAdd, call.args[0], owner, self.value(call.args[1]), call)

    # -- branches --------------------------------------------------------------------------------

    def branch(self, node: ast.If) -> LoweredValue | None:
        """Lowers an `if`; returns its return value, if its branches have one."""
        condition = self.condition(node.test)
        known = decided(condition)
        if known is not None:
            taken = node.body if known else node.orelse
            return self._returned(node, self.block(structured(taken)))
        self.settle_inputs(assigned([node]))
        before = dict(self.frame.variables)
        sides: list[tuple[Block, dict[str, LoweredValue], LoweredValue | None]] = []
        for statements in (node.body, node.orelse):
            self.frame.variables = dict(before)
            with self.build.block() as block:
                returned = self._returned(node, self.block(structured(statements)))
            sides.append((block, self.frame.variables, returned))
        self.frame.variables = dict(before)
        (then, then_names, then_value), (otherwise, else_names, else_value) = sides
        names = [
            name for name in assigned([node]) if then_names.get(name) is not else_names.get(name)
        ]
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
            pairs.append((then_value, else_value))
        joined = self._join(node, condition, then, otherwise, pairs)
        self.frame.variables.update(zip(merged, joined, strict=False))
        return joined[-1] if then_value is not None else None

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
        first, second = scalars(a), scalars(b)
        if len(first) != len(second) or _kind(a) is not _kind(b):
            raise self.error(
                node,
                f"the two sides differ in kind: {describe(a)} and {describe(b)}.",
                "Make both sides the same kind of value.",
                KernelTypeError,
            )
        return [self._common(node, x, y) for x, y in zip(first, second, strict=True)]

    def _common(self, node: ast.AST, a: LoweredValue, b: LoweredValue) -> Scalar:
        try:
            return self.arithmetic.common_type_of(a, b)
        except Mismatch as mismatch:
            raise self.error(node, mismatch.what, mismatch.instead, KernelTypeError) from None


def _kind(lowered: LoweredValue) -> type | None:
    """Returns what values on two sides of a branch have to have in common."""
    return type(lowered) if isinstance(lowered, Pixel | Vector) else None


def scalars(lowered: LoweredValue) -> tuple[LoweredValue, ...]:
    """Returns the scalars that a value consists of."""
    match lowered:
        case Tuple():
            return tuple(part for item in lowered.items for part in scalars(item))
        case Pixel() | Vector():
            return components(lowered)
        case Literal() | Number():
            return (lowered,)
    raise Mismatch(f"{describe(lowered)} cannot change in a branch or a loop.", "Keep it as it is.")


def rebuilt(like: LoweredValue, items: list[Number]) -> LoweredValue:
    """Returns a value of the same kind with other scalars, taken from the front of `items`."""
    pending = list(items)

    def build(lowered: LoweredValue) -> LoweredValue:
        if isinstance(lowered, Tuple):
            return Tuple(tuple(build(item) for item in lowered.items))
        if isinstance(lowered, Pixel):
            return Pixel((pending.pop(0), pending.pop(0), pending.pop(0), pending.pop(0)))
        if isinstance(lowered, Vector):
            return Vector(tuple(pending.pop(0) for _ in lowered.items))
        return pending.pop(0)

    return build(like)
