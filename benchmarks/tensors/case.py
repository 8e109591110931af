"""A row of compute: a kernel on arrays, and all who do the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer, fastest, installed
from benchmarks.harness import Comparison
from dala.gpu import compute

BAR = 1.1
SAMPLE_S = 0.01


@dataclass(frozen=True)
class Case:
    """A kernel, and others that do the same."""

    work: str
    kernel: str | compute.Kernel
    arrays: Callable[[], Sequence[np.ndarray]]
    shape: tuple[int, ...]
    """That of the output."""
    peers: Sequence[Peer]
    params: dict[str, Any] = field(default_factory=dict)
    dtype: str = "f32"
    within: float = 1e-5
    """How far results may be apart, of the largest there is; 0 where they are the same."""


def contest(row: str, case: Case) -> tuple[Call, dict[str, Call], Callable[[], None]]:
    """Our call, those of the peers that are installed, and what compares all."""
    arrays = [np.ascontiguousarray(item) for item in case.arrays()]
    buffers = [compute.from_numpy(item) for item in arrays]
    out = compute.buffer_zeros(case.shape, case.dtype)
    made = np.zeros(case.shape, np.asarray(out).dtype)
    calls = installed(case.peers, arrays, made)

    def ours() -> None:
        compute.run_kernel(case.kernel, buffers, out, case.params)

    def check() -> None:
        ours()
        mine = np.asarray(out)
        for name, call in calls.items():
            made.fill(0)
            result = call()
            theirs = made if result is None else np.asarray(result)
            theirs = _real(theirs).reshape(case.shape)
            limit = case.within * max(float(np.abs(mine).max()), 1e-30)
            apart = float(np.abs(mine.astype(np.float64) - theirs).max())
            assert apart <= limit, f"{row}: {apart:g} off {name}, more than {limit:g}"

    return ours, calls, check


def _real(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def comparison(row: str, case: Case) -> Comparison:
    """A row against the fastest of its peers; all of them are compared with dala first."""
    ours, calls, check = contest(row, case)
    check()
    name, rounds = fastest(calls)
    return Comparison(
        f"{row}, {case.work}",
        BAR,
        ours,
        calls[name],
        check=lambda: None,
        sample_s=SAMPLE_S,
        most_rounds=rounds,
        peer_name=name,
        others=tuple(calls),
    )
