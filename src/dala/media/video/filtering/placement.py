"""Where an overlay lies in a frame."""

from __future__ import annotations

from typing import Any

from dala.base.record import record
from dala.errors import ArgumentError
from dala.kernels.base.shapes import integer_of

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
"""The named positions."""
FARTHEST = 1 << 20

Size = tuple[int, int]
"""Width and height."""


@record
class Place:
    """A position in a frame: a named one, or the upper left corner as (x, y)."""

    position: str | tuple[int, int]
    margin: int | None
    """The distance to the frame's edges; a thirtieth of its height unless given."""

    @staticmethod
    def of(what: str, position: Any, margin: Any) -> Place:
        """Returns the place; raises ArgumentError for unknown positions."""
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
        """Returns the upper left corner of something of size `inner` in a frame."""
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
