"""What `dala predict` writes: JSON lines, CSV, or a COCO document."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from dala.base.atomic_file import replace_file, temporary_path
from dala.base.record import record
from dala.errors import ArgumentError, FileError
from dala.ml.results.results import Classification, Detection, Pose, Segmentation

COLUMNS = (
    *("source", "frame", "time_s", "label", "index", "score"),
    *("x0", "y0", "x1", "y1", "track"),
)
FORMATS = ("jsonl", "csv", "coco")
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".json": "coco"}


@record
class Seen:
    """What was found in a picture or a frame."""

    source: str
    size: tuple[int, int]
    """Width and height."""
    results: Any
    frame: int | None = None
    time_s: float | None = None

    @property
    def items(self) -> list[Any]:
        return [self.results] if isinstance(self.results, Segmentation) else list(self.results)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values; pictures have no frame and no time."""
        width, height = self.size
        when = {} if self.frame is None else {"frame": self.frame, "time_s": self.time_s}
        results = self.results.to_dict()
        return {"source": self.source, **when, "width": width, "height": height, "results": results}


class Writing:
    """Text in one of the formats, written as results come, to a file or to standard output.

    A file appears under its name when all is written.
    """

    def __init__(self, format: str, target: Path | None) -> None:
        self.target = target
        self._draft = None if target is None else temporary_path(target)
        self._form = _FORMS[format]()
        self._file: Any = sys.stdout
        if self._draft is not None:
            try:
                self._draft.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._draft.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise FileError(f"{target} cannot be written: {error.strerror}.") from error

    def __enter__(self) -> Writing:
        self._file.write(self._form.begin())
        return self

    def add(self, seen: Seen) -> None:
        """Write what was found in one more picture or frame."""
        self._file.write(self._form.part(seen))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._file.write(self._form.end())
        if self._draft is None or self.target is None:
            sys.stdout.flush()
            return
        self._file.close()
        if kind is None:
            replace_file(self._draft, self.target)
        else:
            self._draft.unlink(missing_ok=True)


class _JsonLines:
    def begin(self) -> str:
        return ""

    def part(self, seen: Seen) -> str:
        return json.dumps(seen.to_dict(), ensure_ascii=False) + "\n"

    def end(self) -> str:
        return ""


class _Csv:
    def begin(self) -> str:
        return self._line(COLUMNS)

    def part(self, seen: Seen) -> str:
        when = (seen.source, seen.frame, seen.time_s)
        return "".join(self._line((*when, *row)) for item in seen.items for row in _cells(item))

    def end(self) -> str:
        return ""

    def _line(self, cells: tuple[Any, ...]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()


def _cells(item: Any) -> list[tuple[Any, ...]]:
    if isinstance(item, Segmentation):
        numbers = {label: index for index, label in enumerate(item.labels)}
        none = (None,) * 5
        return [(name, numbers[name], share, *none) for name, share in item.shares().items()]
    box = getattr(item, "box", None) or (None,) * 4
    return [(item.label, item.index, item.score, *box, getattr(item, "track", None))]


class _Coco:
    """Images, annotations and categories; the numbers of categories are those of classes and 1."""

    def __init__(self) -> None:
        self._images: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []
        self._categories: dict[int, str] = {}

    def begin(self) -> str:
        return ""

    def part(self, seen: Seen) -> str:
        number = len(self._images) + 1
        width, height = seen.size
        name = seen.source if seen.frame is None else f"{seen.source}#{seen.frame}"
        self._images.append({"id": number, "file_name": name, "width": width, "height": height})
        for item in seen.items:
            box = getattr(item, "box", None)
            if isinstance(item, Classification | Segmentation) or box is None:
                raise ArgumentError(
                    f"--format coco is for boxes, but the model gives {type(item).__name__}: "
                    f"choose jsonl or csv."
                )
            self._categories[item.index + 1] = item.label
            self._annotations.append(
                {"id": len(self._annotations) + 1, "image_id": number, **_annotation(item, box)}
            )
        return ""

    def end(self) -> str:
        named = [{"id": key, "name": self._categories[key]} for key in sorted(self._categories)]
        document = {"images": self._images, "annotations": self._annotations, "categories": named}
        return json.dumps(document, ensure_ascii=False) + "\n"


def _annotation(item: Detection | Pose, box: tuple[float, float, float, float]) -> dict[str, Any]:
    x0, y0, x1, y1 = box
    made: dict[str, Any] = {
        "category_id": item.index + 1,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "area": (x1 - x0) * (y1 - y0),
        "iscrowd": 0,
        "score": item.score,
    }
    if item.track is not None:
        made["track_id"] = item.track
    if item.keypoints:
        points = [
            (point.x, point.y, 2 if point.score >= 0.5 else 1) for point in item.keypoints.values()
        ]
        made["keypoints"] = [value for point in points for value in point]
        made["num_keypoints"] = len(points)
    if isinstance(item, Detection) and item.mask is not None:
        pixels = item.mask.pixels
        made["segmentation"] = {"size": list(pixels.shape), "counts": _runs_by_column(pixels)}
        made["area"] = int(pixels.sum())
    elif isinstance(item, Detection) and item.corners is not None:
        made["segmentation"] = [[value for corner in item.corners for value in corner]]
    return made


def _runs_by_column(pixels: np.ndarray) -> list[int]:
    """How many pixels are 0, then 1, then 0, column by column, as COCO counts them."""
    flat = pixels.T.reshape(-1).astype(np.int8)
    edges = np.flatnonzero(np.diff(flat, prepend=0))
    lengths: list[int] = np.diff(edges, prepend=0, append=flat.size).tolist()
    return lengths


_FORMS: dict[str, Callable[[], Any]] = {"jsonl": _JsonLines, "csv": _Csv, "coco": _Coco}
