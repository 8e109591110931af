"""Structures early exits: what follows an `if` that may exit moves into its other branch."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

BROKEN = "·broken"
"""The variable that records a `break`; no Python identifier looks like it."""
RETURNED, RESULT = "·returned", "·result"
"""The variables that record a `return` inside a loop, and what it returned."""


def without_inner_returns(statements: list[ast.stmt], *, inside: bool = False) -> list[ast.stmt]:
    """Returns the statements with each `return` inside a loop as a `break` that is remembered.

    After the outermost loop what was remembered is returned.
    """
    changed: list[ast.stmt] = []
    for statement in statements:
        match statement:
            case ast.Return() if inside and statement.value is not None:
                result = _set(RESULT, statement.value, statement)
                returned = _set(RETURNED, ast.Constant(True), statement)
                changed += [result, returned, ast.copy_location(ast.Break(), statement)]
            case ast.For() | ast.While() if _returns_within(statement.body):
                body = without_inner_returns(statement.body, inside=True)
                loop = copy.copy(statement)
                loop.body = body
                leave: ast.stmt = ast.Break()
                if not inside:
                    changed.append(_set(RETURNED, ast.Constant(False), statement))
                    leave = ast.Return(ast.Name(RESULT, ast.Load()))
                test = ast.If(ast.Name(RETURNED, ast.Load()), [leave], [])
                changed += [loop, ast.fix_missing_locations(ast.copy_location(test, statement))]
            case ast.If():
                branch = copy.copy(statement)
                branch.body = without_inner_returns(statement.body, inside=inside)
                branch.orelse = without_inner_returns(statement.orelse, inside=inside)
                changed.append(branch)
            case _:
                changed.append(statement)
    return changed


def _returns_within(statements: list[ast.stmt]) -> bool:
    return any(isinstance(item, ast.Return) for item in _within(statements, loops=True))


def _set(name: str, value: ast.expr, node: ast.stmt) -> ast.stmt:
    assign = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(assign, node))


def structured(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Returns the statements with `return`, `break` and `continue` only at the end of a path."""
    for i, statement in enumerate(statements):
        if isinstance(statement, ast.Break):
            return [*statements[:i], _set(BROKEN, ast.Constant(True), statement)]
        if isinstance(statement, ast.Continue):
            return statements[:i]
        if isinstance(statement, ast.Return):
            return statements[: i + 1]
        if isinstance(statement, ast.If) and _leaves(statement):
            rest = statements[i + 1 :]
            branches = [
                structured(branch if _always_leaves(branch) else [*branch, *rest])
                for branch in (statement.body, statement.orelse)
            ]
            joined = ast.If(statement.test, branches[0], branches[1])
            return [*statements[:i], ast.copy_location(joined, statement)]
    return statements


def returns(statements: list[ast.stmt]) -> bool:
    """Whether these statements or their branches contain a `return`."""
    return any(isinstance(item, ast.Return) for item in _within(statements, loops=False))


def breaks(statements: list[ast.stmt]) -> bool:
    """Whether these statements contain a `break` of the enclosing loop."""
    return any(isinstance(item, ast.Break) for item in _within(statements, loops=False))


def assigned(statements: list[ast.stmt]) -> list[str]:
    """Returns the names that these statements may assign, in order of first assignment."""
    found = (name for item in _within(statements, loops=True) for name in _stored(item)[0])
    return list(dict.fromkeys(found))


def assigned_items(statements: list[ast.stmt]) -> list[str]:
    """Returns the names of what these statements may assign elements of: `x` in `x[i] = …`."""
    found = (name for item in _within(statements, loops=True) for name in _stored(item)[1])
    return list(dict.fromkeys(found))


def _leaves(statement: ast.If) -> bool:
    exits = (ast.Return, ast.Break, ast.Continue)
    return any(isinstance(item, exits) for item in _within([statement], loops=False))


def _always_leaves(statements: list[ast.stmt]) -> bool:
    for statement in statements:
        if isinstance(statement, ast.Return | ast.Break | ast.Continue):
            return True
        if (
            isinstance(statement, ast.If)
            and _always_leaves(statement.body)
            and _always_leaves(statement.orelse)
        ):
            return True
    return False


def _within(statements: list[ast.stmt], *, loops: bool) -> Iterator[ast.stmt]:
    for statement in statements:
        yield statement
        if isinstance(statement, ast.If) or (loops and isinstance(statement, ast.For | ast.While)):
            yield from _within(statement.body, loops=loops)
            yield from _within(statement.orelse, loops=loops)


def _stored(statement: ast.stmt) -> tuple[list[str], list[str]]:
    """Returns the names that a statement by itself assigns, and those whose elements it does.

    They are kept with the statement: every block around it asks for them.
    """
    known: tuple[list[str], list[str]] | None = getattr(statement, "_dala_stored", None)
    if known is None:
        names, items = [], []
        for node in _own_nodes(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    names.append(name)
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                    items.append(name)
        known = (names, items)
        statement._dala_stored = known  # type: ignore[attr-defined]
    return known


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields the nodes of a statement, without those of nested statements."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt | ast.comprehension)
        )
