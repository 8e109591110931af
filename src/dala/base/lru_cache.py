"""A bounded cache that evicts the least recently used value."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class LruCache(Generic[Key, Kept]):
    """Caches values by key, and evicts the least recently used.

    Two threads that ask for the same key at once may both make it, and the later one is kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: Key, make: Callable[[], Kept]) -> Kept:
        """Returns the value for a key, made now if it is not cached."""
        found = self._known.pop(key, None)
        if found is None:
            found = make()
        self._known[key] = found  # at the end: it was used last
        while len(self._known) > self.most:
            self._known.pop(next(iter(self._known)), None)
        return found

    def clear(self) -> None:
        self._known.clear()
