"""Old public names that still work for one release, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warns, on behalf of the function that calls this one, that a name has become another."""
    warnings.warn(f"{old} is deprecated: use {new}.", DeprecationWarning, stacklevel=stacklevel + 1)


def renamed_attribute(owner: str, old: str, new: str) -> property:
    """Returns a read-only property that warns, and gives the attribute's value under its new name.

    `owner` is the class as the warning calls it: "Surface".
    """

    def get(self: Any) -> Any:
        warn_renamed(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(get, doc=f"Deprecated: use `{new}`.")


def renamed_argument(old: str, new: str) -> Callable[[Function], Function]:
    """Returns a decorator by which a function still takes an argument under its old name."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            if old in named:
                if new in named:
                    raise TypeError(f"{function.__name__}() takes {new} or {old}, not both")
                warn_renamed(f"{function.__name__}({old}=…)", f"{new}=…")
                named[new] = named.pop(old)
            return function(*given, **named)

        return call  # type: ignore[return-value]

    return decorate


class RenamedKeys(dict[str, Any]):
    """A dictionary in which some values are also found under the keys that they had before."""

    def __init__(self, values: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        """`renamed` has the new key for each old one."""
        super().__init__(values)
        self._renamed = dict(renamed)

    def __missing__(self, key: str) -> Any:
        return self[self._new_key(key)]

    def get(self, key: str, default: Any = None) -> Any:
        if key in self or key not in self._renamed:
            return super().get(key, default)
        return super().get(self._new_key(key), default)

    def _new_key(self, key: str) -> str:
        if key not in self._renamed:
            raise KeyError(key)
        new = self._renamed[key]
        warn_renamed(f"the key {key!r}", repr(new), stacklevel=3)
        return new
