"""Bins shapes into the tiles of an image where they are visible, in drawing order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dala.base.record import record

MOST_ENTRIES = 1 << 21
"""The most entries of a listing, to bound its memory."""
_CORNER = 0.3
"""A square within a rounded corner ends by more than this part of the radius before its edge does:
1 - 1 / √2."""


@record
class Listing:
    """Tiles with their upper left corners, and each one's range of shapes in `order`.

    An entry of `order` is twice a shape's number, plus 1 for the last shape of a group that is
    painted as one.
    """

    numbers: np.ndarray
    corners: np.ndarray
    parts: np.ndarray
    order: np.ndarray


class Grid:
    """An image's tiles; the last of a row or column overlap others, so that all have full size."""

    def __init__(self, size: tuple[int, int], tile: tuple[int, int]) -> None:
        self.size = size
        self.tile = min(size[0], tile[0]), min(size[1], tile[1])
        self.rows, self.columns = (-(-size[axis] // self.tile[axis]) for axis in (0, 1))

    def corners(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the column and row where each tile begins."""
        (height, width), (rows, columns) = self.size, self.tile
        x = np.minimum(numbers % self.columns * columns, width - columns)
        y = np.minimum(numbers // self.columns * rows, height - rows)
        return np.stack([x, y], 1)

    def within(self, left: float, top: float, right: float, bottom: float) -> np.ndarray:
        """Returns the numbers of the tiles that a rectangle touches."""
        box = self._ranges(np.array([[left, top, right, bottom]]))[0]
        rows, columns = np.arange(box[1], box[3]), np.arange(box[0], box[2])
        return (rows[:, None] * self.columns + columns).reshape(-1)

    def listings(self, table: np.ndarray, groups: np.ndarray) -> Iterator[Listing]:
        """Yields listings of the tiles of all shapes, in order, each of bounded size."""
        boxes = self._ranges(_bounds(table))
        counts = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        first = 0
        while first < len(table):
            last = first + int(np.searchsorted(np.cumsum(counts[first:]), MOST_ENTRIES)) + 1
            end = int(np.searchsorted(groups, groups[min(last, len(groups)) - 1], "right"))
            listing = self._listing(table, groups, boxes, np.arange(first, end), counts[first:end])
            if len(listing.numbers):
                yield listing
            first = end

    def _ranges(self, bounds: np.ndarray) -> np.ndarray:
        """Returns the half-open ranges of tile columns and rows that rectangles touch."""
        made = np.zeros(bounds.shape, np.int64)
        for axis, (extent, step) in enumerate(zip(self.size[::-1], self.tile[::-1], strict=True)):
            count = -(-extent // step)
            start = np.clip(np.floor(bounds[:, axis]), 0, extent)
            end = np.clip(np.ceil(bounds[:, axis + 2]), 0, extent)
            last = np.where(end > extent - step, count, -(-end // step))
            made[:, axis] = start // step
            made[:, axis + 2] = np.where(end > start, last, made[:, axis])
        return made

    def _listing(
        self,
        table: np.ndarray,
        groups: np.ndarray,
        boxes: np.ndarray,
        chosen: np.ndarray,
        counts: np.ndarray,
    ) -> Listing:
        shapes = np.repeat(chosen, counts)
        places = np.arange(len(shapes)) - np.repeat(np.cumsum(counts) - counts, counts)
        widths = (boxes[:, 2] - boxes[:, 0])[shapes]
        rows = boxes[shapes, 1] + places // np.maximum(widths, 1)
        numbers = rows * self.columns + boxes[shapes, 0] + places % np.maximum(widths, 1)
        seen = self._seen(table[shapes], self.corners(numbers))
        shapes, numbers = shapes[seen], numbers[seen]
        # NumPy sorts 16-bit integers by radix, several times as fast.
        fits = self.rows * self.columns <= 1 << 16
        by_tile = np.argsort(numbers.astype(np.uint16 if fits else np.int64), kind="stable")
        shapes, numbers = shapes[by_tile], numbers[by_tile]
        found, starts = np.unique(numbers, return_index=True)
        ends = np.append(starts[1:], len(numbers))[: len(starts)]
        group = groups[shapes]
        closes = np.ones(len(shapes), np.int64)
        closes[:-1] = (numbers[1:] != numbers[:-1]) | (group[1:] != group[:-1])
        parts = np.stack([starts, ends], 1)
        return Listing(found, self.corners(found), parts, (shapes * 2 + closes).astype(np.int32))

    def _seen(self, shapes: np.ndarray, corners: np.ndarray) -> np.ndarray:
        """Returns whether each shape really reaches into its tile, which its bounds touch."""
        rows, columns = self.tile
        over = corners[:, 0] + columns / 2 - shapes[:, 0]
        down = corners[:, 1] + rows / 2 - shapes[:, 1]
        across, upright = np.abs(shapes[:, 2]), np.abs(shapes[:, 3])
        along = np.abs(over * shapes[:, 2] + down * shapes[:, 3])
        beside = np.abs(down * shapes[:, 2] - over * shapes[:, 3])
        long = (across * columns + upright * rows) / 2 + 0.5
        wide = (across * rows + upright * columns) / 2 + 0.5
        near = (along <= shapes[:, 4] + long) & (beside <= shapes[:, 5] + wide)
        free = _CORNER * shapes[:, 9]
        hidden = along + long < shapes[:, 7] - free
        hidden &= beside + wide < shapes[:, 8] - free
        kept: np.ndarray = near & ~hidden
        return kept


def _bounds(table: np.ndarray) -> np.ndarray:
    """Returns the bounds (left, top, right, bottom) of each shape; empty if it is invisible."""
    half = table[:, 4:6]
    across, upright = np.abs(table[:, 2:3]), np.abs(table[:, 3:4])
    reach = across * half + upright * half[:, ::-1]
    lows = np.maximum(table[:, :2] - reach - 0.5, table[:, 14:16])
    highs = np.minimum(table[:, :2] + reach + 0.5, table[:, 16:18])
    # Edges on pixel borders do not touch the next pixels.
    lows[:] = np.where(across * upright == 0, np.maximum(lows, table[:, :2] - reach), lows)
    highs[:] = np.where(across * upright == 0, np.minimum(highs, table[:, :2] + reach), highs)
    nothing = (half <= 0).any(1) | (table[:, 13] == 0)
    highs[nothing] = lows[nothing]
    return np.concatenate([lows, highs], 1)
