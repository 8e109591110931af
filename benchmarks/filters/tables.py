"""Tables of levels, and all who look levels up in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contest import Call, Peer
from benchmarks.filters.formats import Format
from benchmarks.filters.peers_opencv import opencv
from benchmarks.filters.peers_others import numba, numpy, vips
from benchmarks.filters.peers_pillow import pillow

Formula = Callable[[np.ndarray], np.ndarray]
"""What colors (…, channels) in 0..1 become."""


def table_of(formula: Formula, format: Format) -> np.ndarray:
    """What each level of each channel becomes, (levels, channels); alpha stays."""
    levels = np.arange(format.top + 1)
    colors = np.repeat(levels[:, None] / format.top, format.colors, -1)
    made = np.rint(formula(colors).clip(0, 1) * format.top)
    if format.has_alpha:
        made = np.column_stack([made, levels])
    return made.astype(np.uint8 if format.dtype == "u8" else np.uint16)


def table_peers(formula: Formula, format: Format, *, alike: bool = True) -> list[Peer]:
    """OpenCV, NumPy, Numba, StringZilla, Pillow and pyvips, where they can.

    NumPy and StringZilla have one table for all that there is: not where channels differ, or alpha
    stays.
    """
    each, first = partial(table_of, formula, format), partial(first_of, formula, format)
    row = partial(np.expand_dims, axis=0)
    one = alike and not format.has_alpha
    table = first if one else each
    peers = [
        opencv("LUT", lambda: row(table()), name="OpenCV LUT"),
        vips(_map, lambda: row(each())),
    ]
    if format.dtype == "u8":
        peers.append(pillow(_point, lambda: each().T.ravel().tolist()))
    if one:
        peers.append(numpy(lambda np, x, out, by: np.take(by, x, out=out, mode="clip"), first))
        peers.append(numba("loops_points.look_up", first))
        if format.dtype == "u8":
            peers.append(Peer("StringZilla", partial(_translate, first)))
    else:
        peers.append(numba("loops_points.look_up_each", partial(_turned, each)))
    return peers


def first_of(formula: Formula, format: Format) -> np.ndarray:
    """The table of the first channel, where all have the same."""
    return table_of(formula, format)[:, 0].copy()


def _turned(table: Callable[[], np.ndarray]) -> np.ndarray:
    """A table by channel, each in one piece."""
    return np.ascontiguousarray(table().T)


def _map(_: Any, shown: Any, table: Any) -> Any:
    return shown.maplut(table)


def _point(_: Any, shown: Any, table: list[int]) -> Any:
    """Pillow takes the tables of all channels, one after another."""
    return shown.point(table)


def _translate(
    table: Callable[[], np.ndarray], images: Sequence[np.ndarray], out: np.ndarray
) -> Call:
    import stringzilla

    source, target = memoryview(images[0].reshape(-1)), memoryview(out.reshape(-1))
    text = table().tobytes()

    def run() -> None:
        stringzilla.translate(source, text, out=target)

    return run
