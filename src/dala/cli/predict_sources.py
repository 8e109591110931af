"""What `dala predict` looks at: pictures, folders of them, the frames of videos, and cameras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dala.base.record import record
from dala.errors import ArgumentError, FileError
from dala.media.pictures.formats import READ_SUFFIXES
from dala.media.video.writing.encoding import SUFFIXES

CAMERA = "camera"
"""What names the first camera; others are camera:1, camera:2 and so on."""


@record
class Source:
    """One thing to look at, by the name that it was given or found by."""

    name: str
    kind: str
    """picture, video or camera."""

    @property
    def path(self) -> Path:
        return Path(self.name)


@record
class Looked:
    """A picture, or a frame with its number and its time."""

    image: Any
    metadata: Any = None
    frame: int | None = None
    time_s: float | None = None


def found_sources(given: Sequence[str]) -> list[Source]:
    """What is named; for a folder the pictures and videos in it, in the order of their names."""
    found: list[Source] = []
    for name in given:
        if name == CAMERA or name.startswith(f"{CAMERA}:"):
            _camera_number(name)
            found.append(Source(name, "camera"))
        elif Path(name).is_dir():
            inside = sorted(item for item in Path(name).iterdir() if item.is_file())
            known = [Source(str(item), _kind(item)) for item in inside if _is_known(item)]
            if not known:
                raise FileError(f"{name} has no pictures or videos in it.")
            found += known
        else:
            found.append(Source(name, _kind(Path(name))))
    return found


def looked_at(source: Source, largest_pixels: int | None) -> Iterator[Looked]:
    """The picture, or the frames one after another, as RGB."""
    if source.kind == "picture":
        from dala.media.pictures.files import load

        image, metadata = load(source.name, largest_pixels=largest_pixels, with_metadata=True)
        yield Looked(image, metadata)
        return
    with _opened(source, largest_pixels) as opened:
        for frame in opened:
            yield Looked(frame.image(), None, frame.index, frame.time_s)


def _opened(source: Source, largest_pixels: int | None) -> Any:
    if source.kind == "camera":
        from dala.media.camera import camera

        return camera(_camera_number(source.name))
    from dala.media.video.reading.source_opening import open_source

    return open_source(source.name, largest_pixels=largest_pixels)


def _camera_number(name: str) -> int:
    number = name.removeprefix(CAMERA).removeprefix(":") or "0"
    if not number.isascii() or not number.isdigit():
        raise ArgumentError(f"{name} is no camera: they are {CAMERA}, {CAMERA}:1 and so on.")
    return int(number)


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    return "video" if suffix in SUFFIXES or suffix == ".gif" else "picture"


def _is_known(path: Path) -> bool:
    suffix = path.suffix.lower()
    return suffix in READ_SUFFIXES or suffix in SUFFIXES
