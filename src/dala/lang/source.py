"""The source of a kernel, its location, and errors that point at it."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn, TypeVar

from dala.errors import KernelError, KernelSourceError, KernelSyntaxError
from dala.lang.interactive_source import find_lines

MISSING = object()
UNBOUND = object()
"""The value of an enclosing function's variable before it is assigned."""
_MOST_BRACKET_LINES = 32
_USABLE = (
    *("abs", "all", "any", "bool", "enumerate", "float", "int", "len", "max", "min", "pow"),
    *("range", "round", "sum", "zip"),
)
"""The Python builtins that kernels may use."""
AnyKernelError = TypeVar("AnyKernelError", bound=KernelError)


@dataclass(eq=False)
class Source:
    """A function's syntax tree, its lines, and the values of its free names."""

    name: str
    file: str
    first_line: int
    lines: list[str]
    tree: ast.FunctionDef
    doc: str
    _scopes: tuple[Mapping[str, Any], ...] = ()
    _resolved: dict[str, Any] = field(default_factory=dict)

    def resolve(self, name: str) -> Any:
        """Returns a free name's value, looked up once: later changes do not alter the kernel."""
        if name not in self._resolved:
            found = (scope[name] for scope in self._scopes if name in scope)
            self._resolved[name] = next(found, MISSING)
        return self._resolved[name]

    def names(self) -> list[str]:
        """Returns every name in scope, for "did you mean" suggestions."""
        own = [name for scope in self._scopes[:-1] for name in scope if not name.startswith("__")]
        return [*own, *_USABLE]

    def point_at(self, node: ast.AST) -> str:
        """Returns the file, the line, its text and a caret under the node."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        end = getattr(node, "end_col_offset", column + 1)
        if getattr(node, "end_lineno", line) != line:
            end = len(text)
        # The ast module counts columns in UTF-8 bytes.
        before = text.encode()[:column].decode(errors="replace")
        under = text.encode()[column:end].decode(errors="replace")
        indent = len(text) - len(text.lstrip())
        caret = " " * (len(before) - indent) + "^" * max(1, len(under.rstrip()))
        shown = f"    {text.strip()}\n    {caret}"
        where = f'  File "{self.file}", line {self.first_line + line - 1}, in {self.name}'
        return f"{where}\n{shown}"

    def error(
        self, kind: type[AnyKernelError], node: ast.AST, what: str, instead: str, chain: str = ""
    ) -> AnyKernelError:
        """Returns an error about a node: what is refused, where, and what to write instead."""
        return kind(f"{what}\n{chain}{self.point_at(node)}\n  {instead}")


def from_function(function: Any) -> Source:
    """Returns the source of a Python function, with its globals and closure."""
    if not inspect.isfunction(function):
        raise KernelSyntaxError(
            f"a kernel is a Python function (def …), not {type(function).__name__} {function!r}."
        )
    if function.__name__ == "<lambda>":
        raise KernelSyntaxError(
            "a lambda cannot be a kernel: its source line does not say where it ends. "
            "Write it as a def."
        )
    code = function.__code__
    text = _text_of(code, function.__globals__)
    if not text:
        raise _no_source(function, code.co_filename)
    first_line = code.co_firstlineno
    tree = _parse(text, code.co_filename, first_line)
    if _changed(tree, code):
        raise KernelSourceError(
            f"{code.co_filename} was changed after kernel {function.__name__!r} was imported from "
            f"it: its text is no longer what Python runs. Import the module anew."
        )
    closure = {
        name: UNBOUND if _is_empty(cell) else cell.cell_contents
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
    }
    return Source(
        name=function.__name__,
        file=code.co_filename,
        first_line=first_line,
        lines=text.splitlines(),
        tree=tree,
        doc=inspect.cleandoc(function.__doc__ or ""),
        _scopes=(closure, function.__globals__, vars(builtins)),
    )


def _text_of(code: CodeType, names: dict[str, Any]) -> str:
    """Returns the lines of a function; `inspect` would take 15 ms, as it searches every module."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, names)[code.co_firstlineno - 1 :]
    lines = lines or find_lines(code)
    count = _last_line(code) - code.co_firstlineno + 1
    # The code object does not tell where a closing bracket on its own line is.
    for longer in range(min(_MOST_BRACKET_LINES, len(lines) - count + 1)):
        text = _dedented(lines[: count + longer])
        try:
            ast.parse(text)
            return text
        except SyntaxError:
            continue
    return _dedented(lines[:count])


def _dedented(lines: list[str]) -> str:
    """Strips the first line's indentation; lines indented less are in a string or comment."""
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    return "".join(line.removeprefix(margin) for line in lines)


def _changed(tree: ast.FunctionDef, code: CodeType) -> bool:
    """Whether the text differs from what the code was compiled from."""
    module = compile(ast.Module([tree], []), code.co_filename, "exec", dont_inherit=True)
    (now,) = [item for item in module.co_consts if _is_code_of(item, tree.name)][:1] or (None,)
    return now is not None and _fixed(now) != _fixed(code)


def _is_code_of(item: object, name: str) -> bool:
    return isinstance(item, CodeType) and item.co_name == name


def _fixed(code: CodeType) -> tuple[object, ...]:
    """Returns the parts of a code object that do not depend on its location."""
    numbers = [item for item in code.co_consts if not isinstance(item, CodeType | str)]
    constants = tuple(map(repr, numbers))
    return (code.co_varnames, constants)


def _last_line(code: CodeType) -> int:
    inner = [_last_line(item) for item in code.co_consts if isinstance(item, CodeType)]
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    return max([code.co_firstlineno, *ends, *inner])


def from_text(text: str, names: Mapping[str, Any], file: str) -> Source:
    """Returns the source of the single function that the text defines; it may use `names`."""
    if not isinstance(text, str):
        raise KernelSyntaxError(
            f"a kernel's source is text with one def, not {type(text).__name__}."
        )
    dedented = textwrap.dedent(text)
    return source_of_node(_parse(dedented, file, 1), dedented, names, file)


def source_of_node(tree: ast.FunctionDef, text: str, names: Mapping[str, Any], file: str) -> Source:
    """Returns the source of one of the functions that a text defines."""
    return Source(
        name=tree.name,
        file=file,
        first_line=1,
        lines=text.splitlines(),
        tree=tree,
        doc=inspect.cleandoc(ast.get_docstring(tree) or ""),
        _scopes=(names, vars(builtins)),
    )


def parse_module(text: str, file: str, first_line: int) -> list[ast.stmt]:
    """Returns the statements of a text; raises an error that points at what is not Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        _refuse_syntax(error, text, file, first_line)


def _parse(text: str, file: str, first_line: int) -> ast.FunctionDef:
    body = parse_module(text, file, first_line)
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        found = ", ".join(type(item).__name__ for item in body) or "nothing"
        raise KernelSyntaxError(
            f"{file}: the source of a kernel is exactly one def; here it holds {found}."
        )
    return body[0]


def _refuse_syntax(error: Exception, text: str, file: str, first_line: int) -> NoReturn:
    if not isinstance(error, SyntaxError):
        raise KernelSyntaxError(f"{file}: this is not Python: {error}.") from error
    line = error.lineno or 1
    lines = text.splitlines()
    shown = lines[line - 1] if line <= len(lines) else ""
    caret = " " * max(0, (error.offset or 1) - 1) + "^"
    raise KernelSyntaxError(
        f"this is not Python: {error.msg}.\n"
        f'  File "{file}", line {first_line + line - 1}\n    {shown}\n    {caret}\n'
        f"  Mend the line; a kernel is an ordinary Python function."
    ) from error


def _no_source(function: Any, file: str) -> KernelSourceError:
    return KernelSourceError(
        f"the source of kernel {function.__name__!r} cannot be had (it was made in {file!r}, by a "
        f"REPL or exec). Put the function into a file or a notebook cell, or give its text: "
        f"compute.Kernel.register({function.__name__!r}, source, inputs=…, params=…)."
    )


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False
