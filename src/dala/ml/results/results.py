"""What models find in an image: classes, boxes, poses, masks.

Places are in the image's own pixels, x to the right and y down from its upper left corner, as
floats: the center of the first pixel is at (0.5, 0.5). Left and right of a person are the person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from dala.base.record import record, value

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1: left, top, right, bottom."""
Point = tuple[float, float]

SOFT_EDGE = 0.5
"""From this probability on a pixel counts as part of what a soft mask shows."""


class Result:
    """Something found in an image, over which it can be drawn."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain numbers, texts, lists and mappings."""
        return dict(vars(self))

    def draw(self, image: Any) -> Any:
        """A new image like the given one (an array, a Pillow image, a Buffer), with this over it.

        It is drawn on the current device; the given image stays as it is.
        """
        from dala.ml.results.drawing import draw_results

        return draw_results([self], image)


@value
class Keypoint:
    """A point of a face or a body, and how sure the model is of it."""

    x: float
    y: float
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain numbers."""
        return dict(vars(self))


@value
class Classification(Result):
    """A class that an image may show: its number, its name, its probability."""

    index: int
    label: str
    score: float


@record
class Mask:
    """Which pixels of an image show a thing, as truth values (height, width)."""

    pixels: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.pixels, dtype) if copy else np.asarray(self.pixels, dtype)

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain values: row by row runs [0 or 1, how many pixels]."""
        flat = self.pixels.reshape(-1).astype(np.uint8)
        return {"shape": list(self.pixels.shape), "runs": _runs(flat)}


@value
class Detection(Result):
    """A thing in an image: the box around it, within the image, and what it is."""

    box: Box
    label: str
    score: float
    index: int = 0
    """The number of its class."""
    keypoints: Mapping[str, Keypoint] = MappingProxyType({})
    """By name, where the model gives any; they have the score of the whole."""
    mask: Mask | None = None
    """Its pixels, where the model tells them."""
    corners: tuple[Point, ...] | None = None
    """Those of a box that need not be upright, one after another, where the model gives such."""
    track: int | None = None
    """The number by which it is known from frame to frame, where it is tracked."""

    def to_dict(self) -> dict[str, Any]:
        own = {**vars(self), "box": list(self.box), "keypoints": _plain(self.keypoints)}
        own["mask"] = None if self.mask is None else self.mask.to_dict()
        own["corners"] = None if self.corners is None else [list(item) for item in self.corners]
        return _known(own)


@value
class Pose(Result):
    """A person: key points by name, and the mean of their scores."""

    keypoints: Mapping[str, Keypoint]
    score: float
    box: Box | None = None
    """Around the person, where the model gives one."""
    label: str = "person"
    index: int = 0
    track: int | None = None
    """The number by which they are known from frame to frame, where they are tracked."""

    def to_dict(self) -> dict[str, Any]:
        own = {"keypoints": _plain(self.keypoints), "score": self.score, "track": self.track}
        if self.box is not None:
            own |= {"box": list(self.box), "label": self.label, "index": self.index}
        return _known(own)


@value
class TextLine(Result):
    """A line of text in an image: what it says, how sure that is, and where it is."""

    text: str
    score: float
    box: Box
    corners: tuple[Point, ...] = ()
    """Those of the line, which need not be upright, one after another."""

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "box": list(self.box), "corners": [list(p) for p in self.corners]}


@record
class Segmentation(Result):
    """What each pixel of an image shows.

    The mask is (height, width): numbers of labels as u8, or of a soft mask, f32, the probability of
    the last label, the one before being everything else.
    """

    mask: np.ndarray
    labels: tuple[str, ...]

    @property
    def is_soft(self) -> bool:
        """Whether the mask has probabilities, not numbers of labels."""
        return bool(self.mask.dtype.kind == "f")

    @property
    def classes(self) -> np.ndarray:
        """The number of the label of each pixel, as u8: of a soft mask, the likelier one."""
        if not self.is_soft:
            return self.mask
        last = len(self.labels) - 1
        return np.where(self.mask >= SOFT_EDGE, last, last - 1).astype(np.uint8)

    def shares(self) -> dict[str, float]:
        """The labels that are there and the part of the image that each has, the largest first."""
        classes = self.classes
        counts = np.bincount(classes.reshape(-1), minlength=len(self.labels))
        order = sorted(np.flatnonzero(counts).tolist(), key=lambda index: -counts[index])
        return {self.labels[index]: float(counts[index] / classes.size) for index in order}

    def to_dict(self) -> dict[str, Any]:
        """Returns the same as plain values: the mask row by row as runs [value, how many pixels].

        Values are numbers of labels, or of a soft mask probabilities in steps of 1/255.
        """
        flat = self.mask.reshape(-1)
        if self.is_soft:
            flat = np.rint(np.nan_to_num(flat).clip(0, 1) * 255).astype(np.uint8)
        runs = _runs(flat)
        if self.is_soft:
            runs = [[level / 255, count] for level, count in runs]
        return {
            "shape": list(self.mask.shape),
            "soft": self.is_soft,
            "labels": list(self.labels),
            "runs": runs,
        }


Item = TypeVar("Item", bound=Result)


class Results(list[Item]):
    """The results for one image, the surest first: a list that can be drawn as one."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        super().__init__(items)

    def draw(self, image: Any) -> Any:
        """A new image like the given one (an array, a Pillow image, a Buffer), with all over it."""
        from dala.ml.results.drawing import draw_results

        return draw_results(self, image)

    def to_dict(self) -> list[dict[str, Any]]:
        """Returns every result as plain values, in a list."""
        return [item.to_dict() for item in self]


def _plain(keypoints: Mapping[str, Keypoint]) -> dict[str, Any]:
    return {name: point.to_dict() for name, point in keypoints.items()}


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """The values without those that a model does not give."""
    optional = ("mask", "corners", "track", "box")
    return {key: item for key, item in values.items() if item is not None or key not in optional}


def _runs(levels: np.ndarray) -> list[list[Any]]:
    """Each value and how often it comes until another one does, of a flat array of u8."""
    starts = np.flatnonzero(np.diff(levels.astype(np.int16), prepend=-1))
    lengths = np.diff(starts, append=levels.size)
    return [list(run) for run in zip(levels[starts].tolist(), lengths.tolist(), strict=True)]
