"""A least-recently-used cache of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")


class LruCache(Generic[Key, Kept]):
    """Caches the value made for a key, and evicts the least recently used ones.

    Two threads that ask for the same key at once may both make it; the later value is kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: Key, make: Callable[[], Kept]) -> Kept:
        """Returns the value cached for the key, or makes it."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def get(self, key: Key) -> Kept | None:
        """Returns the value cached for the key, or None."""
        found = self._known.pop(key, None)
        if found is not None:
            self._known[key] = found  # at the end, as the most recently used
        return found

    def put(self, key: Key, value: Kept) -> None:
        """Caches a value for the key."""
        self._known[key] = value
        while len(self._known) > self.most:
            self._known.pop(next(iter(self._known)), None)

    def clear(self) -> None:
        self._known.clear()
