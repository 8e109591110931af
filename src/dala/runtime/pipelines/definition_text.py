"""The classes and functions that a kernel uses, as text beside its own."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from dala.lang.arithmetic import Mismatch
from dala.lang.calls import Function, source_of
from dala.lang.composites import FieldType, Struct
from dala.lang.language_names import NAMES
from dala.lang.source import Source
from dala.lang.structs import is_struct, method_of, struct_of


class NotTextError(Exception):
    """Raised for what a kernel uses that a text cannot hold; says what it is."""


def text_with_definitions(source: Source) -> str:
    """Returns the text of a function, below that of all that it uses; raises NotTextError."""
    writer = _Writer()
    writer.collect(source)
    return "\n\n".join([*writer.texts.values(), _own_lines(source)])


class _Writer:
    """Texts by name, each after those that it uses."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._meant: dict[str, Any] = {}

    def collect(self, source: Source) -> None:
        for name in _free_names(source.tree):
            if not _means_the_same(source, name):
                self._add(name, source.resolve(name), source)

    def _add(self, name: str, found: Any, source: Source) -> None:
        if name in self._meant:
            if self._meant[name] is not found:
                raise NotTextError(f"`{name}` means two things in what it uses")
            return
        self._meant[name] = found
        if isinstance(found, Function) and found.source.name == name:
            self.collect(found.source)
            self.texts[name] = f"@dala.function\n{_own_lines(found.source)}"
        elif is_struct(found) and found.__name__ == name:
            try:
                struct = struct_of(found, source.resolve)
            except Mismatch as mismatch:
                raise NotTextError(mismatch.what) from mismatch
            self.texts[name] = self._class(struct, source)
        else:
            raise NotTextError(f"it uses `{name}`, which is defined outside of it")

    def _class(self, struct: Struct, source: Source) -> str:
        defaults = struct.cls._field_defaults  # type: ignore[attr-defined]
        lines = [f"class {struct.name}(NamedTuple):"]
        for name, type in struct.fields:
            line = f"    {name}: {self._type(struct, name, type, source)}"
            lines.append(f"{line} = {_written(defaults[name])}" if name in defaults else line)
        for name in dir(struct.cls):
            method = method_of(struct.cls, name)
            if method is not None:
                own = method.source if isinstance(method, Function) else source_of(method)
                self.collect(own)
                lines += ["", textwrap.indent(_own_lines(own), "    ")]
        return "\n".join(lines)

    def _type(self, struct: Struct, name: str, type: FieldType, source: Source) -> str:
        if type is None:
            raise NotTextError(f"`{name}` of {struct.name} has no type")
        if not isinstance(type, Struct):
            return f"dala.{type.name}"
        self._add(type.name, type.cls, source)
        return type.name


def _written(default: Any) -> str:
    """Returns the text of a number, or of tuples and named tuples of them."""
    if isinstance(default, np.ndarray | np.generic):
        default = default.tolist()
    if isinstance(default, tuple | list):
        name = type(default).__name__ if is_struct(type(default)) else ""
        return f"{name}({', '.join(map(_written, default))}{',' * (len(default) == 1)})"
    return repr(default)


def _own_lines(source: Source) -> str:
    lines = source.lines[source.tree.lineno - 1 : source.tree.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _free_names(tree: ast.FunctionDef) -> Iterator[str]:
    """Returns the names that a function takes from outside; its decorators are not part of it."""
    nodes = [node for part in (*tree.body, tree.args) for node in ast.walk(part)]
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return (name for name in dict.fromkeys(node.id for node in names) if name not in own)


def _means_the_same(source: Source, name: str) -> bool:
    """Returns whether the name would mean in a text of its own what it means here."""
    meaning = source.resolve(name)
    if name == "dala":
        return getattr(meaning, "position", None) is NAMES["position"]
    return meaning is NAMES.get(name) or meaning is vars(builtins).get(name)
