"""What a function of the kernel language refers to, and the functions that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dala.lang.calls import Function, source_of
from dala.lang.signature import static_object
from dala.lang.source import Source
from dala.lang.structs import is_struct, method_of


def referred(source: Source) -> Iterator[Any]:
    """Yields the objects from outside that a function and those that it calls refer to."""
    pending, seen = [source], {source}
    while pending:
        own = pending.pop()
        for node in ast.walk(own.tree):
            if isinstance(node, ast.Name | ast.Attribute):
                found = static_object(own, node)
                yield found
                inner = [item for item in _functions_of(found) if item not in seen]
                pending += inner
                seen.update(inner)


def _functions_of(found: Any) -> list[Source]:
    """Returns the sources of a function, or of the methods of a class of named tuples."""
    if isinstance(found, Function):
        return [found.source]
    methods = [method_of(found, name) for name in dir(found)] if is_struct(found) else []
    return [
        item.source if isinstance(item, Function) else source_of(item) for item in methods if item
    ]
