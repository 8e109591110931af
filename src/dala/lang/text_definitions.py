"""A kernel's text with what it uses: classes of named tuples and functions beside the kernel.

Nothing of it is run: classes are made of their fields.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from typing import Any

from dala.errors import KernelSyntaxError
from dala.lang.calls import Function
from dala.lang.signature import static_value
from dala.lang.source import MISSING, Source, from_text, parse_module, source_of_node
from dala.lang.structs import named_tuple

_BASES = ("NamedTuple", "typing.NamedTuple")
_IMPORTS = ("import dala", "import typing", "from typing import NamedTuple")
"""What stands for itself in a text, so that a part of a file can be one."""
_FUNCTION = ("function", "dala.function")


def from_definitions(text: str, names: Mapping[str, Any], file: str) -> Source:
    """Returns the source of the kernel that the text defines, which may use `names`."""
    dedented = textwrap.dedent(text) if isinstance(text, str) else text
    body = parse_module(dedented, file, 1) if isinstance(text, str) else []
    if not any(isinstance(node, ast.ClassDef) for node in body) and len(body) <= 1:
        return from_text(text, names, file)
    scope: dict[str, Any] = dict(names)
    kernels: list[Source] = []
    for node in body:
        match node:
            case ast.ClassDef():
                scope[node.name] = _class(node, scope, dedented, file)
            case ast.FunctionDef() if _is_function(node):
                scope[node.name] = Function(source_of_node(node, dedented, scope, file))
            case ast.FunctionDef():
                kernels.append(source_of_node(node, dedented, scope, file))
            case ast.Import() | ast.ImportFrom() if ast.unparse(node) in _IMPORTS:
                pass
            case _:
                raise _refused(node, dedented, scope, file)
    if len(kernels) != 1:
        found = ", ".join(item.name for item in kernels) or "none"
        raise KernelSyntaxError(
            f"{file}: a text has one kernel, not {len(kernels)} ({found}): write @dala.function "
            f"above the functions that it calls."
        )
    return kernels[0]


def _is_function(node: ast.FunctionDef) -> bool:
    """Whether a function is one that kernels call."""
    return any(ast.unparse(item) in _FUNCTION for item in node.decorator_list)


def _class(node: ast.ClassDef, scope: dict[str, Any], text: str, file: str) -> type:
    """Returns the class of named tuples that a class statement defines."""
    source = _source_at(node, text, scope, file)
    bases = [ast.unparse(base) for base in node.bases]
    if len(bases) != 1 or bases[0] not in _BASES or node.keywords or node.decorator_list:
        raise source.error(
            KernelSyntaxError,
            node,
            f"class {node.name} is not one of named tuples.",
            f"Write `class {node.name}(NamedTuple):`, and its fields.",
        )
    marks: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    methods: dict[str, Function] = {}
    for item in node.body:
        match item:
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                marks[field] = ast.unparse(item.annotation)
                if item.value is not None:
                    defaults[field] = _default(source, field, item.value)
                elif defaults:
                    raise source.error(
                        KernelSyntaxError,
                        item,
                        f"`{field}` has no default, but a field before it has.",
                        "Give fields with defaults last.",
                    )
            case ast.FunctionDef() if not item.decorator_list:
                methods[item.name] = Function(source_of_node(item, text, scope, file))
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise source.error(
                    KernelSyntaxError,
                    item,
                    "a class in a kernel's text has fields and methods only.",
                    "Write `name: dala.f32`, or `name: dala.f32 = 0.0`.",
                )
    made = named_tuple(node.name, marks, defaults, file)
    for name, method in methods.items():
        setattr(made, name, method)
    return made


def _default(source: Source, field: str, node: ast.expr) -> Any:
    found = static_value(source, node)
    if found is MISSING:
        raise source.error(
            KernelSyntaxError,
            node,
            f"the default of `{field}` is not a number, or a tuple of numbers.",
            "Write it as one.",
        )
    return found


def _source_at(node: ast.stmt, text: str, scope: dict[str, Any], file: str) -> Source:
    """Returns a source in which errors about a statement can be told."""
    place = ast.copy_location(ast.parse("def text(): pass").body[0], node)
    assert isinstance(place, ast.FunctionDef)
    return source_of_node(place, text, scope, file)


def _refused(node: ast.stmt, text: str, scope: dict[str, Any], file: str) -> KernelSyntaxError:
    return _source_at(node, text, scope, file).error(
        KernelSyntaxError,
        node,
        f"`{type(node).__name__}` does not stand in a kernel's text.",
        "A text is one kernel, with @dala.functions and classes of named tuples that it uses.",
    )
