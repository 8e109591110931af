"""Which of some things is which of others: how boxes overlap, and what costs least together."""

from __future__ import annotations

import numpy as np


def overlaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The shared part of the union of each two boxes (n, 4) and (m, 4), x0, y0, x1, y1: (n, m)."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(2)
    areas = [np.clip(item[:, 2:] - item[:, :2], 0, None).prod(1) for item in (one, other)]
    union = areas[0][:, None] + areas[1] - shared
    return np.asarray(shared / np.where(union > 0, union, 1))


def assigned(costs: np.ndarray, most: float) -> list[tuple[int, int]]:
    """The pairs (row, column) that cost least together, of which none costs more than `most`.

    Rows and columns that cost more than that with all others are left out.
    """
    if 0 in costs.shape:
        return []
    # What may not be together costs more than all that may.
    too_much = (most + 1) * (min(costs.shape) + 1)
    limited = np.where(costs <= most, costs, too_much)
    if costs.shape[0] <= costs.shape[1]:
        pairs = list(enumerate(_columns(limited)))
    else:
        pairs = [(row, column) for column, row in enumerate(_columns(limited.T))]
    return sorted((row, column) for row, column in pairs if costs[row, column] <= most)


def _columns(costs: np.ndarray) -> list[int]:
    """The column of each row, of which there are no more than columns: the Hungarian method.

    Rows are put in one after another; each time the cheapest way to a free column is followed, by
    potentials that keep all reduced costs from being negative.
    """
    rows, columns = costs.shape
    row_prices, column_prices = np.zeros(rows + 1), np.zeros(columns + 1)
    owner = np.zeros(columns + 1, np.int64)  # of each column, counted from 1; 0 where it is free
    for row in range(1, rows + 1):
        owner[0] = row
        column = 0
        cheapest = np.full(columns + 1, np.inf)
        came_from = np.zeros(columns + 1, np.int64)
        seen = np.zeros(columns + 1, bool)
        while owner[column]:
            seen[column] = True
            here = owner[column]
            reduced = costs[here - 1] - row_prices[here] - column_prices[1:]
            is_better = ~seen[1:] & (reduced < cheapest[1:])
            cheapest[1:][is_better] = reduced[is_better]
            came_from[1:][is_better] = column
            following = 1 + int(np.argmin(np.where(seen[1:], np.inf, cheapest[1:])))
            step = cheapest[following]
            row_prices[owner[seen]] += step
            column_prices[seen] -= step
            cheapest[~seen] -= step
            column = following
        while column:
            owner[column] = owner[came_from[column]]
            column = int(came_from[column])
    found = [0] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            found[owner[column] - 1] = column - 1
    return found
