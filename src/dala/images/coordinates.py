"""Checked coordinates, points and rectangles for drawing."""

from __future__ import annotations

from typing import Any

from dala.errors import ArgumentError
from dala.kernels.base.shapes import number_within

FARTHEST = 1 << 18
"""The largest coordinate: f32 still resolves a 64th of a pixel there."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""
EVERYWHERE: Box = (-FARTHEST, -FARTHEST, FARTHEST, FARTHEST)


def coordinate(what: str, name: str, value: Any) -> float:
    """Returns a coordinate; raises ArgumentError if it is too far from the image."""
    number = number_within(what, name, value)
    if abs(number) <= FARTHEST:
        return number
    raise ArgumentError(
        f"{what}: {name} is {number:g}, but what is drawn lies within {FARTHEST:,} pixels of the "
        f"image's corner."
    )


def length_of(what: str, name: str, value: Any) -> float:
    """Returns a length; raises ArgumentError unless it is 0 or more."""
    return number_within(what, name, value, 0, FARTHEST)


def point_of(what: str, point: Any) -> tuple[float, float]:
    """Returns a point; raises ArgumentError unless it is (x, y)."""
    try:
        x, y = point
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}: a point is (x, y), not {point!r}.") from None
    return coordinate(what, "x", x), coordinate(what, "y", y)


def box_of(what: str, x: Any, y: Any, width: Any, height: Any) -> Box:
    """Returns the rectangle with that corner and size."""
    left, top = coordinate(what, "x", x), coordinate(what, "y", y)
    return (
        left,
        top,
        left + length_of(what, "width", width),
        top + length_of(what, "height", height),
    )


def box_around(what: str, x: Any, y: Any, radius: Any) -> tuple[Box, float]:
    """Returns the bounding rectangle of a circle, and its radius."""
    across, down = coordinate(what, "x", x), coordinate(what, "y", y)
    reach = length_of(what, "radius", radius)
    return (across - reach, down - reach, across + reach, down + reach), reach


def box_of_layer(what: str, x: Any, y: Any, width: Any, height: Any) -> Box | None:
    """Returns the rectangle that a layer covers, or None for the whole image."""
    if width is None and height is None and not x and not y:
        return None
    if width is None or height is None:
        raise ArgumentError(f"{what}: a rectangle is x, y, width and height: give all, or none.")
    return box_of(what, x, y, width, height)
