"""Scales model results from an image's pixels to a surface's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dala.base.record import changed
from dala.errors import ArgumentError
from dala.kernels.base.shapes import number_within, positive_number
from dala.ml.results.results import Classification, Detection, Keypoint, Pose, Result, Segmentation

Size = tuple[int, int]
"""Width and height."""


def fitted_results(given: Any, size: Size, image_size: Any = None) -> list[Result]:
    """Returns the results in a surface's pixels, given those of the image that fills it."""
    across, down = _factors(size, image_size)
    return [_fitted(item, across, down) for item in _checked(given)]


def _checked(given: Any) -> list[Result]:
    results = [given] if isinstance(given, Result) or not isinstance(given, Iterable) else given
    made = list(results)
    for item in made:
        if not isinstance(item, Classification | Detection | Pose | Segmentation):
            raise ArgumentError(
                f"annotate: a result is a Classification, Detection, Pose or Segmentation, not "
                f"{type(item).__name__}: give what a model of images found, one or several."
            )
    return made


def _factors(size: Size, image_size: Any) -> tuple[float, float]:
    if image_size is None:
        return 1.0, 1.0
    if not isinstance(image_size, tuple | list) or len(image_size) != 2:
        raise ArgumentError(f"annotate: image_size is (width, height), not {image_size!r}.")
    across, down = (positive_number("annotate", "image_size", item) for item in image_size)
    return size[0] / across, size[1] / down


def _fitted(item: Result, across: float, down: float) -> Result:
    if isinstance(item, Segmentation):
        return changed(item, mask=item.mask.copy())  # masks are stretched over the picture anyway
    if isinstance(item, Pose):
        return changed(item, keypoints=_moved(item.keypoints, across, down))
    if isinstance(item, Detection):
        x0, y0, x1, y1 = (
            _place(f"the box of {item.label!r}", value, factor)
            for value, factor in zip(item.box, (across, down, across, down), strict=True)
        )
        if x1 < x0 or y1 < y0:
            raise ArgumentError(
                f"annotate: the box of {item.label!r} is x0, y0, x1, y1, but ends before it "
                f"begins: {item.box}."
            )
        points = _moved(item.keypoints, across, down)
        return changed(item, box=(x0, y0, x1, y1), keypoints=points)
    return item


def _moved(points: Mapping[str, Keypoint], across: float, down: float) -> dict[str, Keypoint]:
    return {
        name: changed(point, x=_place(name, point.x, across), y=_place(name, point.y, down))
        for name, point in points.items()
    }


def _place(what: str, value: Any, factor: float) -> float:
    """Returns a coordinate in pixels of the surface."""
    return number_within("annotate", f"a coordinate of {what}", value) * factor
