"""The cells of a composition: where each of its inputs lies in the frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dala.base.record import record
from dala.errors import ArgumentError
from dala.kernels.base.shapes import number_within
from dala.kernels.image.resizing import fitted
from dala.media.video.filtering.placement import Place, Size

LAYOUTS = ("side_by_side", "stacked", "grid", "picture_in_picture")


@record
class Cell:
    """A rectangle of a frame."""

    x: int
    y: int
    width: int
    height: int

    def fitting(self, size: Size) -> Cell:
        """Returns the centered rectangle that an input of that size is scaled to."""
        height, width = fitted((size[1], size[0]), (self.height, self.width))
        across, down = (self.width - width) // 2, (self.height - height) // 2
        return Cell(self.x + across, self.y + down, width, height)


def columns_of(layout: str, count: int) -> int:
    """Returns the number of columns."""
    if layout == "side_by_side":
        return count
    return math.ceil(math.sqrt(count)) if layout == "grid" else 1


def natural_size(layout: str, first: Size, count: int, gap: int) -> Size:
    """Returns the frame size at which the first input keeps its own, rounded up to even numbers."""
    across = columns_of(layout, count)
    down = 1 if layout == "picture_in_picture" else -(-count // across)
    width, height = (
        n * extent + (n - 1) * gap for n, extent in zip((across, down), first, strict=True)
    )
    return width + width % 2, height + height % 2


def table_of(size: Size, count: int, across: int, gap: int) -> list[Cell]:
    """Returns equal cells, row by row, that fill a frame except for the gaps."""
    down = -(-count // across)
    cells = []
    for number in range(count):
        row, column = divmod(number, across)
        left, right = _edges(size[0], column, across, gap)
        top, bottom = _edges(size[1], row, down, gap)
        cells.append(Cell(left, top, right - left, bottom - top))
    if any(min(cell.width, cell.height) < 1 for cell in cells):
        raise ArgumentError(
            f"compose: {size[0]} × {size[1]} has no room for {across} × {down} pictures with gaps "
            f"of {gap}: give a larger size, or a smaller gap."
        )
    return cells


def _edges(extent: int, number: int, count: int, gap: int) -> tuple[int, int]:
    """Returns the start and end of a cell along an axis."""
    return number * (extent + gap) // count, (number + 1) * (extent + gap) // count - gap


def insets_of(size: Size, given: Sequence[Size], place: Place, scale: Any, gap: int) -> list[Cell]:
    """Returns the cells of picture-in-picture insets, stacked from a place in the frame."""
    scale = number_within("compose", "scale", scale, 0.01, 1)
    whole = Cell(0, 0, *(max(1, round(scale * extent)) for extent in size))
    parts = [whole.fitting(item) for item in given]
    upwards = isinstance(place.position, str) and "bottom" in place.position
    gap = gap or place.margin_in(size)
    cells, moved = [], 0
    for part in parts:
        x, y = place.corner(size, (part.width, part.height))
        y += -moved if upwards else moved
        cells.append(Cell(x, y, part.width, part.height))
        moved += part.height + gap
    return cells
