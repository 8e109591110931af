"""Calls that are made over and over, on the same memory with the same parameters.

All that is checked and looked up comes out the same, so from the third time on the launches
themselves are what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dala.base.lru_cache import LruCache
from dala.devices.device import Again
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels.arguments import params_key
from dala.runtime.profiling.profile import ACTIVE

Key = tuple[Any, ...]
MOST_CALLS = 32
"""Calls that a kernel remembers: the latest ones."""


def call_key(inputs: Any, output: Any, params: object) -> Key | None:
    """Returns what tells a call on host memory from others; None where it cannot be told."""
    given = params_key(params)
    if given is None or type(inputs) not in (list, tuple) or not isinstance(output, Buffer):
        return None
    try:
        read = [(item._memory.address, item.shape, item.scalar.name) for item in inputs]
        made: Any = output._memory
        return (made.device, made.address, output.shape, output.scalar.name, given, *read)
    except AttributeError:  # no buffer, or none whose memory has an address: others check that
        return None


class RepeatedCalls:
    """The calls of a kernel that were made before."""

    def __init__(self) -> None:
        self._known: LruCache[Key, Again | bool] = LruCache(MOST_CALLS)
        self._latest: tuple[Key | None, Again] = (None, bool)

    def repeat(self, key: Key | None) -> bool:
        """Makes a call again, if it is known what it comes to; a profile wants to see it all."""
        if key is None or ACTIVE:
            return False
        latest, again = self._latest
        if latest != key:
            found = self._known.get(key)
            if not callable(found):
                return False
            self._latest = (key, again := found)
        again()
        return True

    def made(self, key: Key, bound: Callable[[], Again | None]) -> None:
        """Notes a call; of one that is made a second time, `bound` says what it comes to."""
        seen = self._known.get(key)
        if seen is None:
            self._known.put(key, True)
        elif seen is True:
            self._known.put(key, bound() or False)
