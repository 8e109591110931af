"""Where there is text: the regions of a map of probabilities, as boxes that need not be upright."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dala.ml.catalog.reading import Reading
from dala.ml.results.placement import Placement
from dala.ml.results.results import Detection, Results
from dala.ml.tasks.options import chosen
from dala.ml.tasks.outputs import Outputs, require_output

LEAST_SIDE = 3.0
"""Regions that are narrower, in pixels of the map, are no text."""


def decode(
    outputs: Outputs, placement: Placement, entry: Reading, options: Mapping[str, Any]
) -> Results[Detection]:
    """The lines of text that there are, from top to bottom, each with its corners.

    The model marks the middle of lines, shrunk: boxes around these are made larger again, by
    `unclip` times their area for each of their circumference.
    """
    given = chosen(entry, options, "threshold", "max_results")
    shape = (1, 1, *placement.tensor)
    marked = np.asarray(require_output(outputs, entry, "map", shape)).reshape(placement.tensor)
    seen = _thickened(marked >= entry.settings["mark"])
    found = Results[Detection]()
    for runs in regions_of(seen):
        score = _mean(marked, runs)
        corners = smallest_box(runs)
        sides = np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1)
        if score < given["threshold"] or sides.min() < LEAST_SIDE:
            continue
        corners = _grown(corners, entry.settings["unclip"])
        upright = placement.box([*corners.min(0), *corners.max(0)])
        if upright[0] < upright[2] and upright[1] < upright[3]:
            places = tuple((x, y) for x, y in placement.points(corners).tolist())
            found.append(Detection(upright, entry.names[0], score, 0, {}, None, places))
    surest = sorted(found, key=lambda item: -item.score)[: given["max_results"]]
    return Results(sorted(surest, key=lambda item: (item.box[1], item.box[0])))


def regions_of(seen: np.ndarray) -> list[np.ndarray]:
    """The runs (count, 3) of each connected region: its row, its first column, the one after it."""
    padded = np.zeros((seen.shape[0], seen.shape[1] + 2), np.int8)
    padded[:, 1:-1] = seen
    steps = np.diff(padded, axis=1)
    rows, starts = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    owner = list(range(len(rows)))

    def root(run: int) -> int:
        while owner[run] != run:
            owner[run] = owner[owner[run]]
            run = owner[run]
        return run

    first_of_row = np.searchsorted(rows, np.arange(seen.shape[0] + 1)).tolist()
    starts_at, ends_at = starts.tolist(), ends.tolist()
    for row in range(1, seen.shape[0]):
        above, above_end = first_of_row[row - 1], first_of_row[row]
        for run in range(first_of_row[row], first_of_row[row + 1]):
            # Neighbors across a corner are neighbors: ends are those after the last.
            while above < above_end and ends_at[above] < starts_at[run]:
                above += 1
            other = above
            while other < above_end and starts_at[other] <= ends_at[run]:
                owner[root(other)] = root(run)
                other += 1
    roots = np.array([root(run) for run in range(len(rows))], np.int64)
    runs = np.stack([rows, starts, ends], 1)
    order = np.argsort(roots, kind="stable")
    cuts = np.flatnonzero(np.diff(roots[order])) + 1
    return [part for part in np.split(runs[order], cuts) if len(part)]


def smallest_box(runs: np.ndarray) -> np.ndarray:
    """The corners (4, 2), x and y, of the smallest box around runs, one after another."""
    rows, starts, ends = runs.astype(np.float64).T
    points = np.concatenate(
        [np.stack([side, rows + down], 1) for side in (starts, ends) for down in (0, 1)]
    )
    hull = _hull(points)
    edges = np.roll(hull, -1, 0) - hull
    best, smallest = hull, np.inf
    for angle in np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (np.pi / 2)):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turned = hull @ turn
        low, high = turned.min(0), turned.max(0)
        area = float((high - low).prod())
        if area < smallest - 1e-9:
            smallest = area
            best = np.array([low, [high[0], low[1]], high, [low[0], high[1]]]) @ turn.T
    return best


def _hull(points: np.ndarray) -> np.ndarray:
    """The corners of the convex hull of points, by Andrew's chains."""
    listed = np.unique(points, axis=0).tolist()

    def chain(items: list[list[float]]) -> list[list[float]]:
        made: list[list[float]] = []
        for x, y in items:
            while len(made) > 1:
                (ax, ay), (bx, by) = made[-2:]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0:
                    break
                made.pop()
            made.append([x, y])
        return made[:-1]

    return np.array(chain(listed) + chain(listed[::-1]))


def _grown(corners: np.ndarray, unclip: float) -> np.ndarray:
    along, across = corners[1] - corners[0], corners[3] - corners[0]
    width, height = np.linalg.norm(along), np.linalg.norm(across)
    distance = width * height * unclip / (2 * (width + height))
    along, across = along / width * distance, across / height * distance
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    return np.asarray(corners + signs @ np.stack([along, across]))


def _thickened(seen: np.ndarray) -> np.ndarray:
    """Each pixel and those to the right, below and both."""
    made = seen.copy()
    made[:, 1:] |= seen[:, :-1]
    made[1:] |= made[:-1].copy()
    return made


def _mean(marked: np.ndarray, runs: np.ndarray) -> float:
    total = sum(float(marked[row, start:end].sum()) for row, start, end in runs.tolist())
    return total / int((runs[:, 2] - runs[:, 1]).sum())
