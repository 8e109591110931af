"""Immutable records, like frozen dataclasses but cheap to define.

A frozen dataclass is written as text and compiled whenever its module is imported, 0.5 to 1 ms
each: more than everything else that importing dala does. A record takes 30 µs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import get_annotations
from typing import Any, TypeVar, dataclass_transform
from weakref import WeakKeyDictionary

Class = TypeVar("Class", bound=type)
Self = TypeVar("Self")
Record = TypeVar("Record")
Answer = TypeVar("Answer")


@dataclass_transform(frozen_default=True, eq_default=False)
def record(cls: Class) -> Class:
    """Makes a class a record: annotated fields are set once; instances are equal if identical."""
    fields = [name for base in reversed(cls.__mro__) for name in get_annotations(base)]
    defaults = {name: getattr(cls, name) for name in fields if hasattr(cls, name)}
    names, count = set(fields), len(fields)

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        given = self.__dict__
        if len(values) == count and not named:  # as most are made, some thousands for a kernel
            given.update(zip(fields, values, strict=True))
            return
        given.update(zip(fields, values, strict=False))
        given.update(named)
        if len(given) != len(fields):
            given.update({name: value for name, value in defaults.items() if name not in given})
        if given.keys() != names or len(values) + len(named) > len(fields):
            raise TypeError(f"{cls.__name__} takes {', '.join(fields)}; {list(given)} was given")

    _set(cls, __init__=__init__, __setattr__=_refuse, __repr__=_show)
    return cls


@dataclass_transform(frozen_default=True, eq_default=True)
def value(cls: Class) -> Class:
    """Makes a class a record that compares by its fields."""
    made = record(cls)
    _set(made, __eq__=_same, __hash__=_hash)
    return made


def remembered(function: Callable[[Record], Answer]) -> Callable[[Record], Answer]:
    """Caches a function of a record for as long as the record lives."""
    answers: WeakKeyDictionary[Record, Answer] = WeakKeyDictionary()

    @wraps(function)
    def call(given: Record) -> Answer:
        if given not in answers:
            answers[given] = function(given)
        return answers[given]

    return call


def changed(given: Self, **fields: Any) -> Self:
    """Returns a copy of the record with some fields changed."""
    return type(given)(**{**given.__dict__, **fields})


def _set(cls: type, **methods: Callable[..., Any]) -> None:
    for name, method in methods.items():
        setattr(cls, name, method)


def _refuse(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"{type(self).__name__} does not change: make another with changed().")


def _show(self: Any) -> str:
    fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
    return f"{type(self).__name__}({fields})"


def _same(self: Any, other: Any) -> bool:
    return type(self) is type(other) and self.__dict__ == other.__dict__


def _hash(self: Any) -> int:
    return hash((type(self), *self.__dict__.values()))
