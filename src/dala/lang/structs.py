"""Named tuples in kernels: their classes as types, made, read and changed by field."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ForwardRef
from weakref import WeakKeyDictionary

from dala.base.suggestions import hint
from dala.lang.arithmetic import Mismatch
from dala.lang.composites import FieldType, Struct, conform
from dala.lang.language_names import (
    SCALARS,
    MatrixMarker,
    ScalarMarker,
    VectorMarker,
    meant_by,
)
from dala.lang.source import MISSING
from dala.lang.values import LoweredValue, Tuple

if TYPE_CHECKING:
    from dala.lang.expressions import Expressions

Resolve = Callable[[str], Any]
"""Returns what a name means where a kernel is written, or MISSING."""

_known: WeakKeyDictionary[type, Struct] = WeakKeyDictionary()


def is_struct(given: Any) -> bool:
    """Whether an object is a class of named tuples."""
    return isinstance(given, type) and issubclass(given, tuple) and hasattr(given, "_fields")


def struct_of(cls: Any, resolve: Resolve, around: tuple[type, ...] = ()) -> Struct:
    """Returns a class of named tuples as a type; raises Mismatch for fields that cannot be."""
    if cls not in _known:
        marks: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            marks |= getattr(base, "__annotations__", {})
        fields = [
            (name, _field_type(cls, name, marks.get(name, Any), resolve, (*around, cls)))
            for name in cls._fields
        ]
        _known[cls] = Struct(cls, tuple(fields))
    return _known[cls]


def _field_type(
    cls: Any, name: str, mark: Any, resolve: Resolve, around: tuple[type, ...]
) -> FieldType:
    shown = getattr(mark, "__forward_arg__", mark)
    if isinstance(mark, str | ForwardRef):
        mark = _evaluated(cls, str(shown), resolve)
    mark = meant_by(mark)
    if isinstance(mark, ScalarMarker | VectorMarker | MatrixMarker):
        return mark
    if mark is Any:
        return None
    if is_struct(mark) and mark not in around:
        return struct_of(mark, resolve, around)
    why = "contains itself" if mark in around else f"has a field `{name}: {_name(shown)}`"
    raise Mismatch(
        f"{cls.__name__} {why}, which kernels cannot compute with.",
        f"A field is a scalar (float, int, bool, dala.{', '.join(SCALARS)}), dala.vec2 to vec4, "
        f"dala.mat2 to mat4, or another named tuple.",
    )


def untyped(struct: Struct) -> Iterator[tuple[str, str]]:
    """Yields the fields without a type, inner ones too: the name of the class, and their own."""
    for name, type in struct.fields:
        if type is None:
            yield struct.name, name
        elif isinstance(type, Struct):
            yield from untyped(type)


def _name(mark: Any) -> str:
    return mark if isinstance(mark, str) else str(getattr(mark, "__name__", mark))


def _evaluated(cls: Any, text: str, resolve: Resolve) -> Any:
    """Returns the object that the text of an annotation names, or MISSING."""
    try:
        node: ast.expr = ast.parse(text, mode="eval").body
    except SyntaxError:
        return MISSING
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return MISSING
    module = vars(sys.modules.get(cls.__module__, builtins))
    found = module.get(node.id, MISSING)
    found = resolve(node.id) if found is MISSING else found
    for part in reversed(parts):
        found = getattr(found, part, MISSING)
    return found


def named_tuple(
    name: str, marks: Mapping[str, Any], defaults: Mapping[str, Any], module: str
) -> type:
    """Returns the class that a class statement of a kernel's text defines."""
    made = namedtuple(name, marks, defaults=list(defaults.values()), module=module)  # type: ignore[misc]
    made.__annotations__ = dict(marks)
    return made


def made(
    lower: Expressions, struct: Struct, args: list[LoweredValue], named: dict[str, LoweredValue]
) -> Tuple:
    """Returns a named tuple of arguments in order and by name; others have their defaults."""
    names = [name for name, _ in struct.fields]
    if len(args) > len(names):
        raise Mismatch(
            f"{struct.name} has {len(names)} fields, not {len(args)}.", f"It is {struct.call}."
        )
    given = dict(zip(names, args, strict=False))
    for name in named:
        if name in given:
            raise Mismatch(f"`{name}` is given twice.", f"It is {struct.call}.")
    return changed(lower, struct, {**_defaults(lower, struct), **given, **named})


def _defaults(lower: Expressions, struct: Struct) -> dict[str, LoweredValue]:
    defaults = struct.cls._field_defaults  # type: ignore[attr-defined]
    tree = lower.frame.source.tree
    return {name: lower.static(default, tree) for name, default in defaults.items()}


def changed(lower: Expressions, struct: Struct, given: dict[str, LoweredValue]) -> Tuple:
    """Returns a named tuple with these fields; raises Mismatch unless they are its own."""
    names = [name for name, _ in struct.fields]
    for name in given:
        if name not in names:
            raise Mismatch(
                f"{struct.name} has no field `{name}`.{hint(name, names)}", f"It is {struct.call}."
            )
    missing = [name for name in names if name not in given]
    if missing:
        raise Mismatch(f"{struct.name} also needs {', '.join(missing)}.", f"It is {struct.call}.")
    items = [
        conform(lower, type, lower.element(given[name]), f"`{name}` of {struct.name}")
        for name, type in struct.fields
    ]
    return Tuple(tuple(items), struct.cls)


def method_of(cls: Any, name: str) -> Any:
    """Returns the function that a class of named tuples defines by that name, or None."""
    found = None if name.startswith("_") else getattr(cls, name, None)
    return found if inspect.isfunction(found) or hasattr(found, "source") else None


def fields_of(lowered: Tuple) -> dict[str, LoweredValue]:
    """Returns the fields of a named tuple by name."""
    names: tuple[str, ...] = getattr(lowered.named, "_fields", ())
    return dict(zip(names, lowered.items, strict=True)) if names else {}
