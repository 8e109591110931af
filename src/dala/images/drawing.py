"""Drawings: shapes, text, pictures and masks that are drawn over an image in one go.

Coordinates are pixels from the image's upper left corner; the center of the first pixel is at
(0.5, 0.5), so that a rectangle from x = 2 with a width of 3 fills three whole columns. Edges are
antialiased by coverage. A color is a name such as "white", a code such as
"#ff8000" or "#ff800080", or numbers from 0 to 1: a gray, (r, g, b) or (r, g, b, a).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from dala.base.record import record
from dala.errors import ArgumentError, DtypeError, ShapeError
from dala.images.coordinates import (
    EVERYWHERE,
    Box,
    box_around,
    box_of,
    box_of_layer,
    coordinate,
    length_of,
    point_of,
)
from dala.images.frames import Frame, frame_of
from dala.images.text_rendering import Font, RenderedText, rendered_text
from dala.kernels.base.shapes import number_within
from dala.kernels.image.paint import Paint, paint_of

MOST_LABELS = 256
_NO_LETTERS = (-1.0, 0.0, 0.0)


@record
class Shapes:
    """The kernel's table of shapes, the groups that are painted as one, and their text."""

    rows: list[tuple[float, ...]]
    groups: list[int]
    texts: dict[int, RenderedText]


@record
class Layer:
    """Pixels stretched over a rectangle or the whole image, with colors for masks and labels."""

    kind: Literal["picture", "mask", "labels"]
    frame: Frame
    box: Box | None
    clip: Box
    colors: np.ndarray


class Drawing:
    """What to draw over an image, from bottom to top; cheap to make, and to draw again.

    >>> from dala.images.drawing import Drawing
    >>> drawing = Drawing()
    >>> drawing.draw_rect(10, 10, 80, 40, "#ff8000", line_width=3)
    >>> drawing.fill_circle(50, 30, 4.5, (1.0, 1.0, 1.0, 0.5))
    >>> len(drawing)
    2
    """

    def __init__(self) -> None:
        self.parts: list[Shapes | Layer] = []
        self._clip = EVERYWHERE
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def set_clip(
        self,
        x: float | None = None,
        y: float | None = None,
        width: float | None = None,
        height: float | None = None,
    ) -> None:
        """Clips what follows to a rectangle; without one, ends clipping."""
        if x is None and y is None and width is None and height is None:
            self._clip = EVERYWHERE
        else:
            self._clip = box_of("set_clip", x, y, width, height)

    # -- rectangles and circles ------------------------------------------------------------------

    def fill_rect(self, x: float, y: float, width: float, height: float, color: Any) -> None:
        """Adds a filled rectangle with its upper left corner at (x, y)."""
        self._add_box("fill_rect", box_of("fill_rect", x, y, width, height), 0.0, color)

    def draw_rect(
        self, x: float, y: float, width: float, height: float, color: Any, line_width: float = 1.0
    ) -> None:
        """Adds the outline of a rectangle; the line is centered on its edge."""
        box = box_of("draw_rect", x, y, width, height)
        self._add_box("draw_rect", box, 0.0, color, line_width)

    def fill_round_rect(
        self, x: float, y: float, width: float, height: float, radius: float, color: Any
    ) -> None:
        """Adds a filled rectangle with rounded corners; the radius is at most half its size."""
        box = box_of("fill_round_rect", x, y, width, height)
        self._add_box("fill_round_rect", box, length_of("fill_round_rect", "radius", radius), color)

    def draw_round_rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        radius: float,
        color: Any,
        line_width: float = 1.0,
    ) -> None:
        """Adds the outline of a rectangle with rounded corners."""
        box = box_of("draw_round_rect", x, y, width, height)
        corner = length_of("draw_round_rect", "radius", radius)
        self._add_box("draw_round_rect", box, corner, color, line_width)

    def fill_circle(self, x: float, y: float, radius: float, color: Any) -> None:
        """Adds a filled circle around (x, y)."""
        box, corner = box_around("fill_circle", x, y, radius)
        self._add_box("fill_circle", box, corner, color)

    def draw_circle(
        self, x: float, y: float, radius: float, color: Any, line_width: float = 1.0
    ) -> None:
        """Adds the outline of a circle around (x, y); the line is centered on its edge."""
        box, corner = box_around("draw_circle", x, y, radius)
        self._add_box("draw_circle", box, corner, color, line_width)

    # -- lines -----------------------------------------------------------------------------------

    def draw_line(
        self, x0: float, y0: float, x1: float, y1: float, color: Any, line_width: float = 1.0
    ) -> None:
        """Adds a line from (x0, y0) to (x1, y1), with round caps."""
        self._add_lines("draw_line", [(x0, y0), (x1, y1)], color, line_width)

    def draw_polyline(
        self,
        points: Iterable[tuple[float, float]],
        color: Any,
        line_width: float = 1.0,
        *,
        closed: bool = False,
    ) -> None:
        """Adds lines through points (x, y), painted as one shape; `closed` joins the ends."""
        through = list(points)
        if not through:
            raise ArgumentError("draw_polyline: points is empty: give one (x, y) or more.")
        self._add_lines(
            "draw_polyline", [*through, through[0]] if closed else through, color, line_width
        )

    # -- text ------------------------------------------------------------------------------------

    def draw_text(
        self,
        text: Any,
        x: float,
        y: float,
        size: int = 16,
        color: Any = "#ffffff",
        background: Any = None,
        font: Font = None,
    ) -> None:
        """Adds text in that size, with the upper left corner of its box at (x, y).

        A background fills the box, which then has a margin (see `text_size`). Text is aligned to
        whole pixels.
        """
        made = rendered_text("draw_text", text, size, font)
        left, top = (round(coordinate("draw_text", name, at)) for name, at in (("x", x), ("y", y)))
        paint = paint_of("draw_text", "color", color)
        if background is not None:
            margin = text_margin(size)
            behind = (left, top, left + made.width + 2 * margin, top + made.height + 2 * margin)
            self._add_box("draw_text", behind, 0.0, background)
            left, top = left + margin, top + margin
        height, width = made.coverage.shape
        box = (
            left + made.left,
            top + made.top,
            left + made.left + width,
            top + made.top + height,
        )
        shapes = self._shapes()
        shapes.texts[len(shapes.rows)] = made
        self._add(shapes, _row(box, 0.0, 0.0), paint)

    # -- layers ----------------------------------------------------------------------------------

    def draw_image(
        self,
        image: Any,
        x: float,
        y: float,
        width: float | None = None,
        height: float | None = None,
        alpha: float = 1.0,
    ) -> None:
        """Adds an image with its upper left corner at (x, y), in its own size by default."""
        frame = frame_of("draw_image", image)
        box = box_of(
            "draw_image",
            x,
            y,
            frame.shape[1] if width is None else width,
            frame.shape[0] if height is None else height,
        )
        opacity = number_within("draw_image", "alpha", alpha, 0, 1)
        self._add_layer("picture", frame, box, np.array([[0.0, 0.0, 0.0, opacity]]))

    def fill_mask(
        self,
        mask: Any,
        color: Any,
        x: float = 0.0,
        y: float = 0.0,
        width: float | None = None,
        height: float | None = None,
    ) -> None:
        """Adds a color through a mask: (height, width), f32 from 0 to 1 or u8 up to 255.

        It is stretched over the rectangle, by default over the whole image.
        """
        frame = _plane("fill_mask", "mask", mask)
        box = box_of_layer("fill_mask", x, y, width, height)
        self._add_layer("mask", frame, box, np.array([paint_of("fill_mask", "color", color)]))

    def fill_labels(
        self,
        labels: Any,
        colors: Any,
        x: float = 0.0,
        y: float = 0.0,
        width: float | None = None,
        height: float | None = None,
    ) -> None:
        """Adds the color of each pixel's label: `labels` is u8 (height, width), None hides one.

        Labels beyond the last color are invisible.
        """
        frame = _plane("fill_labels", "labels", labels)
        if frame.dtype != "u8":
            raise DtypeError(
                f"fill_labels: labels is {frame.dtype}, but labels are u8: convert it first."
            )
        given = list(colors)
        if len(given) > MOST_LABELS:
            raise ArgumentError(
                f"fill_labels: there are {len(given)} colors, but labels end at {MOST_LABELS - 1}."
            )
        palette = np.zeros((MOST_LABELS, 4))
        for label, color in enumerate(given):
            if color is not None:
                palette[label] = paint_of("fill_labels", f"colors[{label}]", color)
        box = box_of_layer("fill_labels", x, y, width, height)
        self._add_layer("labels", frame, box, palette)

    # -- drawings --------------------------------------------------------------------------------

    def add(self, other: Drawing) -> None:
        """Adds everything of another drawing on top."""
        for part in other.parts:
            if isinstance(part, Layer):
                self.parts.append(part)
                continue
            shapes = self._shapes()
            shapes.texts.update({len(shapes.rows) + row: text for row, text in part.texts.items()})
            shapes.rows.extend(part.rows)
            shapes.groups.extend(self._count + group for group in part.groups)
        self._count += len(other)

    # -- state -----------------------------------------------------------------------------------

    def _shapes(self) -> Shapes:
        if self.parts and isinstance(self.parts[-1], Shapes):
            return self.parts[-1]
        made = Shapes([], [], {})
        self.parts.append(made)
        return made

    def _add(self, shapes: Shapes, row: tuple[float, ...], paint: Paint) -> None:
        shapes.rows.append((*row, *paint, *self._clip, *_NO_LETTERS))
        shapes.groups.append(self._count)
        self._count += 1

    def _add_box(
        self, what: str, box: Box, radius: float, color: Any, line_width: float | None = None
    ) -> None:
        paint = paint_of(what, "color", color)
        line = 0.0 if line_width is None else length_of(what, "line_width", line_width)
        if line_width is None or line:
            self._add(self._shapes(), _row(box, radius, line), paint)

    def _add_lines(self, what: str, points: list[Any], color: Any, line_width: float) -> None:
        half = length_of(what, "line_width", line_width) / 2
        through = [point_of(what, point) for point in points]
        paint, shapes = paint_of(what, "color", color), self._shapes()
        ends = through[1:] or through
        for (x0, y0), (x1, y1) in zip(through, ends, strict=False):
            length = math.hypot(x1 - x0, y1 - y0)
            along = ((x1 - x0) / length, (y1 - y0) / length) if length else (1.0, 0.0)
            middle = (x0 + x1) / 2, (y0 + y1) / 2
            row = (*middle, *along, length / 2 + half, half, half, 0.0, 0.0, 0.0)
            shapes.rows.append((*row, *paint, *self._clip, *_NO_LETTERS))
            shapes.groups.append(self._count)
        self._count += 1

    def _add_layer(self, kind: Any, frame: Frame, box: Box | None, colors: np.ndarray) -> None:
        self._count += 1
        if 0 not in frame.shape:
            self.parts.append(Layer(kind, frame, box, self._clip, colors.astype(np.float32)))


def text_size(
    text: Any, size: int = 16, font: Font = None, *, background: bool = False
) -> tuple[int, int]:
    """Returns the width and height of a text's box, with its background or without."""
    made = rendered_text("text_size", text, size, font)
    margin = text_margin(size) if background else 0
    return made.width + 2 * margin, made.height + 2 * margin


def text_margin(size: int) -> int:
    """Returns the margin of a text's background on each side, in pixels."""
    return max(1, round(size / 6))


def _row(box: Box, radius: float, line: float) -> tuple[float, ...]:
    """Returns a table row for a rectangle, or for its outline if the line has a width."""
    left, top, right, bottom = box
    long, wide = (right - left) / 2, (bottom - top) / 2
    corner = min(radius, long, wide)
    middle = (left + right) / 2, (top + bottom) / 2, 1.0, 0.0
    if not line:
        return (*middle, long, wide, corner, 0.0, 0.0, 0.0)
    half = line / 2
    hole = long - half, wide - half, max(corner - half, 0.0)
    if min(hole[:2]) <= 0:
        hole = 0.0, 0.0, 0.0
    return (*middle, long + half, wide + half, corner + half if corner else 0.0, *hole)


def _plane(what: str, name: str, given: Any) -> Frame:
    frame = frame_of(what, given)
    if len(frame.shape) != 2:
        raise ShapeError(f"{what}: {name} is {frame.shape}, but it has to be (height, width).")
    return frame
