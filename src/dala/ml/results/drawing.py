"""Results as shapes over the image: boxes with names, points, skeletons, colored masks."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dala.base.record import record
from dala.devices import using
from dala.images.drawing import Drawing, text_size
from dala.images.drawing_renderer import draw, drawn
from dala.images.frames import frame_of, new_buffer
from dala.kernels.image.pixel_formats import convert
from dala.ml.results.results import (
    Box,
    Classification,
    Detection,
    Keypoint,
    Pose,
    Result,
    Segmentation,
    TextLine,
)

BONES = (
    ("left_shoulder", "right_shoulder"),
    ("left_hip", "right_hip"),
    *(
        (f"{side}_{start}", f"{side}_{end}")
        for side in ("left", "right")
        for start, end in (
            ("shoulder", "elbow"),
            ("elbow", "wrist"),
            ("shoulder", "hip"),
            ("hip", "knee"),
            ("knee", "ankle"),
        )
    ),
)
LEAST_SCORE = 0.3
"""Points of poses that are less sure are not drawn: the models say where hidden ones would be."""
MASK_ALPHA = 0.55
GOLDEN = (math.sqrt(5) - 1) / 2
"""Turning hues by this part of a circle keeps neighboring numbers far apart."""

Color = tuple[float, float, float, float]


@record
class Scale:
    """How thick lines and how large letters are, in pixels, on an image of a size."""

    width: int
    """Of the image, within which names stay."""
    line: float
    letters: int


def draw_results(results: Sequence[Result], image: Any) -> Any:
    """Returns a new image like the given one, with the results over it; a gray one becomes RGB."""
    frame = frame_of("draw", image)
    height, width = frame.shape[:2]
    drawing = Drawing()
    add_results(drawing, results, (width, height))
    if len(frame.shape) == 3:
        return drawn(image, drawing)
    gray = frame.buffer()
    with using(gray.memory.device):
        made = new_buffer((height, width, 3), gray.dtype)
        convert.run([gray], made, {"from": "gray", "to": "rgb"})
    draw(made, drawing)
    return frame.give_back(made)


def draw_alike(results: Sequence[Result], image: Any) -> Any:
    """Returns a new image with the results over it that is gray where the given one is."""
    height, width = frame_of("draw", image).shape[:2]
    drawing = Drawing()
    add_results(drawing, results, (width, height))
    return drawn(image, drawing)


def add_results(drawing: Drawing, results: Sequence[Result], size: tuple[int, int]) -> None:
    """Add the shapes of results, in the pixels of an image of that width and height."""
    short = min(size)
    scale = Scale(size[0], max(1.0, short / 200), round(min(max(short / 28, 9), 64)))
    classes = [item for item in results if isinstance(item, Classification)]
    for number, item in enumerate(results):
        if isinstance(item, Segmentation):
            _add_mask(drawing, item)
        elif isinstance(item, Detection):
            _add_detection(drawing, item, scale)
        elif isinstance(item, TextLine):
            as_box = Detection(item.box, item.text, item.score, 0, {}, None, item.corners or None)
            _add_detection(drawing, as_box, scale)
        elif isinstance(item, Pose):
            known = number if item.track is None else item.track
            _add_pose(drawing, item, color_of(known), scale)
    _add_classes(drawing, classes, scale)


def color_of(number: int, alpha: float = 1.0) -> Color:
    """Returns a bright color for a class or a person, the same for the same number."""
    red, green, blue = colorsys.hsv_to_rgb((0.05 + number * GOLDEN) % 1.0, 0.85, 1.0)
    return red, green, blue, alpha


def _add_detection(drawing: Drawing, found: Detection, scale: Scale) -> None:
    x0, y0, x1, y1 = found.box
    color = color_of(found.index if found.track is None else found.track)
    if found.mask is not None:
        drawing.fill_mask(found.mask.pixels.astype(np.float32), (*color[:3], MASK_ALPHA))
    if found.corners is None:
        drawing.draw_rect(x0, y0, x1 - x0, y1 - y0, color, line_width=2 * scale.line)
    else:
        around = (*found.corners[1:], found.corners[0])
        for one, other in zip(found.corners, around, strict=True):
            drawing.draw_line(*one, *other, color, line_width=2 * scale.line)
    _add_points(drawing, found.keypoints, color, scale)
    number = "" if found.track is None else f"{found.track} "
    _add_name(drawing, f"{number}{found.label} {found.score:.0%}", found.box, color, scale)


def _add_name(drawing: Drawing, text: str, box: Box, color: Color, scale: Scale) -> None:
    """The name on top of the box, or in it where there is no room above."""
    wide, tall = text_size(text, scale.letters, background=True)
    left = max(min(box[0], scale.width - wide), 0)
    top = box[1] - tall if box[1] >= tall else box[1]
    drawing.draw_text(text, left, top, scale.letters, _letters_on(color), background=color)


def _letters_on(color: Color) -> str:
    """Black or white, whichever can be read."""
    red, green, blue, _ = color
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.45 else "#ffffff"


def _add_pose(drawing: Drawing, pose: Pose, color: Any, scale: Scale) -> None:
    sure = {name: point for name, point in pose.keypoints.items() if point.score >= LEAST_SCORE}
    for start, end in BONES:
        if start in sure and end in sure:
            one, other = sure[start], sure[end]
            drawing.draw_line(one.x, one.y, other.x, other.y, color, line_width=2 * scale.line)
    _add_points(drawing, sure, color, scale)


def _add_points(
    drawing: Drawing, keypoints: Mapping[str, Keypoint], color: Any, scale: Scale
) -> None:
    for point in keypoints.values():
        drawing.fill_circle(point.x, point.y, 2.5 * scale.line, "#000000")
        drawing.fill_circle(point.x, point.y, 2.0 * scale.line, color)


def _add_mask(drawing: Drawing, found: Segmentation) -> None:
    if found.is_soft:
        drawing.fill_mask(found.mask, color_of(len(found.labels) - 1, MASK_ALPHA))
    else:
        colors = [color_of(number, MASK_ALPHA) for number in range(len(found.labels))]
        drawing.fill_labels(found.mask, [None, *colors[1:]])


def _add_classes(drawing: Drawing, found: Sequence[Classification], scale: Scale) -> None:
    if found:
        lines = "\n".join(f"{item.label} {item.score:.1%}" for item in found)
        drawing.draw_text(lines, 0, 0, scale.letters, "#ffffff", background="#000000a0")
