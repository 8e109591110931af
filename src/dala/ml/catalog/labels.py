"""The names of classes and key points, in the order in which models count them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dala.errors import ArgumentError

_FOLDER = Path(__file__).parent / "label_lists"
LISTS = ("coco", "document", "face", "face_keypoints", "imagenet", "keypoints", "person", "voc")


@cache
def labels(name: str) -> tuple[str, ...]:
    """The labels of a list, such as "imagenet"; the file is read when they are first asked for."""
    if name not in LISTS:
        raise ArgumentError(f"no list of labels is named {name!r}: there are {', '.join(LISTS)}.")
    lines = (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))
