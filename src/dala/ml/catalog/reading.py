"""How an image is put into a model, and what the model's outputs mean."""

from __future__ import annotations

from typing import Any, Literal

from dala.base.deprecation import RenamedKeys
from dala.base.record import record
from dala.ml.catalog.labels import labels

Task = Literal["classification", "detection", "pose", "segmentation", "text", "speech"]
Layout = Literal["nchw", "nhwc"]
Dtype = Literal["f32", "f16", "u8"]
Normal = Literal["imagenet", "unit", "signed", "levels"]
Fit = Literal["stretch", "crop", "letterbox"]
Decoding = Literal[
    "softmax",
    "yolo",
    "blazeface",
    "posenet",
    "argmax",
    "probability",
    "text_regions",
    "text_lines",
    "speech",
    "grid_boxes",
]
RENAMED = {"licence": "license"}
"""Keys of descriptions that are deprecated, and what they are called now."""


@record
class Reading:
    """How a model is fed and read: that of the catalog, or what a file tells of itself."""

    name: str
    task: Task
    doc: str
    size: tuple[int, int]
    """Width and height of the input."""
    layout: Layout
    dtype: Dtype
    normalize: Normal
    """The input's values: "unit" 0..1, "signed" −1..1, "levels" 0..255, or by ImageNet's mean."""
    fit: Fit
    """How an image of another shape is brought to that size."""
    labels: str | tuple[str, ...]
    """The list that the indices of the output count in, or the labels themselves; none are known
    where they are empty, and numbers stand for them."""
    decoding: Decoding
    settings: dict[str, Any]
    """The numbers that the decoding needs; "fill" is the gray around what is letterboxed, "resize"
    what the shorter side is made of before the middle is cropped."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the input, as arrays have them."""
        return self.size[1], self.size[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The labels, in the order in which the model counts them."""
        return labels(self.labels) if isinstance(self.labels, str) else self.labels

    def names_of(self, count: int) -> tuple[str, ...]:
        """The labels, of which there are as many as the model has classes; else their numbers."""
        found = self.names
        return found if len(found) == count else tuple(map(str, range(count)))

    def describe(self) -> dict[str, Any]:
        """Returns the same as plain values, for programs and documentation."""
        return RenamedKeys({key: _plain(value) for key, value in vars(self).items()}, RENAMED)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
