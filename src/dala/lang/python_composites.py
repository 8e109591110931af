"""Vectors, matrices and named tuples of a kernel that runs as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dala.lang.calls import Function, source_of
from dala.lang.matrices import transposed
from dala.lang.structs import changed, fields_of, made, method_of, struct_of
from dala.lang.values import Matrix, Tuple
from dala.lang.vectors import swizzled

if TYPE_CHECKING:
    from dala.lang.python_values import Evaluator


class Components:
    """A vector: two to four numbers, and arithmetic on each."""

    def __init__(self, evaluator: Evaluator, items: tuple[Any, ...]) -> None:
        self.evaluator, self.items = evaluator, items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.evaluator.item(self.items, index)

    def __getattr__(self, name: str) -> Any:
        found = None if name.startswith("_") else swizzled(self.evaluator.vector(self.items), name)
        if found is None:
            raise AttributeError(f"a vector of {len(self.items)} has no {name!r}")
        return self.evaluator.raised(found)

    def __repr__(self) -> str:
        return f"vec{len(self.items)}({', '.join(map(str, self.items))})"


class Rows:
    """A matrix: two to four vectors, and arithmetic on each element."""

    def __init__(self, evaluator: Evaluator, rows: tuple[Components, ...]) -> None:
        self.evaluator, self.rows = evaluator, rows

    def __iter__(self) -> Iterator[Components]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, tuple):
            return self.evaluator.item(self.rows, index)
        row, column = index
        return self.evaluator.item(self.rows, row)[column]

    @property
    def T(self) -> Any:
        lowered = self.evaluator.lowered(self)
        assert isinstance(lowered, Matrix)
        return self.evaluator.raised(transposed(lowered))

    def __repr__(self) -> str:
        return f"mat{len(self.rows)}({', '.join(map(str, self.rows))})"


def struct_class(evaluator: Evaluator, cls: Any, rebuilt: Callable[[Any], Any]) -> type:
    """Returns a class of named tuples whose fields have the types that kernels give them."""
    struct = struct_of(cls, evaluator.lowering.frame.source.resolve)

    def new(_: type, *args: Any, **named: Any) -> Any:
        given = [evaluator.lowered(arg) for arg in args]
        by_name = {name: evaluator.lowered(value) for name, value in named.items()}
        return evaluator.attempt(lambda lower: made(lower, struct, given, by_name))

    def replace(self: Any, **named: Any) -> Any:
        lowered = evaluator.lowered(self)
        assert isinstance(lowered, Tuple)
        by_name = {name: evaluator.lowered(value) for name, value in named.items()}
        fields = {**fields_of(lowered), **by_name}
        return evaluator.attempt(lambda lower: changed(lower, struct, fields))

    methods = {name: method_of(cls, name) for name in dir(cls)}
    own = {
        name: rebuilt(found.source if isinstance(found, Function) else source_of(found))
        for name, found in methods.items()
        if found is not None
    }
    namespace = {"__slots__": (), "__new__": new, "_replace": replace, **own}
    return type(cls.__name__, (cls,), namespace)
