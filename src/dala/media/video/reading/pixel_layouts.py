"""Where things go in a frame: places that have names, and the cells of a composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dala.base.record import record
from dala.errors import ArgumentError
from dala.kernels.base.shapes import integer_of, number_within
from dala.kernels.image.resizing import fitted

POSITIONS = (
    "top-left",
    "top",
    "top-right",
    "left",
    "center",
    "right",
    "bottom-left",
    "bottom",
    "bottom-right",
)
"""Places that have names."""
LAYOUTS = ("side_by_side", "stacked", "grid", "picture_in_picture")
FARTHEST = 1 << 20

Size = tuple[int, int]
"""Width and height."""


@record
class Place:
    """Where something lies in a frame: named, or its upper left corner as (x, y)."""

    position: str | tuple[int, int]
    margin: int | None
    """What is kept from the sides that are named; by the frame's height, unless given."""

    @staticmethod
    def of(what: str, position: Any, margin: Any) -> Place:
        """The place, checked."""
        if margin is not None:
            margin = integer_of(what, "margin", margin)
            if not 0 <= margin <= FARTHEST:
                raise ArgumentError(f"{what}: margin is 0 to {FARTHEST} pixels, not {margin}.")
        if isinstance(position, str) and position.replace("_", "-") in POSITIONS:
            return Place(position.replace("_", "-"), margin)
        if isinstance(position, tuple | list) and len(position) == 2:
            x, y = (integer_of(what, "position", item) for item in position)
            return Place((x, y), margin)
        raise ArgumentError(
            f"{what}: position {position!r} is not known: give (x, y) in pixels, or "
            f"{', '.join(POSITIONS)}."
        )

    def corner(self, frame: Size, inner: Size) -> tuple[int, int]:
        """The upper left corner of something inside of a frame."""
        if not isinstance(self.position, str):
            return self.position
        margin = self.margin_in(frame)
        across, down = ((whole - part) // 2 for whole, part in zip(frame, inner, strict=True))
        if "left" in self.position:
            across = margin
        elif "right" in self.position:
            across = frame[0] - inner[0] - margin
        if "top" in self.position:
            down = margin
        elif "bottom" in self.position:
            down = frame[1] - inner[1] - margin
        return across, down

    def margin_in(self, frame: Size) -> int:
        return round(frame[1] / 30) if self.margin is None else self.margin


@record
class Cell:
    """A rectangle of a frame."""

    x: int
    y: int
    width: int
    height: int

    def fitting(self, size: Size) -> Cell:
        """The rectangle in its middle that something of that size is scaled to."""
        height, width = fitted((size[1], size[0]), (self.height, self.width))
        across, down = (self.width - width) // 2, (self.height - height) // 2
        return Cell(self.x + across, self.y + down, width, height)


def columns_of(layout: str, count: int) -> int:
    """How many cells are beside each other."""
    if layout == "side_by_side":
        return count
    return math.ceil(math.sqrt(count)) if layout == "grid" else 1


def natural_size(layout: str, first: Size, count: int, gap: int) -> Size:
    """The size in which the first one keeps its own, rounded up to even numbers."""
    across = columns_of(layout, count)
    down = 1 if layout == "picture_in_picture" else -(-count // across)
    width, height = (
        n * extent + (n - 1) * gap for n, extent in zip((across, down), first, strict=True)
    )
    return width + width % 2, height + height % 2


def table_of(size: Size, count: int, across: int, gap: int) -> list[Cell]:
    """Cells of a table, row by row, that fill a frame but for the gaps between them."""
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
    """Where a cell begins and ends along an axis."""
    return number * (extent + gap) // count, (number + 1) * (extent + gap) // count - gap


def insets_of(size: Size, given: Sequence[Size], place: Place, scale: Any, gap: int) -> list[Cell]:
    """Cells for pictures in a picture: `scale` times its size, one after another from a place."""
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
