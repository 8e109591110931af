"""Calls that are made over and over: on memory of the same kinds, with the same parameters.

All that is checked and looked up comes out the same, so from the third time on the launches
themselves are what is left to do. They are told the addresses of the memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dala.base.lru_cache import LruCache
from dala.devices.device import Again
from dala.runtime.buffers.buffer import Buffer
from dala.runtime.kernels import call_gate
from dala.runtime.kernels.arguments import params_key
from dala.runtime.profiling.profile import ACTIVE

Call = tuple[tuple[Any, ...], list[int]]
"""What tells a call from others of its kernel, and the addresses of its output and inputs."""
MOST_CALLS = 32
"""Calls that a kernel remembers: the latest ones."""
_LINE = 64
"""Code may depend on where in a cache line memory begins."""


def call_of(inputs: Any, output: Any, params: object) -> Call | None:
    """Returns a call on host memory; None where it cannot be told what it is."""
    given = params_key(params)
    if given is None or type(inputs) not in (list, tuple) or not isinstance(output, Buffer):
        return None
    try:
        made: Any = output._memory
        first = made.address
        key = [made.device, given, output.shape, output.scalar.name, first % _LINE]
        places = [first]
        for item in inputs:
            place = item._memory.address
            key += (item.shape, item.scalar.name, place % _LINE, place == first)
            places.append(place)
    except AttributeError:  # no buffer, or none whose memory has an address: others check that
        return None
    return tuple(key), places


class BoundCall:
    """A call that was made before: its launches, and where they hold which address."""

    def __init__(self, again: Again, places: list[int], sizes: list[int]) -> None:
        self.again = again
        self._bound = self._places = places
        self._sizes = sizes
        self._is_apart = len(set(places)) == len(places)
        self._busy = threading.Lock()
        self.pointers: list[tuple[Any, int, int, int]] = []
        """An array, a place in it, the number of a memory, and how far behind its start it is."""
        for words, word in again.pointers():
            for number, (place, size) in enumerate(zip(places, sizes, strict=True)):
                if place <= words[word] < place + size:
                    self.pointers.append((words, word, number, words[word] - place))
                    break

    def __call__(self, places: list[int]) -> bool:
        """Makes the call on memory at these addresses; returns whether it could be made."""
        if not self._busy.acquire(False):  # another thread makes it
            return False
        try:
            if places != self._places:
                if not self._may_move(places):
                    return False
                for words, word, number, offset in self.pointers:
                    words[word] = places[number] + offset
                self._places = places
            self.again()
        finally:
            self._busy.release()
        return True

    def _may_move(self, places: list[int]) -> bool:
        """Whether memory meets at these addresses only where it did before."""
        if not self._is_apart and list(map(places.index, places)) != list(
            map(self._bound.index, self._bound)
        ):
            return False
        return not _overlaps(0, places, self._sizes)


def _overlaps(number: int, places: list[int], sizes: list[int]) -> bool:
    """Whether a memory shares a part of another, but not all of it."""
    first, size = places[number], sizes[number]
    return any(
        place != first and place < first + size and first < place + length
        for place, length in zip(places, sizes, strict=True)
    )


class RepeatedCalls:
    """The calls of a kernel that were made before."""

    def __init__(self) -> None:
        self._known: LruCache[tuple[Any, ...], BoundCall | bool] = LruCache(MOST_CALLS)
        self._latest: tuple[tuple[Any, ...], BoundCall] | None = None

    def repeat(self, call: Call | None) -> bool:
        """Makes a call again, if it is known what it comes to; a profile wants to see it all."""
        if call is None or ACTIVE:
            return False
        key, places = call
        latest = self._latest
        if latest is not None and latest[0] == key:
            return latest[1](places)
        known = self._known.get(key)
        if not isinstance(known, BoundCall):
            return False
        self._latest = (key, known)
        return known(places)

    def knows(self, call: Call | None) -> bool:
        """Whether a call was made before on such memory, so that all about it was checked."""
        return call is not None and isinstance(self._known.get(call[0]), BoundCall)

    def made(
        self,
        kernel: object,
        call: Call,
        buffers: Sequence[Buffer],
        params: Mapping[str, Any] | None,
        bound: Callable[[], Again | None],
    ) -> None:
        """Notes a call of a kernel, on an output and inputs.

        Of one that is made a second time, `bound` says what it comes to.
        """
        key, places = call
        sizes = [item.memory.size_bytes for item in buffers]
        if any(_overlaps(number, places, sizes) for number in range(len(places))):
            return  # it could not be told which of them an address is in
        seen = self._known.get(key)
        if seen is None:
            self._known.put(key, True)
        elif seen is True:
            again = bound()
            self._known.put(key, False if again is None else BoundCall(again, places, sizes))
            if again is not None and again.brief() and (own := bound()) is not None:
                call_gate.learn(kernel, buffers, params, BoundCall(own, places, sizes))
