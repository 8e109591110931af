"""A row of filters: a filter with its parameters on one picture, and all who do the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer, compare, fastest, installed
from benchmarks.filters.formats import TOLERANCES, Format, levels_of
from benchmarks.harness import Comparison
from dala.gpu import compute

BAR = 1.1


@dataclass(frozen=True)
class Case:
    """A filter, and others that do the same."""

    kernel: str
    params: dict[str, Any]
    format: Format
    inputs: Callable[[], Sequence[np.ndarray]]
    shape: tuple[int, ...]
    """That of the output."""
    peers: Sequence[Peer]
    dtype: str = ""
    """That of the output, where it is not the format's."""

    @property
    def stored(self) -> str:
        return self.dtype or self.format.dtype

    def within(self, peer: Peer) -> float:
        """How far the peer may be off, in levels of 255."""
        return peer.within.get(self.stored, TOLERANCES[self.stored])


@dataclass(frozen=True)
class Contest:
    """All sides of a row, ready to be called."""

    ours: Call
    calls: dict[str, Call]
    tolerances: dict[str, float]
    check: Callable[[], None]


def contest(row: str, case: Case) -> Contest:
    """The sides of a row; `check` calls each once, and compares what it makes with dala's."""
    inputs = [np.ascontiguousarray(item) for item in case.inputs()]
    buffers = [compute.from_numpy(item) for item in inputs]
    out = compute.buffer_zeros(case.shape, case.stored)
    made = np.zeros(case.shape, np.asarray(out).dtype)
    calls = installed(case.peers, inputs, made)
    peers = {peer.name: peer for peer in case.peers if peer.name in calls}

    def ours() -> None:
        compute.run_kernel(case.kernel, buffers, out, case.params)

    def check() -> None:
        ours()
        levels = levels_of(np.asarray(out), case.stored)
        for name, peer in peers.items():
            made.fill(0)
            result = calls[name]()
            theirs = made if result is None else np.asarray(result).reshape(case.shape)
            compare(
                row,
                name,
                levels,
                levels_of(theirs, case.stored),
                within=case.within(peer) + 1e-5,
                on_average=peer.on_average,
                share=peer.share,
            )

    return Contest(ours, calls, {name: case.within(peer) for name, peer in peers.items()}, check)


def comparison(row: str, case: Case) -> Comparison:
    """A row against the fastest of its peers; all of them are compared with dala first."""
    sides = contest(row, case)
    sides.check()
    name, rounds = fastest(sides.calls)
    return Comparison(
        row,
        BAR,
        sides.ours,
        sides.calls[name],
        check=lambda: None,
        most_rounds=rounds,
        peer_name=name,
        within=sides.tolerances[name],
        others=tuple(sides.calls),
    )
