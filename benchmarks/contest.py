"""Peers of a row: who is installed, whether all agree with dala, and who is the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.harness import repeats_for, seconds_per_call
from benchmarks.peers import OURS, Absent, absent_module

Call = Callable[[], Any]
"""Does the work once: into what it was given, or gives the result."""
HOPELESS = 3.0
"""A peer that takes so many times as long as another is not the fastest, whatever the noise."""
TRIES = 2
LEAST_ROUNDS, MOST_S = 3, 2.0
"""A row is measured for about so long, but for so many rounds at least."""


@dataclass(frozen=True)
class Peer:
    """Someone else's way to do the work, and how far from dala's its result may be."""

    name: str
    make: Callable[..., Call]
    """Takes the inputs and the destination, and gives a call; what it needs is made by then."""
    within: Mapping[str, float] = field(default_factory=dict)
    """The largest difference by dtype, where it is not the row's own."""
    on_average: float | None = None
    """The mean difference; half of the largest unless given."""
    share: float = 0.0
    """The share of the elements that may be farther apart."""
    note: str = ""
    """Why the difference is what it is."""

    def off(
        self,
        note: str,
        *,
        on_average: float | None = None,
        share: float = 0.0,
        **within: float,
    ) -> Peer:
        """The same peer, allowed to be farther off, for a reason."""
        return replace(self, within=within, on_average=on_average, share=share, note=note)


def made(given: Iterable[Any]) -> list[Any]:
    """What is given to a peer; a table or a matrix is given as the function that makes it."""
    return [item() if callable(item) else item for item in given]


def installed(peers: Iterable[Peer], *given: Any) -> dict[str, Call]:
    """The calls of the peers that are installed; an Absent where none of them is."""
    calls: dict[str, Call] = {}
    missing: list[str] = []
    for peer in peers:
        try:
            calls[peer.name] = peer.make(*given)
        except ModuleNotFoundError as error:
            module = (error.name or "").partition(".")[0]
            if module in OURS:
                raise
            missing.append(module)
    if not calls:
        raise absent_module(missing[0]) if missing else Absent("no peer does the same")
    return calls


def fastest(calls: Mapping[str, Call]) -> tuple[str, int]:
    """Who takes the least time, and for how many rounds; each has been called before."""
    seconds = {name: seconds_per_call(call, 1) for name, call in calls.items()}
    for _ in range(TRIES):
        limit = HOPELESS * min(seconds.values())
        for name in [name for name in calls if seconds[name] <= limit]:
            work = calls[name]
            seconds[name] = min(seconds[name], seconds_per_call(work, repeats_for(work)))
    name = min(seconds, key=lambda name: seconds[name])
    return name, max(LEAST_ROUNDS, int(MOST_S / seconds[name]))


def compare(
    row: str,
    peer: str,
    ours: np.ndarray,
    theirs: np.ndarray,
    *,
    within: float,
    on_average: float | None = None,
    share: float = 0.0,
) -> None:
    """An AssertionError where results are farther apart than they may be; both in one unit."""
    assert ours.shape == theirs.shape, f"{row}: {peer} gives {theirs.shape}, dala {ours.shape}"
    apart = np.abs(ours.astype(np.float32) - theirs.astype(np.float32))
    assert not np.isnan(apart).any(), f"{row}: {peer} or dala gives NaN"
    mean_limit = within / 2 if on_average is None else on_average
    most, mean = float(apart.max(initial=0)), float(apart.mean()) if apart.size else 0.0
    far = float((apart > within).mean()) if most > within else 0.0
    assert far <= share, f"{row}: {most:g} off {peer}, more than {within:g} in {far:.3%}"
    assert mean <= mean_limit, f"{row}: {mean:g} off {peer} on average, more than {mean_limit:g}"
